// Fields of positions, of what attention sees, of losses, dropout and initial values.
#include "models/field_rows.h"

namespace tally {
std::vector<Field<ModelConfig>> detail::position_fields() {
  using M = ModelConfig;
  return {
      enum_field<&M::position>(
          "position",
          "none, learned (a table added to the embedding), rope (Su et al. 2021, "
          "arXiv:2104.09864), sinusoidal (Vaswani et al. 2017, arXiv:1706.03762), alibi (Press et "
          "al. 2021, arXiv:2108.12409), t5_bias (Raffel et al. 2019, arXiv:1910.10683) or "
          "xl_relative (Dai et al. 2019, arXiv:1901.02860)"),
      Field<M>{"position_pattern", &M::position_pattern, 0, 0,
               "positions of the layers, from the first again when the list ends: global (the "
               "model's), local (rope_local_base, not scaled) or none; empty: all global"},
      number("position_offset", &M::position_offset, 0, 1 << 20,
             "learned: rows of the table in front of position 0 (OPT: 2)"),
      enum_field<&M::sinusoid_layout>("sinusoid_layout",
                                      "sinusoidal: interleaved (sin, cos, sin ...), halves (sines, "
                                      "then cosines) or fairseq (halves with other frequencies)"),
      number("alibi_scale", &M::alibi_scale, 0, 1e6,
             "alibi: times the slopes (1 / sqrt(head_dim) where a model adds them before scaling)"),
      number("t5_buckets", &M::t5_buckets, 2, 1 << 20, "t5_bias: numbers a head"),
      number("t5_max_distance", &M::t5_max_distance, 2, kAny,
             "t5_bias: distances from here on share a bucket"),
      number("rope_base", &M::rope_base, 1, 1e12,
             "pair k turns by base^(-2k/R) a token, R elements of a head turning"),
      number("rope_local_base", &M::rope_local_base, 1, 1e12, "the same of local layers"),
      number("rope_fraction", &M::rope_fraction, 0, 1,
             "share of a head that turns, from its front: R = head_dim times this"),
      enum_field<&M::rope_layout>("rope_layout",
                                  "which coordinates form a pair: half (i, i + R/2) or interleaved "
                                  "(2i, 2i + 1)"),
      enum_field<&M::rope_scaling>(
          "rope_scaling",
          "for texts longer than those of the training: none, linear, ntk, dynamic_ntk, yarn "
          "(Peng et al. 2023, arXiv:2309.00071), llama3, longrope (Ding et al. 2024, "
          "arXiv:2402.13753) or proportional (rope_fraction of the pairs turn, the others stand "
          "still); docs/ops/rope.md"),
      number("rope_factor", &M::rope_factor, 1, 1e6, "how many times longer"),
      number("rope_original_context", &M::rope_original_context, 0, 1 << 30,
             "tokens of a text before the scaling: dynamic_ntk, yarn, llama3, longrope"),
      number("rope_low_frequency", &M::rope_low_frequency, 0, kAny,
             "llama3: pairs with fewer turns in the original context are scaled"),
      number("rope_high_frequency", &M::rope_high_frequency, 0, kAny,
             "llama3: pairs with more turns are not"),
      number("rope_beta_fast", &M::rope_beta_fast, 0, kAny,
             "yarn: pairs with more turns in the original context are not scaled"),
      number("rope_beta_slow", &M::rope_beta_slow, 0, kAny, "yarn: pairs with fewer turns are"),
      flag("rope_truncate", &M::rope_truncate, "yarn: these bounds are rounded to whole pairs"),
      number("rope_attention_factor", &M::rope_attention_factor, 0, 1e6,
             "yarn, longrope: times all cosines and sines; 0: the papers' value"),
      number("rope_mscale", &M::rope_mscale, 0, 1e6,
             "yarn: weight of ln(rope_factor) in the attention factor (DeepSeek-V2, "
             "arXiv:2405.04434)"),
      number("rope_mscale_all_dim", &M::rope_mscale_all_dim, 0, 1e6,
             "yarn: the same in its divisor"),
      Field<M>{"rope_short_factors", &M::rope_short_factors, 0, 0,
               "longrope: divisor of each pair's frequency in texts of up to the original context"},
      Field<M>{"rope_long_factors", &M::rope_long_factors, 0, 0, "longrope: in longer texts"},
      flag(
          "rope_float32", &M::rope_float32,
          "form the angles in single precision, as many public programs do (off by 4e-3 to 8e-3 at "
          "position 131071)"),
      number(
          "window", &M::window, 0, 1 << 30,
          "tokens that a window layer sees, itself counted, and that its cache keeps (Beltagy et "
          "al. 2020, arXiv:2004.05150); 0: no window"),
      Field<M>{
          "attention_pattern", &M::attention_pattern, 0, 0,
          "what the layers see, from the first again when the list ends: full, window, strided "
          "or fixed (Child et al. 2019, arXiv:1904.10509); empty: all full, or window if there "
          "is one"},
      number(
          "attention_stride", &M::attention_stride, 0, 1 << 30,
          "strided: the last so many tokens and every so-many-th before them; fixed: tokens of a "
          "block"),
      number("attention_summary", &M::attention_summary, 1, 1 << 30,
             "fixed: tokens at the end of a block that all later ones see"),
      number("attention_global", &M::attention_global, 0, 1 << 30,
             "the first tokens, which layers with a window or a pattern all see, too (Beltagy et "
             "al. 2020, arXiv:2004.05150)"),
      number("attention_prefix", &M::attention_prefix, 0, 1 << 30,
             "the first tokens, which see each other both ways; the loss begins behind them "
             "(prefix language model: Raffel et al. 2019, arXiv:1910.10683)"),
      number("document_end", &M::document_end, -1, 1 << 24,
             "token that ends a document: no token sees another document; -1: all is one"),
      number("attention_soft_cap", &M::attention_soft_cap, 0, 1e6,
             "c: scores u become c tanh(u / c) (Gemma 2, arXiv:2408.00118: 50); 0: none"),
      number("attention_scale", &M::attention_scale, 0, 1e6,
             "factor of the scores; 0: 1 / sqrt(head_dim) (T5: 1)"),
      flag("attention_sink", &M::attention_sink,
           "a learned score of each head in the softmax, without a value (gpt-oss; Xiao et al. "
           "2023, "
           "arXiv:2309.17453)"),
      flag("softmax_off_by_one", &M::softmax_off_by_one,
           "the softmax divides by 1 more than its sum: a sink of score 0 that is not learned"),
      flag("attention_gate", &M::attention_gate,
           "attention's output times the sigmoid of a product with its input (Qiu et al. 2025, "
           "arXiv:2505.06708)"),
      number("qkv_clip", &M::qkv_clip, 0, 1e6,
             "c > 0: queries, keys and values are cut at -c and c (MPT, OLMo); 0: not"),
      flag("qkv_bias", &M::qkv_bias, "bias in the query, key and value projections"),
      flag("attention_output_bias", &M::attention_output_bias, "bias in attention's output"),
      flag("mlp_bias", &M::mlp_bias, "bias in the feed-forward layer"),
      flag("head_bias", &M::head_bias, "bias in the language-model head"),
      flag("tied_head", &M::tied_head,
           "the head is the embedding matrix (Press and Wolf 2017, arXiv:1608.05859)"),
      flag("fused_qkv", &M::fused_qkv, "one product for queries, keys and values"),
      flag("fused_gate_up", &M::fused_gate_up, "one product for both branches, if gated"),
      number("embedding_dropout", &M::embedding_dropout, 0, 0.99, "probability, on the embeddings"),
      number("attention_dropout", &M::attention_dropout, 0, 0.99, "probability, on the weights"),
      number("residual_dropout", &M::residual_dropout, 0, 0.99,
             "probability, on what a sub-layer adds"),
      number("embedding_scale", &M::embedding_scale, -1e6, 1e6,
             "times the embedding (Gemma: sqrt(d_model))"),
      number("logit_scale", &M::logit_scale, -1e6, 1e6, "times the logits (Command R, PaLM)"),
      number("final_soft_cap", &M::final_soft_cap, 0, 1e6,
             "c of the logits c tanh(x / c); 0: none (Gemma 2, arXiv:2408.00118: 30)"),
      number("label_smoothing", &M::label_smoothing, 0, 1,
             "share of a target spread over all tokens (Szegedy et al. 2015, arXiv:1512.00567)"),
      number("z_loss", &M::z_loss, 0, 1,
             "times the mean square of log Z, added to the loss (PaLM 2022, arXiv:2204.02311: "
             "1e-4)"),
      number("max_z_loss", &M::max_z_loss, 0, 1,
             "times the mean square of the largest logit, added to the loss (Baichuan 2, "
             "arXiv:2309.10305: 2e-4)"),
      enum_field<&M::init>(
          "init",
          "initial weights: normal, gpt2, trunc_normal, xavier, mitchell or fixup (see "
          "below)"),
      number("init_std", &M::init_std, 0, 10,
             "standard deviation of normal, gpt2 and trunc_normal"),
      number("mup_base_width", &M::mup_base_width, 0, 1 << 20,
             "muP: the d_model at which the learning rate was found, which then serves every width "
             "(Yang et al. 2022, arXiv:2203.03466; docs/optim/mup.md); 0: none"),
      number("mup_base_head_dim", &M::mup_base_head_dim, 0, 1 << 20,
             "the head_dim there: scores times sqrt(that) / head_dim; 0: 1 / sqrt(head_dim)"),
  };
}

}  // namespace tally
