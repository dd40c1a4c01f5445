// Attention: values, caches, costs, errors, and the faults that programs of this kind had. Which
// keys a query sees: op_visible_test.cpp.
#include <cfloat>

#include "core/ledger.h"
#include "core/ops/position.h"
#include "tests/attention_helpers.h"
#include "tests/op_choices.h"

using namespace tally;
using Catch::Matchers::Contains;

TEST_CASE_METHOD(Setup, "attention: a row that sees nothing gives 0 and no gradient",
                 "[op][F01][F02]") {
  for (const Place& place : places()) {
    INFO(to_text(place.device) << " " << to_text(place.dtype));
    const double bound = place.bound;
    const Shape s{1, 3, 1, 4};
    std::vector<double> q, k, v;
    for (int i = 0; i < 12; ++i) q.push_back(i / 10.0), k.push_back((i - 5) / 10.0), v.push_back(i);
    Tensor in[3] = {given(place, q, s), given(place, k, s), given(place, v, s)};
    for (Tensor& t : in) t.requires_grad_();
    const Tensor mask = from_host<uint8_t>({1, 0, 0, 1, 1, 0, 0, 0, 0}, {3, 3}, place.device);
    ops::AttentionOptions o;
    o.causal = false;
    Tape tape;
    const Tensor y = attention(in[0], in[1], in[2], o, mask);
    check_close(y, {0, 1, 2, 3, 2.43303612, 3.43303612, 4.43303612, 5.43303612, 0, 0, 0, 0},
                1e-8 + bound);
    tape.backward(y, full(s, 1, place.dtype, place.device));
    const double a = 0.762495943;
    check_close(in[0].grad(), {0, 0, 0, 0, a, a, a, a, 0, 0, 0, 0}, 1e-8 + bound);
    const double g[4] = {0.762495943, 0.953119929, 1.143743915, 1.334367901};
    check_close(in[1].grad(), {-g[0], -g[1], -g[2], -g[3], g[0], g[1], g[2], g[3], 0, 0, 0, 0},
                1e-8 + bound);
    const double d0 = 1.391740969, d1 = 0.608259031;
    check_close(in[2].grad(), {d0, d0, d0, d0, d1, d1, d1, d1, 0, 0, 0, 0}, 1e-8 + bound);
  }
}

TEST_CASE_METHOD(Setup, "attention: the last query sees the last key", "[op][F03]") {
  for (const Place& place : places())
    CHECK(seen_keys(place, 2, 5, {}) == SeenKeys{{0, 1, 2, 3}, {0, 1, 2, 3, 4}});
}

TEST_CASE_METHOD(Setup, "attention: a window of 3 shows a token itself and two before",
                 "[op][F04]") {
  for (const Place& place : places()) {
    CHECK(seen_keys(place, 6, 6, window_of(3)) ==
          SeenKeys{{0}, {0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 5}});
    CHECK(seen_keys(place, 2, 6, window_of(3)) == SeenKeys{{2, 3, 4}, {3, 4, 5}});
  }
}

TEST_CASE_METHOD(Setup, "attention: token by token with a cache equals one full pass",
                 "[op][F03][F04][F22]") {
  const int64_t tokens = 11;
  const Device device = GENERATE(kReference, kCPU);
  const Tensor table = rope_table(tokens, 4, 10000, DType::f32, device);
  const Tensor q = random({1, tokens, 4, 4}, 1, DType::f32, device),
               k = random({1, tokens, 2, 4}, 2, DType::f32, device),
               v = random({1, tokens, 2, 4}, 3, DType::f32, device);
  for (const ops::AttentionOptions& o : {ops::AttentionOptions{}, window_of(3), window_of(1)}) {
    const Tensor whole = attention(rope(q, table), rope(k, table), v, o);
    const Tensor keys = rope(k, table);  // as a cache holds them
    int64_t at = 0;
    for (const int64_t length : {6, 1, 1, 1, 1, 1}) {  // a prompt of 6, then one at a time
      const Tensor turned =
          rope(q.narrow(1, at, length), table, {ops::RotaryPairs::half_split, at});
      check_close(rope(k.narrow(1, at, length), table, {ops::RotaryPairs::half_split, at}),
                  keys.narrow(1, at, length), 0);
      // A ring of `window` entries holds no more than what the window shows to its first new token.
      const int64_t from = o.window ? std::max<int64_t>(0, at + 1 - *o.window) : 0;
      const Tensor part = attention(turned, keys.narrow(1, from, at + length - from),
                                    v.narrow(1, from, at + length - from), o);
      check_close(part, whole.narrow(1, at, length), 1e-6);
      at += length;
    }
  }
}

