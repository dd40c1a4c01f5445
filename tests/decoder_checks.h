#pragma once
// What every decoder must hold, whatever its configuration selects.
#include <catch2/catch.hpp>
#include <cmath>

#include "cli/verbs.h"
#include "data/file.h"
#include "models/algebra.h"
#include "models/build.h"
#include "models/config_json.h"
#include "models/parameters.h"
#include "models/report.h"
#include "optim/adamw.h"
#include "tests/data_helpers.h"
#include "tests/layer_values.h"

namespace tally::test {

inline ModelConfig checked(ModelConfig c) {
  c.resolve("f");
  c.check("f");
  return c;
}

/// With initial values of seed 1, in f64.
inline std::unique_ptr<nn::Decoder> made(const ModelConfig& c, Device device) {
  auto model = build_model(c, DType::f64, device);
  initialise(*model, c, 1);
  model->requires_grad();
  return model;
}

/// (2,T) of i64
inline Tensor ids_of(const ModelConfig& c, int64_t t, uint64_t seed, Device device) {
  if (backend(device).is_meta()) return empty({2, t}, DType::i64, device);
  return make_input(indices({2, t}, seed, c.vocab), DType::f64, device);
}

/// The specs of the configuration are the parameters of the model, and add up to the closed form.
inline void check_closed_form(const ModelConfig& c) {
  const auto specs = parameter_specs(c);
  const auto model = build_model(c, DType::f64, kMeta);
  const auto parameters = model->named_parameters();
  REQUIRE(specs.size() == parameters.size());
  int64_t sum = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    CHECK(parameters[i].first == specs[i].name);
    CHECK(parameters[i].second.shape() == Shape(std::span<const int64_t>(specs[i].shape)));
    sum += specs[i].numel();
  }
  CHECK(sum == parameter_count(c));
  CHECK(model->named_buffers().size() == buffer_specs(c).size());
}

/// Every formula of `account --algebra` equals what was counted, in training, decoding and a pass.
inline void check_algebra(const ModelConfig& c, int at_least) {
  for (int mode = 0; mode < 3; ++mode) {
    ReportOptions o;
    o.batch = 3, o.seq = 7, o.train = mode == 0, o.decode = mode == 1;
    int compared = 0;
    for (const Formula& f : algebra(make_report(c, o))) {
      INFO("mode " << mode << ": " << f.what << " = " << f.formula << " = " << f.numbers);
      CHECK(std::isfinite(f.value));
      if (!std::isfinite(f.counted) || f.what == "rule of thumb") continue;
      CHECK(f.value == Approx(f.counted).epsilon(1e-12));
      ++compared;
    }
    CHECK(compared >= at_least);
  }
}

/// Sixty steps on one batch bring the loss below 0.4 of the first, with the same losses on reference
/// and cpu.
inline void check_learns_a_batch(const ModelConfig& c) {
  std::vector<double> losses[2];
  for (Device device : {kReference, kCPU}) {
    const auto model = made(c, device);
    optim::AdamW optimizer(optim::decay_groups(*model, 0.01), {});
    Generator dropout(3);
    const Tensor ids = ids_of(c, 8, 1, device), targets = ids_of(c, 8, 2, device);
    for (int step = 0; step < 60; ++step) {
      Tape tape;
      const Tensor loss = model->loss(ids, targets, 0, &dropout);
      losses[device == kCPU].push_back(loss.item());
      tape.backward(loss);
      optimizer.step(0.02);
      model->zero_grad();
    }
  }
  INFO(losses[0].front() << " to " << losses[0].back());
  CHECK(losses[0].back() < 0.4 * losses[0].front());
  for (size_t i = 0; i < losses[0].size(); ++i)
    CHECK(std::fabs(losses[0][i] - losses[1][i]) <= 1e-9 * losses[0][i]);
}

/// A step on meta has the ledger of a real one.
inline void check_ledger_on_meta(const ModelConfig& c) {
  const auto text = [&](Device device) {
    const auto model = made(c, device);
    Generator dropout(1);
    const Ledger ledger;
    Tape tape;
    tape.backward(model->loss(ids_of(c, 6, 1, device), ids_of(c, 6, 2, device), 0, &dropout));
    return ledger.text();
  };
  CHECK(text(kCPU) == text(kMeta));
  CHECK(text(kMeta).size() > 5000);
}

/// Every parameter passes `tally gradcheck FILE`.
inline void check_differences(const ModelConfig& c) {
  const TemporaryFolder folder;
  write_file_atomic(folder / "model.json", to_json_text(RunConfig{c, {}}));
  cli::GradcheckOptions o;
  o.what = folder / "model.json", o.quiet = o.json = true;
  CHECK(cli::gradcheck(o) == 0);
}

}  // namespace tally::test
