#include "models/hf_config.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "data/file.h"
#include "models/fields_json.h"
#include "models/hf_rope.h"

namespace tally {
namespace {

using detail::shown;

/// An entry that fills fields of ours; one that is not required keeps their default.
struct Entry {
  const char* key;
  const char* field;
  bool required;
};
/// An entry whose other values would change the computation in a way that is not supported.
struct Fixed {
  const char* key;
  const char* value;  // as JSON
};
struct FamilyRow {
  const char* model_type;
  HfFamily family;
  std::vector<Entry> entries;
  std::vector<Fixed> fixed;
  const char* activation_key;
  const char* activation;
  void (*defaults)(ModelConfig&);
};

const std::vector<FamilyRow>& families() {
  static const std::vector<FamilyRow> rows = {
      {"gpt2",
       HfFamily::gpt2,
       {{"n_layer", "layers", true},
        {"n_embd", "d_model", true},
        {"n_head", "heads", true},
        {"n_inner", "d_ff", false},
        {"vocab_size", "vocab", true},
        {"n_positions", "context", true},
        {"layer_norm_epsilon", "norm_eps", false},
        {"initializer_range", "init_std", false},
        {"tie_word_embeddings", "tied_head", false}},
       {{"scale_attn_weights", "true"},
        {"scale_attn_by_inverse_layer_idx", "false"},
        {"reorder_and_upcast_attn", "false"}},
       "activation_function",
       "gelu_new",
       [](ModelConfig& m) {
         m.norm = Norm::layer_norm, m.norm_bias = true, m.norm_eps = 1e-5;
         m.gated = false, m.position = Position::learned;
         m.qkv_bias = m.attention_output_bias = m.mlp_bias = m.tied_head = true;
         m.init = Init::gpt2;
       }},
      {"llama",
       HfFamily::llama,
       {{"num_hidden_layers", "layers", true},
        {"hidden_size", "d_model", true},
        {"num_attention_heads", "heads", true},
        {"num_key_value_heads", "kv_heads", false},
        {"head_dim", "head_dim", false},
        {"intermediate_size", "d_ff", true},
        {"vocab_size", "vocab", true},
        {"max_position_embeddings", "context", false},
        {"rms_norm_eps", "norm_eps", false},
        {"rope_theta", "rope_base", false},
        {"attention_bias", "qkv_bias", false},
        {"attention_bias", "attention_output_bias", false},
        {"mlp_bias", "mlp_bias", false},
        {"initializer_range", "init_std", false},
        {"tie_word_embeddings", "tied_head", false}},
       {{"partial_rotary_factor", "1.0"}, {"rope_interleaved", "false"}},
       "hidden_act",
       "silu",
       [](ModelConfig& m) { m.norm_eps = 1e-6, m.context = 2048; }},
  };
  return rows;
}

/// Entries that say how a model was made, stored or sampled, not what it computes.
bool is_harmless(std::string_view key) {
  static const std::set<std::string_view> keys = {"architectures",
                                                  "model_type",
                                                  "torch_dtype",
                                                  "dtype",
                                                  "transformers_version",
                                                  "use_cache",
                                                  "name_or_path",
                                                  "tokenizer_class",
                                                  "prefix",
                                                  "task_specific_params",
                                                  "problem_type",
                                                  "finetuning_task",
                                                  "id2label",
                                                  "label2id",
                                                  "num_labels",
                                                  "auto_map",
                                                  "pretraining_tp",
                                                  "use_bfloat16",
                                                  "return_dict",
                                                  "return_dict_in_generate",
                                                  "output_scores",
                                                  "is_decoder",
                                                  "bos_token_id",
                                                  "eos_token_id",
                                                  "pad_token_id",
                                                  "sep_token_id",
                                                  "decoder_start_token_id",
                                                  "forced_bos_token_id",
                                                  "forced_eos_token_id",
                                                  "max_length",
                                                  "min_length",
                                                  "do_sample",
                                                  "early_stopping",
                                                  "num_beams",
                                                  "num_beam_groups",
                                                  "diversity_penalty",
                                                  "temperature",
                                                  "top_k",
                                                  "top_p",
                                                  "typical_p",
                                                  "repetition_penalty",
                                                  "length_penalty",
                                                  "no_repeat_ngram_size",
                                                  "encoder_no_repeat_ngram_size",
                                                  "num_return_sequences",
                                                  "chunk_size_feed_forward",
                                                  "attn_pdrop",
                                                  "embd_pdrop",
                                                  "resid_pdrop",
                                                  "attention_dropout",
                                                  "hidden_dropout",
                                                  "summary_type",
                                                  "summary_use_proj",
                                                  "summary_activation",
                                                  "summary_proj_to_labels",
                                                  "summary_first_dropout",
                                                  "n_ctx",
                                                  "transformers.js_config",
                                                  "gradient_checkpointing",
                                                  "max_sequence_length",
                                                  "model_max_length",
                                                  "unsloth_version",
                                                  "unsloth_fixed"};
  return key.starts_with('_') || keys.contains(key);
}

/// null, false, {} and [] switch nothing on.
bool is_off(const Json& value) {
  return value.is_null() || value == false || (value.is_structured() && value.empty());
}

Activation read_activation(const Json& value, const std::string& where) {
  static const std::vector<std::pair<std::string, Activation>> names = {
      {"silu", Activation::silu},           {"swish", Activation::silu},
      {"gelu", Activation::gelu},           {"gelu_new", Activation::gelu_tanh},
      {"gelu_fast", Activation::gelu_tanh}, {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"relu", Activation::relu},           {"relu2", Activation::squared_relu}};
  check(value.is_string(), where, " must be a text; it is ", shown(value));
  std::vector<std::string> known;
  for (const auto& [name, activation] : names) {
    if (value == name) return activation;
    known.push_back(name);
  }
  fail(where, " = ", value.dump(), " is not supported",
       did_you_mean(value.get<std::string>(), known));
}

/// Fills one ModelConfig from one document and remembers what it has read.
class Reader {
 public:
  Reader(const Json& document, const FamilyRow& row, const std::string& origin)
      : document_(document), row_(row), origin_(origin) {}

