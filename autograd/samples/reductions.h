#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/cumsum.h"
#include "core/ops/reductions.h"

namespace tally::samples {

// `what` stands before the names where an op has several forms.
template <class O>
void add_reduction(std::vector<Sample>& list, double correction = 0, const std::string& what = "") {
  const auto one = [&](const char* name, const Shape& axes, bool keep, const SampleInput& x) {
    list.push_back(sample<O>(what + name, {axes, keep, correction}, {x}));
  };
  one("all of 3 x 5", {}, false, normal({3, 5}, 1));
  one("the last axis, kept", {-1}, true, normal({2, 3, 4}, 2));
  one("the first axis", {0}, false, normal({3, 4, 5}, 3));
  one("the middle axis", {1}, false, normal({2, 7, 3}, 4));
  one("two axes apart", {2, 0}, false, normal({3, 2, 4}, 5));
  one("long rows", {-1}, false, normal({2, 75}, 10));
  one("long columns", {0}, false, normal({9, 37}, 11));
  one("no groups", {1}, false, normal({0, 4}, 6));
  one("extreme values", {-1}, false, values({2, 3}, {30, -20, 0, 50, 1e-9, -80}));
  list.back().smooth = false;
  if (correction > 0) return;
  one("an axis of one element", {1}, false, normal({4, 1, 3}, 7));
  one("a scalar", {}, false, normal({}, 8));
  for (const int axis : {0, -1}) {
    const std::string along = axis ? "rows " : "columns ";
    add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
      if (s[axis] == 0) return sample<O>(what + "no rows", {{-1}}, {normal(s, seed)});
      return sample<O>(what + along + of, {{axis}, true, correction}, {normal(s, seed)});
    });
  }
  for (const Shape& axes : {Shape{-1}, {1}, {0, 1}}) {
    const std::string name = what + "axes " + to_text(axes) + " of 2 x 3 x 9";
    const Sample base = sample<O>(name, {axes, false, correction}, {normal({2, 3, 9}, 12)});
    add_views(list, base, all_layouts());
    if (axes.ndim() == 1) add_numbers(list, base, {Numbers::large, Numbers::outlier});
  }
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
  add_reduction<ops::Var>(list, 1, "n - 1, ");
  list.push_back(sample<ops::Sum>("empty groups", {{1}}, {normal({2, 0}, 9)}));
  list.push_back(sample<ops::LogSumExp>("large numbers", {{-1}},
                                        {values({2, 3}, {1e4, 9999, -1e4, -1e5, -1e5, 0})})
                     .not_smooth());
  return list;
}

inline std::vector<Sample> cumsum() {
  using O = ops::CumSum;
  std::vector<Sample> list = {
      sample<O>("along the middle axis", {1}, {normal({3, 4, 5}, 1)}),
      sample<O>("along the last axis", {-1}, {normal({2, 9}, 2)}),
      sample<O>("long lines", {0}, {normal({3, 37}, 5)}),
      sample<O>("one element", {0}, {normal({1}, 3)}),
      sample<O>("extreme values", {0}, {values({4}, {0, 1e15, -30, 1e-15})}).not_smooth(),
      sample<O>("an empty axis", {0}, {normal({0, 3}, 4)}),
  };
  for (const int axis : {0, -1}) {
    const std::string along = axis ? "rows " : "columns ";
    add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
      return sample<O>(along + of, {axis}, {normal(s, seed)});
    });
  }
  for (const int axis : {0, 1, 2}) {
    const Sample base =
        sample<O>("axis " + to_text(axis) + " of 2 x 3 x 9", {axis}, {normal({2, 3, 9}, 6)});
    add_views(list, base, all_layouts());
    add_numbers(list, base, {Numbers::large, Numbers::outlier});
  }
  return list;
}

}  // namespace tally::samples
