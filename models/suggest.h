#pragma once
#include <span>
#include <string>
#include <string_view>

namespace tally {

/// Smallest number of insertions, deletions, substitutions and swaps of neighbours that turn `a`
/// into `b` (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b);

/// The choice that `word` was probably meant to be, or "" if none is near.
std::string closest(std::string_view word, std::span<const std::string> choices);

/// The end of an error about an unknown word: `; did you mean "x"?`, or, where none is near,
/// `; choose one of a, b, c`.
std::string did_you_mean(std::string_view word, std::span<const std::string> choices);

}  // namespace tally
