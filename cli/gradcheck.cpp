#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <set>

#include "autograd/functional.h"
#include "autograd/proof/proof.h"
#include "cli/common.h"
#include "core/random.h"
#include "models/architecture.h"
#include "models/build.h"
#include "models/suggest.h"
#include "models/zoo.h"
#include "nn/samples.h"

namespace tally::cli {
namespace {

/// What the proofs said of one op, layer or parameter.
struct Row {
  std::string name;
  int64_t samples = 0, by_differences = 0;
  double error = 0, adjoint = 0, cost = 0;  // worst over the samples
  double cpu = 0, cpu_ulp = 0;  // f32 on cpu against the reference: part of the bound, units
  std::string where, mistake;
  int input = -1;
  int64_t element = -1;
  double analytic = 0, numeric = 0;
  bool has_backward = true, ok = true;
  int64_t refusals = 0;  // samples without a backward that refused every input which needs one
};

void add_gradient(Row& row, const ProofResult& r) {
  row.ok = row.ok && r.ok();
  if (r.skipped) return;
  ++row.by_differences;
  if (r.error < row.error) return;
  row.error = r.error;
  row.where = r.sample;
  row.input = r.input, row.element = r.element;
  row.analytic = r.analytic, row.numeric = r.numeric;
  if (!r.ok()) row.mistake = r.mistake;
}

void add_sample(Row& row, const Sample& s) {
  ++row.samples;
  row.has_backward = s.by_hand != nullptr;
  const ProofResult adjoint = prove_adjoint(s), cost = prove_cost(s);
  if (!adjoint.skipped) row.adjoint = std::max(row.adjoint, adjoint.error);
  row.cost = std::max(row.cost, cost.error);
  row.ok = row.ok && adjoint.ok() && cost.ok();
  if (!adjoint.ok()) row.where = s.name, row.mistake = adjoint.mistake;
  if (!cost.ok()) row.where = s.name, row.mistake = cost.note;
  const ProofResult refusal = prove_refusal(s);
  row.refusals += refusal.ok() && !refusal.skipped ? 1 : 0;
  row.ok = row.ok && refusal.ok();
  if (!refusal.ok()) row.where = s.name, row.mistake = refusal.note;
  const ProofResult cpu = prove_backend(s, kCPU, DType::f32);
  row.cpu = std::max(row.cpu, cpu.error), row.cpu_ulp = std::max(row.cpu_ulp, cpu.ulp);
  row.ok = row.ok && cpu.ok();
  if (!cpu.ok()) row.where = s.name, row.mistake = "cpu: " + cpu.note;
  add_gradient(row, prove_by_differences(s));
}

// The samples of an op need not stand together: all of them count in its one row.
Row& row_of(std::vector<Row>& rows, const std::string& name) {
  for (Row& row : rows) {
    if (row.name == name) return row;
  }
  rows.emplace_back().name = name;
  return rows.back();
}

std::vector<Row> check_samples(const GradcheckOptions& o, const std::vector<Sample>& samples,
                               ProgressLine& line) {
  std::vector<Row> rows;
  for (const Sample& s : samples) {
    if (o.what != "all" && s.op != o.what) continue;
    Row& row = row_of(rows, s.op);
    if (o.cases > 0 && row.samples >= o.cases) continue;
    line.show("checking " + s.op + " '" + s.name + "'");
    add_sample(row, s);
  }
  return rows;
}

constexpr double kModelBound = 1e-7;

/// In float64, with ids that the seed makes. What an encoder reads ends in padding.
ModelOnBatch on_random_batch(const ModelConfig& c, int64_t b, int64_t t, uint64_t seed) {
  const auto ids = [=, stream = uint64_t{7}](int64_t bound) mutable {
    std::vector<int64_t> v(static_cast<size_t>(b * t));
    for (size_t i = 0; i < v.size(); ++i) v[i] = Philox::word(seed, stream, i) % bound;
    ++stream;
    return from_host<int64_t>(v, {b, t}, kCPU);
  };
  std::vector<uint8_t> seen(static_cast<size_t>(b * t), 1);
  seen.back() = t == 1;
  return build_on_batch(c, DType::f64, kCPU, ids, from_host<uint8_t>(seen, {b, t}, kCPU));
}

/// Error of a gradient against differences of the loss, and these. Smaller steps are taken where the
/// loss bends too much for the first one (behind a norm of small numbers), larger ones where it
/// hardly moves and its rounding shows (the step of a Mamba layer that has just begun).
template <class Loss>
std::pair<double, double> difference_error(double& value, double gradient, double scale,
                                           const Loss& loss) {
  const double at = value;
  const auto f = [&](double step) {
    value = at + step;
    const double y = loss();
    value = at;
    return y;
  };
  // What the widest difference cannot tell from 0: a few roundings of the loss. A bias of keys has no
  // gradient, since softmax does not see what all scores have in common; its differences are these.
  const double wide = 64e-3 * std::max(0.1, std::fabs(at));
  const double rounding = 16 * std::numeric_limits<double>::epsilon() * std::fabs(f(0)) / wide;
  std::pair<double, double> best{INFINITY, 0};
  for (const double times : {1.0, 0.25, 0.0625, 4.0, 16.0, 64.0}) {
    const double h = times * 1e-3 * std::max(0.1, std::fabs(at));
    const double numeric = (8 * (f(h / 2) - f(-h / 2)) - (f(h) - f(-h))) / (6 * h);
    const double error = std::fabs(gradient - numeric) /
                         std::max({scale, std::fabs(numeric), rounding / kModelBound});
    if (!(error >= best.first)) best = {error, numeric};
    if (error <= kModelBound) break;
  }
  return best;
}

/// A whole model in float64: `cases` elements of every parameter, spread over it.
std::vector<Row> check_model(const GradcheckOptions& o, const RunConfig& config,
                             ProgressLine& line) {
  const ModelConfig& c = config.model;
  const int64_t b = 2, t = std::min<int64_t>(c.context, 8);
  const ModelOnBatch model = on_random_batch(c, b, t, o.seed);
  initialise(*model.module, c, o.seed);
  model.module->requires_grad();
  {
    Tape tape;
    tape.backward(model.loss(nullptr));
  }
  const auto loss = [&] { return model.loss(nullptr).item(); };
  std::vector<Row> rows;
  for (auto& [name, p] : model.module->named_parameters()) {
    line.show("checking " + name);
    Row row;
    row.name = name;
    const auto values = p.host<double>(), gradient = p.grad().host<double>();
    double scale = 0;
    for (double g : gradient) scale = std::max(scale, std::fabs(g));
    const int64_t n = std::min<int64_t>(p.numel(), o.cases > 0 ? o.cases : 5);
    row.samples = row.by_differences = n;
    for (int64_t k = 0; k < n; ++k) {
      const size_t i = static_cast<size_t>(Philox::word(o.seed, 9, static_cast<uint64_t>(k)) %
                                           static_cast<uint32_t>(p.numel()));
      const auto [found, numeric] = difference_error(values[i], gradient[i], scale, loss);
      const double error = std::isnan(found) ? INFINITY : found;  // NaN would give way to the next
      if (error < row.error) continue;
      row.error = error;
      row.element = static_cast<int64_t>(i);
      row.analytic = gradient[i], row.numeric = numeric;
    }
    row.ok = row.error <= kModelBound;
    rows.push_back(row);
  }
  return rows;
}

std::string verdict(const Row& r) {
  if (!r.ok) return "WRONG";
  if (!r.has_backward) return r.refusals ? "no backward: refuses" : "no backward: integers alone";
  return r.by_differences ? "ok" : "ok (adjoint)";
}

Json row_json(const Row& r) {
  Json j = {{"name", r.name},
            {"samples", r.samples},
            {"checked_by_differences", r.by_differences},
            {"error", r.error},
            {"adjoint_error", r.adjoint},
            {"cost_error", r.cost},
            {"cpu_error_of_bound", r.cpu},
            {"cpu_error_ulp", r.cpu_ulp},
            {"has_backward", r.has_backward},
            {"refusals", r.refusals},
            {"verdict", verdict(r)},
            {"ok", r.ok}};
  if (r.element >= 0)
    j["worst"] = {{"sample", r.where},
                  {"input", r.input},
                  {"element", r.element},
                  {"analytic", r.analytic},
                  {"numeric", r.numeric}};
  if (!r.mistake.empty()) j["likely_mistake"] = r.mistake;
  return j;
}

int print(const GradcheckOptions& o, const std::vector<Row>& rows) {
  bool ok = true;
  double worst = 0;
  int64_t samples = 0;
  Json list = Json::array();
  std::vector<std::vector<std::string>> table = {
      {"name", "samples", "worst error", "adjoint", "cpu/bound", "analytic", "numeric", "verdict"}};
  for (const Row& r : rows) {
    ok = ok && r.ok;
    worst = std::max(worst, r.error);
    samples += r.samples;
    list.push_back(row_json(r));
    table.push_back({r.name, to_text(r.samples), fmt::format("{:.1e}", r.error),
                     fmt::format("{:.1e}", r.adjoint), fmt::format("{:.2g}", r.cpu),
                     fmt::format("{:.6g}", r.analytic), fmt::format("{:.6g}", r.numeric),
                     verdict(r)});
  }
  if (o.json) {
    print_json(
        {{"checks", list}, {"samples", samples}, {"worst", worst}, {"bound", 1e-7}, {"ok", ok}});
    return ok ? 0 : 1;
  }
  std::fputs(table_text(table).c_str(), stdout);
  for (const Row& r : rows) {
    if (!r.mistake.empty())
      std::printf("%s: %s: %s\n", r.name.c_str(), r.where.c_str(), r.mistake.c_str());
  }
  std::printf("%zu checked on %lld samples, worst error %.2g (bound 1e-7): %s\n", rows.size(),
              static_cast<long long>(samples), worst, ok ? "all right" : "WRONG");
  return ok ? 0 : 1;
}

}  // namespace

int gradcheck(const GradcheckOptions& o) {
  register_proof_kernels();
  ProgressLine line(o.quiet || o.json);
  std::vector<Sample> samples = core_samples();
  for (Sample& s : nn::layer_samples()) samples.push_back(std::move(s));
  std::vector<Row> rows = check_samples(o, samples, line);
  if (rows.empty()) {
    std::set<std::string> names;
    for (const Sample& s : samples) names.insert(s.op);
    const bool target = find_preset_or_null(o.what) || std::filesystem::exists(o.what);
    const std::vector<std::string> choices(names.begin(), names.end());
    check(target, "gradcheck: '", o.what, "' is no op, layer, preset or file",
          did_you_mean(o.what, choices));
    rows = check_model(o, resolve_target(o.what, o.set).config, line);
  }
  line.finish();
  return print(o, rows);
}

}  // namespace tally::cli
