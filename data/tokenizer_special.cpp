#include "data/tokenizer_special.h"

#include "core/error.h"

namespace tally {

SpecialMatcher::SpecialMatcher(const std::vector<AddedToken>& tokens)
    : tokens_(tokens), token_at_{-1} {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& text = tokens_[i].text;
    check(!text.empty(), "tokenizer: an added token must have a text; id ", tokens_[i].id,
          " is empty; remove it");
    starts_[static_cast<uint8_t>(text[0])] = true;
    ordinary_ |= !tokens_[i].special;
    uint32_t node = 0;
    for (const char c : text) {
      const auto [at, is_new] =
          next_.try_emplace({node, c}, static_cast<uint32_t>(token_at_.size()));
      if (is_new) token_at_.push_back(-1);
      node = at->second;
    }
    check(token_at_[node] < 0, "tokenizer: an added token must be listed once; \"", text,
          "\" is there twice; remove one");
    token_at_[node] = static_cast<int32_t>(i);
  }
}

SpecialMatcher::Match SpecialMatcher::find(std::string_view text, size_t from,
                                           bool also_special) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<uint8_t>(text[begin])]) continue;
    Match best{begin, begin, nullptr};
    uint32_t node = 0;
    for (size_t end = begin; end < text.size();) {
      const auto at = next_.find({node, text[end]});
      if (at == next_.end()) break;
      node = at->second;
      ++end;
      if (token_at_[node] < 0) continue;
      const AddedToken& token = tokens_[static_cast<size_t>(token_at_[node])];
      if (also_special || !token.special) best = {begin, end, &token};
    }
    if (best.token != nullptr) return best;
  }
  return {text.size(), text.size(), nullptr};
}

}  // namespace tally
