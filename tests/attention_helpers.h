#pragma once
// What the tests of attention share: random tensors, places, and which keys a row sees.
#include <catch2/catch.hpp>

#include "autograd/functional.h"
#include "autograd/proof/proof.h"
#include "backends/register_all.h"
#include "core/ops/attention/attention.h"
#include "tests/places.h"

namespace tally {

/// Registers the backends before a test.
struct Setup {
  Setup() {
    register_all();
    register_proof_kernels();
  }
};

inline Tensor random(const Shape& s, uint64_t seed, DType dtype = DType::f64,
                     Device device = kReference) {
  return make_input(normal(s, seed), dtype, device);
}
/// Equal within `bound`, relative to the largest number.
inline void check_close(const Tensor& a, const std::vector<double>& expected, double bound) {
  const auto v = to_doubles(a);
  REQUIRE(v.size() == expected.size());
  double scale = 1e-300;
  for (double e : expected) scale = std::max(scale, std::fabs(e));
  for (size_t i = 0; i < v.size(); ++i) {
    INFO("element " << i << ": " << v[i] << ", expected " << expected[i]);
    CHECK(std::fabs(v[i] - expected[i]) <= bound * scale);
  }
}
inline void check_close(const Tensor& a, const Tensor& b, double bound) {
  check_close(a, to_doubles(b), bound);
}
inline ops::AttentionOptions window_of(int64_t w) {
  ops::AttentionOptions o;
  o.window = w;
  return o;
}

using SeenKeys = std::vector<std::vector<int64_t>>;
/// Which keys each row sees, read off from the output: value j is the j-th unit vector.
inline SeenKeys seen_keys(const Place& p, int64_t queries, int64_t keys,
                          const ops::AttentionOptions& options, const Tensor& documents = {}) {
  std::vector<double> unit(static_cast<size_t>(keys * keys), 0);
  for (int64_t j = 0; j < keys; ++j) unit[static_cast<size_t>(j * keys + j)] = 1;
  const Tensor q = random({1, queries, 1, 2}, 1, p.dtype, p.device),
               k = random({1, keys, 1, 2}, 2, p.dtype, p.device);
  const auto y =
      to_doubles(attention(q, k, given(p, unit, {1, keys, 1, keys}), options, {}, {}, documents));
  SeenKeys rows(static_cast<size_t>(queries));
  for (size_t i = 0; i < y.size(); ++i) {
    if (y[i] != 0)
      rows[i / static_cast<size_t>(keys)].push_back(
          static_cast<int64_t>(i % static_cast<size_t>(keys)));
  }
  return rows;
}

}  // namespace tally