TEST_CASE_METHOD(Setup, "attention: the soft cap bends scores before the mask", "[op][F05][L74]") {
  const std::vector<double> scores{0, 10, 50, 100, 1e4},
      capped{0, 9.86876601, 38.0797078, 48.2013790, 50};
  const std::vector<double> slopes{1, 0.961042983, 0.419974342, 0.0706508249, 0};
  ops::AttentionOptions o;
  o.soft_cap = 50;
  o.scale = 1;
  const Place place = GENERATE(from_range(places()));
  const double bound = std::max(place.bound, 1e-7);  // the numbers above have 9 digits
  for (size_t i = 0; i < scores.size(); ++i) {
    // Two keys, the other one with score 0: y = sigmoid(capped score), dy/dk = y (1 - y) slope.
    const Tensor q = given(place, {1}, {1, 1, 1, 1}), v = given(place, {0, 1}, {1, 2, 1, 1});
    Tensor k = given(place, {0, scores[i]}, {1, 2, 1, 1});
    k.requires_grad_();
    Tape tape;
    const Tensor y = attention(q, k, v, o);
    const double p = 1 / (1 + std::exp(-capped[i]));
    CHECK(y.detach().reshape({}).item() == Approx(p).epsilon(bound));
    tape.backward(y, full({1, 1, 1, 1}, 1, place.dtype, place.device));
    const double other = 1 / (1 + std::exp(capped[i]));
    // g - y.dy is 1 - p here: what f32 leaves of it near p = 1 is one rounding of 1.
    CHECK(to_doubles(k.grad())[1] == Approx(p * other * slopes[i])
                                         .epsilon(1e-6)
                                         .margin(place.dtype == DType::f64 ? 1e-15 : place.bound));
  }
  o.causal = true;  // the second key is masked for the first query: weight exactly 0, not exp(-cap)
  const Tensor y =
      attention(given(place, {1, 1}, {1, 2, 1, 1}), given(place, {-100, 1e4}, {1, 2, 1, 1}),
                given(place, {0, 1}, {1, 2, 1, 1}), o);
  CHECK(to_doubles(y)[0] == 0);
  for (double cap : {0.0, -1.0, double(NAN), double(INFINITY)}) {
    o.soft_cap = cap;
    CHECK_THROWS_WITH(attention(y, y, y, o), Contains("soft_cap must be a finite number above 0"));
  }
  for (double cap : {1e-39, 1e39}) {
    o.soft_cap = cap;
    CHECK_THROWS_WITH(attention(y, y, y, o), Contains("soft_cap must be a normal number of f32"));
  }
  // The smallest that is allowed leaves scores of 0, where each key has the same weight.
  o.soft_cap = std::numeric_limits<float>::min(), o.causal = false;
  const Tensor even =
      attention(given(place, {1, 1}, {1, 2, 1, 1}), given(place, {-100, 100}, {1, 2, 1, 1}),
                given(place, {0, 1}, {1, 2, 1, 1}), o);
  for (double value : to_doubles(even)) CHECK(value == 0.5);
}

