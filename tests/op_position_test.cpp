// Position schemes that attention adds to its scores. The claims of the lecture that a test shows
// stand in its tags.
#include <catch2/catch.hpp>

#include "autograd/functional.h"
#include "autograd/proof/proof.h"
#include "backends/register_all.h"
#include "core/ops/attention/attention.h"
#include "core/ops/position.h"
#include "core/ops/relative_bias.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

struct Setup {
  Setup() { register_all(); }
};

Tensor random(const Shape& s, uint64_t seed, DType dtype = DType::f64, Device device = kReference) {
  return make_input(normal(s, seed), dtype, device);
}
// Equal within `bound` of the largest number.
void check_close(const Tensor& a, const Tensor& b, double bound) {
  const auto x = to_doubles(a), y = to_doubles(b);
  REQUIRE(x.size() == y.size());
  double scale = 1e-300;
  for (double v : y) scale = std::max(scale, std::fabs(v));
  for (size_t i = 0; i < x.size(); ++i) {
    INFO("element " << i << ": " << x[i] << ", expected " << y[i]);
    CHECK(std::fabs(x[i] - y[i]) <= bound * scale);
  }
}
double dot(const Tensor& a, const Tensor& b) {
  const auto x = to_doubles(a), y = to_doubles(b);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}
// ALiBi as a tensor (H,T,S), T queries being the last of S keys.
Tensor alibi_tensor(int64_t heads, int64_t queries, int64_t keys) {
  std::vector<double> bias;
  for (const double slope : alibi_slopes(heads)) {
    for (int64_t t = 0; t < queries; ++t) {
      for (int64_t j = 0; j < keys; ++j)
        bias.push_back(-slope * std::fabs(static_cast<double>(keys - queries + t - j)));
    }
  }
  return from_host<double>(std::span<const double>(bias), {heads, queries, keys}, kReference);
}

}  // namespace

TEST_CASE_METHOD(Setup, "attention: without positions, shuffled tokens give shuffled outputs",
                 "[op][L42]") {
  const Tensor q = random({1, 5, 2, 3}, 1), k = random({1, 5, 2, 3}, 2),
               v = random({1, 5, 2, 3}, 3);
  const Tensor order = from_host<int64_t>({3, 0, 4, 1, 2}, {5}, kReference);
  const auto shuffled = [&](const Tensor& x) { return index_select(x, order, 1); };
  ops::AttentionOptions o;
  o.causal = false;
  check_close(attention(shuffled(q), shuffled(k), shuffled(v), o), shuffled(attention(q, k, v, o)),
              1e-14);
  o.alibi = 1;  // positions end that
  CHECK(dot(attention(shuffled(q), shuffled(k), shuffled(v), o), shuffled(q)) !=
        Approx(dot(shuffled(attention(q, k, v, o)), shuffled(q))).epsilon(1e-6));
}

TEST_CASE_METHOD(Setup, "attention: a causal mask gives order away without any positions",
                 "[op][L42][L98]") {
  const Tensor q = random({1, 5, 2, 3}, 1), k = random({1, 5, 2, 3}, 2),
               v = random({1, 5, 2, 3}, 3);
  const Tensor order = from_host<int64_t>({1, 0, 3, 2, 4}, {5}, kReference);
  const auto shuffled = [&](const Tensor& x) { return index_select(x, order, 1); };
  const Tensor a = attention(q, k, v), b = attention(shuffled(q), shuffled(k), shuffled(v));
  // The last token sees the same others whatever their order; those before it do not.
  check_close(b.narrow(1, 4, 1), a.narrow(1, 4, 1), 1e-14);
  for (int64_t t = 0; t < 4; ++t) {
    const auto x = to_doubles(b.narrow(1, t, 1)), y = to_doubles(shuffled(a).narrow(1, t, 1));
    double apart = 0;
    for (size_t i = 0; i < x.size(); ++i) apart = std::max(apart, std::fabs(x[i] - y[i]));
    CHECK(apart > 1e-3);
  }
}

