#include <fmt/format.h>

#include <cstdio>
#include <numbers>

#include "cli/common.h"
#include "models/config_json.h"
#include "models/config_positions.h"
#include "models/parameters.h"
#include "models/zoo.h"

namespace tally::cli {
namespace {

int64_t count_of(const Preset& p) {
  RunConfig c = p.config;
  c.resolve_and_check(p.name);
  return parameter_count(c.model);
}

Json preset_json(const Preset& p) {
  RunConfig c = p.config;
  c.resolve_and_check(p.name);
  const ParameterCount n = parameter_counts(c.model);
  return {{"name", p.name},
          {"family", p.family},
          {"year", p.year},
          {"source", p.source},
          {"claims", p.shows},
          {"parameters", n.total()},
          {"parameters_by_component",
           {{"embedding", n.embedding},
            {"position", n.position},
            {"attention", n.attention},
            {"mlp", n.mlp},
            {"norms", n.norms},
            {"gains", n.gains},
            {"head", n.head}}},
          {"config", parse_json(to_json_text(c), p.name)}};
}

/// 2 pi / frequency of each rotary pair, in tokens; infinite for one that stands still.
std::vector<double> rotary_periods(const ModelConfig& c) {
  std::vector<double> periods;
  if (c.position != Position::rope) return periods;
  const nn::PositionOptions o = position_options(c);
  for (const double f : rope_turns(rotary_dim(c), c.rope_base, o.scaling, c.context).frequencies)
    periods.push_back(2 * std::numbers::pi / f);
  return periods;
}

void print_periods(const ModelConfig& c) {
  const std::vector<double> periods = rotary_periods(c);
  if (periods.empty()) return;
  std::printf("\nperiods of the %zu rotary pairs, in tokens:", periods.size());
  for (size_t i = 0; i < periods.size(); ++i)
    std::printf("%s%.4g", i % 12 == 0 ? "\n  " : " ", periods[i]);
  std::printf("\n");
}

int print_list(bool json) {
  if (json) {
    Json list = Json::array();
    for (const Preset& p : presets())
      list.push_back({{"name", p.name},
                      {"family", p.family},
                      {"year", p.year},
                      {"parameters", count_of(p)},
                      {"source", p.source},
                      {"claims", p.shows}});
    print_json(list);
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {
      {"preset", "family", "year", "parameters", "claims", "source"}};
  for (const Preset& p : presets()) {
    rows.push_back({p.name, p.family, fmt::format("{}", p.year),
                    short_number(static_cast<double>(count_of(p))), p.shows, p.source});
  }
  std::fputs(table_text(rows).c_str(), stdout);
  return 0;
}

void print_one(const Preset& p) {
  RunConfig c = p.config;
  c.resolve_and_check(p.name);
  const ParameterCount n = parameter_counts(c.model);
  std::printf("%s: %s, %d; %s\nshows the lecture's claims %s\n\n%s\n", p.name.c_str(),
              p.family.c_str(), p.year, p.source.c_str(), p.shows.c_str(), to_json_text(c).c_str());
  std::vector<std::vector<std::string>> rows = {{"component", "parameters"}};
  const std::pair<const char*, int64_t> parts[] = {
      {"embedding", n.embedding}, {"position", n.position},
      {"attention", n.attention}, {"mlp", n.mlp},
      {"norms", n.norms},         {"residual gains", n.gains},
      {"head", n.head},           {"total", n.total()}};
  for (const auto& [name, count] : parts) rows.push_back({name, to_text(count)});
  std::fputs(table_text(rows).c_str(), stdout);
  print_periods(c.model);
}

}  // namespace

int models(const ModelsOptions& o) {
  if (o.name.empty()) return print_list(o.json);
  const Preset& p = find_preset(o.name);
  if (o.json)
    print_json(preset_json(p));
  else
    print_one(p);
  return 0;
}

}  // namespace tally::cli
