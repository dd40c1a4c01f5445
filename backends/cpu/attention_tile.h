#pragma once
// What attention's kernels are made of. Scores are kept transposed, a key a row and a query a lane:
// the softmax over the keys then runs down the rows, lane by lane, with no sums across lanes, and
// the rows are at once the packed panel that the next product reads.
#include "backends/cpu/attention_args.h"
#include "backends/cpu/gemm_pack.h"
#include "backends/cpu/gemm_tile.h"
#include "backends/cpu/philox.h"
#include "backends/cpu/simd_math.h"

namespace tally::cpu {
namespace {

/// Queries side by side in a panel of scores, and elements of a packed row of keys or values.
inline constexpr int64_t kPanel = kTileVectors * kLanes;
inline constexpr int64_t kStride = kPanelStride<float>;
/// Stands for -infinity as a maximum: what is subtracted from it stays a number, and the lowest score
/// that is one still counts (a bias of -FLT_MAX at every key: Hugging Face's masks have it).
inline constexpr float kNothing = -__FLT_MAX__;

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// Hands out parts of the scratch, each behind a cache line of slack.
struct Arena {
  float* next;
  float* take(int64_t n) {
    float* p = next;
    next += round_up(n, 16) + 16;
    return p;
  }
};

/// A transposed panel.
inline void transpose_panel(const float* from, int64_t ld, int64_t rows, int64_t columns, float* to,
                            int64_t width) {
  asm("" : "+r"(columns));  // where GCC 12 knows it, it warns of a loop that never runs
  pack_transposed(from, ld, rows, columns, to, width);
}

/// Rows of a head as columns of a panel: to[d * width + r] = row r, element d; rows past the last
/// repeat it.
inline void pack_columns(const HeadIn& h, int64_t first, int64_t rows, int64_t size, float* to,
                         int64_t width) {
  const float* from = h.data + first * h.row;
  if (h.column == 1) return transpose_panel(from, h.row, rows, size, to, width);
  for (int64_t d = 0; d < size; ++d)
    for (int64_t r = 0; r < width; ++r)
      to[d * width + r] = from[smaller(r, rows - 1) * h.row + d * h.column];
}
/// Rows of a head as rows of a panel: to[r * width + d] = row r, element d0 + d, then zeros.
inline void pack_rows(const HeadIn& h, int64_t first, int64_t rows, int64_t d0, int64_t count,
                      float* to, int64_t width) {
  const float* from = h.data + first * h.row + d0 * h.column;
  if (h.column == 1) return pack_straight(from, h.row, rows, count, to, width);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t d = 0; d < width; ++d)
      to[r * width + d] = d < count ? from[r * h.row + d * h.column] : 0;
}

/// c (rows, kPanel) = or += alpha a b.
inline void product(int64_t rows, int64_t depth, const float* a, const float* b, float alpha,
                    bool accumulate, float* c, int64_t ldc = kPanel) {
  const TileOut<float> out{c,
                           ldc,
                           kPanel,
                           alpha,
                           accumulate,
                           nullptr,
                           {reinterpret_cast<const char*>(a), reinterpret_cast<const char*>(b), 0}};
  tile_of<float, kTileVectors>(rows)(depth, a, b, out);
}

/// A head's elements in equal tiles of at most kTileRows: 64 are five tiles of 13.
struct Tiles {
  int64_t count, rows;
  explicit Tiles(int64_t size)
      : count((size + kTileRows - 1) / kTileRows), rows(count ? (size + count - 1) / count : 0) {}
};

/// How queries look at a block of keys: bit i of `seen` where one of them sees a key of tile i, of
/// `partial` where not every one sees all of it. Lane by lane for those: the keys next to a query,
/// [begin, end), as numbers of rows in the block, and the rest its position leaves in a strided
/// pattern.
struct Look {
  uint32_t seen, partial;
  I32 begin[kTileVectors], end[kTileVectors], residue[kTileVectors];
};
/// Rows [first, last) of a block: neighbouring tiles.
struct Rows {
  int64_t first, last;
};
/// Takes the first run of tiles out of `seen`; empty when there are no more.
inline Rows take_run(uint32_t& seen, int64_t count) {
  if (seen == 0) return {0, 0};
  const int first = __builtin_ctz(seen), tiles = __builtin_ctz(~(seen >> first));
  seen &= ~(((1u << tiles) - 1) << first);
  return {first * kTileRows, smaller((first + tiles) * kTileRows, count)};
}

/// The smallest and the largest document of some keys.
struct Documents {
  int64_t low, high;
};
inline Documents documents_of(const AttentionRule& r, int64_t key, int64_t count) {
  Documents d{r.document(key), r.document(key)};
  for (int64_t i = 1; i < count; ++i) {
    const int64_t one = r.document(key + i);
    d.low = one < d.low ? one : d.low;
    d.high = one > d.high ? one : d.high;
  }
  return d;
}

/// A tile that no query sees is not computed, one that all see is not masked.
inline Look look_at(const AttentionRule& r, int64_t t0, int64_t queries, int64_t key0,
                    int64_t count) {
  const ops::KeySet keys = r.visible.of(r.first + t0, queries);
  Documents own{};
  if (r.documents != nullptr) own = documents_of(r, r.position(t0), queries);
  Look look{};
  for (int64_t n = 0; n < count; n += kTileRows) {
    const int64_t from = key0 + n, to = key0 + smaller(n + kTileRows, count);
    if (!keys.meets(from, to)) continue;
    bool all = r.mask == nullptr && r.visible.all_see(r.first + t0, queries, from, to);
    if (r.documents != nullptr) {
      const Documents theirs = documents_of(r, from, to - from);
      if (theirs.low > own.high || theirs.high < own.low) continue;
      all = all && theirs.low == theirs.high && own.low == own.high;
    }
    const uint32_t bit = 1u << (n / kTileRows);
    look.seen |= bit;
    look.partial |= all ? 0 : bit;
  }
  return look;
}

/// f(key0, count) for each block of at most `size` keys that begins with one that some query sees.
template <class F>
[[gnu::always_inline]] inline void each_key_block(const AttentionRule& r, int64_t size,
                                                  const F& f) {
  const ops::KeySet keys = r.visible.of(r.first, r.queries);
  for (ops::KeyRange at = keys.next(0); at.begin < at.end;) {
    const int64_t key0 = at.begin, count = smaller(size, r.keys - key0);
    f(key0, count);
    at = keys.next(key0 + count);
  }
}

inline int32_t row_number(int64_t x) {
  return static_cast<int32_t>(x < -(1 << 30) ? -(1 << 30) : x > 1 << 30 ? 1 << 30 : x);
}
/// The look of one panel.
inline Look panel_look(const AttentionRule& r, int64_t panel, int64_t key0, int64_t count) {
  const int64_t t0 = panel * kPanel;
  Look look = look_at(r, t0, smaller(kPanel, r.queries - t0), key0, count);
  const bool strided = r.visible.pattern == ops::KeyPattern::strided;
  for (int64_t lane = 0; look.partial != 0 && lane < kPanel; ++lane) {
    const int64_t j = lane / kLanes, i = lane % kLanes, position = r.position(t0 + lane);
    look.begin[j][i] = row_number(r.visible.begin(position) - key0);
    look.end[j][i] = row_number(r.visible.end(position) - key0);
    if (strided) look.residue[j][i] = static_cast<int32_t>(position % r.visible.stride);
  }
  return look;
}

/// A panel's queries, t0 .. t0 + queries - 1, before the block of keys that begins with key0.
struct PanelView {
  const AttentionRule& rule;
  const Look& look;
  int64_t t0, queries, key0;
};
/// Which lanes of a panel see a key.
using SeenLanes = I32[kTileVectors];
inline void see_by_place(const ops::VisibleKeys::Beyond& beyond, const Look& look, int64_t n,
                         SeenLanes& lanes) {
  if (beyond.all) return;
  const I32 at = broadcast(static_cast<int32_t>(n));
  for (int j = 0; j < kTileVectors; ++j) {
    I32 seen = at >= look.begin[j];
    if (beyond.after) seen = broadcast(int32_t{-1});
    if (beyond.residue >= 0) seen |= look.residue[j] == static_cast<int32_t>(beyond.residue);
    seen &= at < look.end[j];
    lanes[j] &= seen;
  }
}
/// Those that see row n of the block: none behind the last query does.
inline void see_row(const PanelView& at, int64_t n, SeenLanes& lanes) {
  const AttentionRule& r = at.rule;
  const int64_t key = at.key0 + n, queries = at.queries;
  for (int j = 0; j < kTileVectors; ++j)
    lanes[j] = iota() + j * kLanes < static_cast<int32_t>(queries);
  if ((at.look.partial >> (n / kTileRows) & 1) == 0) return;
  see_by_place(r.visible.beyond(key), at.look, n, lanes);
  if (r.mask == nullptr && r.documents == nullptr) return;
  int32_t shown[kPanel];
  for (int j = 0; j < kTileVectors; ++j) store(shown + j * kLanes, lanes[j]);
  if (r.mask != nullptr) {
    const uint8_t* mask = r.mask + at.t0 * r.mask_row + key * r.mask_column;
    for (int64_t t = 0; t < queries; ++t)
      if (mask[t * r.mask_row] == 0) shown[t] = 0;
  }
  if (r.documents != nullptr) {
    const int64_t document = r.document(key);
    for (int64_t t = 0; t < queries; ++t)
      if (r.document(r.position(at.t0 + t)) != document) shown[t] = 0;
  }
  for (int j = 0; j < kTileVectors; ++j) lanes[j] = load(shown + j * kLanes);
}
/// Scores in partial tiles become -infinity where a query does not see the key.
inline void hide(const PanelView& at, const Rows& rows, float* scores) {
  const F32 hidden = broadcast(-__builtin_inff());
  for (int64_t n = rows.first; n < rows.last; ++n) {
    if ((at.look.partial >> (n / kTileRows) & 1) == 0) continue;
    SeenLanes seen;
    see_row(at, n, seen);
    float* row = scores + n * kPanel;
    for (int j = 0; j < kTileVectors; ++j)
      store(row + j * kLanes, select(seen[j], load(row + j * kLanes), hidden));
  }
}

/// cap tanh(score / cap) in place.
inline void cap_scores(float cap, int64_t first, int64_t last, float* scores) {
  const float inverse = 1 / cap;
  for (float* p = scores + first * kPanel; p < scores + last * kPanel; p += kLanes)
    store(p, cap * tanh(load(p) * inverse));
}

/// Adds ALiBi's share and the bias to the scores of rows first .. last. `turned` holds a block.
inline void add_bias(const AttentionRule& r, int64_t t0, int64_t queries, int64_t key0,
                     int64_t first, int64_t last, float* scores, float* turned) {
  const F32 lanes = __builtin_convertvector(iota(), F32);
  for (int64_t n = first; r.slope != 0 && n < last; ++n) {
    for (int j = 0; j < kTileVectors; ++j) {
      float* row = scores + n * kPanel + j * kLanes;
      const int64_t ahead = key0 + n - r.position(t0 + j * kLanes);
      const F32 distance = abs(static_cast<float>(ahead) - lanes);
      store(row, fma(broadcast(r.slope), distance, load(row)));
    }
  }
  if (r.bias == nullptr) return;
  const HeadIn bias{r.bias + (key0 + first) * r.bias_column, r.bias_row, r.bias_column};
  pack_columns(bias, t0, queries, last - first, turned, kPanel);
  float* row = scores + first * kPanel;
  for (int64_t i = 0; i < (last - first) * kPanel; i += kLanes)
    store(row + i, load(row + i) + load(turned + i));
}
inline bool has_bias(const AttentionRule& r) { return r.bias != nullptr || r.slope != 0; }

/// What dropout multiplies the probabilities of rows first .. last by: 0 or 1 / (1 - p). The draws of
/// a query lie one after the other.
inline void dropout_factors(const AttentionRule& r, int64_t t0, int64_t queries, int64_t key0,
                            int64_t first, int64_t last, float* factors) {
  const float kept = r.dropout < 1 ? 1 / (1 - r.dropout) : 0;
  uint32_t drawn[112 + 2 * kPhiloxWords];  // a block of keys is no longer
  for (int64_t t = 0; t < kPanel; ++t) {
    const int64_t place = (t0 + smaller(t, queries - 1)) * r.place_row + key0 + first;
    const uint32_t* word = philox_stretch(r.seed, r.stream, r.place + static_cast<uint64_t>(place),
                                          last - first, drawn);
    for (int64_t n = first; n < last; ++n, ++word)
      factors[n * kPanel + t] = static_cast<float>(*word >> 8) * 0x1p-24f >= r.dropout ? kept : 0;
  }
}

/// Transposed rows x (size, kPanel) of `queries` lanes go to their places in a head.
inline void put_panel(const float* x, int64_t size, int64_t queries, const HeadOut& to, int64_t t0,
                      float* buffer) {
  const int64_t width = round_up(size, kLanes);
  transpose_panel(x, kPanel, size, kPanel, buffer, width);
  for (int64_t t = 0; t < queries; ++t) {
    float* row = to.data + (t0 + t) * to.row;
    const float* from = buffer + t * width;
    if (to.column == 1) {
      for (int64_t d = 0; d < size; d += kLanes) {
        const F32 v = load(from + d);
        store_first(row + d, to.add ? load_first(row + d, size - d) + v : v, size - d);
      }
    } else {
      for (int64_t d = 0; d < size; ++d)
        row[d * to.column] = to.add ? row[d * to.column] + from[d] : from[d];
    }
  }
}

}  // namespace
}  // namespace tally::cpu
