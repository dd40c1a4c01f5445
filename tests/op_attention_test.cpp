// Attention, rotary embedding and the tables of positions: values, masks, caches, costs, errors,
// and the faults that programs of this kind had.
#include <catch2/catch.hpp>

#include "autograd/functional.h"
#include "autograd/proof/proof.h"
#include "backends/register_all.h"
#include "core/ops/attention/attention.h"
#include "core/ops/position.h"
#include "tests/op_choices.h"
#include "tests/places.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

struct Setup {
  Setup() {
    register_all();
    register_proof_kernels();
  }
};

Tensor f64(std::initializer_list<double> v, const Shape& s) {
  return from_host<double>(v, s, kReference);
}
Tensor random(const Shape& s, uint64_t seed, DType dtype = DType::f64, Device device = kReference) {
  return make_input(normal(s, seed), dtype, device);
}
// Equal within `bound`, relative to the largest number.
void check_close(const Tensor& a, const std::vector<double>& expected, double bound) {
  const auto v = to_doubles(a);
  REQUIRE(v.size() == expected.size());
  double scale = 1e-300;
  for (double e : expected) scale = std::max(scale, std::fabs(e));
  for (size_t i = 0; i < v.size(); ++i) {
    INFO("element " << i << ": " << v[i] << ", expected " << expected[i]);
    CHECK(std::fabs(v[i] - expected[i]) <= bound * scale);
  }
}
void check_close(const Tensor& a, const Tensor& b, double bound) {
  check_close(a, to_doubles(b), bound);
}

using SeenKeys = std::vector<std::vector<int>>;
// Which keys each row sees, read off from the output: value j is the j-th unit vector.
SeenKeys seen_keys(const Place& p, int64_t queries, int64_t keys,
                   const ops::AttentionOptions& options) {
  std::vector<double> unit(static_cast<size_t>(keys * keys), 0);
  for (int64_t j = 0; j < keys; ++j) unit[static_cast<size_t>(j * keys + j)] = 1;
  const Tensor q = random({1, queries, 1, 2}, 1, p.dtype, p.device),
               k = random({1, keys, 1, 2}, 2, p.dtype, p.device);
  const auto y = to_doubles(attention(q, k, given(p, unit, {1, keys, 1, keys}), options));
  SeenKeys rows(static_cast<size_t>(queries));
  for (size_t i = 0; i < y.size(); ++i) {
    if (y[i] != 0)
      rows[i / static_cast<size_t>(keys)].push_back(
          static_cast<int>(i % static_cast<size_t>(keys)));
  }
  return rows;
}
ops::AttentionOptions window_of(int64_t w) {
  ops::AttentionOptions o;
  o.window = w;
  return o;
}

}  // namespace

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

TEST_CASE_METHOD(Setup, "attention: the soft cap bends scores before the mask", "[op][F05]") {
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
  const Tensor expected = O::forward(copy(q), copy(k), copy(v), {}, {}, {}, &dense);
  check_close(O::forward(q, k, v, {}, {}, {}, &sliced), expected, 0);
  O::forward(q, k, v, {}, {}, {}, &again);
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
  check_every_choice<ops::Attention>(o, {normal({2, 3, 2, 4}, 1), normal({2, 4, 1, 4}, 2),
                                         normal({2, 4, 1, 3}, 3), absent(), normal({2, 3, 4}, 4)});
  check_every_choice<ops::Attention>({}, {normal({1, 3, 2, 4}, 1), normal({1, 3, 2, 4}, 2),
                                          normal({1, 3, 2, 4}, 3), absent(), absent()});
}

TEST_CASE_METHOD(Setup, "attention: what a mask leaves is counted in closed form", "[op]") {
  for (int64_t queries = 0; queries < 6; ++queries) {
    for (int64_t keys = queries; keys < 9; ++keys) {
      for (int64_t window = 0; window < 11; ++window) {
        for (bool causal : {true, false}) {
          if (window && !causal) continue;
          const ops::VisibleKeys visible{causal, window, queries, keys};
          double pairs = 0;
          int64_t first = keys;
          for (int64_t t = 0; t < queries; ++t) {
            pairs += static_cast<double>(visible.of(t).end - visible.of(t).begin);
            first = std::min(first, visible.of(t).begin);
          }
          CHECK(visible.pairs() == pairs);
          CHECK(visible.seen() == (queries ? keys - first : 0));
        }
      }
    }
  }
}

