// Rules of layers that no sample can show: the order of rounding and gain in bf16 against a
// definition in double, and what residual_add and the output gate refuse.
#include "core/ops/residual_add.h"
#include "nn/attention.h"
#include "tests/op_values.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

double rounded(double v) {
  return static_cast<double>(static_cast<float>(bf16(static_cast<float>(v))));
}

/// RMSNorm in double of numbers that bf16 holds, rounded where the family rounds.
Numbers defined(const Numbers& x, const Numbers& w, double eps, bool plus_one, bool before) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  const double r = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  Numbers y;
  for (size_t d = 0; d < x.size(); ++d) {
    const double n = before ? rounded(x[d] * r) : x[d] * r;
    y.push_back(rounded(n * (plus_one ? 1 + w[d] : w[d])));
  }
  return y;
}

Numbers held(int64_t count, uint64_t seed, double shift) {
  Numbers v;
  for (int64_t i = 0; i < count; ++i)
    v.push_back(rounded(normal_at(seed, 1, static_cast<uint64_t>(i)) + shift));
  return v;
}

ops::ResidualAdd::Attrs attrs(double scale, double p) {
  ops::ResidualAdd::Attrs a;
  a.scale = scale, a.p = p;
  return a;
}

}  // namespace

TEST_CASE_METHOD(Setup, "rms_norm: bf16 is rounded before the gain or behind it, as asked",
                 "[op][F11]") {
  const int64_t rows = 7, width = 96;
  const Device device = GENERATE(kReference, kCPU);
  const bool plus_one = GENERATE(false, true);
  const Numbers x = held(rows * width, 3, 0), w = held(width, 4, 1);
  const Tensor tx = make_input(values({rows, width}, x), DType::bf16, device),
               tw = make_input(values({width}, w), DType::bf16, device);
  Numbers of_order[2];
  int64_t differ = 0;
  for (const bool before : {false, true}) {
    const Numbers got = numbers(rms_norm(tx, tw, 1e-5, plus_one, before));
    Numbers want;
    for (int64_t i = 0; i < rows; ++i) {
      const Numbers row(x.begin() + i * width, x.begin() + (i + 1) * width);
      const Numbers y = defined(row, w, 1e-5, plus_one, before);
      want.insert(want.end(), y.begin(), y.end());
    }
    // The accumulator is f32: where its error meets the middle of two bf16 numbers, one step.
    int64_t apart = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      apart += got[i] != want[i];
      CHECK(std::fabs(got[i] - want[i]) <= std::fabs(want[i]) * 0x1p-7);
    }
    CHECK(apart <= 3);
    of_order[before] = got;
  }
  for (size_t i = 0; i < of_order[0].size(); ++i) differ += of_order[0][i] != of_order[1][i];
  CHECK(differ > rows * width / 10);  // the order is seen: this test can tell them apart
}

TEST_CASE_METHOD(Setup, "residual_add: says what does not fit", "[op][error]") {
  using O = ops::ResidualAdd;
  const Tensor x = f64({1, 2, 3, 4, 5, 6}, {2, 3}), gain = f64({1, 1}, {2});
  const auto call = [](const Tensor& residual, const Tensor& branch, const Tensor& g,
                       const O::Attrs& a = {}) { O::forward(residual, branch, g, a, nullptr); };
  CHECK_THROWS_WITH(call({}, x, {}), Contains("residual_add: residual is missing"));
  CHECK_THROWS_WITH(call(x, {}, {}), Contains("residual_add: x is missing"));
  CHECK_THROWS_WITH(call(f64({1, 2, 3}, {1, 3}), x, {}),
                    Contains("residual and x must have one shape; got (1, 3) and (2, 3)"));
  CHECK_THROWS_WITH(call(x, x, gain), Contains("gain must be one number () or (D)") &&
                                          Contains("x is (2, 3), gain is (2)"));
  CHECK_THROWS_WITH(call(x, x, f64({1, 1, 1}, {1, 3})), Contains("gain is (1, 3)"));
  CHECK_THROWS_WITH(call(x, x, full({3}, 1, DType::f32, kReference)),
                    Contains("residual_add: all tensors must hold one type"));
  CHECK_THROWS_WITH(call(i64({1, 2}, {2}), i64({1, 2}, {2}), {}),
                    Contains("residual_add: needs floating-point tensors"));
  for (const double scale : {kInf, -kInf, double(NAN)})
    CHECK_THROWS_WITH(call(x, x, {}, attrs(scale, 0)), Contains("scale must be finite"));
  for (const double p : {-0.1, 1.1, double(NAN)})
    CHECK_THROWS_WITH(call(x, x, {}, attrs(1, p)), Contains("p must be in 0..1"));
  CHECK_THROWS_WITH(call(f64({1, 2}, {2}), f64({1, 2}, {2}), {}, attrs(1, 0.5)),
                    Contains("whole sequences are left out") && Contains("got (2)"));
  const ModuleScope scope("blocks", 3);
  CHECK_THROWS_WITH(call(x, x, gain), Contains("in blocks[3]"));
}

TEST_CASE_METHOD(Setup, "attention_layer: says what does not fit its gate, shift and documents",
                 "[op][error]") {
  using L = nn::AttentionLayer;
  L::Attrs a;
  a.heads = 2, a.kv_heads = 1, a.head_dim = 2;
  const auto ones_of = [](const Shape& s) { return ones(s); };
  const Tensor x = ones_of({1, 3, 4}), w = ones_of({8, 4}), out = ones_of({4, 4});
  const auto call = [&](const Tensor& gate, const Tensor& documents, const Tensor& shift) {
    L::forward(x, w, {}, {}, {}, {}, {}, out, {}, {}, {}, {}, {}, {}, {}, {}, gate, documents,
               shift, a, nullptr);
  };
  call(ones_of({4, 4}), {}, ones_of({}));
  CHECK_THROWS_WITH(call(ones_of({6, 4}), {}, {}),
                    Contains("gate: gate and up must have one shape; got (1, 3, 6) and (1, 3, 4)"));
  CHECK_THROWS_WITH(call(ones_of({4, 5}), {}, {}), Contains("linear: "));
  CHECK_THROWS_WITH(call(ones({4, 4}, DType::f32), {}, {}), Contains("one type"));
  CHECK_THROWS_WITH(call({}, {}, ones_of({4})),
                    Contains("the shift must be one number (); got (4)"));
  CHECK_THROWS_WITH(call({}, i64({0, 0}, {1, 2}), {}),
                    Contains("documents must be i64, a number for each key, (B,S) = (1, 3)"));
  CHECK_THROWS_WITH(call({}, ones_of({1, 3}), {}), Contains("documents must be i64"));
}
