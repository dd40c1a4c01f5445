// The update of AdamW and the global norm of the gradients: values, errors, and the faults that
// programs of this kind had.
#include <catch2/catch.hpp>

#include "autograd/functional.h"
#include "autograd/proof/proof.h"
#include "backends/register_all.h"
#include "core/ops/accumulate.h"
#include "core/ops/adamw_update.h"
#include "core/ops/clip.h"
#include "core/ops/stochastic_round.h"
#include "tests/threads.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

Tensor f64(std::initializer_list<double> v, const Shape& s, Device d = kReference) {
  return from_host<double>(v, s, d);
}
Tensor i64(std::initializer_list<int64_t> v, const Shape& s) {
  return from_host<int64_t>(v, s, kReference);
}

struct Setup {
  Setup() {
    register_all();
    register_proof_kernels();
  }
};

}  // namespace

TEST_CASE_METHOD(Setup, "adamw_update: follows the worked steps, and needs the right step count",
                 "[op][F30]") {
  const Tensor w = f64({1}, {1}), m = zeros({1}, DType::f64, kReference),
               v = zeros({1}, DType::f64, kReference);
  const double gradients[] = {1, -2, 0.5, 0};
  const double expected[] = {0.890000001, 0.9174373958, 0.9219853364, 0.9241525534};
  ops::AdamWUpdate::Attrs a{0.1, 0.9, 0.95, 1e-8, 0.1, 0};
  for (size_t i = 0; i < 4; ++i) {
    ++a.step;
    if (i == 2) {  // a count that starts again gives another step
      const Tensor w2 = f64({w.item()}, {1}), m2 = f64({m.item()}, {1}), v2 = f64({v.item()}, {1});
      a.step = 1;
      ops::AdamWUpdate::into(w2, m2, v2, f64({0.5}, {1}), {}, a);
      CHECK(w2.item() == Approx(0.9302813245).epsilon(1e-9));
      a.step = 3;
    }
    ops::AdamWUpdate::into(w, m, v, f64({gradients[i]}, {1}), {}, a);
    CHECK(w.item() == Approx(expected[i]).epsilon(1e-9));
  }
  CHECK(m.item() == Approx(-0.0441).epsilon(1e-9));
  CHECK(v.item() == Approx(0.23524375).epsilon(1e-9));
}

TEST_CASE_METHOD(Setup,
                 "adamw_update: with zero gradients decay is exact and its absence changes no bit",
                 "[op][F29]") {
  for (Device device : {kReference, kCPU}) {
    const std::vector<float> start{1.5f, -0.1f, 3e-20f, 7.0f, 1e-3f};
    for (double decay : {0.1, 0.0}) {
      const Tensor w = from_host<float>(start, {5}, device), zero = zeros({5}, DType::f32, device);
      ops::AdamWUpdate::into(w, zeros({5}, DType::f32, device), zeros({5}, DType::f32, device),
                             zero, {}, {0.1, 0.9, 0.95, 1e-8, decay, 1});
      for (size_t i = 0; i < 5; ++i)
        CHECK(w.host<float>()[i] == (decay > 0 ? start[i] * 0.99f : start[i]));
    }
  }
}

TEST_CASE_METHOD(Setup, "adamw_update: refuses odd numbers, types and shapes", "[op][error]") {
  const Tensor w = f64({1, 2}, {2}), one = f64({1}, {1}),
               half = zeros({2}, DType::bf16, kReference);
  const Tensor f = zeros({2}, DType::f32, kReference);
  using U = ops::AdamWUpdate;
  CHECK_THROWS_WITH(U::into(w, w, w, one, {}, {}),
                    Contains("must have the shape of the parameter (2); got (1), (2) and (2)"));
  CHECK_THROWS_WITH(U::into(half, f, f, half, {}, {}),
                    Contains("parameters must be f32 or f64; got bf16"));
  CHECK_THROWS_WITH(U::into(w, f, f, w, {}, {}),
                    Contains("moments must be f64 for parameters in f64; got f32"));
  CHECK_THROWS_WITH(U::into(w, w, w, w, w, {}),
                    Contains("the scale must be one number in f64; got (2)"));
  CHECK_THROWS_WITH(U::into(w, {}, w, w, {}, {}), Contains("the first moment is missing"));
  CHECK_THROWS_WITH(U::check_attrs({-1}), Contains("lr must be finite and not negative; got -1"));
  CHECK_THROWS_WITH(U::check_attrs({1, 1}),
                    Contains("beta1 and beta2 must be in 0..1, 1 left out; got 1 and 0.999"));
  CHECK_THROWS_WITH(U::check_attrs({1, 0, 0, NAN}),
                    Contains("eps must be finite and not negative; got nan"));
  CHECK_THROWS_WITH(U::check_attrs({1, 0, 0, 0, -0.1}),
                    Contains("weight_decay must be finite and not negative; got -0.1"));
  CHECK_THROWS_WITH(U::check_attrs({1, 0, 0, 0, 0, 0}),
                    Contains("the first step has number 1; got 0"));
}

