#pragma once
#include <string>
#include <vector>

#include "models/report.h"

namespace tally {

/// A line of the algebra of a model: a formula in the field's letters, the same with its numbers,
/// what it comes to, and what the run on meta counted (NaN where nothing counts it).
struct Formula {
  std::string what, formula, numbers;
  double value = 0, counted = 0;
  std::string unit;  // "parameters", "FLOPs", "bytes", "FLOPs/byte"
};

/// What a report says, by closed forms: parameters, products of the pass, memory by kind, KV cache,
/// intensity. L layers, D d_model, H heads, G kv_heads, K head_dim, F d_ff, V vocab, B batch,
/// T sequence, N parameters. Lecture claims L62, L81, L91 to L95.
std::vector<Formula> algebra(const Report& report);

}  // namespace tally
