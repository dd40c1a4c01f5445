// Convolution, recurrences and learned activations: what they must equal, edges and errors.
#include "core/ops/gated_delta_rule.h"
#include "tests/op_values.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

Tensor random(const Shape& shape, uint64_t seed, double scale = 1) {
  return make_input(normal(shape, seed, scale), DType::f64, kReference);
}
Tensor part(const Tensor& x, int64_t first, int64_t tokens) { return narrow(x, 1, first, tokens); }

struct Deltas {
  Tensor q, k, v, g, beta;
  explicit Deltas(int64_t tokens)
      : q(random({2, tokens, 3, 4}, 1)),
        k(random({2, tokens, 3, 4}, 2, 0.5)),
        v(random({2, tokens, 3, 5}, 3)),
        g(neg(abs(random({2, tokens, 3}, 4)))),
        beta(activation(random({2, tokens, 3}, 5), ops::ActivationKind::sigmoid)) {}
  std::array<Tensor, 2> run(int64_t first, int64_t n, const Tensor& state) const {
    return gated_delta_rule(part(q, first, n), part(k, first, n), part(v, first, n),
                            part(g, first, n), part(beta, first, n), state);
  }
};

}  // namespace

TEST_CASE_METHOD(Setup, "causal_conv1d: by hand, and each channel alone", "[op]") {
  const Tensor x = f64({1, 10, 2, 20, 3, 30}, {1, 3, 2}), w = f64({0.5, 2, 1, -1}, {2, 2});
  const Tensor y = causal_conv1d(x, w, f64({0, 100}, {2}));
  CHECK(numbers(y) == Numbers{2, 90, 4.5, 90, 7, 90});
}

TEST_CASE_METHOD(Setup, "causal_conv1d: a token sees none that come later", "[op]") {
  Tensor x = leaf({1, 2, 3, 4, 5, 6}, {1, 6, 1});
  const Tape tape;
  const Tensor y = causal_conv1d(x, f64({1, 1, 1}, {1, 3}));
  backward(y, f64({0, 0, 0, 1, 0, 0}, {1, 6, 1}));
  CHECK(numbers(x.grad()) == Numbers{0, 1, 1, 1, 0, 0});
}

TEST_CASE_METHOD(Setup, "gated_delta_rule: with a gate of 1 it overwrites what a key holds",
                 "[op]") {
  // One key twice, beta 1: the second value replaces the first.
  const Tensor k = f64({1, 0, 1, 0}, {1, 2, 1, 2}), v = f64({5, 7}, {1, 2, 1, 1});
  const Tensor zero = zeros({1, 2, 1}, DType::f64, kReference), one = ones({1, 2, 1});
  const auto [y, state] = gated_delta_rule(k, k, v, zero, one, {}, 1);
  CHECK(numbers(y) == Numbers{5, 7});
  CHECK(numbers(state) == Numbers{7, 0});
  // A gate of exp(-inf) forgets all before.
  const auto forgot = gated_delta_rule(k, k, v, f64({0, -kInf}, {1, 2, 1}), scale(one, 0.5), {}, 1);
  CHECK(numbers(forgot[0]) == Numbers{2.5, 3.5});
}

TEST_CASE_METHOD(Setup, "gated_delta_rule: with beta 0 nothing is written", "[op]") {
  const Deltas d(4);
  const Tensor none = zeros(d.beta.shape(), DType::f64, kReference);
  const auto [y, state] = gated_delta_rule(d.q, d.k, d.v, d.g, none);
  CHECK(numbers(sum(abs(y))) == Numbers{0});
  CHECK(numbers(sum(abs(state))) == Numbers{0});
}

TEST_CASE_METHOD(Setup, "gated_delta_rule: a sequence in parts is the sequence", "[op]") {
  const Deltas d(37);  // more than two chunks
  const auto whole = d.run(0, 37, {});
  Tensor state;
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (int64_t n : {20, 1, 16}) {
    const auto one = d.run(first, n, state);
    parts.push_back(one[0]);
    state = one[1];
    first += n;
  }
  check_close(concat(parts, 1), numbers(whole[0]), 1e-13);
  check_close(state, numbers(whole[1]), 1e-13);
}

