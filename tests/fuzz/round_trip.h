#pragma once
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "data/tokenizer.h"

namespace tally::fuzz {

/// Letters, digits, a text of three bytes, a byte that is no UTF-8, white space, a special token.
inline constexpr std::string_view kText = "The cat's 1234 \xE4\xB8\xAD\xFF  \r\n <|endoftext|>x";

/// Ends the program, which libFuzzer reports as a crash.
inline void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

/// What is encoded decodes to the same bytes, with and without special tokens.
inline void round_trip(const Tokenizer& tokenizer, std::string_view text) {
  for (const SpecialTokens special : {SpecialTokens::plain, SpecialTokens::allowed}) {
    try {
      require(tokenizer.decode(tokenizer.encode(text, special)) == text, "other bytes came back");
    } catch (const Error&) {  // a byte without a token, a pattern over its limits
    }
  }
}

}  // namespace tally::fuzz
