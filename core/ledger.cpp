#include "core/ledger.h"

#include <map>

namespace tally {
namespace {

std::string key_of(const Entry& e, Ledger::By by) {
  switch (by) {
    case Ledger::By::op:
      return e.op;
    case Ledger::By::layer:
      return *e.module ? e.module : "(outside)";
    case Ledger::By::kind:
      return to_text(e.kind);
    case Ledger::By::phase:
      break;
  }
  return to_text(e.phase);
}

std::string join(std::initializer_list<std::string> parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

std::string shapes_text(const Entry& e) {
  std::string text;
  for (const Shape& s : e.shapes) text += (text.empty() ? "" : " ") + to_text(s);
  return text;
}

}  // namespace

Ledger::Ledger() : outer_(recorder().ledger) { recorder().ledger = this; }
Ledger::~Ledger() { recorder().ledger = outer_; }

Cost Ledger::total() const {
  Cost sum;
  for (const Entry& e : entries_) sum += e.cost;
  return sum;
}

ModelFlops Ledger::model_total() const {
  ModelFlops sum;
  for (const Entry& e : entries_) sum += e.model;
  return sum;
}

std::vector<LedgerTotal> Ledger::totals(By by) const {
  std::vector<LedgerTotal> rows;
  std::map<std::string, size_t> place;
  for (const Entry& e : entries_) {
    const auto [it, added] = place.try_emplace(key_of(e, by), rows.size());
    if (added) rows.push_back({it->first, {}, {}, 0, 0});
    LedgerTotal& row = rows[it->second];
    row.cost += e.cost;
    row.model += e.model;
    row.seconds += e.seconds;
    ++row.calls;
  }
  return rows;
}

std::string Ledger::text(bool timing) const {
  std::string out;
  for (const Entry& e : entries_) {
    out += join({e.op, to_text(e.kind), to_text(e.phase), *e.module ? e.module : "-",
                 to_text(e.dtype), shapes_text(e), to_text(e.cost.flops),
                 to_text(e.cost.bytes_read), to_text(e.cost.bytes_written)},
                "  ");
    if (timing)
      out += "  " + to_text(e.seconds) + " s  " + e.provider +
             (e.fallback ? "  reference loops stood in" : "");
    out += '\n';
  }
  return out;
}

std::string Ledger::csv() const {
  std::string out =
      "op,kind,phase,module,device,dtype,shapes,flops,bytes_read,bytes_written,model_flops_full,"
      "model_flops_causal,seconds,provider,fallback\n";
  for (const Entry& e : entries_) {
    out += join({e.op, to_text(e.kind), to_text(e.phase), e.module, to_text(e.device),
                 to_text(e.dtype), '"' + shapes_text(e) + '"', to_text(e.cost.flops),
                 to_text(e.cost.bytes_read), to_text(e.cost.bytes_written), to_text(e.model.full),
                 to_text(e.model.causal), to_text(e.seconds), e.provider, e.fallback ? "1" : "0"},
                ",") +
           '\n';
  }
  return out;
}

}  // namespace tally