TEST_CASE_METHOD(Setup, "position: sinusoids are the formula; their products know the distance",
                 "[op][L44]") {
  const int64_t rows = 40, d = 12;
  const Tensor table = sinusoidal_table(rows, d, Sinusoid::interleaved, DType::f64, kReference);
  const auto pe = to_doubles(table);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < d / 2; ++k) {
      const double angle = static_cast<double>(i) /
                           std::pow(10000.0, 2 * static_cast<double>(k) / static_cast<double>(d));
      const auto at = static_cast<size_t>(i * d + 2 * k);
      CHECK(pe[at] == Approx(std::sin(angle)).margin(1e-14));
      CHECK(pe[at + 1] == Approx(std::cos(angle)).margin(1e-14));
    }
  }
  const auto product = [&](int64_t i, int64_t j) {
    return dot(table.narrow(0, i, 1), table.narrow(0, j, 1));
  };
  for (const int64_t distance : {0, 1, 7, 20}) {
    for (int64_t i = distance; i < rows; ++i)
      CHECK(product(i, i - distance) == Approx(product(distance, 0)).epsilon(1e-12));
  }
  CHECK(std::fabs(product(9, 2) - product(9, 3)) > 0.1);
}

TEST_CASE_METHOD(Setup, "attention: ALiBi in the loop equals ALiBi as a tensor", "[op][L43][F23]") {
  for (Device device : {kReference, kCPU}) {
    for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{5, 5}, {1, 9}, {70, 200}}) {
      const auto make = [&](int64_t t, int64_t h, uint64_t seed) {
        return random({2, t, h, 4}, seed, DType::f32, device);
      };
      const Tensor q = make(queries, 6, 1), k = make(keys, 3, 2), v = make(keys, 3, 3);
      ops::AttentionOptions inside;
      inside.alibi = 1;
      const Tensor bias = to(to(alibi_tensor(6, queries, keys), DType::f32), device);
      check_close(attention(q, k, v, inside), attention(q, k, v, {}, {}, bias), 2e-6);
    }
  }
}

TEST_CASE_METHOD(Setup, "attention: biases shift with the text; a learned position does not",
                 "[op][L45]") {
  // Scores of relative schemes are a function of j - t: each row is the one above, moved by one.
  const Tensor table = random({8, 2}, 1);
  for (const Tensor& bias : {relative_bias(table, 6, 6, false, 12),
                             relative_bias(table, 6, 6, true, 12), alibi_tensor(2, 6, 6)}) {
    const auto b = to_doubles(bias);
    for (size_t h = 0; h < 2; ++h) {
      for (size_t t = 1; t < 6; ++t) {
        for (size_t j = 1; j < 6; ++j)
          CHECK(b[(h * 6 + t) * 6 + j] == b[(h * 6 + t - 1) * 6 + j - 1]);
      }
    }
  }
  const Tensor q = random({1, 8}, 2), k = random({1, 8}, 3), learned = random({9, 8}, 4);
  const auto product = [&](int64_t m, int64_t n) {
    return dot(add(q, learned.narrow(0, m, 1)), add(k, learned.narrow(0, n, 1)));
  };
  CHECK(std::fabs(product(3, 5) - product(4, 6)) > 1e-3);
}

TEST_CASE_METHOD(Setup, "attention: a bias of -infinity hides a key as a mask does", "[op][F04]") {
  const double inf = INFINITY;
  const Tensor mask = from_host<uint8_t>({1, 0, 1, 0, 0, 0}, {2, 3}, kReference);
  const std::vector<double> hidden = {0, -inf, 0, -inf, -inf, -inf};
  ops::AttentionOptions o;
  o.causal = false;
  for (Device device : {kReference, kCPU}) {
    const Tensor bias = to(make_input(values({2, 3}, hidden), DType::f32, kReference), device);
    Tensor q = random({1, 2, 1, 4}, 1, DType::f32, device),
           k = random({1, 3, 1, 4}, 2, DType::f32, device),
           v = random({1, 3, 1, 4}, 3, DType::f32, device);
    for (Tensor* t : {&q, &k, &v}) t->requires_grad_();
    const Tape tape;
    const Tensor y = attention(q, k, v, o, {}, bias);
    check_close(y, attention(q.detach(), k.detach(), v.detach(), o, to(mask, device)), 1e-6);
    backward(sum(y));
    for (const Tensor* t : {&q, &k, &v}) {
      for (double g : to_doubles(t->grad())) CHECK(std::isfinite(g));
    }
    CHECK(to_doubles(q.grad())[4] == 0);  // the row that sees nothing
  }
}

TEST_CASE_METHOD(Setup, "relative_bias: equals a look-up of buckets, with its gradient",
                 "[op][L43][F24]") {
  Tensor table = random({8, 3}, 1), again = random({8, 3}, 1);
  table.requires_grad_(), again.requires_grad_();
  const int64_t queries = 4, keys = 7;
  std::vector<int64_t> ids;
  for (int64_t t = 0; t < queries; ++t) {
    for (int64_t j = 0; j < keys; ++j)
      ids.push_back(t5_bucket(j - (keys - queries + t), true, 8, 12));
  }
  const Tensor index =
      from_host<int64_t>(std::span<const int64_t>(ids), {queries, keys}, kReference);
  const Tensor weights = random({3, queries, keys}, 2);
  const Tape tape;
  const Tensor y = relative_bias(table, queries, keys, true, 12);
  const Tensor looked_up = permute(embedding(index, again), {2, 0, 1});
  check_close(y, looked_up, 0);
  backward(add(sum(mul(y, weights)), sum(mul(contiguous(looked_up), weights))));
  check_close(table.grad(), again.grad(), 1e-14);
}

