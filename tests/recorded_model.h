#pragma once
// A model recorded with another framework: weights, inputs, and what comes out.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "autograd/functional.h"
#include "autograd/proof/run_sample.h"
#include "backends/register_all.h"
#include "models/safetensor_file.h"
#include "models/weight_files.h"
#include "nn/module.h"

namespace tally::test {

using Numbers = std::vector<double>;
using Rules = std::vector<std::pair<std::string, std::string>>;

// Our name of a parameter to the recorded one: each rule replaces its first text where it occurs.
inline std::string renamed(std::string name, const Rules& rules) {
  for (const auto& [from, to] : rules) {
    const size_t at = name.find(from);
    if (at != std::string::npos) name.replace(at, from.size(), to);
  }
  return name;
}

struct Recorded {
  explicit Recorded(const std::string& name, DType type, Device place)
      : cases(TALLY_TEST_DATA "/models/" + name + "/case.safetensors"),
        weights(TALLY_TEST_DATA "/models/" + name + "/model.safetensors"),
        dtype(type),
        device(place) {}
  SafetensorFile cases, weights;
  DType dtype;
  Device device;

  static Numbers read(const StoredTensor& t) {
    Numbers v(static_cast<size_t>(t.numel()));
    read_values(t, std::span<double>(v));
    return v;
  }
  Numbers numbers(const std::string& name) const { return read(cases.at(name)); }
  Tensor ids(const std::string& name) const {
    const StoredTensor& t = cases.at(name);
    std::vector<int64_t> v(static_cast<size_t>(t.numel()));
    read_values(t, std::span<int64_t>(v));
    return from_host<int64_t>(v, Shape(std::span<const int64_t>(t.shape)), device);
  }
  Tensor mask(const std::string& name) const {
    const Tensor t = ids(name);
    std::vector<uint8_t> v;
    for (const int64_t seen : to_host<int64_t>(t)) v.push_back(seen != 0);
    return from_host<uint8_t>(v, t.shape(), device);
  }
  double tolerance(const char* name) const { return std::stod(cases.metadata().at(name)); }
  bool exact() const { return dtype == DType::f64; }
  double logits_bound() const { return exact() ? 1e-9 : tolerance("tol_logits"); }

  void load(nn::Module& model, const Rules& rules) const {
    size_t count = 0;
    model.for_each_parameter([&](const std::string& name, Tensor& p) {
      const StoredTensor& t = weights.at(renamed(name, rules));
      REQUIRE(t.numel() == p.numel());
      p = to(from_host<double>(read(t), p.shape(), device), dtype);
      ++count;
    });
    CHECK(count == weights.tensors().size());
    model.requires_grad();
  }
};

inline double largest(const Numbers& v) {
  double m = 1e-300;
  for (const double x : v) m = std::max(m, std::fabs(x));
  return m;
}

inline void check_numbers(const std::string& what, const Numbers& ours, const Numbers& theirs,
                          double scale, double bound) {
  REQUIRE(ours.size() == theirs.size());
  double worst = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double error = std::fabs(ours[i] - theirs[i]);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  INFO(what << ": error " << worst / scale << ", bound " << bound);
  CHECK(worst <= bound * scale);
}

inline void check_results(const Recorded& r, nn::Module& model, const Rules& rules,
                          const Tensor& logits, const Tensor& loss) {
  const Numbers theirs = r.numbers(r.exact() ? "logits64" : "logits");
  check_numbers("logits", to_doubles(logits), theirs, largest(theirs), r.logits_bound());
  const double value = r.numbers(r.exact() ? "loss64" : "loss")[0];
  check_numbers("loss", {loss.item()}, {value}, std::fabs(value), r.exact() ? 1e-9 : 1e-5);
  double all = 0;
  const auto parameters = model.named_parameters();
  for (const auto& [name, p] : parameters)
    all = std::max(all, largest(r.numbers("grad." + renamed(name, rules))));
  for (const auto& [name, p] : parameters) {
    if (renamed(name, rules) == "final_logits_bias") continue;  // stored there, not trained
    const Numbers gradient = r.numbers("grad." + renamed(name, rules));
    check_numbers("gradient of " + name, to_doubles(p.grad()), gradient,
                  std::max(largest(gradient), 1e-3 * all), r.tolerance("tol_grad"));
  }
}

}  // namespace tally::test
