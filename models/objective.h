#pragma once
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/masked_tokens.h"
#include "data/span_corruption.h"
#include "data/tokenizer.h"
#include "models/batch_spans.h"
#include "models/config.h"

namespace tally {

/// Ids that say something about a text instead of being part of it; -1: there is none.
struct ObjectiveTokens {
  int64_t mask = -1;                           // stands for a token that an encoder guesses
  int64_t first_sentinel = -1, sentinels = 0;  // stand for spans: first, first - 1, ...
  int64_t start = -1;                          // what a decoder of a memory begins to write from
  std::vector<int64_t> never;                  // special tokens: never hidden
};
/// Those that a tokenizer has for a model's architecture: [MASK] or <mask>; <extra_id_0>,
/// <extra_id_1>, ... with <pad>, the model's padding_id or the end of text as the start.
ObjectiveTokens find_objective_tokens(const ModelConfig& model, const Tokenizer& tokenizer);
/// The same. Error naming what is missing for the training; `pairs`: of texts, which needs no
/// sentinels.
ObjectiveTokens objective_tokens(const ModelConfig& model, const Tokenizer& tokenizer,
                                 bool pairs = false);
/// Tokens of data that become a row: train.seq, or the model's context; of pairs the row that
/// data/translation_pairs.h writes.
int64_t objective_window(const ModelConfig& model, const TrainConfig& train);
/// The special tokens of a tokenizer that is learnt for the model: these and the end of text, which
/// get the last ids in this order.
std::vector<std::string> objective_specials(const ModelConfig& model, const TrainConfig& train);

/// Throws Error unless the fields of the objective are those of the model's architecture.
void check_objective(const ModelConfig& model, const TrainConfig& train, const std::string& where);

/// What a model is trained to say of a text: a decoder the next token; an encoder those that are
/// hidden (Devlin et al. 2018, arXiv:1810.04805); an encoder-decoder the spans that are cut out
/// (Raffel et al. 2019, arXiv:1910.10683), or, with train.pairs, what a line says is to be written
/// for its first text. Windows of a text become the rows of a batch, as a
/// function of the seed, the number of the batch and the row alone.
class Objective {
 public:
  /// `window`: tokens of data in a row, objective_window where a run is trained. Error where they hide more than the sentinels or the model's
  /// context have room for.
  Objective(const ModelConfig& model, const TrainConfig& train, const ObjectiveTokens& tokens,
            int64_t window);

  int64_t window() const { return window_; }
  int64_t length() const { return length_; }  ///< T: ids and targets in a row
  int64_t source() const { return source_; }  ///< S: what an encoder-decoder reads; 0 for others
  /// True where some targets are -100, other ones in each batch: losses are means over the rest.
  bool counts_targets() const { return kind_ == Architecture::encoder || pairs_; }
  /// True where sources have different lengths.
  bool masks_source() const { return pairs_; }
  /// Targets at the beginning of a row that count for nothing, because a decoder sees them.
  int64_t prefix() const { return prefix_; }

  /// Batch `number` of the training, from `data`, whose context is the window.
  void batch(const Dataset& data, int64_t number, const BatchSpans& to) const;
  /// Windows number, number + 1, ... in the order of the text, for evaluation: what is hidden does
  /// not depend on the seed.
  void windows_in_order(const Dataset& data, int64_t number, const BatchSpans& to) const;

 private:
  void hide(std::span<int64_t> text, const SequenceKey& first, const BatchSpans& to) const;
  void lay_out(std::span<const int64_t> row, const BatchSpans& to) const;
  void hide_row(std::span<int64_t> text, const SequenceKey& key, const BatchSpans& row) const;

  Architecture kind_;
  bool pairs_;
  int64_t window_, length_, source_ = 0, prefix_;
  uint64_t seed_;
  MaskedTokenOptions masked_;
  SpanCorruptionOptions spans_;
  int64_t start_;
};

}  // namespace tally
