#pragma once
#include <string>
#include <vector>

#include "autograd/proof/sample.h"

namespace tally {

/// What is known when the gradient of an input fails its proof.
struct GradientFacts {
  using Numbers = std::vector<double>;
  const Sample& sample;
  int input = 0;  // whose gradient failed
  std::vector<Numbers> inputs, outputs, upstream;
  std::vector<Numbers> analytic, numeric;  // by input; empty where there is none
  std::vector<Shape> output_shapes;
  /// The analytic gradients for another upstream gradient, to see how they depend on it.
  std::function<std::vector<Numbers>(const std::vector<Numbers>&)> analytic_for;
};

/// The mistake that the numbers suggest, as a short sentence: wrong sign, a factor, transposed, the
/// gradient of another input, a sum of which only the last part is kept, and so on.
std::string likely_mistake(const GradientFacts& facts);

/// The largest magnitude; 0 of none.
double largest(const std::vector<double>& numbers);

}  // namespace tally
