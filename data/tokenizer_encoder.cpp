#include <cstring>

#include "core/error.h"
#include "data/sentence_piece.h"
#include "data/tokenizer.h"

namespace tally {
namespace {

constexpr size_t kLongestKey = 15;     // most pieces of Western text are shorter
constexpr size_t kWorthACache = 4096;  // bytes of text that repay clearing the table

uint64_t load(const char* p, size_t bytes) {
  uint64_t word = 0;
  std::memcpy(&word, p, bytes);
  return word;
}

}  // namespace

/// Pieces met before and their ids: a table of one cache line an entry, where a newcomer takes the
/// place of whatever was there.
class Encoder::Cache {
 public:
  struct Entry {
    uint64_t low = 0, high = 0;  // the bytes of the piece; loads may overlap, the size tells
    uint8_t size = 0, count = 0;
    TokenId ids[11];
  };
  static_assert(sizeof(Entry) == 64);

  /// The entry where `piece` (1 to 15 bytes) belongs; it is there already if `*hit`.
  Entry& find(std::string_view piece, bool* hit) {
    const char* p = piece.data();
    const size_t n = piece.size();
    uint64_t low, high = 0;
    if (n >= 8) {
      low = load(p, 8);
      high = load(p + n - 8, 8);
    } else if (n >= 4) {
      low = load(p, 4);
      high = load(p + n - 4, 4);
    } else {
      low = static_cast<uint8_t>(p[0]) | uint64_t{static_cast<uint8_t>(p[n / 2])} << 8 |
            uint64_t{static_cast<uint8_t>(p[n - 1])} << 16;
    }
    uint64_t h = (low ^ n) * 0x9E3779B97F4A7C15u + high;
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93u;
    Entry& e = entries_[h >> (64 - kBits)];
    *hit = e.low == low && e.high == high && e.size == n;
    e.low = low;
    e.high = high;
    e.size = static_cast<uint8_t>(n);
    return e;
  }

 private:
  static constexpr int kBits = 15;
  std::vector<Entry> entries_ = std::vector<Entry>(size_t{1} << kBits);
};

Encoder::Encoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
Encoder::~Encoder() = default;

void Encoder::append(std::string_view text, SpecialTokens special, std::vector<TokenId>& ids) {
  const SpecialMatcher& matcher = tokenizer_.matcher_;
  const bool also_special = special != SpecialTokens::plain;
  if (matcher.empty(also_special)) return append_plain(text, ids);
  for (size_t at = 0; at < text.size();) {
    const SpecialMatcher::Match m = matcher.find(text, at, also_special);
    append_plain(text.substr(at, m.begin - at), ids);
    if (m.token != nullptr) {
      check(special == SpecialTokens::allowed || !m.token->special,
            "tokenizer: the text must hold no special token; \"", m.token->text, "\" is at byte ",
            m.begin, "; allow special tokens or encode the text as plain");
      ids.push_back(m.token->id);
    }
    at = m.end;
  }
}

void Encoder::append_plain(std::string_view text, std::vector<TokenId>& ids) {
  if (tokenizer_.spec_.pieces) return tokenizer_.spec_.pieces->encode(text, ids);
  const BpeModel& bpe = tokenizer_.bpe_;
  if (bpe.merges_nothing()) return bpe.encode(text, ids);
  seen_ += text.size();
  if (cache_ == nullptr && seen_ >= kWorthACache) cache_ = std::make_unique<Cache>();
  Cache* cache = cache_.get();
  tokenizer_.pretokenizer_.split(text, [&](std::string_view piece) {
    if (cache == nullptr || piece.size() > kLongestKey) return bpe.encode(piece, ids);
    bool hit = false;
    Cache::Entry& e = cache->find(piece, &hit);
    if (hit) {
      ids.insert(ids.end(), e.ids, e.ids + e.count);
      return;
    }
    const size_t before = ids.size();
    e.size = 0;  // if encoding throws, the entry must not look filled
    bpe.encode(piece, ids);
    const size_t count = ids.size() - before;
    if (count > std::size(e.ids)) return;
    e.size = static_cast<uint8_t>(piece.size());
    e.count = static_cast<uint8_t>(count);
    std::memcpy(e.ids, ids.data() + before, count * sizeof(TokenId));
  });
}

}  // namespace tally
