#include "core/ledger.h"

#include <array>
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

// The columns of an entry but for time and provider, which only a real run has.
std::array<std::string, 12> columns(const Entry& e) {
  std::string shapes;
  for (const Shape& s : e.shapes) {
    if (!shapes.empty()) shapes += ' ';
    shapes += to_text(s);
  }
  return {e.op,
          to_text(e.kind),
          to_text(e.phase),
          e.module,
          to_text(e.dtype),
          shapes,
          to_text(e.cost.flops),
          to_text(e.cost.bytes_read),
          to_text(e.cost.bytes_written),
          to_text(e.model.full),
          to_text(e.model.causal),
          to_text(e.device)};
}
constexpr std::array<const char*, 12> kNames = {"op",
                                                "kind",
                                                "phase",
                                                "module",
                                                "dtype",
                                                "shapes",
                                                "flops",
                                                "bytes_read",
                                                "bytes_written",
                                                "model_flops_full",
                                                "model_flops_causal",
                                                "device"};
constexpr bool is_number(size_t column) { return column >= 6 && column <= 10; }

std::string quoted(const std::string& text, char escape) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || (c == '\\' && escape == '\\')) out += escape;
    out += c;
  }
  return out + '"';
}

}  // namespace

Ledger::Ledger() : outer_(recorder().ledger), began_(std::chrono::steady_clock::now()) {
  recorder().ledger = this;
}
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
  return totals([by](const Entry& e) { return key_of(e, by); });
}

std::vector<LedgerTotal> Ledger::totals(const std::function<std::string(const Entry&)>& key) const {
  std::vector<LedgerTotal> rows;
  std::map<std::string, size_t> place;
  for (const Entry& e : entries_) {
    const auto [it, added] = place.try_emplace(key(e), rows.size());
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
    const auto c = columns(e);
    for (size_t i = 0; i < 9; ++i) {
      if (i) out += "  ";
      out += c[i].empty() ? "-" : c[i];
    }
    if (timing) {
      out += "  " + to_text(e.seconds) + " s  ";
      out += e.provider;
      if (e.fallback) out += "  reference loops stood in";
    }
    out += '\n';
  }
  return out;
}

std::string Ledger::csv() const {
  std::string out;
  for (const char* name : kNames) {
    out += name;
    out += ',';
  }
  out += "seconds,provider,fallback\n";
  for (const Entry& e : entries_) {
    const auto c = columns(e);
    for (size_t i = 0; i < c.size(); ++i) {
      out += is_number(i) ? c[i] : quoted(c[i], '"');
      out += ',';
    }
    out += to_text(e.seconds) + ',' + quoted(e.provider, '"') + (e.fallback ? ",1\n" : ",0\n");
  }
  return out;
}

std::string Ledger::json() const {
  std::string out = "[";
  for (const Entry& e : entries_) {
    const auto c = columns(e);
    out += out.size() > 1 ? ",\n{" : "\n{";
    for (size_t i = 0; i < c.size(); ++i) {
      out += quoted(kNames[i], '\\') + ": " + (is_number(i) ? c[i] : quoted(c[i], '\\')) + ", ";
    }
    out += "\"seconds\": " + to_text(e.seconds) + ", \"provider\": " + quoted(e.provider, '\\');
    out += e.fallback ? ", \"fallback\": true}" : ", \"fallback\": false}";
  }
  return out + "\n]\n";
}

}  // namespace tally
