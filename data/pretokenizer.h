#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

/// The patterns of a named pre-tokenizer, for `Pretokenizer`: gpt2, cl100k (or gpt4), o200k,
/// llama3, qwen2, nanochat, smollm (single digits, then gpt2) or none (no cut at all). Throws Error
/// for another name, listing these.
std::vector<std::string> patterns_by_name(const std::string& name);

/// The name of a list of patterns that `patterns_by_name` knows, "custom" for any other.
std::string name_of_patterns(const std::vector<std::string>& patterns);

/// Cuts text into the pieces that byte-pair merging never crosses.
///
/// A pre-tokenizer is a list of regular expressions, applied one after another: each cuts every
/// piece of the one before into its matches and what lies between them, so the pieces always cover
/// the text. Ill-formed UTF-8 never meets a pattern: each run of ill-formed bytes is a piece.
///
/// The engine is PCRE2 in Unicode mode. `\s` means the 25 characters with the property White_Space
/// (PCRE2's own also takes U+180E), `$` the very end of the text. Empty matches do not cut.
/// Immutable after construction, safe to use from many threads, cheap to copy.
class Pretokenizer {
 public:
  /// Throws Error naming the pattern if it cannot be compiled or says what PCRE2 would read
  /// otherwise than its origin (`\S` or nested sets inside a set).
  explicit Pretokenizer(std::vector<std::string> patterns);

  const std::vector<std::string>& patterns() const { return patterns_; }

  /// Calls `piece(std::string_view)` for each piece in order. Throws Error if matching exceeds
  /// PCRE2's limits (a pattern that backtracks without end).
  template <class F>
  void split(std::string_view text, F&& piece) const {
    using Piece = std::remove_reference_t<F>;
    run(text, {[](void* f, std::string_view p) { (*static_cast<Piece*>(f))(p); },
               const_cast<void*>(static_cast<const void*>(&piece))});
  }

  struct Receiver {  // a function and what it is called with: one indirect call a piece
    void (*call)(void* self, std::string_view piece);
    void* self;
    void operator()(std::string_view piece) const { call(self, piece); }
  };

 private:
  class Regex;
  void run(std::string_view text, Receiver piece) const;

  std::vector<std::string> patterns_;
  std::vector<std::shared_ptr<const Regex>> stages_;
};

}  // namespace tally
