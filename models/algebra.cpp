#include "models/algebra.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/algebra_parts.h"
#include "models/config_attention.h"
#include "models/config_latent.h"
#include "models/config_mixers.h"
#include "models/config_shared.h"

namespace tally {
namespace {

class Algebra {
 public:
  explicit Algebra(const Report& r)
      : r_(r), c_(r.config), attending_(mixer_layers(r.config).attention) {}
  std::vector<Formula> lines() {
    add_all(parameter_formulas(r_));
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

  // Tokens that attend, and tokens that they see.
  struct Tokens {
    int64_t b, t, s;
    std::string text() const { return fmt::format("{} x {}", b, t); }
  };
  Tokens tokens() const {
    const bool decode = r_.options.decode;
    return {r_.options.batch, decode ? 1 : r_.options.seq, r_.options.seq + (decode ? 1 : 0)};
  }

  void products() {
    const Tokens n = tokens();
    const double forward = with_weights(n), full = full_square(n), causal = what_is_left(n),
                 distances = by_distance(d(n.b * n.t), d(n.s), d(c_.heads * c_.head_dim)),
                 passes = r_.options.train ? 3 : 1;
    const Pair pair = pair_of(r_.options.decode);
    const std::string times =
        r_.options.train ? fmt::format("3 x (2 B T M + {} B T^2 H {} L)", pair.times, pair.name)
                         : "2 B T M + attention";
    add("model FLOPs, full attention", times + (distances > 0 ? " + distances" : ""), "",
        passes * (forward + full) + distances, r_.model.full, "FLOPs");
    add("model FLOPs, causal attention", "the same with what the mask leaves", "",
        passes * (forward + causal) + distances, r_.model.causal, "FLOPs");
    if (r_.options.train)
      add("rule of thumb", "6 N B T", fmt::format("6 x {} x {}", r_.parameters.total(), n.text()),
          6 * d(r_.parameters.total()) * d(n.b * n.t), r_.model.causal, "FLOPs");
  }

  // Weights that each token is multiplied with, the head's included.
  int64_t multiplied() const {
    const int64_t q = c_.heads * c_.head_dim, kv = c_.kv_heads * c_.head_dim;
    const int64_t in_attention = is_latent(c_)
                                     ? latent_counts(c_).matrices
                                     : ((c_.attention_gate ? 3 : 2) * q + 2 * kv) * c_.d_model;
    return (is_shared(c_) ? shared_counts(c_).matrices : attending_ * in_attention) +
           recurrence_counts(c_).matrices + feed_forward_counts(c_).multiplied +
           layer_input_counts(c_).matrices + c_.vocab * c_.embedding_width() +
           2 * c_.embedding_dim * c_.d_model;
  }

  // A decoding step computes the logits of its last token only, as a forward pass of all tokens.
  double with_weights(const Tokens& n) {
    // Training needs no logits of tokens whose targets a prefix shows.
    const int64_t shown =
        r_.options.train ? std::max<int64_t>(std::min(c_.attention_prefix, n.t), 1) - 1 : 0;
    const int64_t head = c_.vocab * c_.embedding_width();
    const double forward = 2 * d(n.b * n.t) * d(multiplied()) - 2 * d(n.b * shown) * d(head);
    std::string formula = "2 B T M, M = weights that multiply (head in, look-up out)",
                numbers = fmt::format("2 x {} x {}", n.text(), multiplied());
    if (shown > 0) {
      formula += " - 2 B (prefix - 1) V D";
      numbers +=
          fmt::format(" - 2 x {} x {} x {} x {}", n.b, shown, c_.vocab, c_.embedding_width());
    }
    add("products with weights", formula, numbers, forward, NAN, "FLOPs");
    return forward;
  }

  // The width of a pair in a layer: heads may differ where layers share keys and values.
  double width(int64_t layer) const {
    return d(is_shared(c_) ? layer_shape(c_, layer).head_dim : pair_of(r_.options.decode).width);
  }

  double full_square(const Tokens& n) {
    const bool decode = r_.options.decode;
    const Pair pair = pair_of(decode);
    const double square = over_layers(c_, [&](const auto& o, int64_t i) {
      return width(i) * d(decode ? kept_tokens(o, n.s) : n.s);
    });
    const double full = d(pair.times) * d(n.b * n.t) * square * d(c_.heads);
    add("attention, full square",
        fmt::format("{} B {} H {} L", pair.times, decode ? "S" : "T^2", pair.name),
        fmt::format("{} x {} x {} x {} x {} x {}", pair.times, n.text(), n.s, c_.heads, pair.width,
                    attending_),
        full, NAN, "FLOPs");
    return full;
  }

  double what_is_left(const Tokens& n) {
    const bool decode = r_.options.decode, sparse = c_.window > 0 || c_.attention_stride > 0 ||
                                                    (c_.attention_prefix > 0 && !decode);
    const Pair pair = pair_of(decode);
    const double pairs = visible_pairs(c_, n.t, n.s);
    // Keys that a query sees, on average.
    const double seen = attending_ > 0 ? pairs / (d(n.t) * d(attending_)) : 0;
    const double causal =
        d(pair.times) * d(n.b) * d(c_.heads) * over_layers(c_, [&](const auto& o, int64_t i) {
          return width(i) * ops::visible_keys(o, n.t, n.s).pairs();
        });
    const std::string leaves = fmt::format(" H {} L", pair.name);
    add("attention, what the mask leaves",
        sparse   ? fmt::format("{} B T{}, times the keys a query sees", pair.times, leaves)
        : decode ? fmt::format("{} B S{}", pair.times, leaves)
                 : fmt::format("{} B T (T + 1){}", pair.times / 2, leaves),
        fmt::format("{} x {} x {} x {} x {} x {}", pair.times, n.text(), seen, c_.heads, pair.width,
                    attending_),
        causal, NAN, "FLOPs");
    return causal;
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
    const std::string total = std::to_string(r_.parameters.total());
    add("weights", fmt::format("{} N", element()), fmt::format("{} x {}", element(), total),
        element() * count, r_.weights, "bytes");
    if (!r_.options.train) return;
    add("gradients", fmt::format("{} N", element()), fmt::format("{} x {}", element(), total),
        element() * count, r_.gradients, "bytes");
    const bool narrow = r_.options.dtype == DType::bf16;  // which has f32 masters, or none
    const bool masters = narrow && r_.options.optimizer.bf16_update == Bf16Update::masters;
    const auto state = masters ? 12 : narrow ? 8 : 2 * element(), all = state + 2 * element();
    add(masters ? "AdamW's masters, m and v" : "AdamW's m and v", fmt::format("{} N", state),
        fmt::format("{} x {}", state, total), state * count, r_.optimizer, "bytes");
    add("all three (L81)", fmt::format("{} N", all), fmt::format("{} x {}", all, total),
        all * count, r_.weights + r_.gradients + r_.optimizer, "bytes");
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
  check(!report.options.train || report.options.optimizer.kind == optim::OptimizerKind::adamw,
        "algebra: its formulas are those of AdamW; leave out --algebra, or give --optimizer adamw");
  return Algebra(report).lines();
}

}  // namespace tally
