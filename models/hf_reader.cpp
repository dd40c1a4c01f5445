#include "models/hf_reader.h"

#include <algorithm>

#include "core/error.h"
#include "models/fields_json.h"
#include "models/hf_rope.h"

namespace tally {
namespace {

using detail::shown;

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
                                                  "emb_pdrop",
                                                  "resid_pdrop",
                                                  "attention_dropout",
                                                  "hidden_dropout",
                                                  "dropout",
                                                  "layerdrop",
                                                  "embedding_dropout",
                                                  "residual_dropout",
                                                  "classifier_dropout",
                                                  "embed_dropout",
                                                  "resid_dropout",
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
                                                  "unsloth_fixed",
                                                  "slow_but_exact",
                                                  "init_device",
                                                  "router_aux_loss_coef",
                                                  "router_jitter_noise",
                                                  "output_router_logits",
                                                  "cache_implementation"};
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

}  // namespace

std::vector<std::string> shortest_period(const std::vector<std::string>& list) {
  for (size_t n = 1; n < list.size(); ++n) {
    bool repeats = true;
    for (size_t i = n; i < list.size() && repeats; ++i) repeats = list[i] == list[i - n];
    if (repeats) return {list.begin(), list.begin() + static_cast<std::ptrdiff_t>(n)};
  }
  return list;
}

ModelConfig HfReader::read() {
  family_.defaults(config_);
  for (const HfEntry& entry : family_.entries) read_entry(entry);
  for (const HfFixed& fixed : family_.fixed) only(fixed.key, Json::parse(fixed.value));
  if (*family_.activation_key != '\0') {
    const Json* activation = find(family_.activation_key);
    config_.activation = read_activation(activation ? *activation : Json(family_.activation),
                                         where(family_.activation_key));
  }
  if (family_.read) family_.read(*this, config_);
  refuse_the_rest();
  const Spelling spelling = [this](std::string_view field) { return key_of(field); };
  config_.resolve(origin_, spelling);
  config_.check(origin_, spelling);
  return config_;
}

const Json* HfReader::find(const std::string& key) {
  read_.insert(key);
  const auto found = document_.find(key);
  return found == document_.end() || found->is_null() ? nullptr : &*found;
}

bool HfReader::flag(const char* key, bool otherwise) {
  const Json* value = find(key);
  check(!value || value->is_boolean(), where(key), " must be true or false; it is ",
        value ? shown(*value) : "");
  return value ? value->get<bool>() : otherwise;
}

double HfReader::number(const char* key, double otherwise) {
  const Json* value = find(key);
  check(!value || value->is_number(), where(key), " must be a number; it is ",
        value ? shown(*value) : "");
  return value ? value->get<double>() : otherwise;
}

int64_t HfReader::integer(const char* key, int64_t otherwise) {
  const Json* value = find(key);
  return value ? detail::integer(*value, where(key)) : otherwise;
}

void HfReader::only(const char* key, const Json& value) {
  const Json* given = find(key);
  check(!given || *given == value, where(key), " = ", given ? shown(*given) : "",
        " is not supported; only ", value.dump(), " is");
}

std::string HfReader::key_of(std::string_view field) const {
  for (const HfEntry& entry : family_.entries) {
    if (entry.field == field) return entry.key;
  }
  return std::string(field);
}

void HfReader::read_entry(const HfEntry& entry) {
  const std::string at = where(entry.key);
  const Json* value = find(entry.key);
  check(value || !entry.required, at, " is missing");
  if (!value) return;
  // 0 means "derive it" in our own documents; in these it is a mistake.
  check(!value->is_number_integer() || *value != 0, at, " must not be 0");
  detail::set_field(config_, detail::find_field(model_fields(), entry.field, origin_), *value, at);
}

void HfReader::read_rope(const char* fraction_key, double fraction) {
  const bool at_top = find("rope_theta") != nullptr;
  if (at_top)
    detail::set_field(config_, detail::find_field(model_fields(), "rope_base", origin_),
                      *find("rope_theta"), where("rope_theta"));
  turns_partly_ = *fraction_key != '\0';
  config_.rope_fraction = turns_partly_ ? number(fraction_key, fraction) : fraction;
  const double base = config_.rope_base;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* rope = find(key);
    if (!rope) continue;
    check(rope->is_object(), where(key), " must be an object; it is ", shown(*rope));
    if (rope->contains("full_attention") && !config_.attention_pattern.empty())
      read_rope_by_layer(*rope, where(key));
    else
      read_one_rope(*rope, where(key));
    check(!at_top || config_.rope_base == base, origin_, ": rope_theta is ", base, " and in ", key,
          " ", config_.rope_base, "; which one holds?");
  }
}

void HfReader::read_one_rope(const Json& rope, const std::string& at) {
  Json rest = rope;
  for (const std::string& key : beside_rope_) rest.erase(key);
  const auto part = rest.find("partial_rotary_factor");
  if (part != rest.end() && part->is_number() && turns_partly_) {
    config_.rope_fraction = part->get<double>();
    rest.erase(part);
  }
  if (const auto base = read_hf_rope(rest, at, config_)) config_.rope_base = *base;
}

void HfReader::read_rope_by_layer(const Json& rope, const std::string& at) {
  for (const auto& [key, value] : rope.items()) {
    check(key == "full_attention" || key == "sliding_attention", at, ": ", Json(key).dump(),
          " is not a kind of layer; full_attention and sliding_attention are");
  }
  check(rope.contains("sliding_attention"), at, ": sliding_attention is missing");
  ModelConfig local = config_;
  local.rope_scaling = RopeScale::none;  // a family's default is that of the other layers
  const auto base = read_hf_rope(rope["sliding_attention"], at + ": sliding_attention", local);
  check(local.rope_scaling == RopeScale::none, at,
        ": sliding_attention: only the type default is supported in layers with a window");
  config_.rope_local_base = base.value_or(config_.rope_local_base);
  read_one_rope(rope["full_attention"], at + ": full_attention");
}

void HfReader::read_windows(bool (*slides)(HfReader&, int64_t), int64_t otherwise) {
  const int64_t window = integer("sliding_window", otherwise);
  check(window >= 0, where("sliding_window"), " = ", window, " must be above 0, or null");
  std::vector<std::string> kinds;
  if (const Json* types = find("layer_types")) {
    check(types->is_array() && static_cast<int64_t>(types->size()) == config_.layers,
          where("layer_types"), " must name the kind of each of the ", config_.layers, " layers");
    for (const Json& type : *types) {
      check(type == "full_attention" || type == "sliding_attention", where("layer_types"), ": ",
            shown(type), " is not supported; full_attention and sliding_attention are");
      kinds.emplace_back(type == "full_attention" ? "full" : "window");
    }
  } else {
    for (int64_t i = 0; i < config_.layers; ++i)
      kinds.emplace_back(window > 0 && slides(*this, i) ? "window" : "full");
  }
  if (std::ranges::find(kinds, "window") == kinds.end()) return;
  check(window > 0, where("sliding_window"), " is missing; layer_types has layers that slide");
  config_.window = window;
  config_.attention_pattern = shortest_period(kinds);
}

void HfReader::refuse_the_rest() const {
  std::vector<std::string> known(read_.begin(), read_.end());
  for (const auto& [key, value] : document_.items()) {
    if (read_.contains(key) || is_harmless(key) || is_off(value)) continue;
    const std::string best = closest(key, known);
    fail(origin_, ": the entry ", Json(key).dump(), " = ", shown(value), " is not supported for ",
         family_.model_type, best.empty() ? "" : "; did you mean \"" + best + "\"?");
  }
}

}  // namespace tally
