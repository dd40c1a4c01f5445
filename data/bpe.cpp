#include "data/bpe.h"

#include <algorithm>
#include <queue>

#include "core/error.h"

namespace tally {
namespace {

constexpr size_t kShort = 48;  // above this a heap beats scanning for the minimum
using Rule = PairRules::Rule;

}  // namespace

BpeModel::BpeModel(const std::vector<std::string>& tokens, const std::vector<Merge>& merges,
                   bool whole_pieces_first) {
  byte_ids_.fill(kNoToken);
  for (size_t id = tokens.size(); id-- > 0;) {
    if (tokens[id].size() == 1) {
      byte_ids_[static_cast<uint8_t>(tokens[id][0])] = static_cast<TokenId>(id);
    }
  }
  for (uint32_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& m = merges[rank];
    check(rules_.add(m.left, m.right, {rank, m.result}), "bpe: a pair must have one merge; merge ",
          rank + 1, " is there a second time; remove it");
  }
  if (whole_pieces_first) whole_ = TokenIndex(tokens);
}

TokenId BpeModel::id_of(char byte) const {
  const TokenId id = byte_ids_[static_cast<uint8_t>(byte)];
  check(id != kNoToken, "tokenizer: every byte of the text needs a token; byte ",
        int{static_cast<uint8_t>(byte)},
        " has none in this vocabulary; use a tokenizer with all 256 bytes");
  return id;
}

void BpeModel::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (!whole_.empty()) {
    const TokenId id = whole_.find(piece);
    if (id != kNoToken) return ids.push_back(id);
  }
  if (rules_.empty()) {
    for (const char c : piece) ids.push_back(id_of(c));
  } else if (piece.size() <= kShort) {
    merge_short(piece, ids);
  } else {
    merge_long(piece, ids);
  }
}

void BpeModel::merge_short(std::string_view piece, std::vector<TokenId>& ids) const {
  TokenId part[kShort];
  Rule rule[kShort];  // rule[i]: what parts i and i + 1 become
  size_t n = piece.size();
  for (size_t i = 0; i < n; ++i) part[i] = id_of(piece[i]);
  for (size_t i = 0; i + 1 < n; ++i) rule[i] = rules_.find(part[i], part[i + 1]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (rule[i].rank < rule[best].rank) best = i;
    }
    if (rule[best].rank == UINT32_MAX) break;
    part[best] = rule[best].result;
    --n;
    std::copy(part + best + 2, part + n + 1, part + best + 1);
    if (best + 1 < n) std::copy(rule + best + 2, rule + n, rule + best + 1);
    if (best > 0) rule[best - 1] = rules_.find(part[best - 1], part[best]);
    if (best + 1 < n) rule[best] = rules_.find(part[best], part[best + 1]);
  }
  ids.insert(ids.end(), part, part + n);
}

void BpeModel::merge_long(std::string_view piece, std::vector<TokenId>& ids) const {
  constexpr uint32_t kEnd = UINT32_MAX;
  check(piece.size() < kEnd, "tokenizer: a piece must be shorter than 4 GiB; given ", piece.size(),
        " bytes; use a pattern that cuts the text");
  const auto n = static_cast<uint32_t>(piece.size());
  struct Part {
    TokenId id;
    uint32_t previous, next;
    Rule rule;
  };
  std::vector<Part> parts(n);
  for (uint32_t i = 0; i < n; ++i) {
    parts[i] = {id_of(piece[i]), i == 0 ? kEnd : i - 1, i + 1 == n ? kEnd : i + 1, {}};
  }
  // Rank above place: the heap's top is the leftmost pair of lowest rank. Entries whose pair has
  // changed since are skipped when they come up.
  std::vector<uint64_t> waiting;
  const auto pair_up = [&](uint32_t at) {
    Part& p = parts[at];
    p.rule = p.next == kEnd ? Rule{} : rules_.find(p.id, parts[p.next].id);
    return p.rule.rank != UINT32_MAX;
  };
  for (uint32_t i = 0; i < n; ++i) {
    if (pair_up(i)) waiting.push_back(uint64_t{parts[i].rule.rank} << 32 | i);
  }
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> heap({}, std::move(waiting));
  while (!heap.empty()) {
    const auto at = static_cast<uint32_t>(heap.top());
    const auto rank = static_cast<uint32_t>(heap.top() >> 32);
    heap.pop();
    Part& p = parts[at];
    if (p.rule.rank != rank) continue;
    Part& gone = parts[p.next];
    p.id = p.rule.result;
    p.next = gone.next;
    gone.rule = {};
    if (p.next != kEnd) parts[p.next].previous = at;
    if (pair_up(at)) heap.push(uint64_t{p.rule.rank} << 32 | at);
    const uint32_t before = p.previous;
    if (before != kEnd && pair_up(before)) {
      heap.push(uint64_t{parts[before].rule.rank} << 32 | before);
    }
  }
  for (uint32_t i = 0; i != kEnd; i = parts[i].next) ids.push_back(parts[i].id);
}

}  // namespace tally
