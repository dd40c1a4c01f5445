// The ops of a language model's layers: values, errors, and the faults that programs of this kind
// had.
#include <catch2/catch.hpp>

#include "autograd/functional.h"
#include "autograd/proof/proof.h"
#include "backends/register_all.h"
#include "tests/op_choices.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

Tensor f64(std::initializer_list<double> v, const Shape& s, Device d = kReference) {
  return from_host<double>(v, s, d);
}
std::vector<double> numbers(const Tensor& t) { return to_doubles(t); }
Tensor i64(std::initializer_list<int64_t> v, const Shape& s) {
  return from_host<int64_t>(v, s, kReference);
}

using K = ops::ActivationKind;
std::vector<double> to_doubles_of(const std::vector<float>& v) { return {v.begin(), v.end()}; }
/// f(x) and f'(x), computed in T.
template <class T>
std::array<std::vector<double>, 2> value_and_slope(K kind, const std::vector<T>& x,
                                                   Device device = kReference) {
  const Shape s{static_cast<int64_t>(x.size())};
  ops::Activation::Saved saved;
  const Tensor y = ops::Activation::forward(from_host<T>(x, s, device), {kind}, &saved);
  const Tensor dy = full(s, 1, dtype_of<T>, device);
  return {numbers(y), numbers(ops::Activation::backward(dy, std::move(saved))[0])};
}

struct Setup {
  Setup() {
    register_all();
    register_proof_kernels();
  }
};

}  // namespace

