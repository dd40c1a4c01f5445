// Rotary embedding and the tables of positions: values, in place and in slices, errors, and the
// faults that programs of this kind had.
#include "core/ops/position.h"
#include "tests/attention_helpers.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

Tensor f64(std::initializer_list<double> v, const Shape& s) {
  return from_host<double>(v, s, kReference);
}

}  // namespace

TEST_CASE_METHOD(Setup, "rope: pairs in halves and interleaved", "[op][F21]") {
  const Tensor x = f64({1, 2, 3, 4}, {1, 1, 1, 4}),
               table = rope_table(2, 4, 10000, DType::f64, kReference);
  check_close(rope(x, table, {ops::RotaryPairs::interleaved, 1}),
              {-1.14263966, 1.92207560, 2.95985067, 4.02979950}, 1e-8);
  check_close(rope(x, table, {ops::RotaryPairs::half_split, 1}),
              {-1.98411065, 1.95990067, 2.46237790, 4.01979967}, 1e-8);
}

TEST_CASE_METHOD(Setup, "rope: permuting a head's rows turns one form into the other",
                 "[op][F21][L49]") {
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
                 "[op][L45][L46][L50]") {
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
