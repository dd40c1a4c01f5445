#pragma once
#include <span>
#include <vector>

#include "data/draws.h"

namespace tally {

/// T5's objective: write down the spans that are cut out of a text. Raffel et al. 2019,
/// arXiv:1910.10683, sec. 3.1.4 and 3.3.4.
struct SpanCorruptionOptions {
  int64_t first_sentinel = -1;  // sentinel k is first_sentinel - k, as in T5's vocabulary
  int64_t sentinels = 100;
  double rate = 0.15, mean_span = 3;
  bool closing_sentinel = true;  // ends the targets with the sentinel behind the last (figure 2)
  int64_t end_id = -1;           // put behind inputs and targets; -1: nothing

  /// Throws Error unless rate is in (0, 1), mean_span at least 1, and the sentinels are ids.
  void check() const;
};

/// A part of a text: tokens begin .. begin + length - 1.
struct TokenSpan {
  int64_t begin = 0, length = 0;
  bool operator==(const TokenSpan&) const = default;
};

struct CorruptedSequence {
  std::vector<int64_t> inputs;   // the text with a sentinel in place of each span
  std::vector<int64_t> targets;  // each sentinel and the span that it stands for
};

/// How many tokens and spans are cut out of `length` tokens: round(length rate), at least 1 and not
/// all; round(tokens / mean_span), at least 1 and as many as can be parted. Throws Error under 2
/// tokens and where the sentinels do not suffice.
struct SpanCount {
  int64_t tokens = 0, spans = 0;
};
SpanCount span_count(const SpanCorruptionOptions&, int64_t length);

/// The spans of one sequence: that many tokens cut at random into spans of at least 1, what stays
/// cut likewise, in turn, beginning with what stays. Every way of cutting is as likely.
std::vector<TokenSpan> draw_spans(const SpanCorruptionOptions&, const SequenceKey&, int64_t length);

/// Cuts given spans out. Throws Error unless they are in order, apart and inside the text.
CorruptedSequence cut_spans(const SpanCorruptionOptions&, std::span<const int64_t> ids,
                            std::span<const TokenSpan> spans);

/// Both. The lengths of what comes out depend on the length of `ids` alone: sequences of one length
/// make a batch without padding.
CorruptedSequence corrupt_spans(const SpanCorruptionOptions&, const SequenceKey&,
                                std::span<const int64_t> ids);

/// What a decoder reads while it writes `targets`: start_id, then all but the last of them, ignored
/// ones as padding_id.
std::vector<int64_t> shifted_right(std::span<const int64_t> targets, int64_t start_id,
                                   int64_t padding_id);

}  // namespace tally
