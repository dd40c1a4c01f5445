// The updates of the optimizers beside AdamW: worked steps, decompositions, and every error.
#include <cmath>

#include "core/ops/adafactor_update.h"
#include "core/ops/adamw_update.h"
#include "core/ops/adaptive_update.h"
#include "core/ops/basis.h"
#include "core/ops/direction.h"
#include "core/ops/lion_update.h"
#include "core/ops/matmul.h"
#include "core/ops/sgd_update.h"
#include "tests/op_values.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

Tensor on(Device d, std::initializer_list<double> v, const Shape& s) {
  return from_host<double>(v, s, d);
}

/// A symmetric matrix with eigenvalues 1, 2, ..., n: a reflection of the diagonal.
std::vector<double> symmetric(int64_t n) {
  std::vector<double> v(static_cast<size_t>(n)), a(static_cast<size_t>(n * n));
  double length = 0;
  for (int64_t i = 0; i < n; ++i) {
    v[static_cast<size_t>(i)] = std::sin(static_cast<double>(i) + 1);
    length += v[static_cast<size_t>(i)] * v[static_cast<size_t>(i)];
  }
  const auto reflection = [&](int64_t i, int64_t j) {
    return (i == j ? 1 : 0) - 2 * v[static_cast<size_t>(i)] * v[static_cast<size_t>(j)] / length;
  };
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = 0; k < n; ++k)
        a[static_cast<size_t>(i * n + j)] +=
            reflection(i, k) * static_cast<double>(k + 1) * reflection(j, k);
    }
  }
  return a;
}

Tensor product(const Tensor& a, const Tensor& b, bool ta = false, bool tb = false) {
  return ops::MatMul::forward(a, b, {ta, tb}, nullptr);
}
void check_identity(const Tensor& a, double bound) {
  const Numbers v = numbers(a);
  for (size_t i = 0; i < v.size(); ++i)
    CHECK(std::fabs(v[i] - (i % static_cast<size_t>(a.size(0) + 1) == 0 ? 1 : 0)) <= bound);
}

}  // namespace

TEST_CASE_METHOD(Setup, "sgd_update: momentum begins undamped, Nesterov looks ahead", "[op]") {
  for (Device d : {kReference, kCPU}) {
    const Tensor w = on(d, {1}, {1}), m = on(d, {0}, {1}), g = on(d, {2}, {1});
    ops::SgdUpdate::into(w, m, g, {}, {{0.1, 0.5, false, 1}, 0.9, 0.4});
    CHECK(m.item() == 2.5);  // g + 0.5 w, whole at the first step
    CHECK(w.item() == Approx(0.75));
    ops::SgdUpdate::into(w, m, g, {}, {{0.1, 0, true, 2}, 0.9, 0.4});
    CHECK(m.item() == Approx(0.9 * 2.5 + 0.6 * 2));
    const Tensor w2 = on(d, {1}, {1}), m2 = on(d, {1}, {1});
    ops::SgdUpdate::into(w2, m2, g, {}, {{0.1, 0, true, 2}, 0.9, 0, true});
    CHECK(w2.item() == Approx(1 - 0.1 * (2 + 0.9 * 2.9)));
  }
}

TEST_CASE_METHOD(Setup, "lion_update: moves by the rate whatever the gradient, not at 0", "[op]") {
  for (Device d : {kReference, kCPU}) {
    const Tensor w = on(d, {1, 1, 1}, {3}), m = on(d, {0, 0, 0}, {3});
    ops::LionUpdate::into(w, m, on(d, {1e-20, -1e20, 0}, {3}), {}, {{0.01, 0, true, 1}, 0.9, 0.5});
    CHECK(numbers(w) == Numbers{0.99, 1.01, 1});
    CHECK(m.host<double>()[1] == -5e19);
  }
}

TEST_CASE_METHOD(Setup, "adamw_update: L2 goes through the moments, the largest moment stays",
                 "[op][L80]") {
  for (Device d : {kReference, kCPU}) {
    const Tensor w = on(d, {1}, {1}), m = on(d, {0}, {1}), v = on(d, {0}, {1}),
                 zero = on(d, {0}, {1}), largest = on(d, {4}, {1});
    ops::AdamWUpdate::into(w, m, v, zero, {}, {0.1, 0.9, 0.99, 0, 0.5, 1, 1, false}, largest);
    CHECK(m.item() == Approx(0.05));  // of g = 0.5 w alone
    CHECK(v.item() == Approx(0.0025));
    CHECK(largest.item() == 4);
    CHECK(w.item() == Approx(1 - 0.1 * 0.5 / (2 / 0.1)));
  }
}

