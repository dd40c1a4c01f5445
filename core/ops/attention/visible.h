#pragma once
#include <cstdint>

namespace tally::ops {

/// Which of the keys before it a query sees.
enum class KeyPattern : uint8_t {
  all,      ///< every one, or the last `window`
  strided,  ///< the last `stride`, and of those before them every stride-th, counted from the query
  fixed,    ///< those of its own block of `stride`, and the last `summary` of each block before
};

struct KeyRange {
  int64_t begin, end;
};

/// The keys that one query sees, or that any of some neighbouring queries sees: three parts, in
/// order and apart. Of the far part only `run` keys in each `stride`, beginning at `phase`.
struct KeySet {
  KeyRange head, far, near;
  int64_t stride, phase, run;

  /// The first stretch of these keys at or behind `from`; empty where there are no more.
  [[gnu::always_inline]] KeyRange next(int64_t from) const {
    if (from < head.end) return {from, head.end};
    int64_t at = from > far.begin ? from : far.begin;
    if (at < far.end) {
      int64_t past = (at + stride - phase) % stride;
      if (past >= run) at += stride - past, past = 0;
      const int64_t end = at + run - past;
      if (at < far.end) return {at, end < far.end ? end : far.end};
    }
    at = from > near.begin ? from : near.begin;
    return {at, at < near.end ? near.end : at};
  }
  /// Whether any lies in [begin, end).
  [[gnu::always_inline]] bool meets(int64_t begin, int64_t end) const {
    const KeyRange found = next(begin);
    return found.begin < found.end && found.begin < end;
  }
  int64_t count() const {
    const int64_t far_keys = far.end > far.begin ? far_before(far.end) - far_before(far.begin) : 0;
    return head.end - head.begin + far_keys + near.end - near.begin;
  }
  /// f(j) for each, in order.
  template <class F>
  void each(const F& f) const {
    for (KeyRange r = next(0); r.begin < r.end; r = next(r.end))
      for (int64_t j = r.begin; j < r.end; ++j) f(j);
  }

 private:
  // Keys below x of the far part's pattern, but for a constant.
  int64_t far_before(int64_t x) const {
    const int64_t shifted = x + stride - phase, rest = shifted % stride;
    return shifted / stride * run + (rest < run ? rest : run);
  }
};

/// Which keys a query sees by its place alone: the one description that loops, kernels, costs and
/// probes share. The T queries are the last of the S keys. Masks and documents take away more.
struct VisibleKeys {
  bool causal = true;
  int64_t window = 0;  // 0: none
  int64_t queries = 0, keys = 0;
  KeyPattern pattern = KeyPattern::all;
  int64_t stride = 0, summary = 0;
  int64_t global = 0;  // the first tokens, which see all and are seen by all
  int64_t prefix = 0;  // the first keys, which are seen by all, those before them too

  [[gnu::always_inline]] int64_t position(int64_t t) const { return keys - queries + t; }
  /// What the token at `position` sees next to itself: keys [begin, end).
  [[gnu::always_inline]] int64_t begin(int64_t position) const {
    if (!causal && position < global) return 0;
    if (pattern == KeyPattern::fixed) return position / stride * stride;
    const int64_t reach = pattern == KeyPattern::strided ? stride : window;
    return reach > 0 && position >= reach ? position - reach + 1 : 0;
  }
  [[gnu::always_inline]] int64_t end(int64_t position) const {
    if (causal) return position + 1;
    return window > 0 && position >= global && position + window < keys ? position + window : keys;
  }
  /// What it sees besides: key j, by all tokens; by all that come after it; by those whose position
  /// leaves the rest `residue` of the stride (-1: by none of this kind).
  struct Beyond {
    bool all, after;
    int64_t residue;
  };
  [[gnu::always_inline]] Beyond beyond(int64_t j) const {
    const bool fixed = pattern == KeyPattern::fixed && j % stride >= stride - summary;
    return {j < prefix || (!causal && j < global), j < global || fixed,
            pattern == KeyPattern::strided ? j % stride : -1};
  }

  /// The keys that any of the queries t .. t + n - 1 sees.
  [[gnu::always_inline]] KeySet of(int64_t t, int64_t n = 1) const {
    const int64_t first = position(t), last = first + n - 1;
    int64_t head = !causal || global <= last ? global : last + 1;
    head = head > prefix ? head : prefix;
    head = head < keys ? head : keys;
    int64_t from = begin(first), to = end(last);
    if (!causal && first < global) to = keys;
    from = from > head ? from : head;
    to = to > from ? to : from;
    KeySet set{{0, head}, {head, head}, {from, to}, 1, 0, 1};
    if (pattern == KeyPattern::all) return set;
    set.far.end = from;
    set.stride = stride;
    set.phase = pattern == KeyPattern::strided ? first % stride : stride - summary;
    set.run = pattern == KeyPattern::fixed ? summary : n < stride ? n : stride;
    return set;
  }
  /// True only where each of the queries t .. t + n - 1 sees each of the keys [from, to).
  [[gnu::always_inline]] bool all_see(int64_t t, int64_t n, int64_t from, int64_t to) const {
    const int64_t first = position(t), last = first + n - 1;
    if (to <= prefix || (to <= global && (!causal || to <= first + 1))) return true;
    return from >= begin(last) && to <= end(first) && (causal || first >= global);
  }
  /// Pairs of a query and a key that it sees.
  double pairs() const {
    const double t = static_cast<double>(queries), s = static_cast<double>(keys);
    if (!causal && window == 0) return t * s;
    if (causal && window == 0 && pattern == KeyPattern::all && prefix == 0)
      return t * (s - t) + t * (t + 1) / 2;
    if (causal && pattern == KeyPattern::all && prefix == 0 && global == 0) {
      // min(place + 1, window) each: in closed form, a ledger asks it of every layer.
      const auto w = static_cast<double>(window);
      const auto up_to = [w](double n) {
        return n <= w ? n * (n + 1) / 2 : w * (w + 1) / 2 + (n - w) * w;
      };
      return up_to(s) - up_to(s - t);
    }
    double n = 0;
    for (int64_t i = 0; i < queries; ++i) n += static_cast<double>(of(i).count());
    return n;
  }
  /// Keys that some query sees.
  int64_t seen() const { return queries == 0 ? 0 : of(0, queries).count(); }
};

}  // namespace tally::ops
