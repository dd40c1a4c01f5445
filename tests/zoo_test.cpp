// The recipes that the lecture names against the presets, and what the
// scaled-down ones may cost.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "data/file.h"
#include "data/json.h"
#include "models/config_json.h"
#include "models/objective.h"
#include "models/parameters.h"
#include "models/report.h"
#include "models/zoo.h"
#include "tests/registered.h"

using namespace tally;

namespace {

/// tests/data/recipes.json: models of the lecture as published, in the words of
/// ModelConfig, and parameters that another implementation counts.
const Json& recipes() {
  static const Json all = read_json(std::string(TALLY_TEST_DATA) + "/recipes.json");
  return all;
}

RunConfig resolved(const Preset& p) {
  RunConfig c = p.config;
  c.resolve_and_check(p.name);
  return c;
}

bool equal(const Json& published, const Json& ours) {
  if (published.is_number() && ours.is_number())
    return ours.get<double>() == Approx(published.get<double>()).epsilon(1e-12);
  return published == ours;
}

}  // namespace

TEST_CASE("zoo: a recipe that a configuration can say is a preset, in every field", "[zoo]") {
  int compared = 0;
  for (const Json& recipe : recipes()) {
    const Preset* preset = find_preset_or_null(recipe["preset"].get<std::string>());
    INFO(recipe["recipe"]);
    REQUIRE(preset != nullptr);
    const Json ours = parse_json(to_json_text(resolved(*preset)), preset->name);
    for (const char* part : {"model", "train"}) {
      for (const auto& [field, value] : recipe[part].items()) {
        INFO(part << "." << field << ": published " << value << ", ours " << ours[part][field]);
        CHECK(equal(value, ours[part][field]));
        ++compared;
      }
    }
  }
  CHECK(compared > 2500);
}

TEST_CASE(
    "zoo: parameters are those that other implementations count, to the "
    "last one",
    "[zoo]") {
  int exact = 0;
  for (const Json& recipe : recipes()) {
    if (recipe["parameters"].is_null()) continue;
    const Preset& preset = find_preset(recipe["preset"].get<std::string>());
    INFO(preset.name);
    const auto published = recipe["parameters"].get<int64_t>();
    const int64_t explained = recipe.value("otherwise", int64_t{0});  // recipe["why"] says what
    CHECK(parameter_count(resolved(preset).model) - published == explained);
    exact += explained == 0;
  }
  CHECK(exact == 126);
}

TEST_CASE("zoo: each of the lecture's recipes is a preset", "[zoo]") {
  CHECK(recipes().size() == 143);
  for (const Json& recipe : recipes()) {
    INFO(recipe["recipe"]);
    CHECK(recipe.contains("preset"));
  }
}

TEST_CASE("zoo: names are unique, and every preset names its source", "[zoo]") {
  std::set<std::string> names;
  for (const Preset& p : presets()) {
    INFO(p.name);
    CHECK(names.insert(p.name).second);
    CHECK_FALSE(p.source.empty());
    CHECK(p.year >= 2017);
  }
}

TEST_CASE("zoo: what is not published is a field", "[zoo]") {
  for (const Preset& p : presets()) {
    const Json all = parse_json(to_json_text(p.config), p.name);
    std::string rest = p.unpublished;
    while (!rest.empty()) {
      const std::string path = rest.substr(0, rest.find(' '));
      rest.erase(0, path.size() + 1);
      INFO(p.name << ": " << path);
      const size_t dot = path.find('.');
      REQUIRE(dot != std::string::npos);
      CHECK(all.at(path.substr(0, dot)).contains(path.substr(dot + 1)));
    }
  }
}

TEST_CASE("zoo: a scaled-down model trains within what its name allows", "[zoo]") {
  const std::map<std::string, double> budgets = {{"smoke", 1e11}, {"laptop", 1e13}, {"lab", 5e15}};
  int checked = 0;
  for (const Preset& p : presets()) {
    const auto budget = budgets.find(p.name.substr(p.name.rfind('-') + 1));
    if (budget == budgets.end()) continue;
    const RunConfig c = resolved(p);
    ReportOptions o;
    ObjectiveTokens tokens;
    tokens.first_sentinel = c.model.vocab - 1, tokens.sentinels = c.train.sentinels;
    const Objective objective(c.model, c.train, tokens, c.train.seq);
    o.train = true, o.seq = objective.length(), o.source = objective.source();
    const double step = make_report(c.model, o).model.causal * static_cast<double>(c.train.batch);
    const double all = step * static_cast<double>(c.train.steps * c.train.accumulation);
    INFO(p.name << ": " << all << " FLOPs, " << c.train.steps << " steps");
    CHECK(all <= budget->second);
    CHECK(all >= 0.1 * budget->second);
    CHECK(c.train.steps >= 50);
    ++checked;
  }
  CHECK(checked >= 60);
}
