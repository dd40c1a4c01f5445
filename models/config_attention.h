#pragma once
#include <functional>

#include "core/ops/attention/options.h"
#include "models/config.h"

namespace tally {

/// Throws Error, beginning with `where`, unless the fields about what attention sees fit each
/// other.
void check_attention(const ModelConfig& config, const std::string& where,
                     const Spelling& spelling = own_spelling);

/// What these fields say of the layers in turn, from the first again when the list ends. `config` is
/// resolved and checked.
std::vector<ops::AttentionOptions> attention_options(const ModelConfig& config);

/// Pairs of a query and a key that it sees, of all layers of attention together: the last `queries` of `keys`
/// tokens.
double visible_pairs(const ModelConfig& config, int64_t queries, int64_t keys);

/// The sum of `of` a layer's options and its number.
double over_layers(const ModelConfig& config,
                   const std::function<double(const ops::AttentionOptions&, int64_t)>& of);

/// Of `tokens`, those whose keys and values a layer with these options keeps.
int64_t kept_tokens(const ops::AttentionOptions& options, int64_t tokens);
/// Tokens whose keys and values a cache for `tokens` holds, of all layers together: a layer with a
/// window keeps no more than it shows.
int64_t cached_tokens(const ModelConfig& config, int64_t tokens);

/// Numbers that generation keeps for one sequence.
struct CacheSize {
  double numbers_per_token = 0;  // without windows
  double numbers = 0;
  double state = 0;  // of recurrences, in the accumulator's type
};
/// For `written` tokens; an encoder-decoder keeps as much for each of the `read` tokens of its
/// source, and an encoder nothing.
CacheSize cache_size(const ModelConfig& config, int64_t written, int64_t read);

}  // namespace tally