TEST_CASE_METHOD(Setup,
                 "attention: query heads 0,0,1,1 share key heads, and their gradients add up",
                 "[op][F27]") {
  const Place place = GENERATE(from_range(places()));
  const Tensor q = random({1, 1, 4, 2}, 1, place.dtype, place.device),
               k = random({1, 1, 2, 2}, 2, place.dtype, place.device);
  Tensor v = given(place, {1, 1, 10, 20}, {1, 1, 2, 2});
  v.requires_grad_();
  Tape tape;
  const Tensor y = attention(q, k, v);
  check_close(y, {1, 1, 1, 1, 10, 20, 10, 20}, place.bound);
  tape.backward(y, given(place, {1, 1, 2, 2, 3, 3, 4, 4}, {1, 1, 4, 2}));
  check_close(v.grad(), {3, 3, 7, 7}, place.bound);
  CHECK_THROWS_WITH(
      attention(random({1, 1, 6, 2}, 1), random({1, 1, 4, 2}, 2), random({1, 1, 4, 2}, 3)),
      Contains("H = 6, G = 4") && Contains("set kv_heads to one of 1, 2, 3, 6"));
}

TEST_CASE_METHOD(Setup, "attention: slices of one fused projection are read and written in place",
                 "[op][F37]") {
  const int64_t b = 2, t = 5, h = 4, g = 2, size = 3;
  const Tensor fused = random({b, t, h + 2 * g, size}, 5), dy = random({b, t, h, size}, 6);
  const Tensor d_fused = full(fused.shape(), 7, DType::f64, kReference);
  const auto parts = [&](const Tensor& x) {
    return std::array{x.narrow(2, 0, h), x.narrow(2, h, g), x.narrow(2, h + g, g)};
  };
  const auto copy = [&](const Tensor& x) {
    return from_host<double>(std::span<const double>(to_doubles(x)), x.shape(), kReference);
  };
  const auto [q, k, v] = parts(fused);
  const auto [dq, dk, dv] = parts(d_fused);
  using O = ops::Attention;
  O::Saved dense, sliced, again;
  const Tensor expected = O::forward(copy(q), copy(k), copy(v), {}, {}, {}, {}, {}, &dense);
  check_close(O::forward(q, k, v, {}, {}, {}, {}, {}, &sliced), expected, 0);
  O::forward(q, k, v, {}, {}, {}, {}, {}, &again);
  const auto grads = O::backward(dy, std::move(dense));
  O::backward_to(dy, std::move(sliced), {dq, false}, {dk, false}, {dv, false});
  check_close(dq, grads[0], 0);
  check_close(dk, grads[1], 0);
  check_close(dv, grads[2], 0);
  O::backward_to(dy, std::move(again), {dq, true}, {}, {dv, true});  // adds; dk is left alone
  for (double& x : grads[0].host<double>()) x *= 2;
  check_close(dq, grads[0], 1e-15);
  check_close(dk, grads[1], 0);
}

TEST_CASE_METHOD(Setup, "attention: every choice of wanted gradients costs what it declares",
                 "[op]") {
  ops::AttentionOptions o;
  o.soft_cap = 2;
  o.window = 2;
  o.dropout = {0.3, 1, 2};
  check_every_choice<ops::Attention>(
      o, {normal({2, 3, 2, 4}, 1), normal({2, 4, 1, 4}, 2), normal({2, 4, 1, 3}, 3), absent(),
          normal({2, 3, 4}, 4), absent(), normal({2}, 5)});
  check_every_choice<ops::Attention>(
      {}, {normal({1, 3, 2, 4}, 1), normal({1, 3, 2, 4}, 2), normal({1, 3, 2, 4}, 3), absent(),
           absent(), absent(), absent()});
}

TEST_CASE_METHOD(Setup, "attention: a training step of llama-3-8b has the field's FLOPs", "[op]") {
  const Tensor q = empty({1, 8192, 32, 128}, DType::f32, kMeta),
               k = empty({1, 8192, 8, 128}, DType::f32, kMeta);
  backend(kMeta).reset_peak();
  const size_t before = backend(kMeta).memory().live;
  const Ledger ledger;
  ops::Attention::Saved saved;
  const Tensor y = ops::Attention::forward(q, k, k, {}, {}, {}, {}, {}, &saved);
  ops::Attention::backward(y, std::move(saved));
  const double layers = 32, full = layers * ledger.model_total().full;
  CHECK(full == 12 * layers * 4096 * 8192.0 * 8192.0);
  CHECK(6 * 7504924672.0 * 8192 + full == Approx(4.7442e14).epsilon(1e-4));
  CHECK(layers * ledger.model_total().causal == full * 8193 / 16384);
  // Two outputs as large as q, two as large as k, two numbers a row and head: no T x T matrix.
  CHECK(backend(kMeta).memory().peak - before <=
        2 * q.nbytes() + 2 * k.nbytes() + 2 * size_t{32 * 8192 * 4} + 4096);
}

