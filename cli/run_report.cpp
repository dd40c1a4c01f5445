#include "cli/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/chart.h"
#include "cli/common.h"
#include "cli/ledger_view.h"
#include "cli/page.h"
#include "cli/probe_view.h"
#include "cli/run_files.h"
#include "data/file.h"

namespace tally::cli {
namespace {

constexpr size_t kTableRows = 12;

// What the curves of a run are called, and their units.
struct Plot {
  const char* title;
  const char* unit;
  std::vector<std::pair<const char*, const char*>> fields;  // field of metrics.jsonl, name
  bool logarithmic = false;
  double scale = 1;
};
const std::vector<Plot>& plots() {
  static const std::vector<Plot> all = {
      {"Loss", "loss (nats per token)", {{"loss", "training"}, {"val_loss", "validation"}}},
      {"Bits per byte", "validation (bits per byte)", {{"val_bits_per_byte", "validation"}}},
      {"Learning rate", "learning rate", {{"lr", "learning rate"}}},
      {"Gradient norm", "global norm before clipping", {{"grad_norm", "norm"}}, true},
      {"log Z", "mean of log Z (nats)", {{"log_z", "log Z"}}},
      {"Speed", "thousand tokens per second", {{"tokens_per_s", "thousand tokens/s"}}, false, 1e-3},
      {"Share of peak", "products, % of the FMA peak", {{"flops_per_s", "% of peak"}}},
  };
  return all;
}

std::string number(double v) {
  return v == std::floor(v) && std::fabs(v) < 1e15 ? fmt::format("{:.0f}", v)
                                                   : fmt::format("{:.6g}", v);
}

// Which steps a table shows: those of the curve with the fewest points (validation, as a rule), or
// all where it has too few; of them about twelve at even distances, and the last one.
std::vector<double> table_steps(const std::vector<chart::Series>& series) {
  std::set<double> all;
  const chart::Series* fewest = &series[0];
  for (const chart::Series& s : series) {
    all.insert(s.x.begin(), s.x.end());
    if (s.x.size() < fewest->x.size()) fewest = &s;
  }
  if (all.empty()) return {};
  const double last = *all.rbegin();
  if (fewest->x.size() >= 4) all = {fewest->x.begin(), fewest->x.end()};
  const auto ticks = chart::ticks(0, std::max(last, 1.0), kTableRows);
  const double each = std::max(1.0, std::round(ticks[1] - ticks[0]));
  std::vector<double> steps;
  for (double s : all) {
    if (std::fmod(s, each) == 0) steps.push_back(s);
  }
  if (steps.size() < 4) {  // logged at other steps than round ones
    steps.clear();
    const size_t stride = (all.size() + kTableRows - 1) / kTableRows;
    size_t k = 0;
    for (double s : all) {
      if (++k % stride == 0) steps.push_back(s);
    }
  }
  if (steps.empty() || steps.back() != last) steps.push_back(last);
  return steps;
}

// Empty cells where a curve has no value.
Rows curve_rows(const std::vector<chart::Series>& series) {
  Rows rows = {{"step"}};
  for (const chart::Series& s : series) rows[0].push_back(s.name);
  for (double step : table_steps(series)) {
    std::vector<std::string> row = {fmt::format("{:.0f}", step)};
    for (const chart::Series& s : series) {
      const auto at = std::find(s.x.rbegin(), s.x.rend(), step);  // the last, after a resumption
      row.push_back(at == s.x.rend() ? "" : number(s.y[static_cast<size_t>(s.x.rend() - at) - 1]));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// The curves of one plot over one or more runs; empty where nothing was logged.
std::vector<chart::Series> curves(const Plot& p, const std::vector<const RunFiles*>& runs,
                                  const std::vector<std::string>& names) {
  std::vector<chart::Series> list;
  for (size_t r = 0; r < runs.size(); ++r) {
    const double peak = runs[r]->ledger.ceilings.flops;
    const bool share = std::string_view(p.title) == "Share of peak";
    if (share && peak <= 0) continue;
    for (const auto& [field, name] : p.fields) {
      Curve c = curve(*runs[r], field);
      if (c.step.empty()) continue;
      for (double& v : c.value) v *= share ? 100 / peak : p.scale;
      list.push_back(
          {runs.size() == 1 ? name : names[r] + " " + name, std::move(c.step), std::move(c.value)});
    }
  }
  return list;
}

void add_curves(Page& page, const std::vector<const RunFiles*>& runs,
                const std::vector<std::string>& names) {
  for (const Plot& p : plots()) {
    const auto series = curves(p, runs, names);
    if (series.empty()) continue;
    page.section(p.title, "", chart::plot({"step"}, {p.unit, p.logarithmic}, series),
                 html_table(curve_rows(series)));
  }
}

// The last that was measured: of a finished run's validation, that over all held-out tokens.
double last_value(const RunFiles& r, const char* field) {
  for (auto text = r.metrics.rbegin(); text != r.metrics.rend(); ++text) {
    const Json line = Json::parse(*text);
    const auto value = line.find(field);
    if (value != line.end() && value->is_number()) return value->get<double>();
  }
  return NAN;
}

Rows field_rows(const Json& json) {
  Rows rows = {{"field", "value"}};
  for (const auto& [path, value] : flattened(json)) rows.push_back({path, value});
  return rows;
}

void add_ledger(Page& page, const StepLedger& l) {
  if (l.calls.empty()) return;
  const auto ops = sorted_totals(l.calls, "op");
  page.section("Shares by class", "What the work of one training step is, and what takes the time.",
               share_picture(l.calls), html_table(share_rows(l.calls)));
  page.section("Roofline",
               "Each dot is an op of one step, numbered as below (none below 0.1 GFLOP/s); the "
               "lines are what the machine "
               "allows with the data in each level of memory.",
               roofline_picture(ops, l.ceilings), html_table(roofline_rows(ops, l.ceilings)));
  page.section("Memory over a step", "Bytes of live tensors while each call ran.",
               memory_picture(l.calls), html_table(memory_rows(l.calls)));
  page.section("One step, by op",
               fmt::format(
                   "{:.1f} ms in all, {:.1f} ms of them in calls.", 1e3 * l.step_seconds,
                   1e3 *
                       [&] {
                         double s = 0;
                         for (const Entry& e : l.calls) s += e.seconds;
                         return s;
                       }()),
               "", html_table(rate_rows(ops, "op", l.ceilings)), true);
  for (const char* by : {"layer", "class", "phase"})
    page.section(std::string("One step, by ") + by, "", "",
                 html_table(rate_rows(sorted_totals(l.calls, by), by, l.ceilings)), true);
}

std::string name_of(const RunFiles& r) {
  // read_run has checked the types
  return r.config.contains("model") && r.config["model"].contains("name")
             ? r.config["model"]["name"].get<std::string>()
             : "model";
}

}  // namespace

void write_report(const std::string& run) {
  const RunFiles r = read_run(run);
  Page page("Run of " + name_of(r), run);
  page.section("Results", "", "", html_table(result_rows(r)));
  add_curves(page, {&r}, {""});
  add_probe_sections(page, r);
  if (!r.samples.empty()) {
    Rows rows = {{"step", "text"}};
    for (const RunFiles::Sample& s : r.samples)
      rows.push_back({to_text(s.step), s.source.empty() ? s.text : s.source + " -> " + s.text});
    page.section("Samples over time", "Temperature 0.8, top 40.", "", html_table(rows), true);
  }
  add_ledger(page, r.ledger);
  page.section("Configuration", "", "", html_table(field_rows(r.config)));
  page.section("Machine and data", "", "", html_table(field_rows(r.environment)));
  write_file_atomic(run + "/report.html", page.html());
}

Rows result_rows(const RunFiles& r) {
  Rows rows = {{"figure", "value"}};
  const auto row = [&](const char* name, const char* field, const char* unit) {
    const double v = last_value(r, field);
    if (std::isfinite(v)) rows.push_back({name, number(v) + unit});
  };
  row("last step", "step", "");
  row("tokens seen", "tokens", "");
  row("training loss", "loss", " nats per token");
  row("validation loss", "val_loss", " nats per token");
  row("validation", "val_bits_per_byte", " bits per byte");
  row("speed at the end", "tokens_per_s", " tokens/s");
  return rows;
}

// What a run trained: its configuration, and of its environment what changes the numbers.
std::vector<std::pair<std::string, std::string>> facts_of(const RunFiles& r) {
  auto facts = flattened(r.config);
  for (const char* key : {"data", "dtype", "tokenizer_hash"}) {
    if (!r.environment.is_object() || !r.environment.contains(key)) continue;
    for (auto& fact : flattened(Json{{key, r.environment[key]}})) facts.push_back(std::move(fact));
  }
  return facts;
}

Rows difference_rows(const RunFiles& a, const RunFiles& b) {
  const auto fa = facts_of(a), fb = facts_of(b);
  const std::map<std::string, std::string> in_a(fa.begin(), fa.end()), in_b(fb.begin(), fb.end());
  Rows rows = {{"field", "A", "B"}};
  for (const auto& [path, value] : in_a) {
    const auto other = in_b.find(path);
    if (other == in_b.end() || other->second != value)
      rows.push_back({path, value, other == in_b.end() ? "-" : other->second});
  }
  for (const auto& [path, value] : in_b) {
    if (!in_a.contains(path)) rows.push_back({path, "-", value});
  }
  return rows;
}

std::string tokenizer_caution(const RunFiles& a, const RunFiles& b) {
  const auto hash = [](const RunFiles& r) {
    return r.environment.is_object() ? r.environment.value("tokenizer_hash", Json()) : Json();
  };
  if (hash(a) == hash(b) || hash(a).is_null() || hash(b).is_null()) return "";
  return "The tokenizers differ: a token stands for other text in each, so compare bits per byte, "
         "not "
         "losses per token.";
}

std::string compare_page(const RunFiles& a, const RunFiles& b) {
  Page page("Two runs", "A: " + a.path + "   B: " + b.path);
  const std::string caution = tokenizer_caution(a, b);
  if (!caution.empty()) page.section("Not the same tokens", caution, "", "");
  page.section("Results of A", a.path, "", html_table(result_rows(a)));
  page.section("Results of B", b.path, "", html_table(result_rows(b)));
  add_curves(page, {&a, &b}, {"A", "B"});
  const Rows rows = difference_rows(a, b);
  page.section("What differs in the configuration", rows.size() == 1 ? "Nothing." : "", "",
               rows.size() == 1 ? "" : html_table(rows), true);
  for (const RunFiles* r : {&a, &b}) {
    if (r->ledger.calls.empty()) continue;
    page.section(std::string("Shares by class, ") + (r == &a ? "A" : "B"), "",
                 share_picture(r->ledger.calls), html_table(share_rows(r->ledger.calls)));
  }
  return page.html();
}

}  // namespace tally::cli
