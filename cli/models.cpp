#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <numbers>

#include "cli/common.h"
#include "cli/model_tables.h"
#include "models/config_json.h"
#include "models/config_positions.h"
#include "models/parameters.h"
#include "models/suggest.h"
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
          {"note", p.note},
          {"unpublished", p.unpublished},
          {"parameters", n.total()},
          {"parameters_by_component",
           {{"embedding", n.embedding},
            {"position", n.position},
            {"attention", n.attention},
            {"recurrence", n.recurrence},
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

/// Those that the options ask for, in the order of the zoo.
std::vector<const Preset*> chosen(const ModelsOptions& o) {
  std::vector<const Preset*> found;
  std::vector<std::string> families;
  for (const Preset& p : presets()) {
    if (std::find(families.begin(), families.end(), p.family) == families.end())
      families.push_back(p.family);
    if ((o.family.empty() || p.family == o.family) && (o.small || !p.scaled_down))
      found.push_back(&p);
  }
  check(o.family.empty() || std::find(families.begin(), families.end(), o.family) != families.end(),
        "--family: there is no family \"", o.family, "\"", did_you_mean(o.family, families));
  return found;
}

Json list_json(const std::vector<const Preset*>& shown) {
  Json list = Json::array();
  for (const Preset* p : shown)
    list.push_back({{"name", p->name},
                    {"family", p->family},
                    {"year", p->year},
                    {"parameters", count_of(*p)},
                    {"source", p->source},
                    {"claims", p->shows},
                    {"note", p->note},
                    {"scaled_down", p->scaled_down}});
  return list;
}

void print_list(const std::vector<const Preset*>& shown, bool small) {
  std::vector<std::vector<std::string>> rows = {
      {"preset", "family", "year", "parameters", "claims", "source"}};
  for (const Preset* p : shown) {
    rows.push_back({p->name, p->family, fmt::format("{}", p->year),
                    short_number(static_cast<double>(count_of(*p))), p->shows, p->source});
  }
  std::fputs(table_text(rows).c_str(), stdout);
  std::printf("\n%zu presets%s. The lecture's tables: --table %s\n", shown.size(),
              small ? "" : "; --small adds those of published families that train here",
              fmt::format("{}", fmt::join(model_table_names(), ", ")).c_str());
}

void print_one(const Preset& p) {
  RunConfig c = p.config;
  c.resolve_and_check(p.name);
  const ParameterCount n = parameter_counts(c.model);
  std::printf("%s: %s, %d; %s\nshows the lecture's claims %s\n", p.name.c_str(), p.family.c_str(),
              p.year, p.source.c_str(), p.shows.c_str());
  if (!p.note.empty()) std::printf("note: %s\n", p.note.c_str());
  if (!p.unpublished.empty()) std::printf("not published: %s\n", p.unpublished.c_str());
  std::printf("\n%s\n", to_json_text(c).c_str());
  std::vector<std::vector<std::string>> rows = {{"component", "parameters"}};
  const std::pair<const char*, int64_t> parts[] = {
      {"embedding", n.embedding},   {"position", n.position}, {"attention", n.attention},
      {"recurrence", n.recurrence}, {"mlp", n.mlp},           {"norms", n.norms},
      {"residual gains", n.gains},  {"head", n.head},         {"total", n.total()}};
  for (const auto& [name, count] : parts) rows.push_back({name, to_text(count)});
  std::fputs(table_text(rows).c_str(), stdout);
  print_periods(c.model);
}

}  // namespace

int models(const ModelsOptions& o) {
  if (o.markdown) {
    check(o.name.empty() && o.table.empty() && o.family.empty() && !o.json && !o.small,
          "models: --markdown prints the whole page; leave the other options out");
    std::fputs(models_page().c_str(), stdout);
    return 0;
  }
  if (!o.name.empty()) {
    const Preset& p = find_preset(o.name);
    if (!o.table.empty() && o.json)
      print_json(model_table_json(o.table, {&p}));
    else if (!o.table.empty())
      std::fputs(table_text(model_table(o.table, {&p})).c_str(), stdout);
    else if (o.json)
      print_json(preset_json(p));
    else
      print_one(p);
    return 0;
  }
  const auto shown = chosen(o);
  if (o.json)
    print_json(o.table.empty() ? list_json(shown) : model_table_json(o.table, shown));
  else if (o.table.empty())
    print_list(shown, o.small);
  else
    std::fputs(table_text(model_table(o.table, shown)).c_str(), stdout);
  return 0;
}

}  // namespace tally::cli
