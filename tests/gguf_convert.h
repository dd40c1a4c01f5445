#pragma once
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint.h"
#include "tests/gguf_helpers.h"

/// Published folders as a converter to GGUF writes them.
namespace tally::test {

inline std::vector<float> floats_of(const StoredTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.numel()));
  read_values(tensor, std::span<float>(values));
  return values;
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// What a converter makes of the name of a published tensor.
inline std::string gguf_name(std::string name, const std::string& family) {
  const std::vector<std::pair<std::string, std::string>> words = {
      {"model.", ""},
      {"transformer.", ""},
      {"layers.", "blk."},
      {"h.", "blk."},
      {"embed_tokens", "token_embd"},
      {"wte", "token_embd"},
      {"wpe", "position_embd"},
      {"lm_head", "output"},
      {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"attn.c_attn", "attn_qkv"},
      {"attn.c_proj", "attn_output"},
      {"mlp.c_fc", "ffn_up"},
      {"mlp.c_proj", "ffn_down"},
      {"ln_1", "attn_norm"},
      {"ln_2", "ffn_norm"},
      {"ln_f", "output_norm"},
      {"input_layernorm", "attn_norm"},
      {"pre_feedforward_layernorm", "ffn_norm"},
      {"post_feedforward_layernorm", "post_ffw_norm"},
      {"post_attention_layernorm", family == "gemma2" ? "post_attention_norm" : "ffn_norm"},
      {"block_sparse_moe.gate", "ffn_gate_inp"},
      {"block_sparse_moe.experts", "experts"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  for (const auto& [from, to] : words) name = replaced(name, from, to);
  return name.starts_with("norm.") ? "output_" + name : name;
}

/// Rows of each head so that those which turn together are neighbours: row (i, j) of (d / 2, 2) is
/// row j d / 2 + i of the published head.
inline std::vector<float> permuted(const std::vector<float>& values, int64_t heads,
                                   size_t columns) {
  std::vector<float> out(values.size());
  const size_t d = values.size() / columns / size_t(heads);
  for (size_t row = 0; row < values.size() / columns; ++row) {
    const size_t head = row / d, i = row % d / 2, j = row % 2;
    const size_t from = head * d + j * d / 2 + i;
    for (size_t c = 0; c < columns; ++c) out[row * columns + c] = values[from * columns + c];
  }
  return out;
}

inline std::vector<float> transposed(const std::vector<float>& values, size_t rows,
                                     size_t columns) {
  std::vector<float> out(values.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) out[c * rows + r] = values[r * columns + c];
  }
  return out;
}

inline void put_config(GgufBytes& file, const std::string& family, const ModelConfig& m) {
  const auto n = [](int64_t value) { return static_cast<uint32_t>(value); };
  file.text("general.architecture", family);
  file.number(family + ".block_count", n(m.layers));
  file.number(family + ".context_length", n(m.context));
  file.number(family + ".embedding_length", n(m.d_model));
  file.number(family + ".feed_forward_length", n(m.d_ff));
  file.number(family + ".attention.head_count", n(m.heads));
  const bool gpt2 = family == "gpt2";
  file.real(family + (gpt2 ? ".attention.layer_norm_epsilon" : ".attention.layer_norm_rms_epsilon"),
            static_cast<float>(m.norm_eps));
  if (gpt2) return;
  file.number(family + ".attention.head_count_kv", n(m.kv_heads));
  file.number(family + ".attention.key_length", n(m.head_dim));
  file.number(family + ".attention.value_length", n(m.head_dim));
  file.number(family + ".rope.dimension_count", n(m.head_dim));
  file.real(family + ".rope.freq_base", static_cast<float>(m.rope_base));
  if (m.experts > 0) {
    file.number(family + ".expert_count", n(m.experts));
    file.number(family + ".expert_used_count", n(m.experts_per_token));
  }
  if (m.rope_scaling == RopeScale::linear) {
    file.text(family + ".rope.scaling.type", "linear");
    file.real(family + ".rope.scaling.factor", static_cast<float>(m.rope_factor));
  }
  if (family == "gemma2") {
    file.real("gemma2.attn_logit_softcapping", static_cast<float>(m.attention_soft_cap));
    file.real("gemma2.final_logit_softcapping", static_cast<float>(m.final_soft_cap));
    file.number("gemma2.attention.sliding_window", n(m.window));
  }
}

/// The experts of a layer, stacked as a converter does it: tensor -> the values of each in turn.
struct StackedExperts {
  std::map<std::string, std::map<int, std::vector<float>>> values;
  std::map<std::string, std::vector<int64_t>> shapes;

  /// True for "blk.0.experts.3.w1.weight" and its like, which are kept for later.
  bool take(const std::string& name, const StoredTensor& tensor) {
    const size_t at = name.find("experts.");
    if (at == std::string::npos) return false;
    const size_t dot = name.find('.', at + 8);
    const std::map<std::string, std::string> words = {
        {"w1", "ffn_gate_exps"}, {"w2", "ffn_down_exps"}, {"w3", "ffn_up_exps"}};
    const std::string target = name.substr(0, at) + words.at(name.substr(dot + 1, 2)) + ".weight";
    values[target][std::stoi(name.substr(at + 8, dot - at - 8))] = floats_of(tensor);
    shapes[target] = tensor.shape;
    return true;
  }
  void write(GgufBytes& file) const {
    for (const auto& [name, experts] : values) {
      std::vector<float> all;
      for (const auto& [number, one] : experts) all.insert(all.end(), one.begin(), one.end());
      std::vector<int64_t> shape = shapes.at(name);
      shape.insert(shape.begin(), int64_t(experts.size()));
      file.tensor(name, shape, all);
    }
  }
};

/// A published folder as a converter writes it.
inline GgufBytes converted(const std::string& folder, const std::string& family) {
  const ModelConfig m = Checkpoint::hugging_face(folder).config();
  GgufBytes file;
  put_config(file, family, m);
  const WeightFiles weights(folder);
  StackedExperts experts;
  for (const std::string& name : weights.names()) {
    const StoredTensor& tensor = *weights.find(name);
    const std::string target = gguf_name(name, family);
    if (experts.take(target, tensor)) continue;
    std::vector<float> values = floats_of(tensor);
    std::vector<int64_t> shape = tensor.shape;
    const size_t columns = shape.size() == 2 ? size_t(shape[1]) : 1;
    if (family == "llama" && target.find("attn_q.") != std::string::npos)
      values = permuted(values, m.heads, columns);
    if (family == "llama" && target.find("attn_k.") != std::string::npos)
      values = permuted(values, m.kv_heads, columns);
    if (family.starts_with("gemma") && target.find("norm") != std::string::npos)
      for (float& v : values) v += 1;
    if (family == "gpt2" && target.starts_with("blk.") && shape.size() == 2) {
      values = transposed(values, size_t(shape[0]), size_t(shape[1]));
      std::swap(shape[0], shape[1]);
    }
    file.tensor(target, shape, values);
  }
  experts.write(file);
  return file;
}

}  // namespace tally::test
