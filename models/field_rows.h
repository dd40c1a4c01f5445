#pragma once
#include <vector>

#include "models/config.h"

namespace tally::detail {

/// The upper end of numbers that have none of their own.
inline constexpr double kAny = 1e15;

/// Rows of the table of fields: `number("layers", &M::layers, 1, 10000, "number of blocks")`.
template <class S, class T>
Field<S> number(const char* name, T S::*member, double min, double max, const char* doc) {
  return {name, member, min, max, doc};
}
template <class S>
Field<S> flag(const char* name, bool S::*member, const char* doc) {
  return {name, member, 0, 0, doc};
}

/// The parts of model_fields() that stand in files of their own.
std::vector<Field<ModelConfig>> block_fields();     // norms, branches, experts
std::vector<Field<ModelConfig>> position_fields();  // positions, what attention sees, losses, init

}  // namespace tally::detail
