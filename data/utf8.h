#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace tally {

/// The length of the longest prefix of `text` that is well-formed UTF-8 (Unicode 15, table 3-7: no
/// overlong forms, no surrogates, nothing above U+10FFFF). Linear; eight ASCII bytes at a time.
size_t well_formed_prefix(std::string_view text);

/// The length (1 to 3) of the ill-formed part at the start of `text`, which must not begin with a
/// whole character: the longest beginning of a character, or one byte.
size_t ill_formed_part(std::string_view text);

/// True if `text`, an ill-formed part at the very end of what has arrived, could become one whole
/// character when more bytes follow.
bool is_unfinished(std::string_view text);

/// `bytes` with each maximal ill-formed part replaced by U+FFFD (Unicode 15, section 3.9; what
/// Python's errors="replace" gives).
std::string replace_ill_formed(std::string_view bytes);

}  // namespace tally
