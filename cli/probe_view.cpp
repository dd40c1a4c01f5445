#include "cli/probe_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cli/chart.h"

namespace tally::cli {
namespace {

// What a probe is called, and its unit.
struct ProbePlot {
  const char* name;
  const char* title;
  const char* unit;
  bool logarithmic = false;
};
constexpr ProbePlot kPlots[] = {
    {"residual_rms", "Residual stream", "RMS of the residual stream", true},
    {"sublayer_rms", "What a sub-layer adds", "RMS of a sub-layer's output", true},
    {"log_z", "log Z over the targets", "log Z (nats)"},
    {"max_logit", "Largest attention logit", "largest |q.k| scaled, sampled rows"},
    {"attention_entropy", "Attention entropy", "entropy of attention's rows (nats)"},
    {"attention_saturation", "Saturated attention rows", "share of rows with p above 0.99"},
    {"grad_norm", "Gradient norm", "gradient norm before clipping", true},
    {"update_ratio", "Update over weight", "norm of the update / norm of the weight", true},
    {"router_load", "Load of the busiest expert", "times an even share"},
    {"update_rank", "Directions of the update", "participation ratio / shorter side"},
    {"momentum_rank", "Directions of the momentum", "participation ratio / shorter side"},
};

// "blocks.3.mlp.down.weight": the kind "mlp.down.weight" and the line "block 3"; another name has
// its own kind.
std::pair<std::string, std::string> kind_and_line(const std::string& place) {
  constexpr std::string_view kBlocks = "blocks.";
  if (!place.starts_with(kBlocks)) return {"", place};
  const size_t dot = place.find('.', kBlocks.size());
  if (dot == std::string::npos) return {"", place};
  return {place.substr(dot + 1), "block " + place.substr(kBlocks.size(), dot - kBlocks.size())};
}

using Lines = std::vector<chart::Series>;

void append(Lines& lines, const std::string& name, double step, double value) {
  auto line = std::find_if(lines.begin(), lines.end(),
                           [&](const chart::Series& s) { return s.name == name; });
  if (line == lines.end()) line = lines.insert(lines.end(), {name, {}, {}});
  line->x.push_back(step);
  line->y.push_back(value);
}

// The number in a name, so that block 10 comes after block 9; -1 for none.
int number_in(const std::string& name) {
  const size_t at = name.find_first_of("0123456789");
  return at == std::string::npos ? -1 : std::atoi(name.c_str() + at);
}

// The lines of a probe by kind of parameter ("" where the places are not parameters of blocks).
std::vector<std::pair<std::string, Lines>> lines_of(const RunFiles& run, const char* probe) {
  std::vector<std::pair<std::string, Lines>> kinds;
  for (const std::string& text : run.metrics) {
    const Json m = Json::parse(text);
    if (!m.contains("probes") || !m["probes"].is_object() || !m["probes"].contains(probe)) continue;
    if (!m.contains("step") || !m["step"].is_number() || !m["probes"][probe].is_object()) continue;
    for (const auto& [place, value] : m["probes"][probe].items()) {
      const auto [kind, line] = kind_and_line(place);
      auto group = std::find_if(kinds.begin(), kinds.end(),
                                [&, &k = kind](const auto& g) { return g.first == k; });
      if (group == kinds.end()) group = kinds.insert(kinds.end(), {kind, {}});
      append(group->second, line, m["step"].get<double>(),
             value.is_number() ? value.get<double>() : NAN);
    }
  }
  for (auto& [kind, lines] : kinds)
    std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
      return number_in(a.name) < number_in(b.name);
    });
  return kinds;
}

// First and last value of each line.
std::vector<std::vector<std::string>> end_rows(const Lines& lines) {
  std::vector<std::vector<std::string>> rows = {{"", "first", "last", "smallest", "largest"}};
  for (const chart::Series& s : lines) {
    double low = INFINITY, high = -INFINITY;
    for (double v : s.y) low = std::fmin(low, v), high = std::fmax(high, v);
    rows.push_back({s.name, fmt::format("{:.4g}", s.y.front()), fmt::format("{:.4g}", s.y.back()),
                    fmt::format("{:.4g}", low), fmt::format("{:.4g}", high)});
  }
  return rows;
}

}  // namespace

Json probes_json(const ProbeValues& values) {
  Json json = Json::object();
  for (const auto& [probe, places] : values) {
    Json& one = json[probe] = Json::object();
    for (const auto& [place, value] : places)
      one[place] = std::isfinite(value) ? Json(value) : Json(to_text(value));
  }
  return json;
}

void add_probe_sections(Page& page, const RunFiles& run) {
  for (const ProbePlot& p : kPlots) {
    for (const auto& [kind, lines] : lines_of(run, p.name)) {
      const std::string title = p.title + (kind.empty() ? std::string() : ": " + kind);
      page.section(title, std::string("Probe ") + p.name + ".",
                   chart::plot({"step"}, {p.unit, p.logarithmic}, lines),
                   html_table(end_rows(lines)));
    }
  }
}

}  // namespace tally::cli
