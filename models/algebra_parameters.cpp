// What `account --algebra` says of parameters.
#include <fmt/format.h>

#include <cmath>

#include "models/algebra_parts.h"
#include "models/config_latent.h"
#include "models/config_mixers.h"
#include "models/config_shared.h"

namespace tally {
namespace {

class ParameterFormulas {
 public:
  explicit ParameterFormulas(const Report& r)
      : r_(r), c_(r.config), attending_(mixer_layers(r.config).attention) {}
  std::vector<Formula> lines() {
    parameters();
    return std::move(lines_);
  }

 private:
  void add(const std::string& what, const std::string& formula, const std::string& numbers,
           double value, double counted, const std::string& unit) {
    lines_.push_back({what, formula, numbers, value, counted, unit});
  }
  double d(int64_t v) const { return static_cast<double>(v); }

  void parameters() {
    const ParameterCount& p = r_.parameters;
    const int64_t e = c_.embedding_dim, rows = c_.vocab * c_.embedding_width();
    const std::string size =
        std::to_string(c_.vocab) + " x " + std::to_string(c_.embedding_width());
    add("embedding", e > 0 ? "V E + 2 E D" : "V D",
        size + (e > 0 ? fmt::format(" + 2 x {} x {}", e, c_.d_model) : ""),
        d(rows) + 2 * d(e) * d(c_.d_model), d(p.embedding), "parameters");
    if (c_.position == Position::learned)
      add("positions", "context D",
          std::to_string(c_.context + c_.position_offset) + " x " + std::to_string(c_.d_model),
          d(c_.context + c_.position_offset) * d(c_.d_model), d(p.position), "parameters");
    if (c_.position == Position::t5_bias)
      add("positions", "buckets H",
          std::to_string(c_.t5_buckets) + " x " + std::to_string(c_.heads),
          d(c_.t5_buckets) * d(c_.heads), d(p.position), "parameters");
    if (is_latent(c_))
      latent(p);
    else if (is_shared(c_))
      add("attention", "(2 H + 2 G) K D of each layer, 2 G of those that make keys and values",
          "sum", d(shared_counts(c_).matrices), d(p.attention), "parameters");
    else
      attention(p);
    for (Formula& line : recurrence_parameters(r_)) lines_.push_back(std::move(line));
    if (c_.layer_input_dim > 0)
      add("inputs of layers", "L P (V + 3 D), P = layer_input_dim",
          fmt::format("{} x {} x ({} + 3 x {})", c_.layers, c_.layer_input_dim, c_.vocab,
                      c_.d_model),
          d(c_.layers * c_.layer_input_dim) * (d(c_.vocab) + 3 * d(c_.d_model)), d(p.layer_inputs),
          "parameters");
    feed_forward(p);
    norms(p);
    if (c_.scalar_biases)
      add("scalar biases", "5 L + 1", fmt::format("5 x {} + 1", c_.layers), 5 * d(c_.layers) + 1,
          d(p.shifts), "parameters");
    const double head_bias = c_.head_bias ? d(c_.vocab) : 0;
    add("head",
        c_.tied_head   ? "0 (tied to the embedding)"
        : c_.head_bias ? (e > 0 ? "V E + V" : "V D + V")
                       : (e > 0 ? "V E" : "V D"),
        c_.tied_head ? "0" : size, (c_.tied_head ? 0 : d(rows)) + head_bias, d(p.head),
        "parameters");
    add("all", "N", "sum", d(p.total()),
        r_.weights / static_cast<double>(size_of(r_.options.dtype)), "parameters");
  }

  void attention(const ParameterCount& p) {
    const int64_t q = c_.heads * c_.head_dim, kv = c_.kv_heads * c_.head_dim;
    const int64_t relative = c_.position == Position::xl_relative ? q * (c_.d_model + 2) : 0;
    const int64_t attention_bias =
        (c_.qkv_bias ? q + 2 * kv : 0) + (c_.attention_output_bias ? c_.d_model : 0) + relative +
        (c_.attention_gate ? q * c_.d_model : 0) + (c_.attention_sink ? c_.heads : 0);
    add("attention",
        std::string("L (2 H K + 2 G K) D") + (relative            ? " + L (H K (D + 2) and biases)"
                                              : c_.attention_gate ? " + L (H K D and biases)"
                                              : attention_bias    ? " + L biases"
                                                                  : ""),
        fmt::format("{} x (2 x {} x {} + 2 x {} x {}) x {}", attending_, c_.heads, c_.head_dim,
                    c_.kv_heads, c_.head_dim, c_.d_model) +
            (attention_bias ? fmt::format(" + {} x {}", attending_, attention_bias) : ""),
        d(attending_) * d((2 * q + 2 * kv) * c_.d_model + attention_bias), d(p.attention),
        "parameters");
  }