TEST_CASE_METHOD(Setup, "attention: a training step of llama-3-8b has the field's FLOPs", "[op]") {
  const Tensor q = empty({1, 8192, 32, 128}, DType::f32, kMeta),
               k = empty({1, 8192, 8, 128}, DType::f32, kMeta);
  backend(kMeta).reset_peak();
  const size_t before = backend(kMeta).memory().live;
  const Ledger ledger;
  ops::Attention::Saved saved;
  const Tensor y = ops::Attention::forward(q, k, k, {}, {}, {}, &saved);
  ops::Attention::backward(y, std::move(saved));
  const double layers = 32, full = layers * ledger.model_total().full;
  CHECK(full == 12 * layers * 4096 * 8192.0 * 8192.0);
  CHECK(6 * 7504924672.0 * 8192 + full == Approx(4.7442e14).epsilon(1e-4));
  CHECK(layers * ledger.model_total().causal == full * 8193 / 16384);
  // Two outputs as large as q, two as large as k, two numbers a row and head: no T x T matrix.
  CHECK(backend(kMeta).memory().peak - before <=
        2 * q.nbytes() + 2 * k.nbytes() + 2 * size_t{32 * 8192 * 4} + 4096);
}

TEST_CASE_METHOD(Setup, "attention: with a window the work grows with n w, not n^2", "[op]") {
  const auto work = [](int64_t n) {
    const Tensor q = empty({1, n, 1, 8}, DType::f32, kMeta);
    const Ledger ledger;
    attention(q, q, q, window_of(16));
    return ledger.total().flops;
  };
  CHECK(work(2048) == Approx(2 * work(1024)).epsilon(0.01));
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
  ops::AttentionOptions o = window_of(2);
  o.causal = false;
  CHECK_THROWS_WITH(attention(q, k, k, o), Contains("got 2 without causal"));
  o = {};
  o.scale = NAN;
  CHECK_THROWS_WITH(attention(q, k, k, o), Contains("scale must be finite"));
  CHECK_THROWS_WITH(attention(q, k, k, {}, from_host<uint8_t>({1, 1}, {1, 2}, kReference)),
                    Contains("broadcast to (B,H,T,S)"));
  CHECK_THROWS_WITH(attention(q, k, k, {}, q), Contains("mask must be u8"));
  ops::Attention::Saved saved;
  const Tensor y = ops::Attention::forward(q, k, k, {}, {}, {}, &saved);
  CHECK_THROWS_WITH(
      ops::Attention::backward_to(y, std::move(saved), {random({1, 3, 2, 3}, 1), false}, {}, {}),
      Contains("dq must have the shape (1, 3, 2, 4)"));
  const ModuleScope scope("decoder");
  CHECK_THROWS_WITH(attention(random({1, 3, 3, 4}, 1), k, k), Contains("H = 3, G = 2 in decoder"));
}

TEST_CASE_METHOD(Setup, "rope: pairs in halves and interleaved", "[op][F21]") {
  const Tensor x = f64({1, 2, 3, 4}, {1, 1, 1, 4}),
               table = rope_table(2, 4, 10000, DType::f64, kReference);
  check_close(rope(x, table, {ops::RotaryPairs::interleaved, 1}),
              {-1.14263966, 1.92207560, 2.95985067, 4.02979950}, 1e-8);
  check_close(rope(x, table, {ops::RotaryPairs::half_split, 1}),
              {-1.98411065, 1.95990067, 2.46237790, 4.01979967}, 1e-8);
}

TEST_CASE_METHOD(Setup, "rope: permuting a head's rows turns one form into the other",
                 "[op][F21]") {
  const int64_t size = 8;
  const Tensor table = rope_table(6, size, 10000, DType::f64, kReference);
  const Tensor q = random({1, 6, 1, size}, 1), k = random({1, 6, 1, size}, 2),
               v = random({1, 6, 1, size}, 3);
  const auto permuted = [&](const Tensor& x) {
    const auto rows = half_split_rows(size);
    auto from = to_doubles(x), to = from;
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = from[i / rows.size() * rows.size() + static_cast<size_t>(rows[i % rows.size()])];
    return from_host<double>(std::span<const double>(to), x.shape(), kReference);
  };
  constexpr auto inter = ops::RotaryPairs::interleaved;
  check_close(attention(rope(permuted(q), table), rope(permuted(k), table), v),
              attention(rope(q, table, {inter, 0}), rope(k, table, {inter, 0}), v), 1e-14);
  auto rows = half_split_rows(size), back = rows;  // and back: the identity
  for (size_t i = 0; i < rows.size(); ++i)
    back[static_cast<size_t>(rows[i])] = static_cast<int64_t>(i);
  for (size_t i = 0; i < rows.size(); ++i)
    CHECK(rows[static_cast<size_t>(back[i])] == static_cast<int64_t>(i));
}