TEST_CASE_METHOD(Setup, "clip: gradients whose squares overflow are scaled, not lost",
                 "[op][F33]") {
  for (Device device : {kReference, kCPU}) {
    const auto clipped = [&](const std::vector<float>& g) {
      const Tensor t = from_host<float>(g, {static_cast<int64_t>(g.size())}, device);
      const auto r = ops::clip_global_norm(std::array{t}, 1);
      const float factor = static_cast<float>(r.factor.item());
      return std::array<double, 3>{r.norm.item(), g.front() * factor, g.back() * factor};
    };
    CHECK(clipped(std::vector<float>(100, 1e20f))[0] == Approx(1e21).epsilon(1e-6));
    CHECK(clipped(std::vector<float>(100, 1e20f))[1] == Approx(0.1).epsilon(1e-6));
    CHECK(clipped(std::vector<float>(128, 1e19f))[1] == Approx(0.0883883476).epsilon(1e-6));
    CHECK(clipped({3, 4})[1] == Approx(0.6).epsilon(1e-6));
    CHECK(clipped({3, 4})[2] == Approx(0.8).epsilon(1e-6));
    CHECK(clipped({0.3f, 0.4f})[1] == 0.3f);  // below the limit: untouched
  }
}

TEST_CASE_METHOD(Setup, "bf16: a hundred small updates reach f32 weights and are lost in bf16",
                 "[op][error][F32]") {
  for (Device device : {kReference, kCPU}) {
    const auto after = [&](DType dtype) {
      const Tensor w = full({1}, 1, dtype, device), update = full({1}, -6e-4, dtype, device);
      for (int i = 0; i < 100; ++i) ops::Accumulate::into(w, update);
      return w;
    };
    const Tensor master = after(DType::f32), narrow = after(DType::bf16);
    CHECK(master.item() == Approx(0.94).epsilon(1e-5));  // a hundred roundings of 6e-8 each
    CHECK(to(master, DType::bf16).item() == 0.94140625);
    CHECK(narrow.item() == 1);  // so the optimizer takes no weights in bf16:
    const Tensor moment = zeros({1}, DType::f32, device);
    CHECK_THROWS_WITH(ops::AdamWUpdate::into(narrow, moment, moment, narrow, {}, {}),
                      Contains("parameters must be f32 or f64; got bf16"));
  }
}

TEST_CASE_METHOD(Setup, "clip: a NaN or an infinity is seen in the norm and its tensor is found",
                 "[op][F33]") {
  const Tensor fine = f64({1, 2}, {2});
  for (double bad : {double(NAN), double(INFINITY)}) {
    const std::array<Tensor, 4> list{fine, Tensor(), f64({3, bad}, {2}), f64({bad}, {1})};
    CHECK_FALSE(std::isfinite(ops::clip_global_norm(list, 1).norm.item()));
    CHECK(ops::first_not_finite(list) == 2);
  }
  CHECK(std::isnan(ops::clip_global_norm(std::array{f64({NAN}, {1})}, 1).factor.item()));
  CHECK(ops::first_not_finite(std::array{fine}) == -1);
}