TEST_CASE_METHOD(Setup, "relative_bias, relative_shift: say what does not fit", "[op][error]") {
  const Tensor table = random({8, 2}, 1);
  CHECK_THROWS_WITH(relative_bias(random({8}, 1), 2, 2), Contains("w must be (buckets, H)"));
  CHECK_THROWS_WITH(relative_bias(table, -1, 2), Contains("must not be negative; got T = -1"));
  CHECK_THROWS_WITH(relative_bias(table, 2, 2, false, 4), Contains("a largest distance above"));
  CHECK_THROWS_WITH(relative_shift(random({2, 3, 4}, 1), 5), Contains("T <= S <= R for S = 5"));
  CHECK_THROWS_WITH(relative_shift(random({2, 3, 4}, 1), 2), Contains("got (2, 3, 4)"));
}

TEST_CASE_METHOD(Setup, "attention: says what is wrong with a bias", "[op][error]") {
  const Tensor q = random({1, 3, 2, 4}, 1);
  CHECK_THROWS_WITH(attention(q, q, q, {}, {}, random({2, 3, 4}, 2)),
                    Contains("bias must be f64 as q and broadcast to (B,H,T,S)"));
  CHECK_THROWS_WITH(attention(q, q, q, {}, {}, random({2, 3, 3}, 2, DType::f32)),
                    Contains("of f32"));
  ops::AttentionOptions o;
  o.alibi = -1;
  CHECK_THROWS_WITH(attention(q, q, q, o), Contains("alibi must be a finite number"));
  ops::Attention::Saved saved;
  const Tensor y = ops::Attention::forward(q, q, q, {}, {}, {}, {}, {}, &saved);
  CHECK_THROWS_WITH(
      ops::Attention::backward_to(y, std::move(saved), {}, {}, {}, {random({2, 3, 3}, 1), false}),
      Contains("dbias is asked for without its input"));
}

// Dai et al. 2019, eq. 5: (q + u).k_j + (q + v).r_(i-j), by the definition and by the ops.
TEST_CASE_METHOD(Setup, "relative_shift: Transformer-XL's scores as a bias of attention",
                 "[op][L43]") {
  const int64_t t = 4, h = 2, size = 3;
  const Tensor q = random({1, t, h, size}, 1), k = random({1, t, h, size}, 2),
               v = random({1, t, h, size}, 3), r = random({t, h, size}, 4);
  const Tensor u = random({h, size}, 5), w = random({h, size}, 6);
  const double factor = 1 / std::sqrt(double(size));
  const Tensor by_distance = matmul(permute(add(q, w), {0, 2, 1, 3}), permute(r, {1, 0, 2}), false,
                                    true);  // (1,H,T,R)
  const Tensor y =
      attention(add(q, u), k, v, {}, {}, scale(relative_shift(by_distance, t), factor));
  const auto at = [&](const Tensor& x, int64_t i, int64_t head, int64_t d) {
    return to_doubles(x)[static_cast<size_t>((i * h + head) * size + d)];
  };
  const auto shared = [&](const Tensor& x, int64_t head, int64_t d) {
    return to_doubles(x)[static_cast<size_t>(head * size + d)];
  };
  for (int64_t head = 0; head < h; ++head) {
    for (int64_t i = 0; i < t; ++i) {
      double total = 0;
      std::vector<double> out(static_cast<size_t>(size), 0);
      for (int64_t j = 0; j <= i; ++j) {
        double score = 0;
        for (int64_t d = 0; d < size; ++d)
          score += (at(q, i, head, d) + shared(u, head, d)) * at(k, j, head, d) +
                   (at(q, i, head, d) + shared(w, head, d)) * at(r, i - j, head, d);
        const double p = std::exp(score * factor);
        total += p;
        for (int64_t d = 0; d < size; ++d) out[static_cast<size_t>(d)] += p * at(v, j, head, d);
      }
      for (int64_t d = 0; d < size; ++d)
        CHECK(at(y, i, head, d) == Approx(out[static_cast<size_t>(d)] / total).epsilon(1e-12));
    }
  }
}