TEST_CASE_METHOD(Setup, "rope: a product depends on the distance alone, sinusoids' does not",
                 "[op]") {
  const int64_t size = 16;
  const Tensor table = rope_table(64, size, 10000, DType::f64, kReference);
  const Tensor q = random({1, 1, 1, size}, 1), k = random({1, 1, 1, size}, 2);
  const auto dot = [](const Tensor& a, const Tensor& b) {
    const auto x = to_doubles(a), y = to_doubles(b);
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
    return sum;
  };
  constexpr auto half = ops::RotaryPairs::half_split;
  const auto turned = [&](int64_t m, int64_t n) {
    return dot(rope(q, table, {half, m}), rope(k, table, {half, n}));
  };
  CHECK(turned(20, 24) == Approx(turned(3, 7)).epsilon(1e-12));
  CHECK(turned(50, 54) == Approx(turned(3, 7)).epsilon(1e-12));
  const Tensor sines = sinusoidal_table(64, size, Sinusoid::interleaved, DType::f64, kReference);
  const auto added = [&](int64_t m, int64_t n) {  // (q + p_m).(k + p_n) keeps cross terms
    const Tensor pm = sines.narrow(0, m, 1), pn = sines.narrow(0, n, 1);
    return dot(q, pn) + dot(pm, k) + dot(pm, pn);
  };
  CHECK(std::fabs(added(20, 24) - added(3, 7)) > 0.1);
}

TEST_CASE_METHOD(Setup, "rope: far positions keep their angles, whatever the activations' type",
                 "[op][F20]") {
  const Tensor table = rope_table(131072, 2, 10000, DType::f32, kReference);
  const int64_t positions[] = {256, 257, 4095, 15962, 131071};
  const double cosine[] = {-0.0397907599, 0.819305529, -0.0659759966, -0.908015901, -0.817983499};
  const double sine[] = {-0.999208034, -0.573357175, -0.997821210, 0.418935703, -0.575241684};
  for (size_t i = 0; i < 5; ++i) {
    const float* row = table.host<float>().data() + 2 * positions[i];
    CHECK(std::fabs(row[0] - cosine[i]) <= 1e-6);
    CHECK(std::fabs(row[1] - sine[i]) <= 1e-6);
    const Tensor x = make_input(values({1, 1, 1, 2}, {1, 0}), DType::bf16, kReference);
    const auto y = to_doubles(rope(x, table, {ops::RotaryPairs::half_split, positions[i]}));
    CHECK(y[0] ==
          static_cast<double>(static_cast<float>(bf16(row[0]))));  // rounded once, at the end
    CHECK(y[1] == static_cast<double>(static_cast<float>(bf16(row[1]))));
  }
}

TEST_CASE_METHOD(Setup, "rope: turns in place and into slices, and back", "[op]") {
  const Tensor table = rope_table(9, 4, 100, DType::f64, kReference);
  const Tensor fused = random({2, 3, 4, 5}, 1), before = random({2, 3, 4, 5}, 1);
  const Tensor q = fused.narrow(2, 0, 2);
  const ops::Rope::Attrs attrs{ops::RotaryPairs::interleaved, 4};
  const Tensor expected = rope(q, table, attrs);
  ops::Rope::turn(q, table, {}, attrs, q);
  check_close(q, expected, 0);
  check_close(fused.narrow(2, 2, 2), before.narrow(2, 2, 2),
              0);  // the neighbours keep their values
  ops::Rope::turn_back(q, table, {}, attrs, {q, false});
  check_close(q, before.narrow(2, 0, 2), 1e-14);
  const Tensor sum = full({2, 3, 2, 5}, 1, DType::f64, kReference);
  ops::Rope::turn_back(expected, table, {}, attrs, {sum, true});
  for (double& x : sum.host<double>()) x -= 1;
  check_close(sum, before.narrow(2, 0, 2), 1e-14);
}

TEST_CASE_METHOD(Setup, "rope: positions of their own equal an offset", "[op][F22]") {
  const Tensor table = rope_table(9, 4, 100, DType::f64, kReference), x = random({1, 3, 2, 4}, 1);
  const Tensor positions = from_host<int64_t>({5, 6, 7}, {1, 3}, kReference);
  check_close(rope(x, table, {}, positions), rope(x, table, {ops::RotaryPairs::half_split, 5}), 0);
}

