#pragma once
#include <optional>

#include "core/op.h"
#include "core/random.h"

namespace tally::ops {

/// Dropout of attention probabilities. Each is kept with probability 1 - p and then divided by it;
/// which ones is a pure function of (seed, stream) and the place, so the backward pass makes the
/// mask anew. Nothing is drawn where p is 0.
struct AttentionDropout {
  double p = 0;
  uint64_t seed = 0, stream = 0;

  /// What the probability at place `i` of (B,H,T,S) is multiplied by.
  double factor(int64_t i) const {
    const bool kept = to_uniform(Philox::word(seed, stream, static_cast<uint64_t>(i))) >= p;
    return kept ? 1 / (1 - p) : 0;
  }
};

/// How attention looks at keys and scales what it sees.
struct AttentionOptions {
  /// A token sees itself and what came before it; the last token of q aligns with the last of k.
  bool causal = true;
  /// Only the last `window` of these, itself counted (Beltagy et al. 2020, arXiv:2004.05150).
  std::optional<int64_t> window;
  /// Scores u become cap tanh(u / cap), before the mask (Gemma 2, arXiv:2408.00118, sec. 2).
  std::optional<double> soft_cap;
  /// Factor of q.k; 1 / sqrt(K) where not given.
  std::optional<double> scale;
  /// Times ALiBi's slope of a head, taken off a score for each token of distance, after the cap;
  /// 0: no ALiBi, 1: as published (Press et al. 2021, arXiv:2108.12409).
  double alibi = 0;
  AttentionDropout dropout;
};

/// Error by name for an option without a meaning.
inline void check_options(const AttentionOptions& o) {
  check(!o.window || (*o.window >= 1 && o.causal),
        "attention: a window is the number of tokens that a causal token sees, itself counted, so "
        "at least 1; got ",
        o.window.value_or(0), o.causal ? "" : " without causal", in_module());
  const double cap = o.soft_cap.value_or(1), scale = o.scale.value_or(1), p = o.dropout.p;
  check(std::isfinite(cap) && cap > 0, "attention: soft_cap must be a finite number above 0; got ",
        cap, in_module(), "; leave it out for none");
  check(std::isfinite(scale), "attention: scale must be finite; got ", scale, in_module());
  check(std::isfinite(o.alibi) && o.alibi >= 0,
        "attention: alibi must be a finite number, 0 for none, 1 as published; got ", o.alibi,
        in_module());
  check(p >= 0 && p <= 1, "attention: dropout must be a probability in 0..1; got ", p, in_module());
}

/// Which keys a query can see by its place alone, T queries being the last of S keys.
struct VisibleKeys {
  bool causal = true;
  int64_t window = 0;  // 0: no window
  int64_t queries = 0, keys = 0;

  struct Range {
    int64_t begin, end;
  };
  Range of(int64_t t) const {
    const int64_t end = causal ? keys - queries + t + 1 : keys;
    return {window && end > window ? end - window : 0, end};
  }
  /// Pairs of a query and a key that it sees.
  double pairs() const {
    const double t = static_cast<double>(queries), s = static_cast<double>(keys);
    if (!causal) return t * s;
    const double past = s - t;
    if (!window) return t * past + t * (t + 1) / 2;
    const double w = static_cast<double>(window);
    const double growing =
        std::min(std::max(w - past, 0.0), t);  // rows that see fewer than `window`
    return growing * past + growing * (growing + 1) / 2 + (t - growing) * w;
  }
  /// Keys that some query sees.
  int64_t seen() const {
    if (queries == 0) return 0;
    return window ? std::min(keys, queries + window - 1) : keys;
  }
};

}  // namespace tally::ops
