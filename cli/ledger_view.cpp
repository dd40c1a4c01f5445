#include "cli/ledger_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backends/cpu/ceilings.h"
#include "cli/chart.h"
#include "cli/common.h"

namespace tally::cli {
namespace {

double bytes_of(const Cost& c) { return c.bytes_read + c.bytes_written; }
double intensity(const LedgerTotal& t) {
  return bytes_of(t.cost) > 0 ? t.cost.flops / bytes_of(t.cost) : 0;
}

std::string key_of(const Entry& e, const std::string& by) {
  if (by == "op") return e.op;
  if (by == "layer") return *e.module ? e.module : "(outside)";
  if (by == "class") return class_of(e);
  check(by == "phase", "--by: must be op, layer, class or phase; got '", by, "'");
  return to_text(e.phase);
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.2f}%", 100 * part / whole) : "-";
}

// What an op reaches of what its intensity allows.
double roof_share(const LedgerTotal& t, const Ceilings& c) {
  const double flops = t.cost.flops / t.seconds, bytes = bytes_of(t.cost) / t.seconds;
  if (t.cost.flops > 0 && intensity(t) > 0) return flops / c.roof(intensity(t));
  return c.memory() > 0 ? bytes / c.memory() : 0;
}

// As a figure, or "-" for calls so short that the clock's own error would be most of it.
/// Too short to have been timed: rates would be the clock's.
bool untimed(const LedgerTotal& t) { return t.seconds < 10e-6; }
/// Thousand millions of `work` a second.
std::string rate_text(const LedgerTotal& t, double work) {
  return untimed(t) ? "-" : fmt::format("{:.3g}", work / t.seconds / 1e9);
}
std::string roof_text(const LedgerTotal& t, const Ceilings& c) {
  return untimed(t) ? "-" : fmt::format("{:.0f}%", 100 * roof_share(t, c));
}

struct ClassTotals {
  std::vector<std::string> names;
  std::vector<LedgerTotal> totals;
};
constexpr std::array<const char*, 5> kClasses = {"contraction", "normalization", "elementwise",
                                                 "movement", "optimizer"};
ClassTotals class_totals(std::span<const Entry> calls) {
  ClassTotals c;
  const auto all = sorted_totals(calls, "class");
  for (const char* name : kClasses) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const LedgerTotal& t) { return t.key == name; });
    c.names.push_back(name);
    c.totals.push_back(found == all.end() ? LedgerTotal{name, {}, {}, 0, 0} : *found);
  }
  return c;
}

LedgerTotal sum(const std::vector<LedgerTotal>& rows) {
  LedgerTotal all{"all", {}, {}, 0, 0};
  for (const LedgerTotal& t : rows) {
    all.cost += t.cost;
    all.seconds += t.seconds;
    all.calls += t.calls;
  }
  return all;
}

}  // namespace

Ceilings measure_ceilings(DType dtype) {
  Ceilings c;
  c.flops = dtype == DType::bf16 ? cpu::measure_bf16_peak() : cpu::measure_fma_peak();
  for (const cpu::MemoryLevel& l : cpu::measure_memory_levels())
    c.levels.push_back({l.name, l.read});
  return c;
}

std::vector<LedgerTotal> sorted_totals(std::span<const Entry> calls, const std::string& by) {
  std::vector<LedgerTotal> rows;
  std::map<std::string, size_t> place;
  for (const Entry& e : calls) {
    const auto [it, added] = place.try_emplace(key_of(e, by), rows.size());
    if (added) rows.push_back({it->first, {}, {}, 0, 0});
    LedgerTotal& row = rows[it->second];
    row.cost += e.cost;
    row.model += e.model;
    row.seconds += e.seconds;
    ++row.calls;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const LedgerTotal& a, const LedgerTotal& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.cost.flops > b.cost.flops;
  });
  return rows;
}

Rows rate_rows(const std::vector<LedgerTotal>& totals, const std::string& by,
               const Ceilings& ceilings) {
  const LedgerTotal all = sum(totals);
  Rows rows = {
      {by, "calls", "ms", "time", "GFLOP", "FLOPs", "MB", "GFLOP/s", "GB/s", "FLOP/B", "of roof"}};
  const auto row = [&](const LedgerTotal& t) {
    rows.push_back({t.key, to_text(t.calls), fmt::format("{:.3f}", 1e3 * t.seconds),
                    percent(t.seconds, all.seconds), fmt::format("{:.4g}", t.cost.flops / 1e9),
                    percent(t.cost.flops, all.cost.flops),
                    fmt::format("{:.4g}", bytes_of(t.cost) / 1e6), rate_text(t, t.cost.flops),
                    rate_text(t, bytes_of(t.cost)), fmt::format("{:.3g}", intensity(t)),
                    roof_text(t, ceilings)});
  };
  for (const LedgerTotal& t : totals) row(t);
  row(all);
  return rows;
}

