#include "data/bpe_train.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "data/bpe_alphabet.h"
#include "data/bpe_pairs.h"

namespace tally {
namespace {

constexpr TokenId kBorder = kNoToken;    // stands before and behind every piece
constexpr TokenId kDead = kNoToken - 1;  // the place of a part that went into another

/// All distinct pieces side by side, one cell a byte, and the pairs of parts in them.
///
/// A part begins at a cell that holds its id; its length stands in its first and last cell, so both
/// neighbours are found at once.
class Learner {
 public:
  Learner(const PieceCounts& pieces, TieRule rule);
  bool merge_best();
  LearntBpe take() { return {std::move(tokens_), std::move(merges_)}; }

 private:
  struct Cell {
    TokenId id;
    uint32_t length;
    uint32_t piece;
  };
  struct Waiting {
    int64_t count;
    uint32_t pair;
  };

  bool comes_later(const Waiting& a, const Waiting& b) const;
  void push(uint32_t pair);
  uint32_t pop();
  uint32_t rank_of(TokenId id) const { return id < 256 ? byte_rank_[id] : id; }
  void merge_at(uint32_t place, const PairTable::Pair& pair, TokenId result);
  void count_up(TokenId left, TokenId right, uint32_t place, int64_t times);

  TieRule rule_;
  std::array<uint16_t, 256> byte_rank_;
  std::vector<std::string> tokens_;
  std::vector<Merge> merges_;
  std::vector<Cell> cells_;
  std::vector<int64_t> weight_;  // how often each piece occurs
  PairTable pairs_;
  std::vector<uint32_t> fresh_;   // pairs first met during the present merge
  std::vector<Waiting> waiting_;  // a heap; counts may be out of date, but only too high
};

std::array<uint16_t, 256> byte_ranks(TieRule rule) {
  std::array<uint16_t, 256> rank{};
  for (int b = 0; b < 256; ++b) {
    const auto& code = byte_alphabet();
    rank[b] = rule != TieRule::hf
                  ? static_cast<uint16_t>(b)
                  : static_cast<uint16_t>(std::count_if(
                        code.begin(), code.end(), [&](uint16_t other) { return other < code[b]; }));
  }
  return rank;
}

Learner::Learner(const PieceCounts& pieces, TieRule rule)
    : rule_(rule), byte_rank_(byte_ranks(rule)) {
  for (int b = 0; b < 256; ++b) tokens_.emplace_back(1, static_cast<char>(b));
  size_t cells = 1;
  for (const auto& e : pieces.entries()) cells += e.size > 1 ? e.size + 1 : 0;
  check(cells < UINT32_MAX, "bpe: the distinct pieces must be under 4 GiB together; given ", cells,
        " bytes; train on less text or with a pattern that cuts it finer");
  cells_.reserve(cells);
  cells_.push_back({kBorder, 1, 0});
  for (const auto& e : pieces.entries()) {
    if (e.size < 2) continue;
    const auto piece = static_cast<uint32_t>(weight_.size());
    weight_.push_back(static_cast<int64_t>(e.count));
    for (const char c : pieces.piece(e)) cells_.push_back({static_cast<uint8_t>(c), 1, piece});
    cells_.push_back({kBorder, 1, piece});
  }
  for (uint32_t i = 0; i + 1 < cells_.size(); ++i) {
    if (cells_[i].id == kBorder || cells_[i + 1].id == kBorder) continue;
    count_up(cells_[i].id, cells_[i + 1].id, i, weight_[cells_[i].piece]);
  }
  for (const uint32_t p : fresh_) push(p);
}

bool Learner::comes_later(const Waiting& a, const Waiting& b) const {
  if (a.count != b.count) return a.count < b.count;
  const PairTable::Pair &p = pairs_[a.pair], &q = pairs_[b.pair];
  if (rule_ == TieRule::bytes_greater) {
    const int left = tokens_[p.left].compare(tokens_[q.left]);
    return left != 0 ? left < 0 : tokens_[p.right] < tokens_[q.right];
  }
  if (p.left != q.left) return rank_of(p.left) > rank_of(q.left);
  return rank_of(p.right) > rank_of(q.right);
}

void Learner::push(uint32_t pair) {
  if (pairs_[pair].count <= 0) return;
  waiting_.push_back({pairs_[pair].count, pair});
  std::push_heap(waiting_.begin(), waiting_.end(),
                 [this](const auto& a, const auto& b) { return comes_later(a, b); });
}

uint32_t Learner::pop() {
  std::pop_heap(waiting_.begin(), waiting_.end(),
                [this](const auto& a, const auto& b) { return comes_later(a, b); });
  const Waiting top = waiting_.back();
  waiting_.pop_back();
  if (pairs_[top.pair].count == top.count) return top.pair;
  push(top.pair);  // its count has fallen since it was pushed
  return UINT32_MAX;
}

bool Learner::merge_best() {
  uint32_t best = UINT32_MAX;
  while (best == UINT32_MAX) {
    if (waiting_.empty()) return false;
    best = pop();
  }
  const PairTable::Pair pair = pairs_.take(best);
  const auto result = static_cast<TokenId>(tokens_.size());
  tokens_.push_back(tokens_[pair.left] + tokens_[pair.right]);
  merges_.push_back({pair.left, pair.right, result});
  fresh_.clear();
  for (const uint32_t place : pair.places) merge_at(place, pair, result);
  for (const uint32_t p : fresh_) push(p);
  return true;
}

void Learner::merge_at(uint32_t place, const PairTable::Pair& pair, TokenId result) {
  Cell& first = cells_[place];
  if (first.id != pair.left) return;
  Cell& second = cells_[place + first.length];
  if (second.id != pair.right) return;
  const int64_t times = weight_[first.piece];
  const uint32_t before = place - cells_[place - 1].length;
  const uint32_t after = place + first.length + second.length;
  if (cells_[before].id != kBorder) {
    pairs_.count_down(cells_[before].id, pair.left, times);
    count_up(cells_[before].id, result, before, times);
  }
  if (cells_[after].id != kBorder) {
    pairs_.count_down(pair.right, cells_[after].id, times);
    count_up(result, cells_[after].id, place, times);
  }
  second.id = kDead;
  first.id = result;
  first.length = after - place;
  cells_[after - 1].length = after - place;
}

void Learner::count_up(TokenId left, TokenId right, uint32_t place, int64_t times) {
  bool is_new = false;
  const uint32_t index = pairs_.find_or_add(left, right, &is_new);
  if (is_new) fresh_.push_back(index);
  pairs_[index].count += times;
  pairs_[index].places.push_back(place);
}

}  // namespace

TieRule tie_rule_by_name(const std::string& name) {
  if (name == "bytes-greater") return TieRule::bytes_greater;
  if (name == "id-smaller") return TieRule::id_smaller;
  if (name == "hf") return TieRule::hf;
  fail("bpe: the tie rule must be bytes-greater, id-smaller or hf; given \"", name,
       "\"; choose one of these");
}

LearntBpe learn_bpe(const PieceCounts& pieces, int64_t merges, TieRule rule) {
  Learner learner(pieces, rule);
  for (int64_t i = 0; i < merges && learner.merge_best(); ++i) {
  }
  return learner.take();
}

}  // namespace tally
