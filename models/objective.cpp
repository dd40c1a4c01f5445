#include "models/objective.h"

#include <algorithm>

#include "core/error.h"
#include "data/draws.h"
#include "data/translation_pairs.h"
#include "models/architecture.h"

namespace tally {
namespace {

constexpr uint64_t kEvaluationSeed = 0x6576616c;  // "eval"

SpanCorruptionOptions span_options(const TrainConfig& t, const ObjectiveTokens& tokens) {
  SpanCorruptionOptions o;
  o.first_sentinel = tokens.first_sentinel, o.sentinels = tokens.sentinels;
  o.rate = t.corruption, o.mean_span = t.mean_span;
  return o;
}

int64_t found_or(const Tokenizer& tokenizer, std::initializer_list<const char*> names,
                 int64_t otherwise) {
  for (const char* name : names) {
    if (const auto id = tokenizer.find_added(name)) return static_cast<int64_t>(*id);
  }
  return otherwise;
}

std::string sentinel_name(int64_t number) { return "<extra_id_" + std::to_string(number) + ">"; }

void find_sentinels(const Tokenizer& tokenizer, ObjectiveTokens& found) {
  for (auto id = tokenizer.find_added(sentinel_name(0)); id;
       id = tokenizer.find_added(sentinel_name(found.sentinels))) {
    if (found.sentinels == 0) found.first_sentinel = static_cast<int64_t>(*id);
    if (static_cast<int64_t>(*id) != found.first_sentinel - found.sentinels) break;
    ++found.sentinels;
  }
}

// Tokens of text that become the rows of a batch, whose ids are `length` a row.
size_t tokens_of_windows(std::span<const int64_t> ids, int64_t length, int64_t window) {
  return ids.size() / static_cast<size_t>(length) * static_cast<size_t>(window);
}

}  // namespace

std::vector<std::string> objective_specials(const ModelConfig& m, const TrainConfig& t) {
  std::vector<std::string> names = {"<|endoftext|>"};
  if (m.architecture == Architecture::encoder) names.emplace_back("[MASK]");
  if (m.architecture == Architecture::encoder_decoder) {
    for (int64_t i = t.sentinels; i-- > 0;) names.push_back(sentinel_name(i));
  }
  return names;
}

ObjectiveTokens find_objective_tokens(const ModelConfig& m, const Tokenizer& tokenizer) {
  ObjectiveTokens found;
  if (m.architecture == Architecture::decoder) return found;
  for (const AddedToken& t : tokenizer.spec().added) {
    if (t.special) found.never.push_back(static_cast<int64_t>(t.id));
  }
  if (m.architecture == Architecture::encoder) {
    found.mask = found_or(tokenizer, {"[MASK]", "<mask>"}, -1);
    return found;
  }
  find_sentinels(tokenizer, found);
  const int64_t end = tokenizer.eot() ? static_cast<int64_t>(*tokenizer.eot()) : -1;
  found.start = found_or(tokenizer, {"<pad>"}, m.padding_id >= 0 ? m.padding_id : end);
  return found;
}

ObjectiveTokens objective_tokens(const ModelConfig& m, const Tokenizer& tokenizer, bool pairs) {
  ObjectiveTokens found = find_objective_tokens(m, tokenizer);
  const auto needs = [&](bool there, const char* what) {
    check(there, "the tokenizer has no ", what, ", which architecture = ", architecture_name(m),
          " needs; let train learn a tokenizer of its own (leave --tokenizer away), or add it with "
          "tokenizer train --special");
  };
  if (m.architecture == Architecture::encoder) needs(found.mask >= 0, "[MASK] or <mask>");
  if (m.architecture != Architecture::encoder_decoder) return found;
  needs(found.sentinels > 0 || pairs,
        "<extra_id_0> and the like, each id one less than the one before");
  needs(found.start >= 0, "<pad> and no end of text to begin from, and the model no padding_id");
  return found;
}

int64_t objective_window(const ModelConfig& m, const TrainConfig& t) {
  const int64_t tokens = t.seq > 0 ? t.seq : m.context;
  return t.pairs ? pair_row(tokens) : tokens;
}

void check_objective(const ModelConfig& m, const TrainConfig& t, const std::string& where) {
  const TrainConfig plain;
  const auto unused = [&](bool same, const char* field) {
    check(same, where, ": ", field,
          " has no meaning for model.architecture = ", architecture_name(m), "; leave it out");
  };
  const bool decoder = m.architecture == Architecture::decoder;
  if (m.architecture != Architecture::encoder_decoder) unused(!t.pairs, "pairs = true");
  check(!t.pairs || (t.corruption == plain.corruption && t.mean_span == plain.mean_span), where,
        ": corruption and mean_span have no meaning with pairs = true, where nothing is cut out; "
        "leave them out");
  if (decoder) unused(t.corruption == plain.corruption, "corruption");
  if (m.architecture != Architecture::encoder_decoder) {
    unused(t.mean_span == plain.mean_span, "mean_span");
    unused(t.sentinels == plain.sentinels, "sentinels");
  }
}

Objective::Objective(const ModelConfig& m, const TrainConfig& t, const ObjectiveTokens& tokens,
                     int64_t window)
    : kind_(m.architecture),
      pairs_(t.pairs),
      window_(window),
      length_(window),
      prefix_(std::min(m.attention_prefix, window)),
      seed_(static_cast<uint64_t>(t.seed)),
      spans_(span_options(t, tokens)),
      start_(tokens.start) {
  masked_.vocab = m.vocab, masked_.mask_id = tokens.mask, masked_.rate = t.corruption;
  masked_.never = tokens.never, masked_.at_least_one = true;
  masked_.boundary = m.document_end;
  if (kind_ != Architecture::encoder_decoder) return;
  if (pairs_) {
    length_ = source_ = (window - 2) / 2;
    return;
  }
  const SpanCount cut = span_count(spans_, window);
  length_ = cut.tokens + cut.spans + 1;
  check(length_ <= m.context, "train: of seq = ", window, " tokens corruption = ", t.corruption,
        " cuts ", cut.tokens, " in ", cut.spans, " spans, ", length_,
        " to write, more than model.context = ", m.context,
        "; lower corruption, or raise mean_span");
  source_ = window - cut.tokens + cut.spans;
}

void Objective::lay_out(std::span<const int64_t> row, const BatchSpans& to) const {
  const TokenPair pair = pair_of(row);
  const auto fill = [](std::span<const int64_t> from, std::span<int64_t> all, int64_t filler) {
    const auto end = std::ranges::copy(from, all.begin()).out;
    std::fill(end, all.end(), filler);
  };
  fill(pair.source, to.source, start_);
  std::ranges::fill(to.mask, uint8_t{0});
  std::ranges::fill(to.mask.first(pair.source.size()), uint8_t{1});
  fill(pair.target, to.targets, kIgnoredTarget);
  std::ranges::copy(shifted_right(to.targets, start_, start_), to.ids.begin());
}

void Objective::hide_row(std::span<int64_t> text, const SequenceKey& key,
                         const BatchSpans& row) const {
  if (pairs_) return lay_out(text, row);
  if (kind_ == Architecture::encoder) {
    std::ranges::copy(text, row.ids.begin());
    mask_tokens(masked_, key, row.ids, row.targets);
    return;
  }
  const CorruptedSequence cut = corrupt_spans(spans_, key, text);
  std::ranges::copy(cut.inputs, row.source.begin());
  std::ranges::copy(cut.targets, row.targets.begin());
  std::ranges::copy(shifted_right(cut.targets, start_, start_), row.ids.begin());
}

void Objective::hide(std::span<int64_t> text, const SequenceKey& first,
                     const BatchSpans& to) const {
  const auto part = [](auto all, size_t row, int64_t length) {
    const auto n = static_cast<size_t>(length);
    return all.subspan(row * n, n);
  };
  const size_t rows = text.size() / static_cast<size_t>(window_);
  for (size_t i = 0; i < rows; ++i) {
    SequenceKey key = first;
    key.sequence += i;
    hide_row(part(text, i, window_), key,
             {part(to.ids, i, length_), part(to.targets, i, length_), part(to.source, i, source_),
              to.mask.empty() ? to.mask : part(to.mask, i, source_)});
  }
}

void Objective::batch(const Dataset& data, int64_t number, const BatchSpans& to) const {
  if (kind_ == Architecture::decoder) return data.batch(number, to.ids, to.targets);
  std::vector<int64_t> text(tokens_of_windows(to.ids, length_, window_)), next(text.size());
  data.batch(number, text, next);
  hide(text, {seed_, static_cast<uint64_t>(number), 0}, to);
}

void Objective::windows_in_order(const Dataset& data, int64_t number, const BatchSpans& to) const {
  if (kind_ == Architecture::decoder) return data.windows_in_order(number, to.ids, to.targets);
  std::vector<int64_t> text(tokens_of_windows(to.ids, length_, window_)), next(text.size());
  data.windows_in_order(number, text, next);
  hide(text, {kEvaluationSeed, 0, static_cast<uint64_t>(number)}, to);
}

}  // namespace tally
