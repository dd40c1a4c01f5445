#pragma once
#include <string>
#include <string_view>

namespace tally {

/// GPT-2's pattern and the one that takes one digit (a character of category N) at a time.
inline constexpr std::string_view kGpt2Pattern =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kDigitPattern = R"(\p{N})";

/// `pattern` with `\s` and `\S` spelled out as the property White_Space. Throws Error for what
/// PCRE2 reads otherwise than the engines such patterns were written for: `\S`, a nested set or an
/// intersection (`&&`) inside a set.
std::string rewrite_white_space(const std::string& pattern);

}  // namespace tally