TEST_CASE_METHOD(Setup, "adafactor_update: of a rank-1 square the factors are exact", "[op]") {
  for (Device d : {kReference, kCPU}) {
    const Tensor w = on(d, {1, 1, 1, 1}, {2, 2}), row = on(d, {0, 0}, {2}),
                 col = on(d, {0, 0}, {2});
    ops::AdafactorUpdate::Attrs a{{0.1, 0, true, 1}};
    a.eps = 0, a.scaled = false;
    ops::AdafactorUpdate::into(w, {row, col, {}}, on(d, {1, -2, 3, -6}, {2, 2}), {}, a);
    CHECK(numbers(row) == Numbers{2.5, 22.5});
    CHECK(numbers(col) == Numbers{5, 20});
    check_close(w, {0.9, 1.1, 0.9, 1.1});  // u is the sign of the gradient, its rms 1
  }
}

// A gradient of 0 is that of a branch whose gain is 0, and of a router with one expert a token.
TEST_CASE_METHOD(Setup, "adafactor_update: a gradient of 0 moves nothing", "[op]") {
  for (Device d : {kReference, kCPU}) {
    for (bool t5 : {false, true}) {
      for (float corner : {0.0F, 2.0F}) {
        const Tensor w = from_host<float>({1, 1, 1, 1}, {2, 2}, d),
                     row = from_host<float>({0, 0}, {2}, d), col = from_host<float>({0, 0}, {2}, d),
                     g = from_host<float>({corner, 0, 0, 0}, {2, 2}, d);
        ops::AdafactorUpdate::Attrs a{{0.1, 0, true, 1}};
        a.eps = t5 ? 1e-30 : 0, a.floor = t5 ? 0 : 1.42e-14, a.scaled = false;
        ops::AdafactorUpdate::into(w, {row, col, {}}, g, {}, a);
        const Numbers moved = numbers(w);
        CHECK((corner > 0 ? moved[0] < 1 : moved[0] == 1));
        CHECK(Numbers(moved.begin() + 1, moved.end()) == Numbers{1, 1, 1});
      }
    }
  }
}

TEST_CASE_METHOD(Setup, "eigen_basis: eigenvalues fall, the vectors give the matrix back", "[op]") {
  for (Device d : {kReference, kCPU}) {
    for (int64_t n : {1, 2, 7, 24}) {
      const std::vector<double> v = symmetric(n);
      const Tensor a = from_host<double>(std::span<const double>(v), {n, n}, d);
      const auto [q, values] = ops::EigenBasis::of(a);
      for (int64_t i = 0; i < n; ++i)
        CHECK(values.host<double>()[static_cast<size_t>(i)] ==
              Approx(static_cast<double>(n - i)).epsilon(1e-12));
      check_identity(product(q, q, true, false), 1e-13);
      const Tensor root = ops::RootColumns::of(q, values, 0.5, 1e-9);
      check_close(product(root, root, false, true), v);
      const Tensor inverse = ops::RootColumns::of(q, values, -0.5, 1e-9);
      check_identity(product(a, product(inverse, inverse, false, true)), 1e-12);
    }
  }
}

TEST_CASE_METHOD(Setup, "orthonormal_columns: orthogonal, and triangular against what they span",
                 "[op]") {
  for (Device d : {kReference, kCPU}) {
    const Tensor p = on(d, {1, 2, 3, 0, 1, 5, 2, 2, 9}, {3, 3}),
                 order = from_host<int64_t>({2, 0, 1}, {3}, d),
                 q = on(d, {0, 0, 0, 0, 0, 0, 0, 0, 0}, {3, 3});
    ops::OrthonormalColumns::into(q, p, order);
    check_identity(product(q, q, true, false), 1e-14);
    const Numbers r = numbers(product(q, p, true, false));  // columns in the order of p
    CHECK(std::fabs(r[1 * 3 + 2]) < 1e-13);
    CHECK(std::fabs(r[2 * 3 + 2]) < 1e-13);
    CHECK(std::fabs(r[2 * 3 + 0]) < 1e-13);
    CHECK(std::fabs(r[0 * 3 + 2]) == Approx(std::sqrt(9.0 + 25 + 81)));
  }
}

TEST_CASE_METHOD(Setup, "reordered: rows or columns, and basis_order puts the largest first",
                 "[op]") {
  for (Device d : {kReference, kCPU}) {
    const Tensor q = on(d, {1, 0, 0, 1}, {2, 2}), p = on(d, {1, 0, 0, 3}, {2, 2});
    const Tensor order = ops::BasisOrder::of(p, q);
    CHECK(numbers(order) == Numbers{1, 0});
    const Tensor v = on(d, {1, 2, 3, 4, 5, 6}, {2, 3});
    ops::Reordered::into(v, order, 0);
    CHECK(numbers(v) == Numbers{4, 5, 6, 1, 2, 3});
    ops::Reordered::into(v, from_host<int64_t>({2, 0, 1}, {3}, d), 1);
    CHECK(numbers(v) == Numbers{6, 4, 5, 3, 1, 2});
  }
}

