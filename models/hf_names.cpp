#include "models/hf_names.h"

#include <algorithm>

#include "core/error.h"
#include "models/config_shared.h"

namespace tally {
namespace {

/// "blocks.3.attention.qkv.weight" taken apart; of "encoder.layers.3.attention.q.weight" the stem is
/// "encoder.attention.q".
struct Name {
  std::string block, stem, leaf;  // "3", "attention.qkv", ".weight"; "attention.sink" has no leaf
};

Name split(const std::string& full) {
  Name name;
  std::string rest = full;
  if (rest.starts_with("blocks.")) {
    const size_t dot = rest.find('.', 7);
    name.block = rest.substr(7, dot - 7);
    rest = rest.substr(dot + 1);
  } else if (const size_t layers = rest.find("coder.layers."); layers != std::string::npos) {
    const size_t number = layers + 13, dot = rest.find('.', number);
    name.block = rest.substr(number, dot - number);
    rest = rest.substr(0, layers + 6) + rest.substr(dot + 1);
  }
  const size_t dot = rest.rfind('.');
  const std::string last = dot == std::string::npos ? "" : rest.substr(dot + 1);
  const bool of_module = last == "weight" || last == "bias";
  name.stem = of_module ? rest.substr(0, dot) : rest;
  if (of_module) name.leaf = "." + last;
  return name;
}

std::vector<std::string> pieces_of(const std::string& stem) {
  for (const std::string at : {"attention.", "delta_net."}) {
    if (stem == at + "qkv") return {at + "q", at + "k", at + "v"};
  }
  for (const std::string at : {"mlp.", "mlp.experts.", "mlp.shared."}) {
    if (stem == at + "gate_up") return {at + "gate", at + "up"};
  }
  return {stem};
}

bool is_of_experts(std::string_view piece) { return piece.starts_with("mlp.experts."); }

/// Rows of one piece of `parameter`.
int64_t rows_of(const ModelConfig& c, std::string_view piece, const ParameterSpec& parameter) {
  const LayerShape layer = layer_shape(c, parameter.layer);
  if (piece == "attention.q" || piece == "attention.gate") return c.heads * layer.head_dim;
  if (piece == "attention.k" || piece == "attention.v") return layer.kv_heads * layer.head_dim;
  if (piece == "delta_net.q" || piece == "delta_net.k") return c.delta_key_heads * c.delta_key_dim;
  if (piece == "delta_net.v" || piece == "delta_net.z")
    return c.delta_value_heads * c.delta_value_dim;
  if (piece == "mlp.gate" || piece == "mlp.up") return layer.d_ff;
  if (piece == "mlp.shared.gate" || piece == "mlp.shared.up") return shared_expert_width(c);
  if (piece == "mlp.experts.gate" || piece == "mlp.experts.up") return c.expert_d_ff;
  if (is_of_experts(piece)) return parameter.shape[1];
  return parameter.shape.empty() ? 1 : parameter.shape[0];
}

class SourceBuilder {
 public:
  SourceBuilder(const ModelConfig& config, const HfFamily& family, std::string_view prefix)
      : config_(config), family_(family), prefix_(prefix) {}

  WeightSource build(const ParameterSpec& parameter) const {
    const Name name = split(parameter.name);
    WeightSource source{parameter, {}};
    int64_t to = 0;
    const int64_t experts = is_of_experts(name.stem) ? config_.experts : 1;
    for (int64_t expert = 0; expert < experts; ++expert) {
      for (const std::string& piece : pieces_of(name.stem)) {
        const HfRow& row = row_of(piece, parameter);
        for (WeightPart part : locate(row, name, parameter, expert)) {
          part.to = to;
          to += part.rows;
          append(source.parts, part);
        }
      }
    }
    return source;
  }

 private:
  bool holds(const HfRow& row) const { return !row.when || row.when(config_); }

  const HfRow& row_of(std::string_view piece, const ParameterSpec& parameter) const {
    for (const HfRow& row : family_.rows) {
      if (row.piece == piece && holds(row)) return row;
    }
    fail("checkpoint: ", family_.model_type, " stores no ", parameter.name);
  }

  std::string stored_name(const HfRow& row, const Name& name) const {
    // The head stands beside the model, not inside it.
    std::string stored(row.piece.starts_with("head") ? std::string_view() : prefix_);
    const size_t number = row.stored.find('#');
    if (number != std::string::npos) {
      stored += std::string(row.stored.substr(0, number)) + name.block;
      stored += row.stored.substr(number + 1);
    } else {
      if (!name.block.empty()) stored += std::string(family_.blocks) + name.block + ".";
      stored += row.stored;
    }
    if (row.buffer) return stored;
    if (row.underscore) return stored + "_" + name.leaf.substr(1);
    // "gate_up_proj" alone and "gate_up_proj_bias", where a tensor holds all experts.
    if (row.all_experts) return stored + (name.leaf == ".bias" ? "_bias" : "");
    return stored + name.leaf;
  }

