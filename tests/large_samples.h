#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/all.h"

namespace tally {

// Shapes that fast kernels cut into several pieces.
inline std::vector<Sample> large_pairs() {
  using namespace tally::ops;
  return {
      sample<Mul>("equal shapes", {}, {normal({130, 257}, 30), normal({130, 257}, 31)}),
      sample<Mul>("by a row", {}, {normal({2, 150, 257}, 32), normal({257}, 33)}),
      sample<Mul>("by a column", {}, {normal({300, 257}, 34), normal({300, 1}, 35)}),
      sample<Mul>("by a number", {}, {normal({300, 257}, 36), normal({}, 37)}),
      sample<Sub>("a row less a column", {}, {normal({1, 700}, 38), normal({90, 1}, 39)}),
      sample<Div>("by a row", {}, {normal({300, 257}, 40), values({1, 1}, {3})}),
      sample<Maximum>("with a row", {}, {normal({300, 70}, 41), normal({70}, 42)}),
      sample<Scale>("many", {0.3}, {normal({300, 257}, 43)}),
      sample<Dropout>("many rows", {0.3, 5, 2}, {normal({100, 257}, 44), normal({100, 257}, 45)}),
  };
}
inline std::vector<Sample> large_curves() {
  using namespace tally::ops;
  Gate::Attrs limited;
  limited.function = ActivationKind::swish;
  limited.parameter = 1.702, limited.limit = 0.7, limited.offset = 1;
  return {
      sample<SoftCap>("many rows", {3}, {normal({100, 257}, 50)}),
      sample<LearnedSwish>("many rows", {}, {normal({200, 257}, 51), normal({257}, 52)}),
      sample<LearnedSwish>("one number", {}, {normal({200, 257}, 53), normal({}, 54)}),
      sample<Xielu>("many rows", {}, {normal({200, 257}, 55), normal({}, 56), normal({}, 57)}),
      sample<Gate>("limited", limited, {normal({100, 257}, 58), normal({100, 257}, 59)}),
      sample<SinkSoftmax>("a sink a head", {0.5},
                          {normal({2, 3, 40, 257}, 60), absent(), normal({3, 1}, 61)}),
  };
}
inline std::vector<Sample> large_patterns() {
  using namespace tally::ops;
  Attention::Attrs strided, fixed;
  strided.pattern = KeyPattern::strided, strided.stride = 6;
  strided.global = 3, strided.soft_cap = 4;
  fixed.pattern = KeyPattern::fixed, fixed.stride = 41, fixed.summary = 3;
  const auto keys = [](const char* name, const Attention::Attrs& a, int64_t tokens, int64_t past) {
    return sample<Attention>(
        name, a,
        {normal({1, tokens, 4, 9}, 90), normal({1, tokens + past, 2, 9}, 91),
         normal({1, tokens + past, 2, 5}, 92), absent(), absent(), absent(), normal({4}, 93)});
  };
  return {
      keys("strided in parts", strided, 75, 0),
      keys("strided in parts behind a cache", strided, 40, 33),
      keys("fixed in parts", fixed, 101, 0),
      keys("fixed in parts behind a cache", fixed, 70, 33),
  };
}
inline std::vector<Sample> large_mixtures() {
  using namespace tally::ops;
  SampleInput places = indices({700, 2}, 74, 1500);
  return {
      sample<MoeRouter>("many rows", {}, {normal({700, 33}, 70), absent()}),
      sample<LoadBalanceLoss>("many rows", {}, {normal({700, 33}, 71), indices({700, 2}, 72, 33)}),
      sample<ExpertGather>("many rows", {33}, {normal({700, 65}, 73), indices({700, 2}, 75, 33)}),
      sample<ExpertCombine>("many rows", {},
                            {normal({1500, 65}, 76), normal({700, 2}, 77), places}),
  };
}

inline std::vector<Sample> large_reductions() {
  using namespace tally::ops;
  return {
      sample<Linear>("many rows", {},
                     {normal({300, 257}, 1), normal({130, 257}, 2), normal({130}, 3)}),
      sample<Linear>("many columns", {}, {normal({9, 64}, 4), normal({2050, 64}, 5), absent()}),
      sample<RMSNorm>("many rows", {1e-5}, {normal({1000, 129}, 6), normal({129}, 7)}),
      sample<Embedding>("many ids", {}, {indices({5000}, 8, 77), normal({77, 65}, 9)}),
      sample<MatMul>("many products", {}, {normal({40, 9, 65}, 10), normal({40, 65, 33}, 11)}),
      sample<MatMul>("a batch of rows", {}, {normal({12, 30, 65}, 12), normal({65, 33}, 13)}),
      sample<MatMul>("by a column", {}, {normal({3, 300, 65}, 14), normal({65}, 15)}),
      sample<Softmax>("many rows", {}, {normal({100, 300}, 16), absent()}),
      sample<LogSoftmax>("many rows", {}, {normal({100, 300}, 17), absent()}),
      sample<LogSoftmax>(
          "a mask, one row all masked", {0.5},
          {normal({3, 5}, 18), flags({3, 5}, {1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0})}),
      sample<Sum>("a long row", {}, {normal({70000}, 19)}),
      sample<AMin>("two long rows", {{1}}, {normal({2, 40000}, 20)}),
      sample<LogSumExp>("a long row", {}, {normal({50000}, 21)}),
      sample<Mean>("many columns", {{0}}, {normal({20, 3000}, 22)}),
      sample<Var>("long columns", {{0}, false, 1}, {normal({600, 70}, 23)}),
      sample<AMax>("long columns", {{1}}, {normal({2, 600, 70}, 24)}),
      sample<CumSum>("many columns", {0}, {normal({50, 1500}, 25)}),
      sample<Transpose>("many tiles", {}, {normal({300, 210}, 26)}),
  };
}

inline std::vector<Sample> large_samples() {
  std::vector<Sample> all = large_reductions();
  for (auto* more : {large_pairs, large_curves, large_patterns, large_mixtures}) {
    for (Sample& s : more()) all.push_back(std::move(s));
  }
  return all;
}

}  // namespace tally
