#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/functions.h"

namespace tally::samples {

// Normal numbers around `shift`: away from 0 for those that need it; and numbers far out.
template <class O>
void add_unary(std::vector<Sample>& list, double shift, const ops::UnaryAttrs& attrs = {},
               std::vector<double> far = {1e-30, -1e-30, 25, -25, 80, -80}) {
  const auto x = [&](const Shape& s, uint64_t seed) { return normal(s, seed, 0.4, shift); };
  list.push_back(sample<O>("5 x 7", attrs, {x({5, 7}, 1)}));
  list.push_back(sample<O>("a scalar", attrs, {x({}, 2)}));
  list.push_back(sample<O>("no elements", attrs, {x({2, 0, 3}, 3)}));
  list.push_back(sample<O>("wide rows", attrs, {x({3, 37}, 4)}));
  list.push_back(sample<O>("one column", attrs, {x({5, 1}, 5)}));
  if (shift > 1) far = {1e-10, 1e-3, 1, 50, 1e4, 1e10};
  const auto count = static_cast<int64_t>(far.size());
  list.push_back(sample<O>("extreme values", attrs, {values({count}, far)}).not_smooth());
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
  add_unary<ops::Pow>(list, 3, {-0.5});
  add_unary<ops::Pow>(list, 0, {3});
  add_unary<ops::Pow>(list, 3, {0});
  add_unary<ops::Sin>(list, 0);
  add_unary<ops::Cos>(list, 0);
  add_unary<ops::Erf>(list, 0);
  add_unary<ops::Clamp>(list, 0, {-0.2, 0.3});
  return list;
}

}  // namespace tally::samples
