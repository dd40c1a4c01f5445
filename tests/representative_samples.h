#pragma once
// Samples for tests that run each of them hundreds of times: few and small, yet every option.
#include <algorithm>
#include <set>

#include "tests/samples.h"

namespace tally {

/// What a sample shows of its op: each value of each option, which inputs are given. Of a module,
/// whose options stand in its name alone, the sample itself, or its op where it is one of a product
/// of shapes (autograd/samples/grid.h, nn/layer_grid.cpp).
inline std::vector<std::string> traits_of(const Sample& s) {
  std::vector<std::string> traits{s.op};
  if (s.module && !s.derived) traits.push_back(s.op + " '" + s.name + "'");
  for (size_t i = 0; i < s.options.size(); ++i)
    traits.push_back(s.op + ", option " + to_text(i) + " = " + s.options[i]);
  for (size_t i = 0; i < s.inputs.size() && !s.module; ++i)
    traits.push_back(s.op + ", input " + to_text(i) + (s.inputs[i].present ? "" : " absent"));
  return traits;
}

inline int64_t numel_of(const Sample& s) {
  int64_t n = 0;
  for (const SampleInput& in : s.inputs) n += in.shape.numel();
  return n;
}

/// Every own sample of at most `size` numbers and, of the others, the smallest that shows a trait
/// which none before it has: together all traits. Without modules where `modules` is false.
inline std::vector<const Sample*> representative_samples(int64_t size, bool modules = true) {
  std::vector<const Sample*> chosen, others;
  std::set<std::string> shown;
  for (const Sample& s : all_samples()) {
    if (s.module && !modules) continue;
    if (s.derived || numel_of(s) > size) {
      others.push_back(&s);
      continue;
    }
    chosen.push_back(&s);
    for (const std::string& trait : traits_of(s)) shown.insert(trait);
  }
  std::stable_sort(others.begin(), others.end(), [](const Sample* a, const Sample* b) {
    // Of one number or none nothing is seen: only where no other shows the trait.
    const int64_t x = numel_of(*a), y = numel_of(*b);
    return (x < 2) != (y < 2) ? x >= 2 : x < y;
  });
  for (const Sample* s : others) {
    bool news = false;
    for (const std::string& trait : traits_of(*s)) news = shown.insert(trait).second || news;
    if (news) chosen.push_back(s);
  }
  return chosen;
}

}  // namespace tally