TEST_CASE_METHOD(Setup, "selective_scan: a sequence in parts is the sequence", "[op]") {
  const Tensor x = random({2, 37, 3}, 1), a = neg(abs(random({3, 4}, 2))), d = random({3}, 3);
  const Tensor dt = activation(random({2, 37, 3}, 4), ops::ActivationKind::softplus);
  const Tensor b = random({2, 37, 4}, 5), c = random({2, 37, 4}, 6);
  const auto whole = selective_scan(x, dt, a, b, c, d);
  Tensor state;
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (int64_t n : {20, 1, 16}) {
    const auto one = selective_scan(part(x, first, n), part(dt, first, n), a, part(b, first, n),
                                    part(c, first, n), d, state);
    parts.push_back(one[0]);
    state = one[1];
    first += n;
  }
  check_close(concat(parts, 1), numbers(whole[0]), 1e-13);
  check_close(state, numbers(whole[1]), 1e-13);
}

TEST_CASE_METHOD(Setup, "selective_scan: with A = 0 and dt = 1 it is a running sum", "[op]") {
  const Tensor x = f64({1, 2, 3}, {1, 3, 1}), one = ones({1, 3, 1});
  const auto [y, state] = selective_scan(x, one, zeros({1, 1}, DType::f64, kReference), one, one);
  CHECK(numbers(y) == Numbers{1, 3, 6});
  CHECK(numbers(state) == Numbers{6});
}

TEST_CASE_METHOD(Setup, "recurrences: gradients through the state alone reach the inputs", "[op]") {
  Deltas d(18);
  d.v.requires_grad_();
  d.q.requires_grad_();
  const Tape tape;
  backward(sum(square(d.run(0, 18, {})[1])));
  CHECK(norm(d.v.grad().detach()).item() > 0);
  CHECK(!d.q.grad().defined());  // the state does not depend on the queries
}

TEST_CASE_METHOD(Setup, "recurrences: keep a state every 16 tokens for the backward", "[memory]") {
  ops::GatedDeltaRule::Saved saved;
  const Deltas d(33);
  ops::GatedDeltaRule::forward(d.q, d.k, d.v, d.g, d.beta, {}, {}, {}, &saved);
  CHECK(saved.states.get().shape() == Shape{2, 3, 3, 4, 5});
}

TEST_CASE_METHOD(Setup, "sink_softmax: softmax of one more logit, left out", "[op]") {
  const Tensor x = random({2, 3, 4}, 1, 3), sink = random({2, 3}, 2, 3);
  const Tensor more = softmax(concat({x, reshape(sink, {2, 3, 1})}, 2));
  check_close(sink_softmax(x, sink), numbers(contiguous(narrow(more, 2, 0, 4))), 1e-15);
  check_close(sink_softmax(f64({0, 0, 0}, {3})), {0.25, 0.25, 0.25});
  check_close(sink_softmax(f64({1e4, -1e4}, {2})), {1, 0});
  check_close(sink_softmax(f64({-1e4, -2e4}, {2})), {0, 0});
  check_close(sink_softmax(f64({-kInf, -kInf}, {2})), {0, 0});
  const Tensor none = f64({-kInf, -kInf}, {2});
  const uint8_t mask[] = {1, 1, 0, 0};
  const Tensor allowed = from_host<uint8_t>(mask, {2, 2}, kReference);
  check_close(sink_softmax(f64({0, 0, 0, 0}, {2, 2}), none, allowed), {0.5, 0.5, 0, 0});
}

TEST_CASE_METHOD(Setup, "learned_swish: silu at beta 1, and finite at the extremes", "[op]") {
  const Tensor x = random({3, 4}, 1, 3);
  check_close(learned_swish(x, f64({1}, {})), numbers(activation(x, ops::ActivationKind::silu)),
              1e-15);
  Tensor beta = leaf({1}, {});
  for (double v : {1e20, -1e20, 3e38, -3e38}) {
    Tensor big = leaf({v}, {1});
    const Tape tape;
    const Tensor y = learned_swish(to(big, DType::f32), to(beta, DType::f32));
    CHECK(y.item() == Approx(v > 0 ? v : 0));
    backward(y, full({1}, 1, DType::f32, kReference));
    CHECK(big.grad().item() == (v > 0 ? 1 : 0));
  }
  CHECK(beta.grad().item() == 0);
}

