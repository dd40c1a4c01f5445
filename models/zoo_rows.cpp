#include "models/zoo_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/config_mixers.h"
#include "models/objective.h"
#include "models/parameters.h"

namespace tally::zoo {
namespace {

/// A size that trains here, and what it may cost.
struct Scale {
  const char* suffix;
  int64_t layers, d_model, heads, context, batch, most_steps;
  double flops, lr;
};
constexpr Scale kScales[] = {{"-smoke", 2, 64, 2, 64, 8, 200, 1e11, 3e-3},
                             {"-laptop", 4, 128, 4, 256, 16, 2000, 1e13, 2e-3},
                             {"-lab", 8, 384, 6, 512, 32, 20000, 5e15, 1e-3}};

constexpr int64_t kSentinels = 32;  // of encoder-decoders: a window of 512 tokens takes 27

int64_t up_to_multiple(double value, int64_t of) {
  return static_cast<int64_t>(std::ceil(value / static_cast<double>(of))) * of;
}

ModelConfig sized(const Family& family, const Size& size) {
  ModelConfig m = family.base;
  m.layers = size.layers, m.d_model = size.d_model;
  m.heads = size.heads, m.kv_heads = size.kv_heads, m.head_dim = size.head_dim;
  m.d_ff = size.d_ff, m.vocab = size.vocab, m.context = size.context;
  if (size.change) size.change(m);
  if (family.finish) family.finish(m);
  return m;
}

/// The pattern in `layers` steps where it is longer: every second of eight.
std::vector<std::string> fewer(const std::vector<std::string>& pattern, int64_t layers) {
  const size_t step = std::max<size_t>(1, pattern.size() / static_cast<size_t>(layers));
  std::vector<std::string> some;
  for (size_t i = 0; i < pattern.size(); i += step) some.push_back(pattern[i]);
  return some;
}

/// The proportions of a published model at another size: heads, groups, widths, layers in turn.
ModelConfig scaled(const Family& family, const Scale& s, const TrainConfig& train) {
  const ModelConfig full = sized(family, family.sizes[0]);
  ModelConfig m = full;
  const double shrink = static_cast<double>(s.d_model) / static_cast<double>(full.d_model);
  const auto width = [&](int64_t w) {
    return w == 0 ? 0 : up_to_multiple(static_cast<double>(w) * shrink, 32);
  };
  m.mixer_pattern = fewer(full.mixer_pattern, std::max<int64_t>(4, s.layers));
  int64_t turn = 1;
  for (const auto* pattern : {&m.attention_pattern, &m.position_pattern, &m.mixer_pattern})
    turn = std::lcm(turn, static_cast<int64_t>(std::max<size_t>(1, pattern->size())));
  m.layers = (s.layers + turn - 1) / turn * turn;
  m.d_model = s.d_model, m.heads = s.heads, m.context = s.context;
  m.vocab = 256;
  if (m.architecture != Architecture::decoder)  // and what its objective needs
    m.vocab += static_cast<int64_t>(objective_specials(m, train).size());
  m.kv_heads = full.kv_heads <= 1 ? full.kv_heads : s.heads / 2;
  if (full.head_dim > 0) {
    const auto wide = static_cast<double>(full.heads * full.head_dim);
    m.head_dim = up_to_multiple(wide * shrink / static_cast<double>(s.heads), 16);
  }
  if (full.global_head_dim > 0)
    m.global_head_dim = full.global_head_dim * m.head_dim / full.head_dim;
  m.global_kv_heads = std::min(full.global_kv_heads, m.kv_heads);
  // Sizes of recurrences follow those of heads.
  m.delta_key_heads = m.delta_value_heads = m.delta_key_dim = m.delta_value_dim = 0;
  m.mamba_inner = m.mamba_dt_rank = 0;
  m.d_ff = width(full.d_ff), m.expert_d_ff = width(full.expert_d_ff);
  m.shared_expert_d_ff = width(full.shared_expert_d_ff);
  m.embedding_dim = width(full.embedding_dim);
  m.window = full.window > 0 ? s.context / 4 : 0;
  m.experts = std::min<int64_t>(full.experts, 8);
  if (m.experts > 0)
    m.experts_per_token = 2, m.router_groups = m.router_kept_groups = m.router_best_of_group = 1;
  m.shared_experts = std::min<int64_t>(full.shared_experts, 1);
  m.first_expert_layer = std::min<int64_t>(full.first_expert_layer, 1);
  if (family.finish) family.finish(m);
  return m;
}

/// FLOPs of training on one token: 6 a parameter, 12 for each product of scores and values.
double training_flops(ModelConfig m) {
  m.resolve();
  const FeedForwardCounts f = feed_forward_counts(m);  // a token passes some experts only
  return 6.0 * static_cast<double>(parameter_count(m) - f.parameters + f.multiplied) +
         12.0 * static_cast<double>(mixer_layers(m).attention * m.context * m.heads * m.head_dim);
}

}  // namespace

ModelConfig gpt_block() {
  ModelConfig m;
  use_layer_norm(m, true);
  m.activation = Activation::gelu_tanh, m.gated = false;
  m.position = Position::learned;
  m.qkv_bias = m.attention_output_bias = m.mlp_bias = true;
  m.tied_head = true, m.init = Init::gpt2;
  return m;
}

ModelConfig llama_block(double eps, double base) {
  ModelConfig m;
  m.norm_eps = eps, m.rope_base = base;
  return m;
}

void use_layer_norm(ModelConfig& m, bool bias) { m.norm = Norm::layer_norm, m.norm_bias = bias; }
void use_dropout(ModelConfig& m, double probability) {
  m.embedding_dropout = m.attention_dropout = m.residual_dropout = probability;
}
void tied(ModelConfig& m) { m.tied_head = true; }
void untied(ModelConfig& m) { m.tied_head = false; }

TrainConfig published(double weight_decay) {
  TrainConfig t;
  t.batch = 1, t.steps = 100000, t.warmup = 2000, t.weight_decay = weight_decay;
  return t;
}

void add(std::vector<Preset>& zoo, const Family& family) {
  for (const Size& size : family.sizes) {
    Preset p{size.name,
             family.name,
             family.year,
             family.source,
             size.shows ? size.shows : family.shows,
             {sized(family, size), family.train}};
    p.note = size.note ? size.note : family.note;
    p.unpublished = family.unpublished;
    p.config.model.name = size.name;
    if (size.lr > 0) {
      p.config.train.lr = size.lr;
    } else {
      p.config.train.lr = 3e-4;
      p.unpublished += p.unpublished.empty() ? "train.lr" : " train.lr";
    }
    zoo.push_back(std::move(p));
  }
}

void add_scaled_down(std::vector<Preset>& zoo, const Family& family) {
  if (family.key[0] == '\0') return;
  TrainConfig t = family.train;
  if (family.base.architecture == Architecture::encoder_decoder) t.sentinels = kSentinels;
  for (const Scale& s : kScales) {
    Preset p{std::string(family.key) + s.suffix,
             family.name,
             family.year,
             std::string("this project: the block of ") + family.sizes[0].name + ", scaled down",
             family.shows,
             {scaled(family, s, t), t}};
    p.note = family.note;
    p.scaled_down = true;
    p.config.model.name = p.name;
    TrainConfig& own = p.config.train;
    own.batch = s.batch, own.lr = s.lr;
    const double step = training_flops(p.config.model) * static_cast<double>(s.batch * s.context);
    own.steps =
        std::clamp(static_cast<int64_t>(s.flops / step) / 10 * 10, int64_t{10}, s.most_steps);
    own.warmup = own.steps / 20;
    zoo.push_back(std::move(p));
  }
}

}  // namespace tally::zoo
