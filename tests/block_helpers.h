#pragma once
// Models of two narrow layers, made from assignments to the fields of a configuration.
#include <catch2/catch.hpp>
#include <cmath>

#include "autograd/functional.h"
#include "autograd/proof/run_sample.h"
#include "core/ledger.h"
#include "models/build.h"
#include "models/config_json.h"
#include "models/recompute.h"
#include "models/zoo.h"
#include "tests/message_of.h"
#include "tests/registered.h"
#include "tests/worse.h"

namespace tally::test {

using Assignments = std::vector<std::string>;

inline ModelConfig with(const Assignments& assignments) {
  RunConfig c = find_preset("llama-smoke").config;
  c.model.d_model = 16, c.model.heads = 4, c.model.kv_heads = 2, c.model.d_ff = 24;
  c.model.vocab = 40, c.model.context = 16, c.model.tied_head = false;
  for (const std::string& a : assignments) apply_override(c, "model." + a);
  c.resolve_and_check("test");
  return c.model;
}

/// What is said of them; "accepted" if nothing.
inline std::string refusal(const Assignments& assignments) {
  return message_of([&] { with(assignments); });
}

/// Every parameter normal, norms and gains included, so that no choice hides behind a 1 or a 0.
inline std::unique_ptr<nn::Decoder> random_model(const ModelConfig& c, DType dtype, Device device) {
  auto model = build_model(c, dtype, device);
  uint64_t stream = 1;
  for (auto& [name, t] : model->named_parameters()) {
    std::vector<double> v(static_cast<size_t>(t.numel()));
    for (size_t i = 0; i < v.size(); ++i) v[i] = 0.3 * normal_at(7, stream, i);
    ++stream;
    if (backend(device).is_meta()) continue;
    const Tensor from = to(from_host<double>(v, t.shape(), device), dtype);
    backend(device).copy(t.data(), from.data(), t.nbytes());
  }
  model->requires_grad();
  return model;
}

inline Tensor ids(uint64_t stream, Device device, int64_t b = 3, int64_t t = 8) {
  std::vector<int64_t> v(static_cast<size_t>(b * t));
  for (size_t i = 0; i < v.size(); ++i) v[i] = Philox::word(3, stream, i) % 40;
  v[2] = 7;  // the end of a document where a test has some
  return from_host<int64_t>(v, {b, t}, device);
}

struct Outcome {
  double loss = 0;
  std::vector<std::pair<std::string, std::vector<double>>> gradients;
  std::string ledger;
};

inline Outcome step(const ModelConfig& c, DType dtype, Device device,
                    const std::string& again = "none") {
  const auto model = random_model(c, dtype, device);
  model->recompute = recompute_layers(again, c.layers);
  Generator streams(5);
  const Ledger ledger;
  Tape tape;
  const Tensor loss = model->loss(ids(1, device), ids(2, device), 0, &streams);
  tape.backward(loss);
  Outcome o;
  o.ledger = ledger.text();
  if (device == kMeta) return o;
  o.loss = loss.item();
  for (const auto& [name, t] : model->named_parameters()) {
    INFO(name);
    REQUIRE(t.grad().defined());
    o.gradients.emplace_back(name, to_doubles(t.grad()));
  }
  return o;
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double size = 1e-3, error = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    size = std::max(size, std::fabs(b[i]));
    error = worse(error, a[i], b[i]);
  }
  return error / size;
}

}  // namespace tally::test