TEST_CASE_METHOD(Setup, "attention: dropout keeps the mean and is a function of its stream",
                 "[op][F18][F19]") {
  ops::AttentionOptions o;
  o.dropout = {0.25, 3, 1};
  const Tensor q = full({1, 64, 1, 1}, 0, DType::f64, kReference),
               v = full({1, 64, 1, 1}, 1, DType::f64, kReference);
  o.causal = false;
  double mean = 0;
  for (double y : to_doubles(attention(q, q, v, o))) mean += y / 64;
  CHECK(mean == Approx(1).epsilon(0.03));
  const auto first = to_doubles(attention(q, q, v, o));
  CHECK(first == to_doubles(attention(q, q, v, o)));
  o.dropout.stream = 2;
  CHECK(first != to_doubles(attention(q, q, v, o)));
  o.dropout = {0, 3, 1};
  CHECK(to_doubles(attention(q, q, v, o)) == std::vector<double>(64, 1.0));
  o.dropout = {1, 3, 1};  // all dropped: zeros, never 0/0
  for (const Place& place : places()) {
    Tensor x = random({1, 9, 2, 4}, 1, place.dtype, place.device);
    x.requires_grad_();
    Tape tape;
    const Tensor y = attention(x, x, x, o);
    CHECK(to_doubles(y) == std::vector<double>(72, 0.0));
    tape.backward(y, full(y.shape(), 1, place.dtype, place.device));
    CHECK(to_doubles(x.grad()) == std::vector<double>(72, 0.0));
  }
  for (double p : {-0.1, 1.1, double(NAN)}) {
    o.dropout.p = p;
    CHECK_THROWS_WITH(attention(q, q, v, o), Contains("dropout must be a probability in 0..1"));
  }
}

TEST_CASE_METHOD(Setup, "attention: shared heads equal repeated ones with fewer bytes",
                 "[op][L94][L95][F27]") {
  const Place place = GENERATE(from_range(places()));
  const int64_t b = 2, t = 20, h = 6, size = 4;
  const Tensor q = random({b, t, h, size}, 1, place.dtype, place.device);
  for (const int64_t groups : {1, 2, 3, 6}) {
    const Tensor k = random({b, t, groups, size}, 2, place.dtype, place.device),
                 v = random({b, t, groups, size}, 3, place.dtype, place.device);
    const auto repeated = [&](const Tensor& x) {
      return reshape(
          contiguous(expand(reshape(x, {b, t, groups, 1, size}), {b, t, groups, h / groups, size})),
          {b, t, h, size});
    };
    const Tensor all_k = repeated(k), all_v = repeated(v);
    const auto bytes = [&](const Tensor& keys, const Tensor& values, Tensor& y) {
      const Ledger ledger;
      y = attention(q, keys, values);
      return ledger.total().bytes_read - q.nbytes();
    };
    Tensor shared, alone;
    const double less = bytes(k, v, shared), more = bytes(all_k, all_v, alone);
    CHECK(less * static_cast<double>(h / groups) == more);
    check_close(shared, alone, place.bound);
  }
}

