#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "core/error.h"

// What options accept. CLI11's own ranges let NaN pass, which is neither below nor above a bound.
namespace tally::cli {

namespace detail {
template <class T>
CLI::Validator within(T low, T high, const char* kind, const char* what) {
  const std::string range = to_text(low) + " to " + to_text(high);
  return CLI::Validator(
      [=](const std::string& text) {
        T v{};
        const bool ok = CLI::detail::lexical_cast(text, v) && v >= low && v <= high;
        return ok ? std::string() : "'" + text + "' is not in range: " + what + " from " + range;
      },
      std::string(kind) + " in " + range);
}
}  // namespace detail

/// A whole number from `low` to `high`.
inline CLI::Validator whole(int64_t low, int64_t high) {
  return detail::within(low, high, "INT", "a whole number");
}
/// A finite number from `low` to `high`.
inline CLI::Validator number(double low, double high) {
  return detail::within(low, high, "FLOAT", "a number");
}

}  // namespace tally::cli
