// The two ways from a normalised text to pieces.
#include <map>
#include <queue>

#include "data/sentence_piece.h"

namespace tally {
namespace {

constexpr float kUnknownPenalty = 10;

/// The best way to a place in the text.
struct Way {
  TokenId id = kNoToken;  // of its last piece
  float score = 0;
  uint32_t from = UINT32_MAX;  // where that begins; UINT32_MAX: there is no way yet
};

struct Symbol {
  uint32_t begin, size;  // size 0: joined to the one before it
  uint32_t previous, next;
  bool frozen = false;  // a user-defined piece
};
constexpr uint32_t kNoSymbol = UINT32_MAX;

struct Neighbours {
  float score;
  uint32_t left, right, size;
  /// The top of the heap is the pair of greatest score, the leftmost of equals.
  bool operator<(const Neighbours& other) const {
    return score < other.score || (score == other.score && left > other.left);
  }
};

}  // namespace

void SentencePieces::encode_unigram(std::string_view text, std::vector<TokenId>& ids) const {
  const float unknown_score = least_score_ - kUnknownPenalty;
  std::vector<Way> ways(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    const float so_far = ways[at].score;
    const size_t one = character_length(text.substr(at));
    bool has_one = false;
    const auto try_way = [&](size_t end, TokenId id, float score) {
      Way& way = ways[end];
      if (way.from == UINT32_MAX || score > way.score) way = {id, score, uint32_t(at)};
    };
    pieces_.prefixes(text.substr(at), [&](TokenId id, size_t length) {
      const SentencePiece& piece = piece_at(id);
      if (piece.kind == PieceKind::unused) return;
      // A user-defined piece always wins.
      const float score = piece.kind == PieceKind::user_defined
                              ? static_cast<float>(length * double{greatest_score_} - 0.1)
                              : piece.score;
      try_way(at + length, id, score + so_far);
      has_one = has_one || length == one;
    });
    if (!has_one) try_way(at + one, unknown_, unknown_score + so_far);
    at += one;
  }
  std::vector<uint32_t> ends;
  for (size_t end = text.size(); end > 0; end = ways[end].from) ends.push_back(uint32_t(end));
  const size_t begin = ids.size();
  for (size_t i = ends.size(); i-- > 0;) {
    const Way& way = ways[ends[i]];
    size_t end = ends[i];
    if (spec_.unknown_by_text && way.id == unknown_) {
      while (i > 0 && ways[ends[i - 1]].id == unknown_) end = ends[--i];
      const TokenId id = pieces_.find(text.substr(way.from, end - way.from));
      ids.push_back(id == kNoToken ? unknown_ : id);
    } else {
      append(text.substr(way.from, end - way.from), way.id, begin, ids);
    }
  }
  for (size_t i = begin; i < ids.size(); ++i) {
    if (ids[i] >= spec_.pieces.size()) ids[i] = unknown_;  // a piece without an id
  }
}

void SentencePieces::encode_bpe(std::string_view text, std::vector<TokenId>& ids) const {
  std::vector<Symbol> symbols;
  for (size_t at = 0; at < text.size(); at += symbols.back().size) {
    const size_t own = user_defined_.longest_prefix(text.substr(at));
    const size_t size = own > 0 ? own : character_length(text.substr(at));
    const auto i = uint32_t(symbols.size());
    symbols.push_back({uint32_t(at), uint32_t(size), i - 1, i + 1, own > 0});
  }
  if (symbols.empty()) return;
  symbols.back().next = kNoSymbol;

  std::priority_queue<Neighbours> heap;
  // How an unused piece was made, to take it apart again.
  std::map<std::string_view, size_t> made;
  const auto pair_up = [&](uint32_t left, uint32_t right) {
    if (left == kNoSymbol || right == kNoSymbol) return;
    const Symbol &l = symbols[left], &r = symbols[right];
    if (l.frozen || r.frozen) return;
    const std::string_view piece = text.substr(l.begin, l.size + r.size);
    const TokenId id = pieces_.find(piece);
    if (id == kNoToken) return;
    heap.push({spec_.pieces[id].score, left, right, l.size + r.size});
    if (spec_.pieces[id].kind == PieceKind::unused) made[piece] = l.size;
  };
  for (uint32_t i = 0; i + 1 < symbols.size(); ++i) pair_up(i, i + 1);
  while (!heap.empty()) {
    const Neighbours top = heap.top();
    heap.pop();
    Symbol &l = symbols[top.left], &r = symbols[top.right];
    if (l.size == 0 || r.size == 0 || l.size + r.size != top.size) continue;
    l.size += r.size;
    r.size = 0;
    l.next = r.next;
    if (l.next != kNoSymbol) symbols[l.next].previous = top.left;
    pair_up(l.previous, top.left);
    pair_up(top.left, l.next);
  }

  const size_t begin = ids.size();
  std::vector<std::string_view> waiting;
  for (uint32_t i = 0; i != kNoSymbol; i = symbols[i].next) {
    waiting.push_back(text.substr(symbols[i].begin, symbols[i].size));
    while (!waiting.empty()) {
      const std::string_view piece = waiting.back();
      waiting.pop_back();
      const TokenId id = pieces_.find(piece);
      const auto parts = made.find(piece);
      const bool unused = id != kNoToken && spec_.pieces[id].kind == PieceKind::unused;
      if (unused && parts != made.end()) {
        waiting.push_back(piece.substr(parts->second));
        waiting.push_back(piece.substr(0, parts->second));
      } else {
        append(piece, id == kNoToken ? unknown_ : id, begin, ids);
      }
    }
  }
}

}  // namespace tally
