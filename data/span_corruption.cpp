#include "data/span_corruption.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace tally {
namespace {

constexpr uint64_t kSpanCorruption = 0x7370616e73;  // "spans"

// `total` cut into `parts` of at least 1: every way is as likely. Knuth's algorithm S chooses the
// places between tokens where to cut; number first + i of the draws is for place i.
std::vector<int64_t> random_parts(int64_t total, int64_t parts, const Draws& draws,
                                  uint64_t first) {
  std::vector<int64_t> lengths{1};
  int64_t cuts = parts - 1;
  for (int64_t place = 0; place < total - 1; ++place) {
    const double left = static_cast<double>(total - 1 - place);
    if (draws.uniform(first + static_cast<uint64_t>(place)) * left < static_cast<double>(cuts)) {
      --cuts;
      lengths.push_back(1);
    } else {
      ++lengths.back();
    }
  }
  return lengths;
}

}  // namespace

void SpanCorruptionOptions::check() const {
  tally::check(rate > 0 && rate < 1, "span_corruption: rate must be above 0 and below 1; got ",
               rate);
  tally::check(mean_span >= 1 && std::isfinite(mean_span),
               "span_corruption: mean_span must be 1 or more; got ", mean_span);
  tally::check(sentinels >= 1 && first_sentinel >= sentinels - 1,
               "span_corruption: sentinel k is the id first_sentinel - k, 0 or more; got first ",
               first_sentinel, " and ", sentinels,
               " sentinels; set first_sentinel to the largest id of them");
}

SpanCount span_count(const SpanCorruptionOptions& o, int64_t length) {
  o.check();
  check(length >= 2, "span_corruption: needs at least 2 tokens, one to cut out and one to stay; ",
        "got ", length);
  SpanCount n;
  n.tokens = std::llround(static_cast<double>(length) * o.rate);
  n.tokens = std::clamp(n.tokens, int64_t{1}, length - 1);
  n.spans = std::max(std::llround(static_cast<double>(n.tokens) / o.mean_span), 1LL);
  n.spans = std::min({n.spans, n.tokens, length - n.tokens});
  const int64_t needed = n.spans + (o.closing_sentinel ? 1 : 0);
  check(needed <= o.sentinels, "span_corruption: ", length, " tokens need ", needed,
        " sentinels; got ", o.sentinels, "; set sentinels higher, or mean_span longer");
  return n;
}

std::vector<TokenSpan> draw_spans(const SpanCorruptionOptions& o, const SequenceKey& key,
                                  int64_t length) {
  const SpanCount n = span_count(o, length);
  const Draws draws(key, kSpanCorruption);
  const auto cut = random_parts(n.tokens, n.spans, draws, 0);
  const auto kept =
      random_parts(length - n.tokens, n.spans, draws, static_cast<uint64_t>(n.tokens));
  std::vector<TokenSpan> spans;
  int64_t at = 0;
  for (size_t i = 0; i < cut.size(); ++i) {
    at += kept[i];
    spans.push_back({at, cut[i]});
    at += cut[i];
  }
  return spans;
}

CorruptedSequence cut_spans(const SpanCorruptionOptions& o, std::span<const int64_t> ids,
                            std::span<const TokenSpan> spans) {
  o.check();
  CorruptedSequence out;
  const auto append = [&](std::vector<int64_t>& to, int64_t begin, int64_t end) {
    to.insert(to.end(), ids.begin() + begin, ids.begin() + end);
  };
  const auto size = static_cast<int64_t>(ids.size());
  int64_t at = 0, sentinel = o.first_sentinel;
  for (const TokenSpan& s : spans) {
    check(s.begin >= at && s.length >= 1 && s.length <= size - s.begin,
          "span_corruption: spans must be in order, apart and inside the ", size,
          " tokens; got one of ", s.length, " from ", s.begin, ", behind ", at);
    append(out.inputs, at, s.begin);
    out.inputs.push_back(sentinel);
    out.targets.push_back(sentinel--);
    append(out.targets, s.begin, s.begin + s.length);
    at = s.begin + s.length;
  }
  append(out.inputs, at, size);
  if (o.closing_sentinel) out.targets.push_back(sentinel);
  if (o.end_id >= 0) out.inputs.push_back(o.end_id), out.targets.push_back(o.end_id);
  return out;
}

CorruptedSequence corrupt_spans(const SpanCorruptionOptions& o, const SequenceKey& key,
                                std::span<const int64_t> ids) {
  return cut_spans(o, ids, draw_spans(o, key, static_cast<int64_t>(ids.size())));
}

std::vector<int64_t> shifted_right(std::span<const int64_t> targets, int64_t start_id,
                                   int64_t padding_id) {
  std::vector<int64_t> ids;
  for (size_t i = 0; i < targets.size(); ++i) {
    const int64_t before = i == 0 ? start_id : targets[i - 1];
    ids.push_back(before == kIgnoredTarget ? padding_id : before);
  }
  return ids;
}

}  // namespace tally