Rows share_rows(std::span<const Entry> calls) {
  const ClassTotals c = class_totals(calls);
  const LedgerTotal all = sum(c.totals);
  Rows rows = {{"class", "FLOPs", "bytes", "time", "FLOP/B"}};
  for (const LedgerTotal& t : c.totals)
    rows.push_back({t.key, percent(t.cost.flops, all.cost.flops),
                    percent(bytes_of(t.cost), bytes_of(all.cost)), percent(t.seconds, all.seconds),
                    fmt::format("{:.3g}", intensity(t))});
  return rows;
}

std::string share_picture(std::span<const Entry> calls) {
  const ClassTotals c = class_totals(calls);
  std::vector<chart::Shares> rows = {{"FLOPs", {}}, {"bytes", {}}, {"time", {}}};
  for (const LedgerTotal& t : c.totals) {
    rows[0].values.push_back(t.cost.flops);
    rows[1].values.push_back(bytes_of(t.cost));
    rows[2].values.push_back(t.seconds);
  }
  if (sum(c.totals).seconds <= 0) rows.pop_back();
  return chart::share_bars(c.names, rows);
}

std::string roofline_picture(const std::vector<LedgerTotal>& by_op, const Ceilings& c) {
  constexpr double kLow = 0.01, kHigh = 1000;
  std::vector<chart::Series> series;
  for (const Ceilings::Level& level : c.levels) {
    chart::Series s{level.name, {}, {}, false, true};
    for (double x : {kLow, c.flops / level.read, kHigh}) {
      s.x.push_back(x);
      s.y.push_back(std::min(c.flops, x * level.read) / 1e9);
    }
    series.push_back(std::move(s));
  }
  std::vector<chart::Mark> marks;
  int number = 0;
  for (const LedgerTotal& t : by_op) {
    ++number;
    if (t.cost.flops <= 0 || t.seconds <= 0 || number > 20) continue;
    marks.push_back(
        {std::clamp(intensity(t), kLow, kHigh), t.cost.flops / t.seconds / 1e9, to_text(number)});
  }
  return chart::plot({"intensity (FLOPs per byte)", true, kLow, kHigh},
                     {"GFLOP/s", true, 0.1, 1000.0 * std::ceil(c.flops / 1e12)}, series, marks);
}

Rows roofline_rows(const std::vector<LedgerTotal>& by_op, const Ceilings& c) {
  Rows rows = {{"dot", "op", "FLOP/B", "GFLOP/s", "GB/s", "of roof"}};
  int number = 0;
  for (const LedgerTotal& t : by_op) {
    ++number;
    if (number > 20) break;
    rows.push_back({to_text(number), t.key, fmt::format("{:.3g}", intensity(t)),
                    rate_text(t, t.cost.flops), rate_text(t, bytes_of(t.cost)), roof_text(t, c)});
  }
  return rows;
}

std::string memory_picture(std::span<const Entry> calls) {
  if (calls.empty()) return "";
  chart::Series s{"live", {}, {}};
  const Entry* peak = &calls[0];
  double at = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    s.x.push_back(static_cast<double>(i));
    s.y.push_back(calls[i].live / 1e6);
    if (calls[i].live > peak->live) {
      peak = &calls[i];
      at = static_cast<double>(i);
    }
  }
  return chart::plot(
      {"call of the step (number)"}, {"live memory (MB)", false, 0.0}, {s},
      {{at, peak->live / 1e6, fmt::format("{}: {}", peak->op, bytes_text(peak->live))}});
}

Rows memory_rows(std::span<const Entry> calls) {
  Rows rows = {{"phase", "least live", "most live", "at the call", "layer"}};
  std::vector<std::pair<std::string, std::pair<double, const Entry*>>> phases;
  for (const Entry& e : calls) {
    const std::string phase = to_text(e.phase);
    auto found =
        std::find_if(phases.begin(), phases.end(), [&](const auto& p) { return p.first == phase; });
    if (found == phases.end()) {
      phases.push_back({phase, {e.live, &e}});
      continue;
    }
    found->second.first = std::min(found->second.first, e.live);
    if (e.live > found->second.second->live) found->second.second = &e;
  }
  for (const auto& [phase, p] : phases)
    rows.push_back(
        {phase, bytes_text(p.first), bytes_text(p.second->live), p.second->op, p.second->module});
  return rows;
}

}  // namespace tally::cli