  ModelConfig read() {
    row_.defaults(config_);
    for (const Entry& entry : row_.entries) read_entry(entry);
    for (const Fixed& fixed : row_.fixed) read_fixed(fixed);
    const Json* activation = find(row_.activation_key);
    config_.activation = read_activation(activation ? *activation : Json(row_.activation),
                                         origin_ + ": " + row_.activation_key);
    if (row_.family == HfFamily::llama) read_rope_entries();
    refuse_the_rest();
    const Spelling spelling = [this](std::string_view field) { return key_of(field); };
    config_.resolve(origin_, spelling);
    config_.check(origin_, spelling);
    return config_;
  }

 private:
  /// nullptr where the entry is absent or null.
  const Json* find(const char* key) {
    read_.insert(key);
    const auto found = document_.find(key);
    return found == document_.end() || found->is_null() ? nullptr : &*found;
  }

  std::string key_of(std::string_view field) const {
    for (const Entry& entry : row_.entries) {
      if (entry.field == field) return entry.key;
    }
    return std::string(field);
  }

  void read_entry(const Entry& entry) {
    const std::string where = origin_ + ": " + entry.key;
    const Json* value = find(entry.key);
    check(value || !entry.required, where, " is missing");
    if (!value) return;
    // 0 means "derive it" in our own documents; in these it is a mistake.
    check(!value->is_number_integer() || *value != 0, where, " must not be 0");
    const auto& field = detail::find_field(model_fields(), entry.field, origin_);
    detail::set_field(config_, field, *value, where);
  }

  void read_fixed(const Fixed& fixed) {
    const Json* value = find(fixed.key);
    check(!value || *value == Json::parse(fixed.value), origin_, ": ", fixed.key, " = ",
          value ? shown(*value) : "", " is not supported; only ", fixed.value, " is");
  }

  void read_rope_entries() {
    const bool at_top = find("rope_theta") != nullptr;
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const Json* rope = find(key);
      if (!rope) continue;
      const auto base = read_hf_rope(*rope, origin_ + ": " + key, config_);
      check(!base || !at_top || *base == config_.rope_base, origin_, ": rope_theta is ",
            config_.rope_base, " and in ", key, " ", base.value_or(0), "; which one holds?");
      if (base) config_.rope_base = *base;
    }
  }

  void refuse_the_rest() const {
    std::vector<std::string> known(read_.begin(), read_.end());
    for (const auto& [key, value] : document_.items()) {
      if (read_.contains(key) || is_harmless(key) || is_off(value)) continue;
      const std::string best = closest(key, known);
      fail(origin_, ": the entry ", Json(key).dump(), " = ", shown(value), " is not supported for ",
           row_.model_type, best.empty() ? "" : "; did you mean \"" + best + "\"?");
    }
  }

  const Json& document_;
  const FamilyRow& row_;
  const std::string& origin_;
  ModelConfig config_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace

HfModel hf_config_from_json(std::string_view text, const std::string& origin) {
  const Json document = parse_json(text, origin);
  check(document.is_object(), origin, ": must be an object {...}; it is ", shown(document));
  const Json type = document.value("model_type", Json());
  check(type.is_string(), origin, ": model_type must be a text such as \"llama\"; it is ",
        shown(type));
  std::string known;
  for (const FamilyRow& row : families()) {
    if (type == row.model_type) return {row.family, Reader(document, row, origin).read()};
    known += (known.empty() ? "" : ", ") + std::string(row.model_type);
  }
  fail(origin, ": model_type ", type.dump(), " is not supported; these are: ", known);
}

HfModel read_hf_config(const std::string& path) {
  return hf_config_from_json(read_file(path, size_t{1} << 24), path);
}

bool looks_like_hf_config(std::string_view text) {
  try {
    const Json document = parse_json(text, "", true);
    return document.is_object() && document.contains("model_type");
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tally
