#include "data/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/error.h"
#include "data/pretokenizer_patterns.h"
#include "data/utf8.h"

namespace tally {
namespace {

std::string pcre2_message(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

class Pretokenizer::Regex {
 public:
  struct Free {
    void operator()(pcre2_code* p) const { pcre2_code_free(p); }
    void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  };
  template <class T>
  using Owned = std::unique_ptr<T, Free>;

  explicit Regex(const std::string& pattern) : pattern_(pattern) {
    const std::string exact = rewrite_white_space(pattern);
    int error = 0;
    size_t at = 0;
    code_.reset(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(exact.data()), exact.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C,
                      &error, &at, nullptr));
    check(code_ != nullptr, "pretokenizer: the pattern must be a regular expression that PCRE2 ",
          "takes; ", pattern, " gives \"", pcre2_message(error), "\" near character ", at);
    // Where PCRE2 was built without JIT the interpreter finds the same matches, only slower.
    jit_ = pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) == 0;
  }

  Owned<pcre2_match_data> scratch() const {
    return Owned<pcre2_match_data>(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  }

  struct Match {
    size_t begin, end;
  };
  /// The first match in `text` (well-formed UTF-8) at or after `start`; {size, size} if none.
  Match find(std::string_view text, size_t start, pcre2_match_data* scratch) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const uint32_t options = PCRE2_NOTEMPTY | PCRE2_NO_UTF_CHECK;
    int found = PCRE2_ERROR_JIT_STACKLIMIT;
    if (jit_) {
      found = pcre2_jit_match(code_.get(), subject, text.size(), start, PCRE2_NOTEMPTY, scratch,
                              nullptr);
    }
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter keeps its stack on the heap
      found = pcre2_match(code_.get(), subject, text.size(), start, options | PCRE2_NO_JIT, scratch,
                          nullptr);
    }
    if (found == PCRE2_ERROR_NOMATCH) return {text.size(), text.size()};
    check(found >= 0, "pretokenizer: a match must stay within PCRE2's limits; ", pattern_,
          " gives \"", pcre2_message(found), "\" at byte ", start, " of ", text.size(),
          "; use a pattern that backtracks less");
    const size_t* ends = pcre2_get_ovector_pointer(scratch);
    check(ends[0] >= start && ends[1] > ends[0], "pretokenizer: a match must move forward; ",
          pattern_, " moves its own start; leave out \\K");
    return {ends[0], ends[1]};
  }

 private:
  std::string pattern_;
  Owned<pcre2_code> code_;
  bool jit_ = false;
};

Pretokenizer::Pretokenizer(std::vector<std::string> patterns) : patterns_(std::move(patterns)) {
  for (const std::string& p : patterns_) stages_.push_back(std::make_shared<const Regex>(p));
}

void Pretokenizer::run(std::string_view text, Receiver piece) const {
  std::vector<Regex::Owned<pcre2_match_data>> scratch;
  for (const auto& stage : stages_) scratch.push_back(stage->scratch());

  const auto cut = [&](const auto& self, size_t stage, std::string_view part) -> void {
    if (stage == stages_.size()) return piece(part);
    size_t at = 0;
    while (at < part.size()) {
      const Regex::Match m = stages_[stage]->find(part, at, scratch[stage].get());
      if (m.begin > at) self(self, stage + 1, part.substr(at, m.begin - at));
      if (m.end > m.begin) self(self, stage + 1, part.substr(m.begin, m.end - m.begin));
      at = m.end;
    }
  };

  while (!text.empty()) {
    const size_t good = well_formed_prefix(text);
    if (good > 0) cut(cut, 0, text.substr(0, good));
    size_t bad = good;
    while (bad < text.size() && well_formed_prefix(text.substr(bad, 4)) == 0) {
      bad += ill_formed_part(text.substr(bad));
    }
    if (bad > good) piece(text.substr(good, bad - good));
    text.remove_prefix(bad);
  }
}

}  // namespace tally
