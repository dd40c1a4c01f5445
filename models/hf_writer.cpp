#include "models/hf_writer.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/fields_json.h"
#include "models/hf_reader.h"
#include "models/hf_rope.h"

namespace tally {
namespace {

std::string activation_name(Activation a, const char* as_default) {
  switch (a) {
    case Activation::silu:
      return "silu";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:  // three names of one function
      return std::string_view(as_default) == "gelu_new" ? "gelu_new" : "gelu_pytorch_tanh";
    case Activation::relu:
      return "relu";
    case Activation::squared_relu:
      return "relu2";
    default:
      return "";
  }
}

/// Fields that a checkpoint says nothing of: they are a choice of training, or of how products are
/// fused.
bool is_beside_the_model(std::string_view field) {
  static constexpr std::string_view fields[] = {"name",
                                                "init",
                                                "init_std",
                                                "embedding_dropout",
                                                "attention_dropout",
                                                "residual_dropout",
                                                "fused_qkv",
                                                "fused_gate_up",
                                                "fused_parallel",
                                                "stochastic_depth",
                                                "label_smoothing",
                                                "load_balance_loss",
                                                "router_bias_rate",
                                                "z_loss",
                                                "max_z_loss",
                                                "rope_float32",
                                                "norm_round_before_gain",
                                                "rope_original_context",
                                                "rope_local_base"};
  return std::ranges::find(fields, field) != std::end(fields);
}

bool near(const Json& a, const Json& b) {
  if (!a.is_number_float() || !b.is_number_float()) return a == b;
  const double x = a, y = b;
  return x == y || std::fabs(x - y) <= 1e-12 * std::max(std::fabs(x), std::fabs(y));
}

/// Lists that are begun anew at their end say the same when they are written out.
Json spelled_out(const Json& list, int64_t layers) {
  if (!list.is_array() || list.empty()) return list;
  Json all = Json::array();
  for (int64_t i = 0; i < layers; ++i) all.push_back(list[static_cast<size_t>(i) % list.size()]);
  return all;
}

/// The fields in which two models differ, "" if none.
std::string differences(const ModelConfig& a, const ModelConfig& b) {
  std::string list;
  for (const auto& field : model_fields()) {
    if (is_beside_the_model(field.name)) continue;
    const Json ours = spelled_out(detail::field_value(a, field), a.layers),
               theirs = spelled_out(detail::field_value(b, field), a.layers);
    if (!near(ours, theirs))
      list += (list.empty() ? "" : ", ") + std::string(field.name) + " = " + ours.dump();
  }
  return list;
}

/// What `family` cannot say of the model.
std::string missing(const ModelConfig& config, const HfFamily& family) {
  try {
    const Json document = HfWriter(config, family).write();
    return differences(config, HfReader(document, family, "export").read());
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace

Json HfWriter::write() {
  document_["model_type"] = family_.model_type;
  document_["torch_dtype"] = "float32";
  // Otherwise a reader takes the family's own, which another tokenizer does not have.
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) document_[key] = nullptr;
  entries();
  for (const HfFixed& fixed : family_.fixed) document_[fixed.key] = Json::parse(fixed.value);
  if (*family_.activation_key != '\0')
    document_[family_.activation_key] = activation_name(config_.activation, family_.activation);
  if (family_.write) family_.write(*this, config_);
  return std::move(document_);
}

void HfWriter::entries() {
  for (const HfEntry& entry : family_.entries) {
    const auto& field = detail::find_field(model_fields(), entry.field, "export");
    Json value = detail::field_value(config_, field);
    // 0 means "none" in our documents and is a mistake in these.
    if (value.is_number() && value == 0) value = nullptr;
    document_[entry.key] = value;
  }
}

void HfWriter::rope(const char* fraction_key, const char* base_key) {
  if (config_.position != Position::rope) return;
  if (*base_key != '\0') document_[base_key] = config_.rope_base;
  if (*fraction_key != '\0') document_[fraction_key] = config_.rope_fraction;
  const Json scaling = write_hf_rope(config_);
  if (scaling.empty()) return;
  document_["rope_scaling"] = scaling;
  if (config_.rope_scaling != RopeScale::dynamic_ntk) return;
  // The context of these is what the scaling begins with.
  for (const HfEntry& entry : family_.entries) {
    if (std::string_view(entry.field) == "context")
      document_[entry.key] = config_.rope_original_context;
  }
}

void HfWriter::rope_by_layer() {
  windows();
  Json global = write_hf_rope(config_);
  if (global.empty()) global["rope_type"] = "default";
  global["rope_theta"] = config_.rope_base;
  const Json local = {{"rope_type", "default"}, {"rope_theta", config_.rope_local_base}};
  document_["rope_parameters"] = {{"full_attention", global}, {"sliding_attention", local}};
}

Json HfWriter::whole_or_real(double v) {
  const double whole = std::round(v);
  if (std::fabs(v - whole) <= 1e-12 * std::fabs(v)) return static_cast<int64_t>(whole);
  return v;
}

void HfWriter::windows() {
  document_["sliding_window"] = config_.window > 0 ? Json(config_.window) : Json();
  if (config_.attention_pattern.empty() && config_.window == 0) return;
  const Json kinds =
      spelled_out(config_.attention_pattern.empty() ? Json(std::vector<std::string>{"window"})
                                                    : Json(config_.attention_pattern),
                  config_.layers);
  Json types = Json::array();
  for (const Json& kind : kinds)
    types.push_back(kind == "window" ? "sliding_attention" : "full_attention");
  document_["layer_types"] = types;
}

Json hf_config_to_json(const ModelConfig& config, const HfFamily& family) {
  const std::string lost = missing(config, family);
  check(lost.empty(), "export: ", family.model_type, " cannot say ", lost,
        "; choose another --family, or leave it out");
  return HfWriter(config, family).write();
}

const HfFamily& hf_family_for(const ModelConfig& config) {
  std::string recorded, nearest, lost;
  for (const HfFamily* family : hf_families()) {
    const bool published = !std::string_view(family->model_type).ends_with("_ref");
    const std::string lacks = missing(config, *family);
    if (lacks.empty() && published) return *family;
    if (lacks.empty())
      recorded += (recorded.empty() ? "--family " : " or ") + std::string(family->model_type);
    const auto commas = [](const std::string& list) { return std::ranges::count(list, ','); };
    if (nearest.empty() || commas(lacks) < commas(lost)) nearest = family->model_type, lost = lacks;
  }
  check(recorded.empty(), "export: no published family can say all of this model; ", recorded,
        " can, which this program reads and no public library");
  fail("export: no published family can say all of this model; the nearest, ", nearest,
       ", cannot say ", lost);
}

}  // namespace tally