  /// The rows of one piece (of one expert), in its order, as they lie in the stored tensor.
  std::vector<WeightPart> locate(const HfRow& row, const Name& name, const ParameterSpec& parameter,
                                 int64_t expert) const {
    WeightPart whole;
    whole.stored = stored_name(row, name);
    const size_t number = whole.stored.find("{}");
    const bool apart = number != std::string::npos;
    if (apart) whole.stored.replace(number, 2, std::to_string(expert));
    whole.rows = rows_of(config_, row.piece, parameter);
    int64_t total = 0;
    for (const HfRow& other : family_.rows) {
      if (&other == &row) whole.from = total;
      // Only products are fused; a norm of the model may be called as one of a block.
      const bool shares = other.piece.find('.') != std::string_view::npos && holds(other);
      if (&other == &row || (other.stored == row.stored && shares))
        total += rows_of(config_, other.piece, parameter);
    }
    whole.stored_shape = parameter.shape;
    const size_t first = is_of_experts(row.piece) ? 1 : 0;
    if (!whole.stored_shape.empty()) whole.stored_shape[first] = total;
    if (apart) whole.stored_shape.erase(whole.stored_shape.begin());
    if (is_of_experts(row.piece) && !apart) whole.slice = expert;
    if (row.buffer) whole.stored_shape = {1, total}, whole.trained = false;
    if (row.by_head) whole.stored_shape = {total / config_.head_dim, config_.head_dim};
    const auto n = whole.stored_shape.size();
    whole.transposed = row.transposed && name.leaf == ".weight" && n >= 2;
    if (whole.transposed) std::swap(whole.stored_shape[n - 2], whole.stored_shape[n - 1]);
    if (row.convolution && name.leaf == ".weight")
      whole.stored_shape.insert(whole.stored_shape.begin() + 1, 1);
    if (const int64_t groups = groups_of(row.order); groups > 0)
      return by_group(whole, total, groups);
    if (row.order == HfOrder::turned) return turned(whole);
    if (row.order == HfOrder::paired) return paired(whole);
    if (row.order == HfOrder::alternate) {
      whole.step = total / whole.rows;
      whole.from /= whole.rows;
    }
    return {whole};
  }

  int64_t groups_of(HfOrder order) const {
    if (order == HfOrder::groups) return config_.kv_heads;
    if (order == HfOrder::heads) return config_.heads;
    return order == HfOrder::key_heads ? config_.delta_key_heads : 0;
  }

  /// An equal share of each piece in every group.
  static std::vector<WeightPart> by_group(const WeightPart& whole, int64_t total, int64_t groups) {
    std::vector<WeightPart> parts;
    for (int64_t g = 0; g < groups; ++g) {
      WeightPart& part = parts.emplace_back(whole);
      part.from = g * (total / groups) + whole.from / groups;
      part.rows = whole.rows / groups;
    }
    return parts;
  }

  std::vector<WeightPart> turned(const WeightPart& whole) const {
    const int64_t half = config_.head_dim / 2;
    std::vector<WeightPart> parts;
    for (int64_t at = 0; at < whole.rows; at += half) {
      WeightPart& part = parts.emplace_back(whole);
      part.rows = half;
      part.from = whole.from + (at / half % 2 == 0 ? at + half : at - half);
    }
    return parts;
  }

  /// A head's halves, whose rows take turns in the file: rotation by neighbours there, by halves
  /// here.
  std::vector<WeightPart> paired(const WeightPart& whole) const {
    std::vector<WeightPart> parts;
    for (int64_t at = 0; at < whole.rows; at += config_.head_dim) {
      for (int64_t half = 0; half < 2; ++half) {
        WeightPart& part = parts.emplace_back(whole);
        part.rows = config_.head_dim / 2;
        part.from = whole.from + at + half;
        part.step = 2;
      }
    }
    return parts;
  }

  /// Pieces that are neighbours here and there become one part.
  static void append(std::vector<WeightPart>& parts, const WeightPart& part) {
    WeightPart* last = parts.empty() ? nullptr : &parts.back();
    if (last && last->stored == part.stored && last->slice == part.slice && last->step == 1 &&
        part.step == 1 && last->from + last->rows == part.from) {
      last->rows += part.rows;
    } else {
      parts.push_back(part);
    }
  }

  const ModelConfig& config_;
  const HfFamily& family_;
  std::string_view prefix_;
};

}  // namespace

std::vector<WeightSource> hf_weights(const ModelConfig& config, const HfFamily& family,
                                     std::string_view prefix) {
  const SourceBuilder builder(config, family, prefix);
  std::vector<WeightSource> sources;
  for (const ParameterSpec& parameter : parameter_specs(config))
    sources.push_back(builder.build(parameter));
  for (const ParameterSpec& buffer : buffer_specs(config)) {
    WeightSource& source = sources.emplace_back(builder.build(buffer));
    for (WeightPart& part : source.parts) part.trained = false;
  }
  return sources;
}

std::string hf_head(const HfFamily& family) {
  for (const HfRow& row : family.rows) {
    if (row.piece == "head") return std::string(row.stored) + ".weight";
  }
  return "lm_head.weight";
}

bool is_hf_buffer(const HfFamily& family, std::string_view name) {
  return std::ranges::any_of(family.buffers, [&](std::string_view part) {
    return name.ends_with(part) || (part.ends_with('.') && name.starts_with(part));
  });
}

int64_t WeightSource::columns() const {
  const bool matrix = parameter.shape.size() > 1 && !parameter.name.ends_with("bias");
  return matrix ? parameter.shape.back() : 1;
}

std::vector<WeightSource> own_weights(const ModelConfig& config) {
  std::vector<WeightSource> sources;
  for (const auto& list : {parameter_specs(config), buffer_specs(config)}) {
    for (const ParameterSpec& p : list) {
      WeightSource& source = sources.emplace_back(WeightSource{p, {}});
      source.parts = {{.stored = p.name, .stored_shape = p.shape, .rows = source.rows()}};
    }
  }
  return sources;
}

}  // namespace tally
