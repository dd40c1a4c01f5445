#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/functions.h"

namespace tally::samples {

// Normal numbers around `shift`: away from 0 for those that need it; and numbers far out.
template <class O>
void add_unary(std::vector<Sample>& list, double shift, const ops::UnaryAttrs& attrs = {},
               const std::string& what = "") {
  const auto x = [&](const Shape& s, uint64_t seed) { return normal(s, seed, 0.4, shift); };
  const auto one = [&](const std::string& name, const SampleInput& in) {
    list.push_back(sample<O>(what + name, attrs, {in}));
  };
  one("5 x 7", x({5, 7}, 1));
  one("a scalar", x({}, 2));
  one("no elements", x({2, 0, 3}, 3));
  one("wide rows", x({3, 37}, 4));
  one("one column", x({5, 1}, 5));
  const bool positive = shift > 1;
  one("extreme values",
      values({6}, positive ? std::vector{1e-10, 1e-3, 1.0, 50.0, 1e4, 1e10}
                           : std::vector{1e-30, -1e-30, 25.0, -25.0, 80.0, -80.0}));
  list.back().smooth = false;
  add_shapes(list, element_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>(what + of, attrs, {x(s, seed)});
  });
  const Sample base = sample<O>(what + "2 x 3 x 9", attrs, {x({2, 3, 9}, 6)});
  add_views(list, base, all_layouts());
  if (positive) return;
  add_numbers(list, base, {Numbers::tiny});
  // At 0 the slope of |x| is a convention: the op says 0, dual numbers say that of one side.
  if (!std::is_same_v<O, ops::Abs>) add_numbers(list, base, {Numbers::zeros, Numbers::steps});
}

inline std::vector<Sample> functions() {
  std::vector<Sample> list;
  add_unary<ops::Scale>(list, 0, {-1.7});
  add_unary<ops::AddScalar>(list, 0, {0.3});
  add_unary<ops::Neg>(list, 0);
  add_unary<ops::Abs>(list, 0.05);
  add_unary<ops::Exp>(list, 0);
  add_unary<ops::Log>(list, 3);
  add_unary<ops::Sqrt>(list, 3);
  add_unary<ops::Rsqrt>(list, 3);
  add_unary<ops::Reciprocal>(list, 3);
  add_unary<ops::Square>(list, 0);
  add_unary<ops::Pow>(list, 3, {-0.5}, "to the -1/2, ");
  add_unary<ops::Pow>(list, 0, {3}, "cubed, ");
  add_unary<ops::Pow>(list, 3, {0}, "to the 0, ");
  add_unary<ops::Sin>(list, 0);
  add_unary<ops::Cos>(list, 0);
  add_unary<ops::Erf>(list, 0);
  add_unary<ops::Clamp>(list, 0, {-0.2, 0.3});
  list.push_back(sample<ops::Scale>("by 0", {0}, {normal({3, 5}, 7)}));
  list.push_back(sample<ops::AddScalar>("a large number", {-1e6}, {normal({3, 5}, 8)}));
  list.push_back(sample<ops::Clamp>("to nothing but 0", {0, 0}, {normal({3, 5}, 9)}));
  return list;
}

}  // namespace tally::samples
