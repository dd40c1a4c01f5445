#include "models/hf_names.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/error.h"

namespace tally {
namespace {

/// A piece of a parameter under its name within a block (or the model), and the tensor that holds
/// it. Pieces in the same tensor lie in it in the order of these rows.
struct Row {
  std::string_view piece, stored;
  bool transposed = false;
};

constexpr std::array<Row, 12> kGpt2 = {{{"embedding", "wte"},
                                        {"position", "wpe"},
                                        {"attention_norm", "ln_1"},
                                        {"attention.q", "attn.c_attn", true},
                                        {"attention.k", "attn.c_attn", true},
                                        {"attention.v", "attn.c_attn", true},
                                        {"attention.out", "attn.c_proj", true},
                                        {"mlp_norm", "ln_2"},
                                        {"mlp.up", "mlp.c_fc", true},
                                        {"mlp.down", "mlp.c_proj", true},
                                        {"final_norm", "ln_f"},
                                        {"head", "lm_head"}}};
constexpr std::array<Row, 12> kLlama = {{{"embedding", "embed_tokens"},
                                         {"attention_norm", "input_layernorm"},
                                         {"attention.q", "self_attn.q_proj"},
                                         {"attention.k", "self_attn.k_proj"},
                                         {"attention.v", "self_attn.v_proj"},
                                         {"attention.out", "self_attn.o_proj"},
                                         {"mlp_norm", "post_attention_layernorm"},
                                         {"mlp.gate", "mlp.gate_proj"},
                                         {"mlp.up", "mlp.up_proj"},
                                         {"mlp.down", "mlp.down_proj"},
                                         {"final_norm", "norm"},
                                         {"head", "lm_head"}}};

struct FamilyNames {
  std::string_view prefix, blocks;
  std::span<const Row> rows;
};

const FamilyNames& names_of(HfFamily family) {
  static const FamilyNames gpt2 = {"transformer.", "h.", kGpt2};
  static const FamilyNames llama = {"model.", "layers.", kLlama};
  return family == HfFamily::gpt2 ? gpt2 : llama;
}

/// "blocks.3.attention.qkv.weight" taken apart.
struct Name {
  std::string block, stem, leaf;  // "3", "attention.qkv", "weight"
};

Name split(const std::string& full) {
  Name name;
  std::string rest = full;
  if (rest.starts_with("blocks.")) {
    const size_t dot = rest.find('.', 7);
    name.block = rest.substr(7, dot - 7);
    rest = rest.substr(dot + 1);
  }
  const size_t dot = rest.rfind('.');
  name.stem = rest.substr(0, dot);
  name.leaf = rest.substr(dot + 1);
  return name;
}

std::vector<std::string> pieces_of(const std::string& stem) {
  if (stem == "attention.qkv") return {"attention.q", "attention.k", "attention.v"};
  if (stem == "mlp.gate_up") return {"mlp.gate", "mlp.up"};
  return {stem};
}

/// Rows of one piece of `parameter`.
int64_t rows_of(const ModelConfig& c, std::string_view piece, const ParameterSpec& parameter) {
  if (piece == "attention.q") return c.heads * c.head_dim;
  if (piece == "attention.k" || piece == "attention.v") return c.kv_heads * c.head_dim;
  if (piece == "mlp.gate" || piece == "mlp.up") return c.d_ff;
  return parameter.shape[0];
}

class SourceBuilder {
 public:
  SourceBuilder(const ModelConfig& config, HfFamily family, std::string_view prefix)
      : config_(config), names_(names_of(family)), prefix_(prefix) {}

  WeightSource build(const ParameterSpec& parameter) const {
    const Name name = split(parameter.name);
    WeightSource source{parameter, {}};
    int64_t to = 0;
    for (const std::string& piece : pieces_of(name.stem)) {
      WeightPart part = locate(piece, name, parameter);
      part.to = to;
      to += part.rows;
      append(source.parts, part);
    }
    return source;
  }

 private:
  const Row& row_of(std::string_view piece, const ParameterSpec& parameter) const {
    for (const Row& row : names_.rows) {
      if (row.piece == piece) return row;
    }
    fail("checkpoint: this family stores no ", parameter.name);
  }

  WeightPart locate(std::string_view piece, const Name& name,
                    const ParameterSpec& parameter) const {
    const Row& row = row_of(piece, parameter);
    WeightPart part;
    // The head stands beside the model, not inside it.
    part.stored = std::string(piece == "head" ? "" : prefix_);
    if (!name.block.empty()) part.stored += std::string(names_.blocks) + name.block + ".";
    part.stored += std::string(row.stored) + "." + name.leaf;
    part.rows = rows_of(config_, piece, parameter);
    int64_t total = 0;
    for (const Row& other : names_.rows) {
      if (other.piece == piece) part.from = total;
      if (other.stored == row.stored) total += rows_of(config_, other.piece, parameter);
    }
    part.stored_shape = parameter.shape;
    part.stored_shape[0] = total;
    part.transposed = row.transposed && part.stored_shape.size() == 2;
    if (part.transposed) std::swap(part.stored_shape[0], part.stored_shape[1]);
    return part;
  }

  /// Pieces that are neighbours here and there become one part.
  static void append(std::vector<WeightPart>& parts, const WeightPart& part) {
    WeightPart* last = parts.empty() ? nullptr : &parts.back();
    if (last && last->stored == part.stored && last->from + last->rows == part.from) {
      last->rows += part.rows;
    } else {
      parts.push_back(part);
    }
  }

  const ModelConfig& config_;
  const FamilyNames& names_;
  std::string_view prefix_;
};

}  // namespace

std::string_view hf_prefix(HfFamily family) { return names_of(family).prefix; }

std::vector<WeightSource> hf_weights(const ModelConfig& config, HfFamily family,
                                     std::string_view prefix) {
  const SourceBuilder builder(config, family, prefix);
  std::vector<WeightSource> sources;
  for (const ParameterSpec& parameter : parameter_specs(config)) {
    sources.push_back(builder.build(parameter));
  }
  return sources;
}

bool is_hf_buffer(HfFamily family, std::string_view name) {
  if (family == HfFamily::gpt2) {
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
  }
  return name.ends_with("rotary_emb.inv_freq");
}

std::vector<WeightSource> own_weights(const ModelConfig& config) {
  std::vector<WeightSource> sources;
  for (const auto& list : {parameter_specs(config), buffer_specs(config)}) {
    for (const ParameterSpec& p : list) {
      const int64_t rows = p.shape.empty() ? 1 : p.shape[0];
      sources.push_back({p, {{p.name, p.shape, false, 0, 0, rows}}});
    }
  }
  return sources;
}

}  // namespace tally