  // Q and C the ranks of queries and keys, N, R and M the parts of a head: docs/config.md.
  void latent(const ParameterCount& p) {
    const int64_t q = c_.q_lora_rank, k = c_.head_dim, l = c_.kv_lora_rank;
    const std::string queries = q > 0
                                    ? fmt::format("{} x ({} + {} x {})", q, c_.d_model, c_.heads, k)
                                    : fmt::format("{} x {} x {}", c_.heads, k, c_.d_model);
    const int64_t sinks = c_.attention_sink ? c_.heads : 0;
    add("attention",
        fmt::format("L ({} + (C + R) D + H (N + M) C + H M D{})", q > 0 ? "Q (D + H K)" : "H K D",
                    sinks ? " + H" : ""),
        fmt::format("{} x ({} + ({} + {}) x {} + {} x ({} + {}) x {} + {} x {} x {}{})", attending_,
                    queries, l, c_.qk_rope_head_dim, c_.d_model, c_.heads, c_.qk_nope_head_dim,
                    c_.v_head_dim, l, c_.heads, c_.v_head_dim, c_.d_model,
                    sinks ? fmt::format(" + {}", sinks) : ""),
        d(attending_) * d(latent_counts(c_).matrices + sinks), d(p.attention), "parameters");
  }

  void feed_forward(const ParameterCount& p) {
    const FeedForwardCounts counts = feed_forward_counts(c_);
    const int64_t matrices = c_.gated ? 3 : 2,
                  dense = c_.layers - (c_.dense_branch ? 0 : counts.expert_layers);
    const int64_t bias = (c_.mlp_bias ? (matrices - 1) * c_.d_ff + c_.d_model : 0) +
                         learned_activation_parameters(c_);
    const double wider = d(c_.shared_kv_d_ff > 0 ? c_.shared_kv_layers : 0) *
                         d(matrices * c_.d_model + (c_.mlp_bias ? matrices - 1 : 0)) *
                         d(c_.shared_kv_d_ff - c_.d_ff);
    const double in_dense = d(dense) * d(matrices * c_.d_model * c_.d_ff + bias) + wider,
                 in_experts = d(counts.parameters) - in_dense;
    if (dense > 0)
      add("mlp", fmt::format("L {} D F{}", matrices, bias ? " + L biases" : ""),
          fmt::format("{} x {} x {} x {}", dense, matrices, c_.d_model, c_.d_ff) +
              (bias ? fmt::format(" + {} x {}", dense, bias) : ""),
          in_dense, d(p.mlp) - in_experts, "parameters");
    if (counts.expert_layers > 0)
      add("experts", fmt::format("L' ((E + shared) {} D F + router)", matrices),
          fmt::format("{} x (({} + {}) x {} x {} x {} + {} x {}){}", counts.expert_layers,
                      c_.experts, c_.shared_experts, matrices, c_.d_model, c_.expert_d_ff,
                      c_.experts, c_.d_model,
                      c_.mlp_bias || c_.shared_expert_gate       ? " + biases and gates"
                      : c_.router_norm || c_.router_expert_scale ? " + scales"
                                                                 : ""),
          in_experts, NAN, "parameters");
  }

  // Norms a layer n, and those outside the layers e.
  void norms(const ParameterCount& p) {
    const int64_t heads = qk_norm_parameters(c_), inputs = layer_input_counts(c_).norms,
                  parts = branch_norm_count(c_) * norm_width(c_);
    const int64_t outside = c_.embedding_norm + (c_.final_norm == FinalNorm::on),
                  a_layer = (norm_count(c_) - outside) / c_.layers;
    const std::string width = c_.norm == Norm::scale_norm      ? "1"
                              : c_.norm_gain == NormGain::none ? "0"
                              : c_.norm_bias                   ? "2 D"
                                                               : "D";
    add("norms", fmt::format("({} L + {}) {}", a_layer, outside, width),
        fmt::format("({} x {} + {}) x {}", a_layer, c_.layers, outside, norm_width(c_)),
        d((a_layer * c_.layers + outside) * norm_width(c_)), d(p.norms) - d(heads + inputs + parts),
        "parameters");
    if (parts > 0)
      add("norms of dense branch and experts", "3 L' " + width,
          fmt::format("{} x {}", branch_norm_count(c_), norm_width(c_)), d(parts), NAN,
          "parameters");
    if (inputs > 0)
      add("norms of the layers' inputs", "L D + P", "sum", d(inputs), NAN, "parameters");
    if (heads > 0)
      add(is_latent(c_) ? "norms of the latents" : "norms of q and k",
          is_latent(c_)                ? "L (Q + C)"
          : is_shared(c_)              ? "2 K of each layer, K of those that take keys and values"
          : c_.qk_norm == QKNorm::head ? "2 L K"
                                       : "L (H + G) K",
          is_shared(c_) ? "sum" : fmt::format("{} x {}", attending_, heads / attending_), d(heads),
          NAN, "parameters");
    if (c_.residual_gain == ResidualGain::none) return;
    const int64_t gain = c_.residual_gain == ResidualGain::scalar ? 1 : c_.d_model;
    add("residual gains", gain == 1 ? "2 L" : "2 L D", fmt::format("2 x {} x {}", c_.layers, gain),
        d(2 * c_.layers * gain), d(p.gains), "parameters");
  }

  const Report& r_;
  const ModelConfig& c_;
  int64_t attending_;  // layers with attention: L in its formulas
  std::vector<Formula> lines_;
};

}  // namespace

std::vector<Formula> parameter_formulas(const Report& report) {
  return ParameterFormulas(report).lines();
}

}  // namespace tally
