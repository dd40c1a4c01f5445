#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/cumsum.h"
#include "core/ops/reductions.h"

namespace tally::samples {

template <class O>
void add_reduction(std::vector<Sample>& list, double correction = 0) {
  const double c = correction;
  list.push_back(sample<O>("all of 3 x 5", {{}, false, c}, {normal({3, 5}, 1)}));
  list.push_back(sample<O>("the last axis, kept", {{-1}, true, c}, {normal({2, 3, 4}, 2)}));
  list.push_back(sample<O>("the first axis", {{0}, false, c}, {normal({3, 4, 5}, 3)}));
  list.push_back(sample<O>("the middle axis", {{1}, false, c}, {normal({2, 7, 3}, 4)}));
  list.push_back(sample<O>("two axes apart", {{2, 0}, false, c}, {normal({3, 2, 4}, 5)}));
  list.push_back(sample<O>("long rows", {{-1}, false, c}, {normal({2, 75}, 10)}));
  list.push_back(sample<O>("long columns", {{0}, false, c}, {normal({9, 37}, 11)}));
  list.push_back(sample<O>("no groups", {{1}, false, c}, {normal({0, 4}, 6)}));
  list.push_back(
      sample<O>("extreme values", {{-1}, false, c}, {values({2, 3}, {30, -20, 0, 50, 1e-9, -80})})
          .not_smooth());
  if (c > 0) return;
  list.push_back(sample<O>("an axis of one element", {{1}, false, c}, {normal({4, 1, 3}, 7)}));
  list.push_back(sample<O>("a scalar", {{}, false, c}, {normal({}, 8)}));
}

inline std::vector<Sample> reductions() {
  std::vector<Sample> list;
  add_reduction<ops::Sum>(list);
  add_reduction<ops::Mean>(list);
  add_reduction<ops::AMax>(list);
  add_reduction<ops::AMin>(list);
  add_reduction<ops::Norm>(list);
  add_reduction<ops::LogSumExp>(list);
  add_reduction<ops::Var>(list);
  add_reduction<ops::Var>(list, 1);
  list.push_back(sample<ops::Sum>("empty groups", {{1}}, {normal({2, 0}, 9)}));
  list.push_back(sample<ops::LogSumExp>("large numbers", {{-1}},
                                        {values({2, 3}, {1e4, 9999, -1e4, -1e5, -1e5, 0})})
                     .not_smooth());
  return list;
}

inline std::vector<Sample> cumsum() {
  using O = ops::CumSum;
  return {
      sample<O>("along the middle axis", {1}, {normal({3, 4, 5}, 1)}),
      sample<O>("along the last axis", {-1}, {normal({2, 9}, 2)}),
      sample<O>("long lines", {0}, {normal({3, 37}, 5)}),
      sample<O>("one element", {0}, {normal({1}, 3)}),
      sample<O>("extreme values", {0}, {values({4}, {0, 1e15, -30, 1e-15})}).not_smooth(),
      sample<O>("an empty axis", {0}, {normal({0, 3}, 4)}),
  };
}

}  // namespace tally::samples