TEST_CASE_METHOD(Setup, "xielu: both branches by hand, and their limits", "[op]") {
  const Tensor p = f64({2}, {}), n = f64({3}, {});
  const double e = std::exp(-1.0);
  check_close(xielu(f64({2, 0, -1}, {3}), p, n), {9, 3 * (std::exp(-1e-6) - 1), 3 * e - 0.5});
  check_close(xielu(f64({-1e6, -kInf}, {2}), p, n), {2.5e6 - 3, kInf});
}

TEST_CASE_METHOD(Setup, "convolution and recurrences: shapes without a meaning are errors",
                 "[op][error]") {
  const Tensor x = ones({2, 3, 4});
  CHECK_THROWS_WITH(causal_conv1d(x, ones({3, 2})), Contains("causal_conv1d: x must be (B, T, C)"));
  CHECK_THROWS_WITH(causal_conv1d(x, ones({4, 0})), Contains("K >= 1"));
  CHECK_THROWS_WITH(causal_conv1d(x, ones({4, 2}), ones({3})), Contains("bias must be (C)"));
  const Tensor few = zeros({2, 2}, DType::i64, kReference),
               many = zeros({2, 4}, DType::i64, kReference);
  CHECK_THROWS_WITH(causal_conv1d(x, ones({4, 2}), {}, x), Contains("documents must be i64"));
  CHECK_THROWS_WITH(causal_conv1d(x, ones({4, 2}), {}, many), Contains("the tokens of x alone"));
  const Tensor q = ones({1, 2, 1, 4}), v = ones({1, 2, 1, 3}), g = ones({1, 2, 1});
  CHECK_THROWS_WITH(gated_delta_rule(q, v, v, g, g), Contains("q and k must be (B, T, H, K)"));
  CHECK_THROWS_WITH(gated_delta_rule(q, q, v, q, g), Contains("g and beta must be (B, T, H)"));
  CHECK_THROWS_WITH(gated_delta_rule(q, q, v, g, g, ones({1, 1, 4, 4})),
                    Contains("the state must be (1, 1, 4, 3) in f64; got (1, 1, 4, 4)"));
  CHECK_THROWS_WITH(gated_delta_rule(q, q, v, g, g, {}, kInf), Contains("scale must be finite"));
  const Tensor a = ones({4, 2}), b = ones({2, 3, 2});
  CHECK_THROWS_WITH(selective_scan(x, b, a, b, b), Contains("x and dt must be (B, T, C)"));
  CHECK_THROWS_WITH(selective_scan(x, x, ones({3, 2}), b, b), Contains("A must be (C, N)"));
  CHECK_THROWS_WITH(selective_scan(x, x, a, b, x), Contains("B and C must be (B, T, N)"));
  CHECK_THROWS_WITH(selective_scan(x, x, a, b, b, ones({3})), Contains("D must be (C)"));
  CHECK_THROWS_WITH(selective_scan(x, x, a, b, b, {}, {}, few),
                    Contains("selective_scan: documents must be i64") && Contains("at least 3"));
  CHECK_THROWS_WITH(gated_delta_rule(q, q, v, g, g, {}, 0, few),
                    Contains("gated_delta_rule: documents must be i64") && Contains("B = 1"));
}

TEST_CASE_METHOD(Setup, "learned activations: parameters of another shape are errors",
                 "[op][error]") {
  const Tensor x = ones({2, 3});
  CHECK_THROWS_WITH(learned_swish(x, ones({2})), Contains("learned_swish: beta must be"));
  CHECK_THROWS_WITH(xielu(x, ones({1}), ones({})), Contains("xielu: alpha_p and alpha_n must be"));
  CHECK_THROWS_WITH(xielu(x, ones({}), ones({}), 0.5, 1), Contains("eps finite, 0 or less"));
  CHECK_THROWS_WITH(sink_softmax(x, ones({3})), Contains("sink_softmax"));
  CHECK_THROWS_WITH(sink_softmax(x, ones({1, 2, 1})), Contains("must broadcast to the rows of x"));
}
