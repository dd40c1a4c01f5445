// The ops of a language model's layers: values, errors, and the faults that programs of this kind
// had.
#include <catch2/catch.hpp>

#include "autograd/functional.h"
#include "autograd/proof/proof.h"
#include "backends/register_all.h"
#include "core/ops/all.h"
#include "tests/op_choices.h"
#include "tests/places.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

Tensor f64(std::initializer_list<double> v, const Shape& s, Device d = kReference) {
  return from_host<double>(v, s, d);
}
std::vector<double> numbers(const Tensor& t) { return to_doubles(t); }
Tensor i64(std::initializer_list<int64_t> v, const Shape& s, Device d = kReference) {
  return from_host<int64_t>(v, s, d);
}

using K = ops::ActivationKind;

struct Setup {
  Setup() {
    register_all();
    register_proof_kernels();
  }
};

}  // namespace

TEST_CASE_METHOD(Setup, "embedding: refuses an id outside the table, naming position and value",
                 "[op][error][F39]") {
  const Place place = GENERATE(from_range(places()));
  const Tensor w = given(place, {1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  const auto look_up = [&](std::initializer_list<int64_t> ids, const Shape& s) {
    return embedding(i64(ids, s, place.device), w);
  };
  CHECK_THROWS_WITH(look_up({-1}, {1}), Contains("position 0") && Contains("holds -1"));
  CHECK_THROWS_WITH(look_up({0, -1}, {2}),
                    Contains("ids must be in 0..3; position 1 of (2) holds -1"));
  CHECK_THROWS_WITH(look_up({4}, {1}), Contains("position 0") && Contains("holds 4"));
  CHECK_THROWS_WITH(look_up({0, 0, int64_t{1} << 32}, {3, 1}),
                    Contains("position 2") && Contains("4294967296"));
}

TEST_CASE_METHOD(Setup, "embedding: adds up the gradients of an id that repeats", "[op][F39]") {
  const Place place = GENERATE(from_range(places()));
  const Tensor ids = i64({1, 1, 3}, {3}, place.device),
               w = zeros({4, 2}, place.dtype, place.device),
               dy = given(place, {1, 2, 10, 20, 5, 6}, {3, 2});
  const auto gradient = [&](const ops::Embedding::Attrs& a, const Into<2>& into = {}) {
    ops::Embedding::Saved saved;
    ops::Embedding::forward(ids, w, a, &saved);
    return numbers(ops::Embedding::backward(dy, std::move(saved), into)[1]);
  };
  CHECK(gradient({}) == std::vector<double>{0, 0, 11, 22, 0, 0, 5, 6});
  CHECK(gradient({1, 3}) == std::vector<double>{0, 0, 11, 22, 0, 0, 0, 0});
  Into<2> into;
  into.target[1] = given(place, {1, 1, 1, 1, 1, 1, 1, 1}, {4, 2});
  CHECK(gradient({}, into) == std::vector<double>{1, 1, 12, 23, 1, 1, 6, 7});
}

TEST_CASE_METHOD(Setup, "embedding: takes no ids, a slice of ids, and nothing else but i64",
                 "[op][F37][F39]") {
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

TEST_CASE_METHOD(Setup, "embedding: a table that is also the head has one gradient and one norm",
                 "[op][F28]") {
  Tensor w = f64({1, 2, 3, 4}, {2, 2});
  w.requires_grad_();
  Tape tape;
  const Tensor logits = linear(embedding(i64({0, 1, 1}, {3}), w), w);
  tape.backward(sum(logsumexp(logits, {-1})));
  const auto g = numbers(w.grad());
  const double expected[] = {2.99753237, 4.00000665, 12.99751906, 17.99504478};
  for (size_t i = 0; i < 4; ++i) CHECK(g[i] == Approx(expected[i]).epsilon(1e-8));
  CHECK(ops::clip_global_norm(std::array{w.grad()}, 1).norm.item() ==
        Approx(22.7539533).epsilon(1e-8));
}

TEST_CASE_METHOD(Setup, "embedding: a bf16 gradient keeps counting past 256", "[op][F15]") {
  const Tensor ids = zeros({5000}, DType::i64, kReference),
               w = zeros({2, 1}, DType::bf16, kReference);
  ops::Embedding::Saved saved;
  ops::Embedding::forward(ids, w, {}, &saved);
  const Tensor dy = full({5000, 1}, 1, DType::bf16, kReference);
  CHECK(numbers(ops::Embedding::backward(dy, std::move(saved))[1]) == std::vector<double>{4992, 0});
}

TEST_CASE_METHOD(Setup, "rms_norm: eps is inside the root, and a row of zeros is harmless",
                 "[op][F11]") {
  const Place place = GENERATE(from_range(places()));
  const auto y = numbers(rms_norm(given(place, {3, 4, 0, 0}, {4}), {}, 1));
  CHECK(y[0] == Approx(1.114172029).epsilon(place.bound));
  CHECK(y[1] == Approx(1.485562705).epsilon(place.bound));
  CHECK((y[2] == 0 && y[3] == 0));
  const Tensor x = zeros({1, 4}, place.dtype, place.device),
               dy = given(place, {1, 2, 3, 4}, {1, 4});
  ops::RMSNorm::Saved saved;
  CHECK(numbers(ops::RMSNorm::forward(x, {}, {1e-6}, &saved)) == std::vector<double>(4, 0.0));
  const auto dx = numbers(ops::RMSNorm::backward(dy, std::move(saved))[0]);
  for (size_t i = 0; i < 4; ++i) CHECK(dx[i] == Approx(1000.0 * (i + 1.0)).epsilon(place.bound));
}

TEST_CASE_METHOD(Setup, "rms_norm: squares of f16 numbers are taken in f32", "[op][F11]") {
  const Device device = GENERATE(kReference, kCPU);
  const Tensor x = from_host<f16>({f16(1e-4F), f16(2e-4F), f16(-1e-4F), f16(3e-4F)}, {4}, device);
  CHECK_THROWS_WITH(rms_norm(x), Contains("rms_norm") && Contains("f16"));
  const auto y = numbers(rms_norm(to(x, DType::f32)));
  const double expected[] = {0.0981926844, 0.1963853687, -0.0981926844, 0.2944610119};
  for (size_t i = 0; i < 4; ++i) CHECK(y[i] == Approx(expected[i]).epsilon(1e-6));
}

TEST_CASE_METHOD(Setup, "rms_norm: rounds before the gain as LLaMA does, or after it",
                 "[op][F11]") {
  const Device device = GENERATE(kReference, kCPU);
  const auto half = [&](std::initializer_list<double> v) {
    return make_input(values({static_cast<int64_t>(v.size())}, v), DType::bf16, device);
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
                 "[op][F38]") {
  const Tensor x = from_host<float>({10000.0f, 10001.0f, 10002.0f, 10003.0f}, {4}, kReference);
  const auto y = numbers(layer_norm(x, {}, {}, 0));
  for (size_t i = 0; i < 4; ++i) CHECK(y[i] == Approx((i - 1.5) / std::sqrt(1.25)).epsilon(1e-6));
  CHECK(layer_norm(zeros({2, 0}, DType::f64, kReference)).shape() == Shape{2, 0});
  CHECK(rms_norm(zeros({2, 0}, DType::f64, kReference)).shape() == Shape{2, 0});
}

TEST_CASE_METHOD(Setup, "rms_norm: a gain kept as 1 + w, and what bf16 rounds before the gain",
                 "[op]") {
  const Tensor x = from_host<double>({3, -4}, {2}, kReference),
               w = from_host<double>({1, -0.5}, {2}, kReference);
  const auto y = numbers(rms_norm(x, w, 0, true));
  const double root = std::sqrt(12.5);
  CHECK(y[0] == Approx(2 * 3 / root).epsilon(1e-12));
  CHECK(y[1] == Approx(0.5 * -4 / root).epsilon(1e-12));
  // 3 / sqrt(5) = 1.34164 is 1.34375 in bf16; by 2.25 that is 3.0234, else 3.0187.
  const Tensor narrow = to(from_host<float>({3, 1}, {2}, kReference), DType::bf16),
               gain = to(from_host<float>({2.25F, 1}, {2}, kReference), DType::bf16);
  CHECK(numbers(ops::RMSNorm::forward(narrow, gain, {0, false, true}, nullptr))[0] == 3.03125);
  CHECK(numbers(ops::RMSNorm::forward(narrow, gain, {0, false, false}, nullptr))[0] == 3.015625);
}

TEST_CASE_METHOD(Setup, "dropout: p = 0 is the identity and draws nothing, p = 1 gives zeros",
                 "[op][error][F18]") {
  const Place place = GENERATE(from_range(places()));
  Generator g(7);
  Tensor x = full({4}, 1, place.dtype, place.device);
  CHECK(dropout(x, 0, g).is(x));
  CHECK(g.position() == 0);
  CHECK(numbers(dropout(x, 0, g, x)) == std::vector<double>(4, 2.0));
  CHECK(g.position() == 0);
  CHECK(numbers(dropout(x, 1, g)) == std::vector<double>(4, 0.0));
  for (double p : {0.0, 1.0}) {
    x.requires_grad_();
    x.set_grad({});
    Tape tape;
    const Tensor y = mul(dropout(x, p, g), full({4}, 1, place.dtype, place.device));
    tape.backward(y, full({4}, 1, place.dtype, place.device));
    CHECK(numbers(x.grad()) == std::vector<double>(4, 1 - p));
  }
  for (double p : {-0.1, 1.1, double(NAN)}) {
    CHECK_THROWS_WITH(dropout(x, p, g), Contains("dropout: p must be in 0..1; got " + to_text(p)));
  }
  CHECK_THROWS_WITH(dropout(x, 0.5, g, given(place, {1}, {1})),
                    Contains("x and residual must have one shape; got (4) and (1)"));
}

TEST_CASE_METHOD(Setup,
                 "dropout: one stream gives one mask, in the backward pass and on every device",
                 "[op][F19]") {
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
  CHECK(std::fabs(kept / 3003 - 0.7) < 0.03);    // about three and a half deviations
  ops::DropoutMask mask(a.seed, a.stream, a.p);  // an element has a word of its own, in every row
  for (size_t i = 0; i < y.size(); ++i) CHECK((y[i] > 0) == mask.keeps(static_cast<int64_t>(i)));
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
