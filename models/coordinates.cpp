#include "models/coordinates.h"

#include <algorithm>
#include <cmath>

#include "models/build.h"
#include "models/probes.h"
#include "models/profile.h"
#include "models/trainer.h"

namespace tally {
namespace {

int64_t grown(int64_t n, int64_t d_model, int64_t before, const char* what) {
  check(n * d_model % before == 0, "coordinates: ", n, " ", what, " at d_model = ", before,
        " are no whole number at d_model = ", d_model,
        "; choose widths that are multiples of head_dim and of what a head's keys serve");
  return n * d_model / before;
}

double distance(const std::vector<float>& x, const std::vector<float>& from) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += std::pow(double(x[i]) - double(from[i]), 2);
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(x.size(), 1)));
}

using Values = std::vector<std::pair<std::string, double>>;

// Beyond this the square of a stream leaves f32, a norm makes zeros of it, and what comes after looks
// as if it had not moved.
constexpr double kDiverged = 1e15;

void mark_diverged(Values& values) {
  const bool diverged =
      std::ranges::any_of(values, [](const auto& v) { return !(std::fabs(v.second) < kDiverged); });
  if (!diverged) return;
  for (auto& [name, value] : values) value = NAN;
}

// One width: what is measured after the steps.
Values measure(const RunConfig& c, int64_t steps) {
  const auto model = build_model(c.model, DType::f32, kCPU);
  initialise(*model, c.model, static_cast<uint64_t>(c.train.seed));
  Generator dropout = dropout_of(c.train);
  const optim::OptimizerChoice choice = optimizer_of(c.train, c.model);
  const StepOptions options{c.train.batch, c.train.seq, 1, c.train.clip};
  TrainingStep step(
      *model, [&](nn::Module& m) { return optim::make_optimizer(m, choice); }, options, dropout);
  const Shape shape{options.batch, options.seq};
  const Tensor ids = random_ids(shape, c.model.vocab, 1, kCPU),
               targets = random_ids(shape, c.model.vocab, 2, kCPU);
  const std::vector<int64_t> tokens = to_host<int64_t>(ids), next = to_host<int64_t>(targets);
  const auto look = [&](Values* probed) {
    Probes probes({"residual_rms", "sublayer_rms", "max_logit"}, {});
    const Tensor logits = model->logits(ids);
    for (const auto& [name, places] : probes.values()) {
      for (const auto& [place, value] : places)
        if (probed) probed->emplace_back(name + " " + place, value);
    }
    return to_host<float>(logits);
  };
  const std::vector<float> before = look(nullptr);
  for (int64_t i = 0; i < steps; ++i) {
    const auto r = step.gradients([&](int64_t, const BatchSpans& to) {
      std::ranges::copy(tokens, to.ids.begin());
      std::ranges::copy(next, to.targets.begin());
    });
    check(std::isfinite(r.loss) && std::isfinite(r.norm),
          "coordinates: at d_model = ", c.model.d_model, " step ", i + 1, " has the loss ", r.loss,
          "; lower train.lr");
    step.update(c.train.lr);
  }
  Values values;
  const std::vector<float> after = look(&values);
  values.emplace_back("logits", distance(after, std::vector<float>(after.size())));
  values.emplace_back("logits moved", distance(after, before));
  mark_diverged(values);
  return values;
}

// Slope of log(value) over log(width).
double exponent(const std::vector<int64_t>& widths, const std::vector<double>& values) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (std::isnan(values[i])) return NAN;
    if (values[i] <= 0) continue;
    const double x = std::log(double(widths[i])), y = std::log(values[i]);
    n += 1, sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  const double spread = n * sxx - sx * sx;
  return spread > 0 ? (n * sxy - sx * sy) / spread : 0;
}

}  // namespace

RunConfig at_width(const RunConfig& config, int64_t d_model) {
  RunConfig c = config;
  ModelConfig& m = c.model;
  m.heads = grown(m.heads, d_model, m.d_model, "heads");
  m.kv_heads = grown(m.kv_heads, d_model, m.d_model, "kv_heads");
  m.d_ff = grown(m.d_ff, d_model, m.d_model, "d_ff");
  m.d_model = d_model;
  c.resolve_and_check("coordinates: at d_model = " + std::to_string(d_model));
  return c;
}

std::vector<Coordinate> coordinate_check(const RunConfig& config,
                                         const std::vector<int64_t>& widths, int64_t steps) {
  check(widths.size() >= 2, "coordinates: needs two widths or more; got ", widths.size());
  std::vector<RunConfig> all;  // each is checked before the first is trained
  for (const int64_t width : widths) all.push_back(at_width(config, width));
  std::vector<Coordinate> rows;
  for (const RunConfig& c : all) {
    const Values values = measure(c, steps);
    rows.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      rows[i].name = values[i].first;
      rows[i].values.push_back(values[i].second);
    }
  }
  for (Coordinate& row : rows) row.exponent = exponent(widths, row.values);
  return rows;
}

}  // namespace tally