TEST_CASE_METHOD(Setup, "updates: refuse types, shapes and numbers that make no step",
                 "[op][error]") {
  const Tensor w = f64({1, 2}, {2}), one = f64({1}, {1}), f = zeros({2}, DType::f32, kReference),
               half = zeros({2}, DType::bf16, kReference);
  using S = ops::SgdUpdate;
  CHECK_THROWS_WITH(S::into({}, {}, w, {}, {}), Contains("the parameter is missing"));
  CHECK_THROWS_WITH(S::into(w, {}, {}, {}, {}), Contains("the gradient is missing"));
  CHECK_THROWS_WITH(S::into(w, {}, one, {}, {}),
                    Contains("the gradient must have the shape of the parameter (2); got (1)"));
  CHECK_THROWS_WITH(S::into(half, {}, half, {}, {}),
                    Contains("sgd_update: parameters must be f32 or f64; got bf16"));
  CHECK_THROWS_WITH(S::into(w, {}, f, {}, {}), Contains("all tensors must hold one type"));
  CHECK_THROWS_WITH(S::into(w, {}, w, w, {}),
                    Contains("the scale must be one number in f64; got (2)"));
  CHECK_THROWS_WITH(S::into(w, one, w, {}, {}),
                    Contains("the momentum must be (2) for the parameter (2); got (1)"));
  CHECK_THROWS_WITH(S::into(w, f, w, {}, {}),
                    Contains("the momentum must be in f64 for parameters in f64; got f32"));
  CHECK_THROWS_WITH(S::into(w, {}, w, {}, {{}, 0.9}),
                    Contains("sgd_update: momentum 0.9 needs a tensor that keeps it"));
  CHECK_THROWS_WITH(S::check_attrs({{-1}}), Contains("lr must be finite and not negative; got -1"));
  CHECK_THROWS_WITH(S::check_attrs({{1, NAN}}), Contains("weight_decay must be finite"));
  CHECK_THROWS_WITH(S::check_attrs({{1, 0, true, 1, -2}}), Contains("lr_scale must be finite"));
  CHECK_THROWS_WITH(S::check_attrs({{1, 0, true, 0}}), Contains("the first step has number 1"));
  CHECK_THROWS_WITH(S::check_attrs({{}, 1}),
                    Contains("momentum must be in 0..1, 1 left out; got 1"));
  CHECK_THROWS_WITH(S::check_attrs({{}, 0.5, 2}), Contains("dampening must be in 0..1; got 2"));
  CHECK_THROWS_WITH(S::check_attrs({{}, 0.5, 0.1, true}),
                    Contains("nesterov needs momentum above 0 and no dampening; got 0.5 and 0.1"));
  CHECK_THROWS_WITH(ops::LionUpdate::check_attrs({{}, -0.1}), Contains("lion_update: beta1"));
  CHECK_THROWS_WITH(ops::LionUpdate::check_attrs({{}, 0.1, 1}), Contains("lion_update: beta2"));
  CHECK_THROWS_WITH(ops::AdagradUpdate::check_attrs({{}, -1}),
                    Contains("adagrad_update: lr_decay"));
  CHECK_THROWS_WITH(ops::AdagradUpdate::check_attrs({{}, 0, -1}), Contains("adagrad_update: eps"));
  CHECK_THROWS_WITH(ops::RmspropUpdate::check_attrs({{}, 1}), Contains("rmsprop_update: alpha"));
  CHECK_THROWS_WITH(ops::RmspropUpdate::check_attrs({{}, 0, 1}), Contains("momentum"));
  CHECK_THROWS_WITH(ops::RmspropUpdate::check_attrs({{}, 0, 0, NAN}), Contains("eps"));
  CHECK_THROWS_WITH(ops::RmspropUpdate::into(w, w, {}, w, {}, {{}, 0.9, 0.5}),
                    Contains("rmsprop_update: momentum 0.5 needs a tensor that keeps it"));
  CHECK_THROWS_WITH(ops::NadamUpdate::check_attrs({{}, 1}), Contains("nadam_update: beta1"));
  CHECK_THROWS_WITH(ops::NadamUpdate::check_attrs({{}, 0, 1}), Contains("nadam_update: beta2"));
  CHECK_THROWS_WITH(ops::NadamUpdate::check_attrs({{}, 0, 0, -1}), Contains("eps"));
  CHECK_THROWS_WITH(ops::NadamUpdate::check_attrs({{}, 0, 0, 0, -1}), Contains("momentum_decay"));
  CHECK_THROWS_WITH(ops::NadamUpdate::check_attrs({{}, 0, 0, 0, 0, 1}),
                    Contains("the product of the momenta must be in 0..1"));
  CHECK_THROWS_WITH(ops::AdamWUpdate::into(w, w, w, w, {}, {}, one),
                    Contains("the largest second moment must have the shape of the parameter (2)"));
}

