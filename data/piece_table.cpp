#include "data/piece_table.h"

#include <algorithm>

namespace tally {

PieceTable::PieceTable(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::erase_if(entries_, [](const Entry& e) { return e.text.empty(); });
  std::ranges::stable_sort(entries_, {}, &Entry::text);
  const auto same = [](const Entry& a, const Entry& b) { return a.text == b.text; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
  for (const Entry& e : entries_) ++first_[size_t{static_cast<uint8_t>(e.text[0])} + 1];
  for (size_t b = 1; b < first_.size(); ++b) first_[b] += first_[b - 1];
  std::vector<std::string> texts;
  for (const Entry& e : entries_) texts.push_back(e.text);
  index_ = TokenIndex(texts);
}

TokenId PieceTable::look_up(std::string_view text) const {
  const TokenId at = index_.find(text);
  return at == kNoToken ? kNoToken : entries_[at].id;
}

size_t PieceTable::longest_prefix(std::string_view text) const {
  size_t longest = 0;
  prefixes(text, [&](TokenId, size_t length) { longest = length; });
  return longest;
}

}  // namespace tally
