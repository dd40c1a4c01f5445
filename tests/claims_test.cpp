// What the lecture says of the cost of heads and decoding, from the ledger of a pass on meta: L57 and
// L91 to L95. b sequences of n tokens, d = d_model, h heads of k numbers.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "backends/register_all.h"
#include "models/report.h"
#include "models/zoo.h"

using namespace tally;

namespace {

// One block of LLaMA 7B's width, whose attention is looked at alone.
struct Shapes {
  int64_t b = 1, n = 1, h = 32, groups = 32, d = 4096;
  bool decode = false;
};

struct AttentionCost {
  double flops = 0, elements = 0;  // elements read and written
  double per_element() const { return flops / elements; }
  double cache = 0;  // bytes a token
  std::set<std::string> ops;
};

AttentionCost cost_of(const Shapes& s) {
  register_all();
  RunConfig c = find_preset("llama-smoke").config;
  c.model.layers = 1;
  c.model.d_model = s.d;
  c.model.heads = s.h, c.model.kv_heads = s.groups, c.model.head_dim = s.d / s.h;
  c.model.context = 1 << 20;
  c.resolve_and_check("claims");
  ReportOptions o;
  o.batch = s.b, o.seq = s.n, o.decode = s.decode;
  const Report r = make_report(c.model, o);
  AttentionCost a;
  for (const Entry& e : r.entries) {
    if (std::string(e.module).find(".attention") == std::string::npos) continue;
    a.flops += e.cost.flops;
    a.elements += (e.cost.bytes_read + e.cost.bytes_written) / 4;
    a.ops.insert(e.op);
  }
  a.cache = r.kv_cache_per_token;
  return a;
}
double decoding(int64_t b, int64_t n, int64_t groups = 32) {
  return cost_of({b, n, 32, groups, 4096, true}).per_element();
}

}  // namespace

TEST_CASE("L57: many heads cost what one head costs, and splitting into heads moves no number",
          "[claim]") {
  const AttentionCost one = cost_of({2, 64, 1, 1, 256}), many = cost_of({2, 64, 8, 8, 256});
  // Products are equal; each head has its own softmax, the one term that grows.
  const double softmax = 7.0 * 2 * 64 * 65 / 2 * (8 - 1);
  CHECK(many.flops > one.flops);
  CHECK(many.flops - one.flops < 1.5 * softmax);
  CHECK(many.ops == one.ops);
  CHECK_FALSE(many.ops.contains("copy"));
}

TEST_CASE("L91: prefill has an intensity of O((1/k + 1/(bn))^-1), above 100", "[claim]") {
  const double k = 128;
  for (const auto& [b, n] : {std::pair<int64_t, int64_t>{8, 2048}, {16, 1024}, {64, 256}}) {
    const double formula = 1 / (1 / k + 1 / static_cast<double>(b * n));
    const double counted = cost_of({b, n}).per_element();
    INFO("b " << b << ", n " << n << ": " << counted << ", formula " << formula);
    CHECK(counted > 100);
    CHECK(counted > formula);  // the loops keep no n x n scores: they beat its bhn^2
  }
  const double few = cost_of({1, 2}).per_element(), more = cost_of({1, 4}).per_element();
  CHECK(more / few == Approx(2).epsilon(0.02));  // few tokens: weights are read again for each
}

TEST_CASE("L92: decoding has an intensity of O((n/d + 1/b)^-1)", "[claim]") {
  const double d = 4096;
  for (int64_t b : {1, 4, 64}) {
    for (int64_t n : {64, 1024, 4096, 65536}) {
      const double formula = 1 / (static_cast<double>(n) / d + 1 / static_cast<double>(b));
      const double counted = decoding(b, n);
      INFO("b " << b << ", n " << n << ": " << counted << ", formula " << formula);
      // 8 b d^2 + 4 b n d operations on 4 d^2 + 2 b n d numbers, and a little: two operations a
      // number read, for weights shared by b tokens, for the cache by none.
      const double N = static_cast<double>(n), B = static_cast<double>(b);
      const double closed = (8 * B * d * d + 4 * B * N * d) / (4 * d * d + 2 * B * N * d);
      CHECK(counted == Approx(closed).epsilon(0.08));
      CHECK(counted / formula > 1.5);
      CHECK(counted / formula < 2.2 * (2 + static_cast<double>(n) / d));
    }
  }
  CHECK(decoding(1, 4096) / 4 < 1);  // operations a byte of f32
}

TEST_CASE("L93: the batch helps weights, not the cache", "[claim]") {
  CHECK(decoding(2, 16) / decoding(1, 16) == Approx(2).epsilon(0.02));
  CHECK(decoding(128, 65536) / decoding(64, 65536) == Approx(1).epsilon(0.01));
}

TEST_CASE("L94, L95: fewer key/value heads shrink the cache by h/g, and nothing is repeated",
          "[claim]") {
  const AttentionCost full = cost_of({64, 2048, 32, 32, 4096, true});
  for (int64_t groups : {1, 8}) {
    const AttentionCost less = cost_of({64, 2048, 32, groups, 4096, true});
    CHECK(full.cache / less.cache == 32.0 / static_cast<double>(groups));
    CHECK(less.ops == full.ops);
    CHECK_FALSE(less.ops.contains("expand"));
    CHECK(less.per_element() > full.per_element());
  }
  // L94's formula at long texts: n/(dh) takes the place of n/d, so what the cache costs falls by h.
  const double n = 65536, d = 4096, h = 32, b = 64;
  const double formula = 1 / (1 / d + n / (d * h) + 1 / b);
  const double counted = decoding(64, 65536, 1);
  INFO("counted " << counted << ", formula " << formula);
  CHECK(counted / formula > 1.5);
  CHECK(counted / decoding(64, 65536, 32) > 0.5 * h);
}