TEST_CASE_METHOD(Setup, "rope: says what does not fit", "[op][error][F26]") {
  const Tensor table = rope_table(8, 4, 100, DType::f64, kReference), x = random({1, 3, 2, 4}, 1);
  constexpr auto half = ops::RotaryPairs::half_split;
  CHECK_THROWS_WITH(rope({}, table), Contains("rope: x is missing"));
  CHECK_THROWS_WITH(rope(random({3, 4}, 1), table), Contains("x must be (B,T,H,K)"));
  CHECK_THROWS_WITH(rope(x, random({8, 6}, 1)), Contains("at most the head size K = 4"));
  CHECK_THROWS_WITH(rope(x, random({8, 3}, 1)), Contains("R even"));
  CHECK_THROWS_WITH(rope(x, rope_table(8, 4, 100, DType::f32, kReference)),
                    Contains("table must hold f64"));
  CHECK_THROWS_WITH(rope(x, table, {half, 6}),
                    Contains("0..7") && Contains("3 tokens from position 6"));
  CHECK_THROWS_WITH(rope(x, table, {half, -1}), Contains("from position -1"));
  const auto at = [](int64_t p) { return from_host<int64_t>({0, 1, p}, {1, 3}, kReference); };
  CHECK_THROWS_WITH(rope(x, table, {}, at(8)), Contains("entry 2 of (1, 3) is 8"));
  CHECK_THROWS_WITH(rope(x, table, {}, at(-1)), Contains("entry 2 of (1, 3) is -1"));
  CHECK_THROWS_WITH(rope(x, table, {}, from_host<int64_t>({0}, {1}, kReference)),
                    Contains("dense (B,T) = (1,3)"));
  CHECK_THROWS_WITH(ops::Rope::turn(x, table, {}, {}, random({1, 3, 2, 5}, 1)),
                    Contains("the result has shape (1, 3, 2, 4)"));
  CHECK_THROWS_WITH(rope_table(8, 3, 100, DType::f32, kReference),
                    Contains("even and at least 2; got 3"));
  CHECK_THROWS_WITH(rope_table(8, 4, 0, DType::f32, kReference),
                    Contains("base must be a finite number above 0; got 0"));
  CHECK_THROWS_WITH(rope_table(-1, 4, 10, DType::f32, kReference),
                    Contains("must not be negative; got -1"));
  CHECK_THROWS_WITH(rope_table(8, 4, 10, DType::bf16, kReference),
                    Contains("holds f32 or f64; got bf16"));
  CHECK_THROWS_WITH(half_split_rows(3), Contains("must be even; got 3"));
  CHECK_THROWS_WITH(sinusoidal_table(8, 2, Sinusoid::fairseq, DType::f32, kReference),
                    Contains("at least 4; got 2"));
}

TEST_CASE("position: ALiBi's slopes for any number of heads", "[op][F23]") {
  const auto check = [](int64_t heads, const std::vector<double>& exponents) {
    const auto slopes = alibi_slopes(heads);
    REQUIRE(slopes.size() == exponents.size());
    for (size_t i = 0; i < slopes.size(); ++i)
      CHECK(slopes[i] == Approx(std::exp2(-exponents[i])).epsilon(1e-12));
  };
  check(1, {8});
  check(3, {4, 8, 2});
  check(6, {2, 4, 6, 8, 1, 3});
  check(8, {1, 2, 3, 4, 5, 6, 7, 8});
  check(12, {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5});
  CHECK_THROWS_WITH(alibi_slopes(0), Contains("at least one head"));
}

TEST_CASE("position: T5's buckets", "[op][F24]") {
  const std::vector<int64_t> causal{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                    11, 12, 13, 14, 15, 16, 19, 21, 24, 27, 31,
                                    35, 40, 46, 52, 59, 67, 77, 87, 99, 113};
  const std::vector<int64_t> sided{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91};
  const auto bucket = [](const std::vector<int64_t>& first, int64_t distance) {
    return std::upper_bound(first.begin(), first.end(), distance) - first.begin() - 1;
  };
  for (int64_t d = 0; d <= 300; ++d) {
    CHECK(t5_bucket(-d, false, 32, 128) == bucket(causal, d));
    CHECK(t5_bucket(d, false, 32, 128) == 0);
    CHECK(t5_bucket(-d, true, 32, 128) == bucket(sided, d));
    CHECK(t5_bucket(d, true, 32, 128) == bucket(sided, d) + (d > 0 ? 16 : 0));
  }
  CHECK(t5_bucket(-1000000, false, 32, 128) == 31);
  CHECK(t5_bucket(1000000, true, 32, 128) == 31);
  CHECK(t5_bucket(-1000000, true, 32, 128) == 15);
  CHECK_THROWS_WITH(t5_bucket(1, true, 2, 128), Contains("at least 4 buckets"));
}
