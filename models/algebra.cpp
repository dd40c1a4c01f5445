#include "models/algebra.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/algebra_recurrence.h"
#include "models/config_attention.h"
#include "models/config_latent.h"
#include "models/config_mixers.h"
#include "models/config_shared.h"

namespace tally {
namespace {

std::string n(int64_t v) { return std::to_string(v); }

class Algebra {
 public:
  explicit Algebra(const Report& r)
      : r_(r), c_(r.config), attending_(mixer_layers(r.config).attention) {}
  std::vector<Formula> lines() {
    parameters();
    products();
    memory();
    decoding();
    return std::move(lines_);
  }

 private:
  void add(const std::string& what, const std::string& formula, const std::string& numbers,
           double value, double counted, const std::string& unit) {
    lines_.push_back({what, formula, numbers, value, counted, unit});
  }
  void add_all(std::vector<Formula> lines) {
    for (Formula& line : lines) lines_.push_back(std::move(line));
  }
  double d(int64_t v) const { return static_cast<double>(v); }
  double element() const { return static_cast<double>(size_of(r_.options.dtype)); }

  void parameters() {
    const ParameterCount& p = r_.parameters;
    const int64_t e = c_.embedding_dim, rows = c_.vocab * c_.embedding_width();
    const std::string size = n(c_.vocab) + " x " + n(c_.embedding_width());
    add("embedding", e > 0 ? "V E + 2 E D" : "V D",
        size + (e > 0 ? fmt::format(" + 2 x {} x {}", e, c_.d_model) : ""),
        d(rows) + 2 * d(e) * d(c_.d_model), d(p.embedding), "parameters");
    if (c_.position == Position::learned)
      add("positions", "context D", n(c_.context + c_.position_offset) + " x " + n(c_.d_model),
          d(c_.context + c_.position_offset) * d(c_.d_model), d(p.position), "parameters");
    if (c_.position == Position::t5_bias)
      add("positions", "buckets H", n(c_.t5_buckets) + " x " + n(c_.heads),
          d(c_.t5_buckets) * d(c_.heads), d(p.position), "parameters");
    if (is_latent(c_))
      latent(p);
    else if (is_shared(c_))
      add("attention", "(2 H + 2 G) K D of each layer, 2 G of those that make keys and values",
          "sum", d(shared_counts(c_).matrices), d(p.attention), "parameters");
    else
      attention(p);
    add_all(recurrence_parameters(r_));
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
    add("all", "N", "sum", d(p.total()), r_.weights / element(), "parameters");
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
    add("attention",
        fmt::format("L ({} + (C + R) D + H (N + M) C + H M D)", q > 0 ? "Q (D + H K)" : "H K D"),
        fmt::format("{} x ({} + ({} + {}) x {} + {} x ({} + {}) x {} + {} x {} x {})", attending_,
                    queries, l, c_.qk_rope_head_dim, c_.d_model, c_.heads, c_.qk_nope_head_dim,
                    c_.v_head_dim, l, c_.heads, c_.v_head_dim, c_.d_model),
        d(attending_) * d(latent_counts(c_).matrices), d(p.attention), "parameters");
  }

  void feed_forward(const ParameterCount& p) {
    const FeedForwardCounts counts = feed_forward_counts(c_);
    const int64_t matrices = c_.gated ? 3 : 2, dense = c_.layers - counts.expert_layers;
    const int64_t bias = c_.mlp_bias ? (matrices - 1) * c_.d_ff + c_.d_model : 0;
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
                      c_.mlp_bias || c_.shared_expert_gate ? " + biases and gates" : ""),
          in_experts, NAN, "parameters");
  }