TEST_CASE_METHOD(Setup, "embedding: refuses an id outside the table, naming position and value",
                 "[op][error]") {
  const Tensor w = f64({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  CHECK_THROWS_WITH(embedding(i64({0, -1}, {2}), w),
                    Contains("ids must be in 0..3; position 1 of (2) holds -1"));
  CHECK_THROWS_WITH(embedding(i64({4}, {1}), w), Contains("position 0") && Contains("holds 4"));
  CHECK_THROWS_WITH(embedding(i64({0, 0, int64_t{1} << 32}, {3, 1}), w),
                    Contains("position 2") && Contains("4294967296"));
}

TEST_CASE_METHOD(Setup, "embedding: adds up the gradients of an id that repeats", "[op]") {
  const Tensor ids = i64({1, 1, 3}, {3}), w = zeros({4, 2}, DType::f64, kReference);
  const Tensor dy = f64({1, 2, 10, 20, 5, 6}, {3, 2});
  const auto gradient = [&](const ops::Embedding::Attrs& a, const Into<2>& into = {}) {
    ops::Embedding::Saved saved;
    ops::Embedding::forward(ids, w, a, &saved);
    return numbers(ops::Embedding::backward(dy, std::move(saved), into)[1]);
  };
  CHECK(gradient({}) == std::vector<double>{0, 0, 11, 22, 0, 0, 5, 6});
  CHECK(gradient({1, 3}) == std::vector<double>{0, 0, 11, 22, 0, 0, 0, 0});
  Into<2> into;
  into.target[1] = f64({1, 1, 1, 1, 1, 1, 1, 1}, {4, 2});
  CHECK(gradient({}, into) == std::vector<double>{1, 1, 12, 23, 1, 1, 6, 7});
}

TEST_CASE_METHOD(Setup, "embedding: takes no ids, a slice of ids, and nothing else but i64",
                 "[op]") {
  const Tensor w = f64({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  CHECK(embedding(i64({}, {0}), w).shape() == Shape{0, 2});
  const Tensor inputs = i64({0, 1, 2, 3, 2, 1}, {2, 3}).narrow(1, 0, 2);
  CHECK(numbers(embedding(inputs, w)) == std::vector<double>{1, 2, 3, 4, 7, 8, 5, 6});
  CHECK_THROWS_WITH(embedding(w, w), Contains("ids must be i64; got f64"));
  CHECK_THROWS_WITH(embedding(i64({0}, {1}), f64({1, 2}, {2})),
                    Contains("weight must be (V, D); got (2)"));
  CHECK_THROWS_WITH(embedding(i64({0}, {1}), i64({0}, {1, 1})),
                    Contains("weight must be floating-point; got i64"));
  CHECK_THROWS_WITH(embedding(inputs.transpose(0, 1), w), Contains("call contiguous(ids) first"));
}

TEST_CASE_METHOD(Setup, "embedding: a bf16 gradient keeps counting past 256", "[op]") {
  const Tensor ids = zeros({5000}, DType::i64, kReference),
               w = zeros({2, 1}, DType::bf16, kReference);
  ops::Embedding::Saved saved;
  ops::Embedding::forward(ids, w, {}, &saved);
  const Tensor dy = full({5000, 1}, 1, DType::bf16, kReference);
  CHECK(numbers(ops::Embedding::backward(dy, std::move(saved))[1]) == std::vector<double>{4992, 0});
}

TEST_CASE_METHOD(Setup, "rms_norm: eps is inside the root, and a row of zeros is harmless",
                 "[op]") {
  const auto y = numbers(rms_norm(f64({3, 4, 0, 0}, {4}), {}, 1));
  CHECK(y[0] == Approx(1.114172029).epsilon(1e-9));
  CHECK(y[1] == Approx(1.485562705).epsilon(1e-9));
  const Tensor x = zeros({1, 4}, DType::f64, kReference), dy = f64({1, 2, 3, 4}, {1, 4});
  ops::RMSNorm::Saved saved;
  CHECK(numbers(ops::RMSNorm::forward(x, {}, {1e-6}, &saved)) == std::vector<double>(4, 0.0));
  const auto dx = numbers(ops::RMSNorm::backward(dy, std::move(saved))[0]);
  for (size_t i = 0; i < 4; ++i) CHECK(dx[i] == Approx(1000.0 * (i + 1.0)).epsilon(1e-9));
}

TEST_CASE_METHOD(Setup, "rms_norm: rounds before the gain as LLaMA does, or after it", "[op]") {
  const auto half = [](std::initializer_list<double> v) {
    return make_input(values({static_cast<int64_t>(v.size())}, v), DType::bf16, kReference);
  };
  const Tensor x = half({0.30078125, -1.703125, 2.90625, 0.010986328125}),
               w = half({1.1015625, 0.8984375, 1.296875, 0.69921875});
  CHECK(numbers(rms_norm(x, w, 1e-6, false, true)) ==
        std::vector<double>{0.1953125, -0.90625, 2.234375, 0.004547119140625});
  CHECK(numbers(rms_norm(x, w))[0] == 0.1962890625);
}

TEST_CASE_METHOD(Setup, "norms: refuse weights of another length, a bias alone and a negative eps",
                 "[op][error]") {
  const Tensor x = f64({1, 2, 3, 4}, {2, 2}), w = f64({1, 2, 3}, {3}), b = f64({1, 2}, {2});
  CHECK_THROWS_WITH(
      rms_norm(x, w),
      Contains("weight must be (D) with D the last axis of x; x is (2, 2), weight is (3)"));
  CHECK_THROWS_WITH(layer_norm(x, w), Contains("layer_norm: weight must be (D)"));
  CHECK_THROWS_WITH(layer_norm(x, b, w), Contains("bias must be (D)"));
  CHECK_THROWS_WITH(layer_norm(x, {}, b), Contains("weight is missing"));
  CHECK_THROWS_WITH(rms_norm(x, b, -1), Contains("eps must not be negative; got -1"));
  CHECK_THROWS_WITH(layer_norm(x, b, b, -1), Contains("eps must not be negative; got -1"));
}

TEST_CASE_METHOD(Setup,
                 "layer_norm: keeps its digits when the mean is large, and takes rows of no width",
                 "[op]") {
  const Tensor x = from_host<float>({10000.0f, 10001.0f, 10002.0f, 10003.0f}, {4}, kReference);
  const auto y = numbers(layer_norm(x, {}, {}, 0));
  for (size_t i = 0; i < 4; ++i) CHECK(y[i] == Approx((i - 1.5) / std::sqrt(1.25)).epsilon(1e-6));
  CHECK(layer_norm(zeros({2, 0}, DType::f64, kReference)).shape() == Shape{2, 0});
  CHECK(rms_norm(zeros({2, 0}, DType::f64, kReference)).shape() == Shape{2, 0});
}

TEST_CASE_METHOD(Setup, "gelu: the exact and the tanh form are two functions", "[op]") {
  const std::vector<double> x{-3, -1, -0.5, 0, 0.5, 1, 3};
  const auto check_both = [&](K kind, const std::vector<double>& y,
                              const std::vector<double>& slope) {
    const auto got = value_and_slope(kind, x);
    for (size_t i = 0; i < x.size(); ++i) {
      CHECK(got[0][i] == Approx(y[i]).margin(1e-11).epsilon(1e-8));
      CHECK(got[1][i] == Approx(slope[i]).margin(1e-11).epsilon(1e-8));
    }
  };
  check_both(K::gelu,
             {-0.00404969409, -0.158655254, -0.154268769, 0, 0.345731231, 0.841344746, 2.99595031},
             {-0.0119456472, -0.0833154706, 0.132504875, 0.5, 0.867495125, 1.08331547, 1.01194565});
  check_both(K::gelu_tanh,
             {-0.00363739208, -0.158808009, -0.154285990, 0, 0.345714010, 0.841191991, 2.99636261},
             {-0.0115841666, -0.0829640838, 0.132630096, 0.5, 0.867369904, 1.08296408, 1.01158417});
}

TEST_CASE_METHOD(Setup, "activation: values and slopes at extremes are limits, never NaN", "[op]") {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> large{1e4f, 1e20f, 3e38f, inf}, small{-1e4f, -1e20f, -3e38f, -inf};
  for (Device device : {kReference, kCPU}) {
    for (K kind : {K::gelu, K::gelu_tanh, K::silu, K::swish, K::relu}) {
      INFO(ops::kActivationNames[static_cast<int>(kind)] << " on " << to_text(device));
      CHECK(value_and_slope(kind, large, device) ==
            std::array<std::vector<double>, 2>{to_doubles_of(large), {1, 1, 1, 1}});
      CHECK(value_and_slope(kind, small, device) ==
            std::array<std::vector<double>, 2>{{{0, 0, 0, 0}, {0, 0, 0, 0}}});
    }
    for (K kind : {K::sigmoid, K::tanh}) {
      const double low = kind == K::tanh ? -1 : 0;
      CHECK(value_and_slope(kind, large, device) ==
            std::array<std::vector<double>, 2>{{{1, 1, 1, 1}, {0, 0, 0, 0}}});
      CHECK(value_and_slope(kind, small, device) ==
            std::array<std::vector<double>, 2>{{{low, low, low, low}, {0, 0, 0, 0}}});
    }
    const auto square =
        value_and_slope(K::squared_relu, std::vector<float>{1e4f, 1e20f, -1e20f, -inf}, device);
    CHECK(square[0] == std::vector<double>{1e8, double(inf), 0, 0});
    CHECK(square[1] == std::vector<double>{2e4, double(2e20f), 0, 0});
    const auto tail = value_and_slope(K::silu, std::vector<float>{-90}, device);
    CHECK(tail[0][0] == Approx(-7.37461e-38).epsilon(1e-5));
    CHECK(tail[1][0] == Approx(-7.29267e-38).epsilon(1e-5));
    for (int k = 0; k < ops::kActivations; ++k) {
      const auto kind = static_cast<K>(k);
      for (const auto& part :
           value_and_slope(kind, std::vector<float>{1e4f, -1e4f, 1e20f, -1e20f}, device)) {
        for (double v : part) CHECK_FALSE(std::isnan(v));
      }
      CHECK(std::isnan(value_and_slope(kind, std::vector<float>{NAN}, device)[0][0]));
    }
  }
}

TEST_CASE_METHOD(Setup,
                 "activation: every element of a call gets the same bits, and tanh saturates",
                 "[op]") {
  for (Device device : {kReference, kCPU}) {
    for (int k = 0; k < ops::kActivations; ++k) {
      for (float v : {0.1f, 1.0f, 5.0f, 20.0f, -5.0f}) {
        const auto first = value_and_slope(static_cast<K>(k), std::vector<float>{v}, device);
        for (size_t n = 2; n <= 67; ++n) {
          const auto all = value_and_slope(static_cast<K>(k), std::vector<float>(n, v), device);
          for (int part = 0; part < 2; ++part) {
            REQUIRE(all[part] == std::vector<double>(n, first[part][0]));
          }
        }
      }
    }
    CHECK(value_and_slope(K::gelu_tanh, std::vector<float>{20}, device)[0][0] == 20);
  }
}

TEST_CASE_METHOD(Setup, "activation and gate: refuse what they cannot mean", "[op][error]") {
  const Tensor x = f64({1, 2, 3}, {3}), two = f64({1, 2}, {2});
  CHECK_THROWS_WITH(activation(x, K::swish, NAN),
                    Contains("activation: the parameter of swish must be finite; got nan"));
  CHECK_THROWS_WITH(activation(i64({1}, {1}), K::relu),
                    Contains("needs floating-point tensors; got i64"));
  CHECK_THROWS_WITH(gate(x, {}, K::silu),
                    Contains("gate: the last axis of a fused [gate | up] must be even; got (3)"));
  CHECK_THROWS_WITH(gate(x, two, K::silu),
                    Contains("gate: gate and up must have one shape; got (3) and (2)"));
  CHECK_THROWS_WITH(gate({}, two, K::silu), Contains("gate: the gate is missing"));
}

TEST_CASE_METHOD(Setup, "gate: the fused form equals two tensors, gradient included", "[op]") {
  const Tensor fused = make_input(normal({4, 6}, 1), DType::f32, kReference);
  const Tensor a = fused.narrow(1, 0, 3), b = fused.narrow(1, 3, 3);
  ops::Gate::Saved one, two;
  CHECK(numbers(ops::Gate::forward(fused, {}, {K::silu}, &one)) ==
        numbers(ops::Gate::forward(a, b, {K::silu}, &two)));
  const Tensor dy = make_input(normal({4, 3}, 2), DType::f32, kReference);
  const Tensor d = ops::Gate::backward(dy, std::move(one))[0];
  const auto [da, db] = ops::Gate::backward(dy, std::move(two));
  CHECK(numbers(d.narrow(1, 0, 3)) == numbers(da));
  CHECK(numbers(d.narrow(1, 3, 3)) == numbers(db));
}

TEST_CASE_METHOD(Setup, "adamw_update: follows the worked steps, and needs the right step count",
                 "[op]") {
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
                 "[op]") {
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

TEST_CASE_METHOD(Setup, "clip: gradients whose squares overflow are scaled, not lost", "[op]") {
  for (Device device : {kReference, kCPU}) {
    const auto clipped = [&](const std::vector<float>& g) {
      const Tensor t = from_host<float>(g, {static_cast<int64_t>(g.size())}, device);
      const auto r = ops::clip_global_norm(std::array{t}, 1);
      return std::pair(r.norm.item(),
                       static_cast<double>(g[0] * static_cast<float>(r.factor.item())));
    };
    CHECK(clipped(std::vector<float>(100, 1e20f)).first == Approx(1e21).epsilon(1e-6));
    CHECK(clipped(std::vector<float>(100, 1e20f)).second == Approx(0.1).epsilon(1e-6));
    CHECK(clipped(std::vector<float>(128, 1e19f)).second == Approx(0.0883883476).epsilon(1e-6));
    CHECK(clipped({3, 4}).second == Approx(0.6).epsilon(1e-6));
    CHECK(clipped({0.3f, 0.4f}).second == 0.3f);  // below the limit: untouched
  }
}

TEST_CASE_METHOD(Setup, "clip: a NaN or an infinity is seen in the norm and its tensor is found",
                 "[op]") {
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

TEST_CASE_METHOD(Setup, "soft_cap: values and slopes, and odd caps refused by name",
                 "[op][error]") {
  const Tensor x = f64({0, 10, 50, 100, 1e4}, {5});
  ops::SoftCap::Saved saved;
  const auto y = numbers(ops::SoftCap::forward(x, {50}, &saved));
  const auto slope =
      numbers(ops::SoftCap::backward(full({5}, 1, DType::f64, kReference), std::move(saved))[0]);
  const double values[] = {0, 9.86876601, 38.0797078, 48.2013790, 50};
  const double slopes[] = {1, 0.961042983, 0.419974342, 0.0706508249, 0};
  for (size_t i = 0; i < 5; ++i) {
    CHECK(y[i] == Approx(values[i]).epsilon(1e-8));
    CHECK(slope[i] == Approx(slopes[i]).epsilon(1e-8).margin(1e-12));
  }
  for (double cap : {0.0, -1.0, double(NAN), double(INFINITY)}) {
    CHECK_THROWS_WITH(
        soft_cap(x, cap),
        Contains("soft_cap: the cap must be finite and above 0; got " + to_text(cap)));
  }
}

TEST_CASE_METHOD(Setup, "dropout: p = 0 is the identity and draws nothing, p = 1 gives zeros",
                 "[op][error]") {
  Generator g(7);
  Tensor x = full({4}, 1, DType::f64, kReference);
  CHECK(dropout(x, 0, g).is(x));
  CHECK(g.position() == 0);
  CHECK(numbers(dropout(x, 0, g, x)) == std::vector<double>(4, 2.0));
  CHECK(g.position() == 0);
  CHECK(numbers(dropout(x, 1, g)) == std::vector<double>(4, 0.0));
  for (double p : {0.0, 1.0}) {
    x.requires_grad_();
    x.set_grad({});
    Tape tape;
    const Tensor y = mul(dropout(x, p, g), full({4}, 1, DType::f64, kReference));
    tape.backward(y, full({4}, 1, DType::f64, kReference));
    CHECK(numbers(x.grad()) == std::vector<double>(4, 1 - p));
  }
  for (double p : {-0.1, 1.1, double(NAN)}) {
    CHECK_THROWS_WITH(dropout(x, p, g), Contains("dropout: p must be in 0..1; got " + to_text(p)));
  }
  CHECK_THROWS_WITH(dropout(x, 0.5, g, f64({1}, {1})),
                    Contains("x and residual must have one shape; got (4) and (1)"));
}

TEST_CASE_METHOD(Setup,
                 "dropout: one stream gives one mask, in the backward pass and on every device",
                 "[op]") {
  const ops::Dropout::Attrs a{0.3, 11, 4};
  const auto run_on = [&](Device device) {
    const Tensor x = full({3, 1001}, 1, DType::f32, device);
    ops::Dropout::Saved saved;
    const auto y = numbers(ops::Dropout::forward(x, {}, a, &saved));
    CHECK(numbers(ops::Dropout::backward(x, std::move(saved))[0]) == y);
    return y;
  };
  const auto y = run_on(kReference);
  CHECK(run_on(kReference) == y);
  CHECK(run_on(kCPU) == y);
  double kept = 0;
  for (double v : y) {
    kept += v > 0;
    CHECK((v == 0 || v == double(1 / 0.7f)));
  }
  CHECK(std::fabs(kept / 3003 - 0.7) < 0.03);  // about three and a half deviations
  ops::Dropout::Attrs next = a;
  next.stream = 5;
  CHECK(numbers(ops::Dropout::forward(full({3, 1001}, 1, DType::f32, kReference), {}, next,
                                      nullptr)) != y);
}

TEST_CASE_METHOD(Setup, "dropout: with a residual it equals the sum", "[op]") {
  const Tensor x = make_input(normal({5, 9}, 1), DType::f32, kReference),
               r = make_input(normal({5, 9}, 2), DType::f32, kReference);
  Generator one(3), two(3);
  CHECK(numbers(dropout(x, 0.4, one, r)) == numbers(add(r, dropout(x, 0.4, two))));
  CHECK(one.position() == 1);
}

TEST_CASE_METHOD(Setup, "model ops: every choice of gradients costs what it declares", "[op]") {
  check_every_choice<ops::Embedding>({}, {indices({5}, {1, 1, 3, 1, 0}), normal({4, 2}, 3)});
  check_every_choice<ops::Embedding>({3}, {indices({0}, {}), normal({4, 2}, 3)});
  check_every_choice<ops::LayerNorm>({}, {normal({5, 7}, 1), normal({7}, 2), normal({7}, 3)});
  check_every_choice<ops::LayerNorm>({1e-5, true}, {normal({0, 3}, 1), normal({3}, 2), absent()});
  check_every_choice<ops::RMSNorm>({1e-5, true}, {normal({2, 7}, 1), normal({7}, 2)});
  check_every_choice<ops::RMSNorm>({}, {normal({2, 7}, 1), absent()});
  check_every_choice<ops::Gate>({K::gelu}, {normal({3, 5}, 1), normal({3, 5}, 2)});
  check_every_choice<ops::Gate>({K::silu}, {normal({3, 6}, 1), absent()});
  for (int k = 0; k < ops::kActivations; ++k)
    check_every_choice<ops::Activation>({static_cast<K>(k)}, {normal({3, 5}, 1)});
  check_every_choice<ops::SoftCap>({2}, {normal({3, 5}, 1)});
  check_every_choice<ops::Dropout>({0.5}, {normal({3, 5}, 1), normal({3, 5}, 2)});
  check_every_choice<ops::Dropout>({0.5}, {normal({3, 5}, 1), absent()});
}