TEST_CASE_METHOD(Setup,
                 "clip: without a limit the factor is the scale; on meta the calls are listed",
                 "[op]") {
  const auto r = ops::clip_global_norm(std::array{f64({30, 40}, {2})}, INFINITY, 0.5);
  CHECK(r.norm.item() == 25);
  CHECK(r.factor.item() == 0.5);
  Ledger ledger;
  ops::clip_global_norm(std::array{empty({3}, DType::f32, kMeta), empty({2}, DType::f32, kMeta)},
                        1);
  REQUIRE(ledger.entries().size() == 3);
  CHECK(std::string(ledger.entries()[2].op) == "clip_factor");
}

TEST_CASE_METHOD(Setup, "clip: norm and limit are those of the scaled gradients, with 1e-6",
                 "[op]") {
  const auto r = ops::clip_global_norm(std::array{f64({3, 4}, {2})}, 1, 0.5);
  CHECK(r.norm.item() == 2.5);
  CHECK(r.factor.item() == Approx(0.5 / (2.5 + 1e-6)).epsilon(1e-14));
  const auto small = ops::clip_global_norm(std::array{f64({3e-6, 4e-6}, {2})}, 1e-6);
  CHECK(small.factor.item() == Approx(1.0 / 6));
}

TEST_CASE_METHOD(Setup, "clip: refuses what has no norm", "[op][error]") {
  const Tensor x = f64({1, 2}, {2}), f = zeros({1}, DType::f32, kReference);
  CHECK_THROWS_WITH(ops::clip_global_norm({}, 1), Contains("there is no gradient"));
  CHECK_THROWS_WITH(ops::clip_global_norm(std::array{x}, 0),
                    Contains("the largest norm must be above 0 (infinity: no clipping); got 0"));
  CHECK_THROWS_WITH(ops::clip_global_norm(std::array{x}, 1, NAN),
                    Contains("the scale must be finite and above 0; got nan"));
  CHECK_THROWS_WITH(ops::clip_global_norm(std::array{x, f}, 1),
                    Contains("gradients must hold one type; got f64 and f32"));
  CHECK_THROWS_WITH(ops::SquareSum::into(f, x),
                    Contains("the sum must be one number in f64; got (1) in f32"));
  CHECK_THROWS_WITH(ops::SquareSum::into(x, i64({1}, {1})),
                    Contains("needs floating-point numbers; got i64"));
  CHECK_THROWS_WITH(ops::ClipFactor::of(x, 1, DType::f64),
                    Contains("the sum must be one number in f64; got (2)"));
}

TEST_CASE_METHOD(Setup, "stochastic_round: element i has half i mod 2 of word i / 2 of its stream",
                 "[op]") {
  constexpr int64_t kElements = 100001;  // several chunks of the cpu's threads
  const ops::StochasticRound::Attrs a{5, 6, 7};
  const uint64_t stream = 6 + 7 * uint64_t{0x9E3779B97F4A7C15u};
  std::vector<float> x(kElements);
  for (size_t i = 0; i < x.size(); ++i) {
    const uint32_t bits = Philox::word(1, 2, i);
    x[i] = std::bit_cast<float>((bits & 0x8000ffffu) | 0x3f800000u);  // 1 to 1.0078, both signs
  }
  x[2] = 1, x[3] = INFINITY, x[4] = -INFINITY;
  x[5] = std::bit_cast<float>(0x7f800001u), x[6] = std::bit_cast<float>(0x7fffffffu);
  const test::Threads several(3);
  for (Device device : {kReference, kCPU}) {
    const Tensor from = from_host<float>(x, {kElements}, device);
    const Tensor y = empty({kElements}, DType::bf16, device);
    ops::StochasticRound::into(y, from, a);
    int64_t wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const uint32_t drawn = Philox::word(5, stream, i / 2) >> (i % 2 ? 16 : 0) & 0xffffu;
      const uint32_t exact = std::bit_cast<uint32_t>(x[i]);
      const uint32_t want = (exact >> 16) + ((exact & 0xffffu) + drawn > 0xffffu ? 1 : 0);
      const bf16 got = static_cast<const bf16*>(y.data())[i];
      wrong += std::isnan(x[i]) ? !std::isnan(static_cast<float>(got)) : got.bits != want;
    }
    CHECK(wrong == 0);
  }
  ops::StochasticRound::Call call;
  call.rebind({0, 9, 0});  // a step that is replayed draws its own
  CHECK(call.attrs.step == 9);
}
