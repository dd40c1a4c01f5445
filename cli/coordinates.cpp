// How the activations of a model depend on its width: muP's coordinate check.
#include "models/coordinates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/common.h"

namespace tally::cli {

int coordinates(const CoordinatesOptions& o) {
  const Target target = resolve_target(o.target.name, o.target.set);
  check(target.folder.empty(), "coordinates: ", o.target.name,
        " has weights of one width; name a preset or a JSON file");
  check(parse_device(o.device) == kCPU && parse_dtype(o.dtype) == DType::f32,
        "coordinates: measures on cpu in f32; leave out --device and --dtype");
  RunConfig c = target.config;
  if (o.seed_given) c.train.seed = static_cast<int64_t>(o.seed);
  const std::vector<Coordinate> rows = coordinate_check(c, o.widths, o.steps);
  if (o.json) {
    Json out = {{"widths", o.widths},
                {"steps", o.steps},
                {"lr", c.train.lr},
                {"mup_base_width", c.model.mup_base_width}};
    for (const Coordinate& r : rows)
      out["rows"].push_back({{"name", r.name}, {"values", r.values}, {"exponent", r.exponent}});
    print_json(out);
    return 0;
  }
  std::vector<std::vector<std::string>> table{{"after " + std::to_string(o.steps) + " steps"}};
  for (const int64_t w : o.widths) table[0].push_back(std::to_string(w));
  table[0].push_back("exponent");
  bool diverged = false;
  for (const Coordinate& r : rows) {
    std::vector<std::string>& line = table.emplace_back(1, r.name);
    for (const double v : r.values)
      line.push_back(std::isnan(v) ? "diverged" : fmt::format("{:.4g}", v));
    line.push_back(std::isnan(r.exponent) ? "-" : fmt::format("{:+.2f}", r.exponent));
    diverged = diverged || std::isnan(r.exponent);
  }
  std::fputs(table_text(table).c_str(), stdout);
  std::printf(
      "%s, lr %g; the size of each goes with d_model to the exponent: 0 does not depend on it\n",
      c.model.mup_base_width > 0
          ? ("muP from d_model " + std::to_string(c.model.mup_base_width)).c_str()
          : "no muP (model.mup_base_width)",
      c.train.lr);
  if (diverged)
    std::puts(
        "a width whose activations have left what f32 can square has diverged; lower train.lr");
  return 0;
}

}  // namespace tally::cli