TEST_CASE_METHOD(Setup, "attention: says what does not fit", "[op][error]") {
  const Tensor q = random({1, 3, 2, 4}, 1), k = random({1, 3, 2, 4}, 2);
  CHECK_THROWS_WITH(attention(q, {}, k), Contains("attention: k is missing"));
  CHECK_THROWS_WITH(attention(q, k, random({1, 3, 2, 4}, 2, DType::f32)),
                    Contains("all tensors must hold one type"));
  CHECK_THROWS_WITH(attention(random({3, 4}, 1), k, k), Contains("q must be (B,T,H,K)"));
  CHECK_THROWS_WITH(attention(random({1, 3, 2, 5}, 1), k, k), Contains("K = 5 and 4"));
  CHECK_THROWS_WITH(attention(q, k, random({1, 2, 2, 4}, 2)), Contains("equal tokens and heads"));
  CHECK_THROWS_WITH(attention(random({1, 4, 2, 4}, 1), k, k), Contains("T = 4, S = 3"));
  CHECK_THROWS_WITH(attention(q, k, k, window_of(0)), Contains("at least 1; got 0"));
  ops::AttentionOptions o;
  o.scale = NAN;
  CHECK_THROWS_WITH(attention(q, k, k, o), Contains("scale must be finite"));
  CHECK_THROWS_WITH(attention(q, k, k, {}, from_host<uint8_t>({1, 1}, {1, 2}, kReference)),
                    Contains("broadcast to (B,H,T,S)"));
  CHECK_THROWS_WITH(attention(q, k, k, {}, q), Contains("mask must be u8"));
  ops::Attention::Saved saved;
  const Tensor y = ops::Attention::forward(q, k, k, {}, {}, {}, {}, {}, &saved);
  CHECK_THROWS_WITH(
      ops::Attention::backward_to(y, std::move(saved), {random({1, 3, 2, 3}, 1), false}, {}, {}),
      Contains("dq must have the shape (1, 3, 2, 4)"));
  const ModuleScope scope("decoder");
  CHECK_THROWS_WITH(attention(random({1, 3, 3, 4}, 1), k, k), Contains("H = 3, G = 2 in decoder"));
}

TEST_CASE_METHOD(Setup, "attention: a bias of the lowest number at every key hides none of them",
                 "[op]") {
  const Device device = GENERATE(kReference, kCPU);
  const int64_t tokens = GENERATE(1, 40);
  const auto ones = [&](double v) { return full({1, tokens, 1, 4}, v, DType::f32, device); };
  std::vector<float> numbered(static_cast<size_t>(4 * tokens));
  for (size_t i = 0; i < numbered.size(); ++i) numbered[i] = static_cast<float>(i / 4);
  const Tensor v = from_host<float>(numbered, {1, tokens, 1, 4}, device),
               bias =
                   full({1, 1, tokens, tokens}, -static_cast<double>(FLT_MAX), DType::f32, device);
  ops::AttentionOptions options;
  options.causal = false;
  const std::vector<double> y = to_doubles(attention(ones(1), ones(1), v, options, {}, bias));
  for (const double x : y) CHECK(x == Approx(double(tokens - 1) / 2).epsilon(1e-5));
}

TEST_CASE_METHOD(Setup, "attention: gradients of outputs that do not lie side by side", "[op]") {
  const Device device = GENERATE(kReference, kCPU);
  constexpr int64_t kTokens = 9, kSize = 5;
  const auto leaf = [&](uint64_t seed) {
    Tensor t = random({1, kTokens, 2, kSize}, seed, DType::f32, device);
    t.requires_grad_();
    return t;
  };
  // The last axis of dy steps over another: as behind a transpose.
  const Tensor dy = random({1, kSize, 2, kTokens}, 4, DType::f32, device).transpose(1, 3),
               dense = contiguous(dy);
  REQUIRE(!dy.is_contiguous());
  std::array<std::vector<Tensor>, 2> gradients;
  for (size_t i = 0; i < 2; ++i) {
    const Tensor q = leaf(1), k = leaf(2), v = leaf(3);
    Tape tape;
    tape.backward(attention(q, k, v), i == 0 ? dy : dense);
    gradients[i] = {q.grad(), k.grad(), v.grad()};
  }
  for (size_t i = 0; i < 3; ++i) check_close(gradients[0][i], gradients[1][i], 1e-6);
}
