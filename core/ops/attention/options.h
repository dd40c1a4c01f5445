#pragma once
#include <optional>

#include "core/ops/attention/visible.h"
#include "core/ops/cap.h"
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
  /// Only the last `window` of these, itself counted; not causal, as many ahead too (Beltagy et al.
  /// 2020, arXiv:2004.05150).
  std::optional<int64_t> window;
  /// Of what came before, a sparse part in place of a window (Child et al. 2019, arXiv:1904.10509):
  /// strided or fixed, with its stride and, fixed, how many keys sum up a block of `stride`.
  KeyPattern pattern = KeyPattern::all;
  int64_t stride = 0, summary = 1;
  /// The first `global` tokens are seen by all and see all that causal leaves them.
  int64_t global = 0;
  /// The first `prefix` keys are seen by all, by each other too (Raffel et al. 2019,
  /// arXiv:1910.10683, fig. 4).
  int64_t prefix = 0;
  /// Scores u become cap tanh(u / cap), before the mask (Gemma 2, arXiv:2408.00118, sec. 2).
  std::optional<double> soft_cap;
  /// Factor of q.k; 1 / sqrt(K) where not given.
  std::optional<double> scale;
  /// Times ALiBi's slope of a head, taken off a score for each token of distance, after the cap;
  /// 0: no ALiBi, 1: as published (Press et al. 2021, arXiv:2108.12409).
  double alibi = 0;
  AttentionDropout dropout;
};

/// The keys that the last `queries` of `keys` tokens see by their places.
inline VisibleKeys visible_keys(const AttentionOptions& o, int64_t queries, int64_t keys) {
  return {o.causal, o.window.value_or(0), queries, keys, o.pattern, o.stride, o.summary, o.global,
          o.prefix};
}

/// Error by name for a choice of keys without a meaning.
inline void check_pattern(const AttentionOptions& o) {
  check(
      !o.window || *o.window >= 1,
      "attention: a window is the number of tokens that a token sees, itself counted, so at least "
      "1; got ",
      o.window.value_or(0), in_module());
  const bool sparse = o.pattern != KeyPattern::all;
  check(!sparse || (o.causal && !o.window && o.stride >= 1),
        "attention: a pattern needs causal, a stride of at least 1 and no window; got stride = ",
        o.stride, o.causal ? "" : ", not causal", o.window ? ", a window" : "", in_module());
  check(sparse || o.stride == 0, "attention: stride = ", o.stride,
        " needs the pattern strided or fixed", in_module());
  check(o.pattern != KeyPattern::fixed || (o.summary >= 1 && o.summary <= o.stride),
        "attention: summary must be 1 to stride = ", o.stride, " keys of a block; got ", o.summary,
        in_module());
  check(o.global >= 0, "attention: global must be a number of tokens, from 0; got ", o.global,
        in_module());
  check(o.prefix >= 0 && (o.causal || o.prefix == 0),
        "attention: prefix must be a number of keys, from 0, that causal would hide; got ",
        o.prefix, o.causal ? "" : " without causal", in_module());
}

/// Error by name for an option without a meaning.
inline void check_options(const AttentionOptions& o) {
  check_pattern(o);
  const double cap = o.soft_cap.value_or(1), scale = o.scale.value_or(1), p = o.dropout.p;
  check_cap("attention", "soft_cap", cap);
  check(std::isfinite(scale), "attention: scale must be finite; got ", scale, in_module());
  check(std::isfinite(o.alibi) && o.alibi >= 0,
        "attention: alibi must be a finite number, 0 for none, 1 as published; got ", o.alibi,
        in_module());
  check(p >= 0 && p <= 1, "attention: dropout must be a probability in 0..1; got ", p, in_module());
}

}  // namespace tally::ops