  // Norms a layer n, and those outside the layers e.
  void norms(const ParameterCount& p) {
    const int64_t heads = qk_norm_parameters(c_), inputs = layer_input_counts(c_).norms;
    const int64_t outside = c_.embedding_norm + (c_.final_norm == FinalNorm::on),
                  a_layer = (norm_count(c_) - outside) / c_.layers;
    const std::string width = c_.norm == Norm::scale_norm      ? "1"
                              : c_.norm_gain == NormGain::none ? "0"
                              : c_.norm_bias                   ? "2 D"
                                                               : "D";
    add("norms", fmt::format("({} L + {}) {}", a_layer, outside, width),
        fmt::format("({} x {} + {}) x {}", a_layer, c_.layers, outside, norm_width(c_)),
        d((a_layer * c_.layers + outside) * norm_width(c_)), d(p.norms) - d(heads + inputs),
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

  // Tokens that attend, and tokens that they see.
  void products() {
    const int64_t b = r_.options.batch, t = r_.options.decode ? 1 : r_.options.seq,
                  s = r_.options.decode ? r_.options.seq + 1 : r_.options.seq;
    const int64_t q = c_.heads * c_.head_dim, kv = c_.kv_heads * c_.head_dim;
    const int64_t in_attention = is_latent(c_)
                                     ? latent_counts(c_).matrices
                                     : ((c_.attention_gate ? 3 : 2) * q + 2 * kv) * c_.d_model;
    const int64_t matrices =
        (is_shared(c_) ? shared_counts(c_).matrices : attending_ * in_attention) +
        recurrence_counts(c_).matrices + feed_forward_counts(c_).multiplied +
        layer_input_counts(c_).matrices;
    // A decoding step computes the logits of its last token only, as a forward pass of all tokens.
    const int64_t weights =
        matrices + c_.vocab * c_.embedding_width() + 2 * c_.embedding_dim * c_.d_model;
    // Training needs no logits of tokens whose targets a prefix shows.
    const int64_t shown =
        r_.options.train ? std::max<int64_t>(std::min(c_.attention_prefix, t), 1) - 1 : 0;
    const double forward =
        2 * d(b * t) * d(weights) - 2 * d(b * shown) * d(c_.vocab * c_.embedding_width());
    const std::string tokens = fmt::format("{} x {}", b, t);
    add("products with weights",
        std::string("2 B T M, M = weights that multiply (head in, look-up out)") +
            (shown ? " - 2 B (prefix - 1) V D" : ""),
        fmt::format("2 x {} x {}", tokens, weights) +
            (shown
                 ? fmt::format(" - 2 x {} x {} x {} x {}", b, shown, c_.vocab, c_.embedding_width())
                 : ""),
        forward, NAN, "FLOPs");
    const Pair pair = pair_of(r_.options.decode);
    const auto width = [&](int64_t i) {
      return d(is_shared(c_) ? layer_heads(c_, i).head_dim : pair.width);
    };
    const double square = over_layers(c_, [&](const auto& o, int64_t i) {
      return width(i) * d(r_.options.decode ? kept_tokens(o, s) : s);
    });
    const double full = d(pair.times) * d(b * t) * square * d(c_.heads);
    add("attention, full square",
        fmt::format("{} B {} H {} L", pair.times, r_.options.decode ? "S" : "T^2", pair.name),
        fmt::format("{} x {} x {} x {} x {} x {}", pair.times, tokens, s, c_.heads, pair.width,
                    attending_),
        full, NAN, "FLOPs");
    const bool sparse =
        c_.window > 0 || c_.attention_stride > 0 || (c_.attention_prefix > 0 && !r_.options.decode);
    const double pairs = visible_pairs(c_, t, s);
    // Keys that a query sees, on average.
    const double seen = attending_ > 0 ? pairs / (d(t) * d(attending_)) : 0;
    const double causal =
        d(pair.times) * d(b) * d(c_.heads) * over_layers(c_, [&](const auto& o, int64_t i) {
          return width(i) * ops::visible_keys(o, t, s).pairs();
        });
    const std::string leaves = fmt::format(" H {} L", pair.name);
    add("attention, what the mask leaves",
        sparse ? fmt::format("{} B T{}, times the keys a query sees", pair.times, leaves)
        : r_.options.decode ? fmt::format("{} B S{}", pair.times, leaves)
                            : fmt::format("{} B T (T + 1){}", pair.times / 2, leaves),
        fmt::format("{} x {} x {} x {} x {} x {}", pair.times, tokens, seen, c_.heads, pair.width,
                    attending_),
        causal, NAN, "FLOPs");
    const double passes = r_.options.train ? 3 : 1;
    const std::string times =
        r_.options.train ? fmt::format("3 x (2 B T M + {} B T^2 H {} L)", pair.times, pair.name)
                         : "2 B T M + attention";
    const double distances = by_distance(d(b * t), d(s), d(q));
    const std::string more = distances > 0 ? " + distances" : "";
    add("model FLOPs, full attention", times + more, "", passes * (forward + full) + distances,
        r_.model.full, "FLOPs");
    add("model FLOPs, causal attention", "the same with what the mask leaves", "",
        passes * (forward + causal) + distances, r_.model.causal, "FLOPs");
    if (r_.options.train)
      add("rule of thumb", "6 N B T", fmt::format("6 x {} x {}", r_.parameters.total(), tokens),
          6 * d(r_.parameters.total()) * d(b * t), r_.model.causal, "FLOPs");
  }

  // FLOPs of a query and a key that meet, in a head: times x width.
  struct Pair {
    int64_t times, width;
    std::string name;
  };
  Pair pair_of(bool decode) const {
    if (is_shared(c_)) return {4, c_.head_dim, "K by layer"};
    if (!is_latent(c_)) return {4, c_.head_dim, "K"};
    // The absorbed path scores with what the cache holds, and adds up its latents.
    if (decode) return {2, 2 * c_.kv_lora_rank + c_.qk_rope_head_dim, "(2 C + R)"};
    return {2, c_.head_dim + c_.v_head_dim, "(K + M)"};
  }

  // Products of xl_relative: distances with Wr, which has a gradient and its input none, and
  // queries with what comes of it, for the whole square.
  double by_distance(double tokens, double keys, double width) {
    if (c_.position != Position::xl_relative) return 0;
    const bool train = r_.options.train;
    const double projected = (train ? 4 : 2) * keys * d(c_.d_model) * width * d(attending_);
    const double scores = (train ? 6 : 2) * tokens * keys * width * d(attending_);
    add("products by distance", "2 S D H K L + 2 B T S H K L, a pass", "", projected + scores, NAN,
        "FLOPs");
    return projected + scores;
  }

  void memory() {
    const double count = d(r_.parameters.total());
    const std::string total = n(r_.parameters.total());
    add("weights", fmt::format("{} N", element()), fmt::format("{} x {}", element(), total),
        element() * count, r_.weights, "bytes");
    if (!r_.options.train) return;
    add("gradients", fmt::format("{} N", element()), fmt::format("{} x {}", element(), total),
        element() * count, r_.gradients, "bytes");
    add("AdamW's m and v", fmt::format("{} N", 2 * element()),
        fmt::format("{} x {}", 2 * element(), total), 2 * element() * count, r_.optimizer, "bytes");
    add("all three (L81)", fmt::format("{} N", 4 * element()),
        fmt::format("{} x {}", 4 * element(), total), 4 * element() * count,
        r_.weights + r_.gradients + r_.optimizer, "bytes");
  }

  // L91 to L95: intensities in FLOPs an element, as the lecture's O() hide constants.
  void decoding() {
    const int64_t kv = c_.kv_heads * c_.head_dim;
    const double per_token = 2 * d(attending_) * d(kv) * element();
    add_all(recurrence_state(r_));
    if (is_latent(c_)) {
      const int64_t numbers = c_.kv_lora_rank + c_.qk_rope_head_dim;
      add("KV cache of a token (L96)", "L (C + R) bytes an element",
          fmt::format("{} x ({} + {}) x {}", attending_, c_.kv_lora_rank, c_.qk_rope_head_dim,
                      element()),
          d(attending_ * numbers) * element(), r_.kv_cache_per_token, "bytes");
      intensity_of_pass();
      return;
    }
    if (is_shared(c_)) {
      add("KV cache of a token", "2 G K bytes an element, of layers that make keys and values",
          "sum", cache_size(c_, 1, 1).numbers_per_token * element(), r_.kv_cache_per_token,
          "bytes");
      intensity_of_pass();
      return;
    }
    add("KV cache of a token", "2 L G K bytes an element",
        fmt::format("2 x {} x {} x {} x {}", attending_, c_.kv_heads, c_.head_dim, element()),
        per_token, r_.kv_cache_per_token, "bytes");
    const double b = d(r_.options.batch), t = d(r_.options.seq), dm = d(c_.d_model);
    const double g = d(c_.kv_heads) * d(c_.head_dim);  // width of the keys of a token
    if (!r_.options.decode)
      add("attention, prefill (L91)", "1 / (1/K + 1/(B T))",
          fmt::format("1 / (1/{} + 1/({} x {}))", c_.head_dim, b, t),
          1 / (1 / d(c_.head_dim) + 1 / (b * t)), NAN, "FLOPs/element");
    add("attention, decoding (L92 to L95)", "1 / (T G K / D^2 + 1/B)",
        fmt::format("1 / ({} x {} / {}^2 + 1/{})", t, g, dm, b), 1 / (t * g / (dm * dm) + 1 / b),
        NAN, "FLOPs/element");
    intensity_of_pass();
  }

  void intensity_of_pass() {
    add("intensity of this pass", "FLOPs counted / bytes counted",
        fmt::format("{:.5g} / {:.5g}", r_.cost.flops, r_.cost.bytes_read + r_.cost.bytes_written),
        r_.intensity(), NAN, "FLOPs/byte");
  }

  const Report& r_;
  const ModelConfig& c_;
  int64_t attending_;  // layers with attention: L in its formulas
  std::vector<Formula> lines_;
};

}  // namespace

std::vector<Formula> algebra(const Report& report) {
  check(report.config.architecture == Architecture::decoder,
        "algebra: its formulas are those of decoders; leave out --algebra for ",
        report.config.name);
  return Algebra(report).lines();
}

}  // namespace tally
