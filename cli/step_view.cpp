#include "cli/step_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/common.h"
#include "models/suggest.h"

namespace tally::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string first_values(const ValueSummary& s) {
  std::string text;
  for (double v : s.first) text += fmt::format("{}{:.5g}", text.empty() ? "" : " ", v);
  if (static_cast<int64_t>(s.first.size()) < s.count) text += " ...";
  return text;
}

std::string figure(const WalkedView& v, double value) {
  return v.values.count > v.values.nans + v.values.infinities ? fmt::format("{:.4g}", value) : "-";
}

std::string saved_text(const WalkedCall& c) {
  std::string text;
  for (const SavedNote& s : c.saved)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", s.name.empty() ? "a tensor" : s.name,
                        s.shape.to_text(),
                        s.kept_anyway ? " (kept anyway)" : " (" + bytes_text(s.bytes) + ")");
  return text;
}

std::vector<std::string> distinct(const Walk& walk, bool module) {
  std::vector<std::string> names;
  for (const WalkedCall& c : walk.calls) {
    const std::string name = module ? c.entry.module : c.entry.op;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

void check_known(const char* option, const std::string& wanted, const Walk& walk, bool module) {
  const auto names = distinct(walk, module);
  check(std::any_of(names.begin(), names.end(),
                    [&](const std::string& n) { return n.starts_with(wanted); }),
        option, ": no call of this step is ", module ? "in " : "named ", wanted,
        did_you_mean(wanted, names));
}

Json summary_json(const ValueSummary& s) {
  Json json = {{"count", s.count}, {"nan", s.nans}, {"infinite", s.infinities},
               {"min", s.min},     {"max", s.max},  {"mean", s.mean},
               {"rms", s.rms}};
  Json first = Json::array();  // JSON knows no NaN: as texts
  for (double v : s.first) first.push_back(std::isfinite(v) ? Json(v) : Json(to_text(v)));
  json["first"] = first;
  return json;
}

Json call_json(const WalkedCall& c) {
  Json views = Json::array(), saved = Json::array();
  for (const WalkedView& v : c.views) {
    Json shape = Json::array();
    for (int i = 0; i < v.shape.ndim(); ++i) shape.push_back(v.shape[i]);
    views.push_back({{"name", v.name},
                     {"shape", shape},
                     {"dtype", to_text(v.dtype)},
                     {"output", v.output},
                     {"updated", v.updated},
                     {"values", summary_json(v.values)}});
  }
  for (const SavedNote& s : c.saved)
    saved.push_back({{"name", s.name}, {"bytes", s.bytes}, {"kept_anyway", s.kept_anyway}});
  const Entry& e = c.entry;
  return {{"number", c.number},
          {"phase", to_text(e.phase)},
          {"module", e.module},
          {"op", e.op},
          {"kind", to_text(e.kind)},
          {"formula", c.formula},
          {"flops", e.cost.flops},
          {"bytes_read", e.cost.bytes_read},
          {"bytes_written", e.cost.bytes_written},
          {"live_bytes", e.live},
          {"seconds", e.seconds},
          {"provider", e.provider},
          {"saved_bytes", c.saved_bytes()},
          {"saved", saved},
          {"views", views}};
}

}  // namespace

std::vector<std::vector<std::string>> operand_rows(const WalkedCall& c) {
  Rows rows = {{"", "shape", "dtype", "min", "mean", "max", "rms", "not finite", "first values"}};
  for (const WalkedView& v : c.views) {
    const ValueSummary& s = v.values;
    rows.push_back({(v.output ? v.updated ? "+> " : "-> " : "   ") + v.name, v.shape.to_text(),
                    to_text(v.dtype), figure(v, s.min), figure(v, s.mean), figure(v, s.max),
                    figure(v, s.rms), s.finite() ? "" : to_text(s.nans + s.infinities),
                    first_values(s)});
  }
  const bool all_finite = std::all_of(c.views.begin(), c.views.end(),
                                      [](const WalkedView& v) { return v.values.finite(); });
  if (all_finite) {
    for (auto& row : rows) row.erase(row.begin() + 7);
  }
  return rows;
}

std::string flops_text(double flops) {
  const std::string n = short_number(flops);
  return n + (n.find(' ') == std::string::npos ? " FLOP" : "FLOP");
}

std::string cost_line(const WalkedCall& c) {
  const Entry& e = c.entry;
  std::string text = fmt::format("{}, {} read, {} written, {} live", flops_text(e.cost.flops),
                                 bytes_text(e.cost.bytes_read), bytes_text(e.cost.bytes_written),
                                 bytes_text(e.live));
  if (!c.saved.empty()) text += "; saved: " + saved_text(c);
  if (e.fallback) text += "; the reference loops stood in";
  return text;
}

std::vector<WalkedCall> filtered(const Walk& walk, const StepFilter& f) {
  const auto last = static_cast<int64_t>(walk.calls.size());
  const int64_t to = f.to > 0 ? std::min(f.to, last) : last;
  check(f.from >= 1 && f.from <= to, "--from ", f.from, " --to ", f.to > 0 ? f.to : last,
        ": no call has such a number; the step has calls 1 to ", last);
  if (!f.op.empty()) check_known("--op", f.op, walk, false);
  if (!f.module.empty()) check_known("--module", f.module, walk, true);
  std::vector<WalkedCall> calls;
  for (const WalkedCall& c : walk.calls) {
    if (c.number >= f.from && c.number <= to && std::string_view(c.entry.op).starts_with(f.op) &&
        std::string_view(c.entry.module).starts_with(f.module))
      calls.push_back(c);
  }
  check(!calls.empty(), "step: no call of ", f.op.empty() ? "any op" : f.op, " in ",
        f.module.empty() ? "any layer" : f.module, " is among calls ", f.from, " to ", to);
  return calls;
}

std::string step_text(std::span<const WalkedCall> calls) {
  std::string text;
  for (const WalkedCall& c : calls) {
    const Entry& e = c.entry;
    text += fmt::format("{}  {}  {}{}\n    {}\n    {}\n", c.number, to_text(e.phase), e.op,
                        *e.module ? fmt::format("  in {}", e.module) : "", c.formula, cost_line(c));
    const std::string table = table_text(operand_rows(c));
    for (size_t at = 0; at < table.size();) {
      const size_t end = table.find('\n', at);
      text += "    " + table.substr(at, end - at) + "\n";
      at = end + 1;
    }
    text += "\n";
  }
  return text;
}

Json step_json(std::span<const WalkedCall> calls) {
  Json list = Json::array();
  for (const WalkedCall& c : calls) list.push_back(call_json(c));
  return list;
}

}  // namespace tally::cli
