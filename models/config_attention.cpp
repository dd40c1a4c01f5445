#include "models/config_attention.h"
#include "models/mup.h"

#include <algorithm>

#include "core/error.h"
#include "core/ops/cap.h"
#include "models/config_latent.h"
#include "models/config_mixers.h"
#include "models/config_shared.h"
#include "models/suggest.h"

namespace tally {
namespace {

const std::vector<std::string> kLayerKinds = {"full", "window", "strided", "fixed"};

/// The kinds of the layers in turn: what the pattern says, or the window in all.
std::vector<std::string> kinds_of(const ModelConfig& c) {
  if (!c.attention_pattern.empty()) return c.attention_pattern;
  return {c.window > 0 ? "window" : "full"};
}

const ops::AttentionOptions& of_layer(const std::vector<ops::AttentionOptions>& all, int64_t i) {
  return all[static_cast<size_t>(i) % all.size()];
}

// Layers that take keys and values keep none.
CacheSize shared_cache(const ModelConfig& c, int64_t written) {
  const auto all = attention_options(c);
  CacheSize size;
  for (int64_t i = 0; i < c.layers; ++i) {
    const LayerShape h = layer_shape(c, i);
    if (h.takes) continue;
    const auto numbers = static_cast<double>(2 * h.kv_heads * h.head_dim);
    size.numbers_per_token += numbers;
    size.numbers += numbers * static_cast<double>(kept_tokens(of_layer(all, i), written));
  }
  return size;
}

}  // namespace

void check_attention(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  for (const std::string& kind : c.attention_pattern) {
    check(std::find(kLayerKinds.begin(), kLayerKinds.end(), kind) != kLayerKinds.end(), where, ": ",
          spelling("attention_pattern"), ": \"", kind, "\" is not known",
          did_you_mean(kind, kLayerKinds));
  }
  const auto kinds = kinds_of(c);
  const auto has = [&](const char* kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  check(has("window") == (c.window > 0), where, ": ", spelling("window"), " = ", c.window,
        c.window > 0
            ? " needs a layer that is \"window\" in attention_pattern, or no pattern at all"
            : " must be above 0 for layers that are \"window\"");
  const bool sparse = has("strided") || has("fixed");
  check(sparse == (c.attention_stride > 0), where, ": ", spelling("attention_stride"), " = ",
        c.attention_stride,
        sparse ? " must be above 0 for layers that are strided or fixed"
               : " needs a layer that is strided or fixed in attention_pattern");
  check(!has("fixed") || c.attention_summary <= c.attention_stride, where, ": ",
        spelling("attention_summary"), " = ", c.attention_summary,
        " must not exceed attention_stride = ", c.attention_stride, ", the keys of a block");
  check(c.attention_global == 0 || has("window") || sparse, where, ": ",
        spelling("attention_global"), " = ", c.attention_global,
        " needs layers that do not see all: a window, strided or fixed ones");
  check(c.attention_prefix < c.context, where, ": ", spelling("attention_prefix"), " = ",
        c.attention_prefix, " must be below context = ", c.context,
        ", which holds what follows the prefix, too");
  check(c.attention_prefix == 0 || c.position != Position::xl_relative, where, ": ",
        spelling("attention_prefix"), " = ", c.attention_prefix,
        " needs distances ahead, which position = xl_relative does not have");
  check(c.document_end < c.vocab, where, ": ", spelling("document_end"), " = ", c.document_end,
        " must be a token, 0..", c.vocab - 1, ", or -1");
  for (const auto& [field, cap] : {std::pair{"attention_soft_cap", c.attention_soft_cap},
                                   {"final_soft_cap", c.final_soft_cap}})
    check(cap == 0 || ops::holds_cap(cap), where, ": ", spelling(field), " = ", cap,
          " must be 0, for none, or a normal number of f32, from 1.2e-38 on: smaller ones round to "
          "0 and would cap nothing");
  check(c.attention_summary == 1 || has("fixed"), where, ": ", spelling("attention_summary"), " = ",
        c.attention_summary, " needs a layer that is fixed in attention_pattern");
}

std::vector<ops::AttentionOptions> attention_options(const ModelConfig& c) {
  std::vector<ops::AttentionOptions> all;
  for (const std::string& kind : kinds_of(c)) {
    ops::AttentionOptions& o = all.emplace_back();
    if (kind == "window") o.window = c.window;
    if (kind == "strided") o.pattern = ops::KeyPattern::strided, o.stride = c.attention_stride;
    if (kind == "fixed") {
      o.pattern = ops::KeyPattern::fixed;
      o.stride = c.attention_stride, o.summary = c.attention_summary;
    }
    if (kind != "full") o.global = c.attention_global;
    o.prefix = c.attention_prefix;
    if (c.attention_soft_cap > 0) o.soft_cap = c.attention_soft_cap;
    const double scale = c.attention_scale > 0 ? c.attention_scale : mup_attention_scale(c);
    if (scale > 0) o.scale = scale;
  }
  return all;
}

double visible_pairs(const ModelConfig& c, int64_t queries, int64_t keys) {
  const auto all = attention_options(c);
  std::vector<double> pairs;
  pairs.reserve(all.size());
  for (const auto& o : all) pairs.push_back(ops::visible_keys(o, queries, keys).pairs());
  double sum = 0;
  for (int64_t i = 0; i < c.layers; ++i) {
    if (mixer_of(c, i) == nn::Mixer::attention) sum += pairs[static_cast<size_t>(i) % pairs.size()];
  }
  return sum;
}

int64_t kept_tokens(const ops::AttentionOptions& o, int64_t tokens) {
  const bool rolls = o.global == 0 && o.prefix == 0;  // what leaves the window is not seen again
  return rolls ? std::min(tokens, o.window.value_or(tokens)) : tokens;
}

int64_t cached_tokens(const ModelConfig& c, int64_t tokens) {
  const auto all = attention_options(c);
  int64_t sum = 0;
  for (int64_t i = 0; i < c.layers; ++i) {
    if (mixer_of(c, i) == nn::Mixer::attention) sum += kept_tokens(of_layer(all, i), tokens);
  }
  return sum;
}

double over_layers(const ModelConfig& c,
                   const std::function<double(const ops::AttentionOptions&, int64_t)>& of) {
  const auto all = attention_options(c);
  double sum = 0;
  for (int64_t i = 0; i < c.layers; ++i) {
    if (mixer_of(c, i) == nn::Mixer::attention) sum += of(of_layer(all, i), i);
  }
  return sum;
}

CacheSize cache_size(const ModelConfig& c, int64_t written, int64_t read) {
  if (c.architecture == Architecture::encoder) return {};
  if (is_shared(c)) return shared_cache(c, written);
  const int64_t numbers =
      is_latent(c) ? c.kv_lora_rank + c.qk_rope_head_dim : 2 * c.kv_heads * c.head_dim;
  const auto in_layer = static_cast<double>(numbers);
  int64_t tokens = cached_tokens(c, written);
  if (c.architecture == Architecture::encoder_decoder) tokens += c.layers * read;
  const MixerCounts kept = recurrence_counts(c);
  return {in_layer * static_cast<double>(mixer_layers(c).attention),
          in_layer * static_cast<double>(tokens) + static_cast<double>(kept.recent),
          static_cast<double>(kept.state)};
}

}  // namespace tally
