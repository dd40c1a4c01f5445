#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/all.h"

namespace tally {

/// Shapes that fast kernels cut into several pieces.
inline std::vector<Sample> large_samples() {
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

}  // namespace tally
