#pragma once
#include <cstdint>

#include "core/ops/attention/visible.h"

namespace tally::cpu {

/// Rows of one head: element (t, d) is data[t * row + d * column]. T is float, or uint16_t for bf16.
template <class T>
struct HeadInOf {
  const T* data;
  int64_t row, column;
};
template <class T>
struct HeadOutOf {
  T* data;
  int64_t row, column;
  bool add;  // to what is there
};
using HeadIn = HeadInOf<float>;
using HeadOut = HeadOutOf<float>;

/// How some queries of one head look at its keys: queries first .. first + queries - 1 of `visible`;
/// a mask and documents take away more.
struct AttentionRule {
  ops::VisibleKeys visible;
  int64_t first;
  int64_t queries, keys, head_size, value_size;
  const uint8_t* mask;  // null: none
  int64_t mask_row, mask_column;
  const int64_t* documents;  // of the keys; null: none
  int64_t document_step;
  const float* bias;  // null: none
  int64_t bias_row, bias_column;
  float slope;                   // added for each token of distance; 0: none
  float sink;                    // one more score, without a value; -infinity: none
  float scale, cap;              // cap 0: none
  float dropout;                 // 0: none
  uint64_t seed, stream, place;  // place: number of the draw for (query 0, key 0)
  int64_t place_row;             // draws from one query to the next

  int64_t position(int64_t t) const { return visible.position(first + t); }
  int64_t document(int64_t key) const { return documents[key * document_step]; }
};

/// The queries that one call of a kernel takes: what they need fits its scratch for head sizes up
/// to kMaxHeadSize.
inline constexpr int64_t kAttentionQueries = 256;
inline constexpr int64_t kMaxHeadSize = 512;
/// The keys of one query whose scores fit the scratch.
inline constexpr int64_t kMostKeys = (int64_t{1} << 19) - 64;

/// Some queries of one head, at most kAttentionQueries, against its keys. `resume`: y and l hold what
/// other keys gave, and these are added to them.
template <class T>
struct AttentionForwardArgsOf {
  AttentionRule rule;
  HeadInOf<T> q, k, v;
  HeadOutOf<T> y;
  float* l;
  float* scratch;
  int64_t l_step = 1;
  bool resume = false;
};
using AttentionForwardArgs = AttentionForwardArgsOf<float>;
/// The same backwards. dk and dv are added to; data is null where a gradient is not wanted.
struct AttentionBackwardArgs {
  AttentionRule rule;
  HeadIn q, k, v, y, dy;
  const float* l;
  HeadOut dq, dk, dv, dbias;  // dbias: element (query, key); always added to
  float* scratch;
  int64_t l_step = 1;
};

}  // namespace tally::cpu