TEST_CASE_METHOD(Setup, "adafactor_update: refuses means that do not fit", "[op][error]") {
  using U = ops::AdafactorUpdate;
  const Tensor w = f64({1, 2, 3, 4, 5, 6}, {2, 3}), row = f64({1, 1}, {2}),
               col = f64({1, 1, 1}, {3});
  CHECK_THROWS_WITH(U::into(w, {col, row, {}}, w, {}, {}),
                    Contains("the row of means must be (2) for the parameter (2, 3); got (3)"));
  CHECK_THROWS_WITH(U::into(w, {row, row, {}}, w, {}, {}),
                    Contains("the column of means must be (3) for the parameter (2, 3); got (2)"));
  CHECK_THROWS_WITH(U::into(row, {f64({1, 1}, {2}), col, {}}, row, {}, {}),
                    Contains("a vector has no column of means"));
  CHECK_THROWS_WITH(U::into(w, {row, col, {}}, w, {}, {{}, 0.9}),
                    Contains("beta1 0.9 needs a tensor that keeps the first moment"));
  CHECK_THROWS_WITH(U::check_attrs({{}, 1}), Contains("beta1"));
  CHECK_THROWS_WITH(U::check_attrs({{}, 0, -1}), Contains("beta2_decay"));
  CHECK_THROWS_WITH(U::check_attrs({{}, 0, 0.8, -1}), Contains("eps"));
  CHECK_THROWS_WITH(U::check_attrs({{}, 0, 0.8, 0, -1}), Contains("floor"));
  CHECK_THROWS_WITH(U::check_attrs({{}, 0, 0.8, 0, 0, 0}), Contains("clip must be above 0; got 0"));
  CHECK_THROWS_WITH(U::check_attrs({{}, 0, 0.8, 0, 0, 1, -1}), Contains("smallest"));
}

TEST_CASE_METHOD(Setup, "directions and bases: refuse what they cannot take", "[op][error]") {
  const Tensor w = f64({1, 2, 3, 4, 5, 6}, {2, 3}), square = f64({1, 0, 0, 1}, {2, 2}),
               order = i64({0, 1}, {2}), two = f64({1, 1}, {2});
  CHECK_THROWS_WITH(ops::ScaledGradient::of(w, w, {}, -1), Contains("l2 must be finite"));
  CHECK_THROWS_WITH(ops::MomentumDirection::of(w, w, {}, {1}),
                    Contains("momentum must be in 0..1"));
  CHECK_THROWS_WITH(ops::UnitNorm::of(w, f64({1}, {1}), {0}),
                    Contains("unit_norm: eps must be above 0; got 0"));
  CHECK_THROWS_WITH(ops::UnitNorm::of(w, two, {}),
                    Contains("unit_norm: the sum must be one number in f64; got (2)"));
  CHECK_THROWS_WITH(ops::Blend::into(w, NAN, w, 1), Contains("blend: a and b must be finite"));
  CHECK_THROWS_WITH(ops::DirectedUpdate::into(w, w, {{}, -1}), Contains("factor must be finite"));
  CHECK_THROWS_WITH(ops::AdamQuotient::of(w, w, w, {1}), Contains("beta must be in 0..1"));
  CHECK_THROWS_WITH(ops::AdamQuotient::of(w, w, w, {0.9, -1}), Contains("eps must be finite"));
  CHECK_THROWS_WITH(ops::EigenBasis::of(w), Contains("needs a square matrix; got (2, 3)"));
  CHECK_THROWS_WITH(ops::EigenBasis::of(empty({30001, 30001}, DType::f32, kMeta)),
                    Contains("LAPACK counts its workspace in 32 bits; got 30001 rows"));
  CHECK_THROWS_WITH(ops::OrthonormalColumns::into(square, square, two),
                    Contains("order must be 2 places in i64"));
  CHECK_THROWS_WITH(ops::Reordered::into(w, order, 1),
                    Contains("one place in i64 for each line of axis 0 or 1; got (2, 3), axis 1"));
  CHECK_THROWS_WITH(ops::RootColumns::of(square, f64({1}, {1}), -1, 1),
                    Contains("needs 2 eigenvalues in f64; got (1)"));
  CHECK_THROWS_WITH(ops::RootColumns::of(square, two, -1, 0),
                    Contains("power must be finite and floor above 0; got -1 and 0"));
}
