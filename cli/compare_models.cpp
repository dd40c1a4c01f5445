#include "cli/compare_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "cli/common.h"
#include "models/axes.h"
#include "models/report.h"
#include "models/target.h"

namespace tally::cli {
namespace {

/// One figure of both models; the text is for people, the numbers for programs.
struct Figure {
  std::string name;
  double a, b;
};

std::vector<Figure> figures(const Report& a, const Report& b) {
  const ParameterCount &m = a.parameters, &n = b.parameters;
  const auto d = [](int64_t v) { return static_cast<double>(v); };
  std::vector<Figure> all = {{"parameters", d(m.total()), d(n.total())},
                             {"  embedding", d(m.embedding), d(n.embedding)},
                             {"  position", d(m.position), d(n.position)},
                             {"  attention", d(m.attention), d(n.attention)},
                             {"  mlp", d(m.mlp), d(n.mlp)},
                             {"  norms", d(m.norms), d(n.norms)},
                             {"  residual gains", d(m.gains), d(n.gains)},
                             {"  head", d(m.head), d(n.head)}};
  std::erase_if(all, [](const Figure& f) { return f.a == 0 && f.b == 0; });
  const double ta = d(a.tokens), tb = d(b.tokens);
  all.push_back({"model FLOPs a token", a.model.causal / ta, b.model.causal / tb});
  all.push_back({"counted FLOPs a token", a.cost.flops / ta, b.cost.flops / tb});
  all.push_back({"bytes moved a token", (a.cost.bytes_read + a.cost.bytes_written) / ta,
                 (b.cost.bytes_read + b.cost.bytes_written) / tb});
  all.push_back({"cache bytes a token", a.kv_cache_per_token, b.kv_cache_per_token});
  return all;
}

std::string ratio_text(const Figure& f) {
  return f.a == 0 ? "-" : fmt::format("{:.4g}", f.b / f.a);
}

Json comparison_json(const std::vector<FieldDifference>& different,
                     const std::vector<Figure>& costs, const std::vector<std::string>& same) {
  Json fields = Json::array(), rows = Json::array();
  for (const auto& d : different)
    fields.push_back({{"axis", d.axis}, {"field", d.field}, {"a", d.a}, {"b", d.b}});
  for (const Figure& f : costs) {
    const size_t start = f.name.find_first_not_of(' ');
    rows.push_back({{"figure", f.name.substr(start)}, {"a", f.a}, {"b", f.b}});
  }
  return {{"different", fields}, {"same_axes", same}, {"figures", rows}};
}

/// An axis is named once, on the first of its lines.
std::string axis_table(const std::vector<FieldDifference>& different) {
  std::vector<std::vector<std::string>> rows = {{"axis", "field", "A", "B"}};
  std::string_view last;
  for (const auto& d : different) {
    rows.push_back({std::string(d.axis == last ? "" : d.axis), d.field, d.a, d.b});
    last = d.axis;
  }
  return table_text(rows);
}

std::vector<std::string> axes_alike(const std::vector<FieldDifference>& different) {
  std::vector<std::string> same;
  for (const std::string_view axis : axis_names()) {
    const bool found =
        std::ranges::any_of(different, [&](const auto& d) { return d.axis == axis; });
    if (!found && axis != "other") same.emplace_back(axis);
  }
  return same;
}

}  // namespace

int compare_models(const CompareOptions& o) {
  const RunConfig a = resolve_target(o.a).config, b = resolve_target(o.b).config;
  const auto different = differences(a, b);
  ReportOptions r;
  r.seq = o.seq > 0 ? o.seq : std::min({a.model.context, b.model.context, int64_t{2048}});
  r.batch = o.batch;
  const auto costs = figures(make_report(a.model, r), make_report(b.model, r));
  const auto same = axes_alike(different);
  if (o.json) {
    Json json = comparison_json(different, costs, same);
    json["batch"] = r.batch, json["seq"] = r.seq;
    print_json(json);
    return 0;
  }
  std::printf("A: %s\nB: %s\n\n", o.a.c_str(), o.b.c_str());
  if (different.empty())
    std::printf("The configurations are the same.\n");
  else
    std::printf("%salike: %s\n", axis_table(different).c_str(),
                fmt::format("{}", fmt::join(same, ", ")).c_str());
  std::vector<std::vector<std::string>> rows = {{"figure", "A", "B", "B / A"}};
  for (const Figure& f : costs)
    rows.push_back({f.name, short_number(f.a), short_number(f.b), ratio_text(f)});
  std::printf("\nforward pass, batch %lld, %lld tokens, f32\n%s", static_cast<long long>(r.batch),
              static_cast<long long>(r.seq), table_text(rows).c_str());
  return 0;
}

}  // namespace tally::cli
