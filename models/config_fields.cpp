// What a configuration document may say of a model. A row is all there is to a field: parsing,
// printing, ranges, did-you-mean and docs/config.md read it here.
#include <array>

#include "models/config.h"

namespace tally {
namespace {

constexpr double kAny = 1e15;

template <class S, class T>
Field<S> number(const char* name, T S::*member, double min, double max, const char* doc) {
  return {name, member, min, max, doc};
}
template <class S>
Field<S> flag(const char* name, bool S::*member, const char* doc) {
  return {name, member, 0, 0, doc};
}

using M = ModelConfig;

}  // namespace

std::span<const Field<ModelConfig>> model_fields() {
  static const std::array fields = {
      Field<M>{"name", &M::name, 0, 0, "what reports call the model"},
      number("layers", &M::layers, 1, 10000, "number of blocks"),
      number("d_model", &M::d_model, 1, 1 << 20, "width of the residual stream"),
      number("heads", &M::heads, 1, 1 << 16, "query heads"),
      number("kv_heads", &M::kv_heads, 0, 1 << 16,
             "key and value heads: a divisor of heads; 0: as many as heads (Ainslie et al. 2023, "
             "arXiv:2305.13245)"),
      number("head_dim", &M::head_dim, 0, 1 << 16, "width of one head; 0: d_model / heads"),
      number("d_ff", &M::d_ff, 0, 1 << 22,
             "width of the feed-forward layer, of one branch if gated; 0: 4 d_model, gated: 8/3 "
             "d_model rounded up to a multiple of 64"),
      number("embedding_dim", &M::embedding_dim, 0, 1 << 20,
             "width of the embedding and the head, which two products make d_model and back "
             "(OPT-350M, arXiv:2205.01068); 0: d_model, without products"),
      number("vocab", &M::vocab, 1, 1 << 24, "number of token ids"),
      number("context", &M::context, 1, 1 << 30, "longest sequence, in tokens"),
      enum_field<&M::architecture>(
          "architecture",
          "decoder (a token sees what came before), encoder (BERT: every token sees all; Devlin et "
          "al. 2018, arXiv:1810.04805) or encoder_decoder (T5: a decoder that reads an encoder's "
          "output; Vaswani et al. 2017, arXiv:1706.03762); `train` and `sample` are for decoders"),
      number("encoder_layers", &M::encoder_layers, 0, 10000,
             "encoder_decoder: layers of the encoder; 0: as many as layers"),
      number("encoder_heads", &M::encoder_heads, 0, 1 << 16,
             "encoder_decoder: heads of the encoder, together as wide as the decoder's; 0: heads"),
      number("encoder_d_ff", &M::encoder_d_ff, 0, 1 << 22,
             "encoder_decoder: d_ff of the encoder; 0: d_ff"),
      number("segment_types", &M::segment_types, 0, 1 << 20,
             "encoder: kinds of segments that have a row each, added to the embedding"),
      number("padding_id", &M::padding_id, -1, 1 << 24,
             "encoder, encoder_decoder: the id whose row gets no gradient; -1: none"),
      enum_field<&M::attention>(
          "attention",
          "heads (keys and values of each group of heads), latent (of all heads from one small "
          "latent, which is all that a cache keeps; DeepSeek-AI 2024, arXiv:2405.04434) or shared "
          "(heads, whose keys and values later layers may take; Brandon et al. 2024, "
          "arXiv:2405.12981)"),
      number("q_lora_rank", &M::q_lora_rank, 0, 1 << 20,
             "latent: rank of the queries' product; 0: queries straight from the stream"),
      number("kv_lora_rank", &M::kv_lora_rank, 0, 1 << 20, "latent: width of the latent"),
      number("qk_nope_head_dim", &M::qk_nope_head_dim, 0, 1 << 16,
             "latent: part of a head that does not turn; head_dim is this and the next"),
      number("qk_rope_head_dim", &M::qk_rope_head_dim, 0, 1 << 16,
             "latent: part of a head that turns, whose one key serves all heads"),
      number("v_head_dim", &M::v_head_dim, 0, 1 << 16, "latent: width of a head's values"),
      number("latent_norm_eps", &M::latent_norm_eps, 0, 1, "latent: norm_eps of its two norms"),
      number("global_head_dim", &M::global_head_dim, 0, 1 << 16,
             "shared: head_dim of layers without a window (Gemma 4); 0: head_dim"),
      number("global_kv_heads", &M::global_kv_heads, 0, 1 << 16,
             "shared: kv_heads of layers without a window; 0: kv_heads"),
      number(
          "shared_kv_layers", &M::shared_kv_layers, 0, 10000,
          "shared: so many last layers take keys and values of the last one before them that has "
          "a window as they do, or none"),
      number(
          "shared_kv_d_ff", &M::shared_kv_d_ff, 0, 1 << 22,
          "shared: d_ff of the layers that take keys and values (Gemma 4 E2B: twice the others'); "
          "0: d_ff"),
      flag("keys_as_values", &M::keys_as_values,
           "shared: layers without a window have one product for keys and values"),
      flag("value_norm", &M::value_norm,
           "shared: each head's values are normalised, without a gain"),
      number(
          "layer_input_dim", &M::layer_input_dim, 0, 1 << 16,
          "width of an embedding of every layer's own, which a gate of the stream lets in behind "
          "its branches (Gemma 3n, 4: 256); 0: none"),
      flag("layer_scale", &M::layer_scale,
           "a layer's output times a number that is kept beside the weights and not trained "
           "(Gemma 4)"),
      Field<M>{"mixer_pattern", &M::mixer_pattern, 0, 0,
               "what mixes the tokens of the layers, from the first again when the list ends: "
               "attention, delta (a gated delta net: Yang et al. 2024, arXiv:2412.06464) or mamba "
               "(Gu and Dao 2023, arXiv:2312.00752); empty: all attention"},
      number("delta_key_heads", &M::delta_key_heads, 0, 1 << 16,
             "delta: heads of queries and keys; 0: heads"),
      number("delta_value_heads", &M::delta_value_heads, 0, 1 << 16,
             "delta: heads of values, a multiple of these; 0: as many"),
      number("delta_key_dim", &M::delta_key_dim, 0, 1 << 16,
             "delta: width of a head's queries and keys; 0: head_dim"),
      number("delta_value_dim", &M::delta_value_dim, 0, 1 << 16,
             "delta: width of a head's values; 0: delta_key_dim"),
      number("mamba_inner", &M::mamba_inner, 0, 1 << 22, "mamba: channels; 0: 2 d_model"),
      number("mamba_state", &M::mamba_state, 0, 1 << 16,
             "mamba: numbers of state a channel; 0: 16"),
      number("mamba_dt_rank", &M::mamba_dt_rank, 0, 1 << 20,
             "mamba: rank of the step's product; 0: d_model / 16, rounded up"),
      flag("mamba_norms", &M::mamba_norms,
           "mamba: an RMSNorm each of what the step, B and C are made from (Jamba: Lieber et al. "
           "2024, arXiv:2403.19887)"),
      flag("mamba_conv_bias", &M::mamba_conv_bias, "mamba: a bias in its convolution"),
      number("conv_width", &M::conv_width, 0, 1 << 10,
             "delta, mamba: tokens that the convolution in front sees; 0: 4"),
      enum_field<&M::norm>(
          "norm",
          "layer_norm (Ba et al. 2016, arXiv:1607.06450), rms_norm (Zhang and "
          "Sennrich 2019, arXiv:1910.07467) or scale_norm (one learned number; Nguyen and "
          "Salazar 2019, arXiv:1910.05895)"),
      number("norm_eps", &M::norm_eps, 0, 1, "added to the variance or mean square"),
      flag("norm_bias", &M::norm_bias, "layer_norm adds a learned shift"),
      enum_field<&M::norm_gain>("norm_gain",
                                "what a normalised row is multiplied by: gamma (learned, begins at "
                                "1), one_plus_gamma (1 + a learned row that begins at 0: Gemma, "
                                "Nemotron) or none (OLMo 1)"),
      flag("norm_round_before_gain", &M::norm_round_before_gain,
           "rms_norm in bf16: round before the gain multiplies, as LLaMA does"),
      enum_field<&M::placement>(
          "placement",
          "of the norms, for a branch F: pre, x + F(N(x)) (Xiong et al. 2020, arXiv:2002.04745); "
          "post, N(x + F(x)) (Vaswani et al. 2017, arXiv:1706.03762); double, x + N(F(N(x))) "
          "(Gemma "
          "2, arXiv:2408.00118); output, x + N(F(x)) (OLMo 2, arXiv:2501.00656); none, x + F(x)"),
      enum_field<&M::final_norm>(
          "final_norm",
          "a norm in front of the head: on, off or auto, which is off for the "
          "placements post and none"),
      flag("embedding_norm", &M::embedding_norm, "a norm behind the embedding (BLOOM)"),
      enum_field<&M::fix_norm>("fix_norm",
                               "word vectors of length 1: none, head (its rows: Baichuan 2, "
                               "arXiv:2309.10305) or both (the embedding's too: Nguyen and Salazar "
                               "2019, arXiv:1910.05895)"),
      enum_field<&M::qk_norm>("qk_norm",
                              "a norm of queries and keys before they turn: none, head (each by "
                              "itself: Qwen 3, Gemma 3; Dehghani et al. 2023, arXiv:2302.05442), "
                              "full (all heads as one row: OLMo 2) or heads (each by itself with a "
                              "gain of its own: Command R+)"),
      enum_field<&M::parallel>(
          "parallel",
          "attention and the feed-forward layer read the same stream: none (one after the other), "
          "shared_norm (one norm for both: GPT-J, PaLM, arXiv:2204.02311) or two_norms (GPT-NeoX, "
          "arXiv:2204.06745)"),
      flag("fused_parallel", &M::fused_parallel,
           "parallel = shared_norm: one product for queries, keys, values and the feed-forward "
           "layer's first matrices"),
      number("residual_scale", &M::residual_scale, -1e6, 1e6,
             "times what each branch adds (Granite)"),
      Field<M>{"residual_scales", &M::residual_scales, 0, 0,
               "the same by layer, from the first again when the list ends, times residual_scale; "
               "empty: 1"},
      enum_field<&M::residual_gain>(
          "residual_gain",
          "a learned factor of what a branch adds: none, scalar (ReZero, arXiv:2003.04887; Fixup, "
          "arXiv:1901.09321) or vector (LayerScale, arXiv:2103.17239)"),
      number("residual_gain_init", &M::residual_gain_init, -1e6, 1e6,
             "where it begins: ReZero 0, Fixup 1, LayerScale 1e-4"),
      number("stochastic_depth", &M::stochastic_depth, 0, 0.99,
             "probability that a sequence leaves out a branch of the last layer; layer i of L: i/L "
             "of it (Huang et al. 2016, arXiv:1603.09382)"),
      flag("scalar_biases", &M::scalar_biases,
           "a learned number added before each matrix and activation of a branch and before the "
           "head (Fixup: Zhang et al. 2019, arXiv:1901.09321)"),
      enum_field<&M::activation>(
          "activation",
          "of the feed-forward layer: relu, squared_relu (So et al. 2021, "
          "arXiv:2109.08668), gelu (exact), gelu_tanh (its approximation; "
          "Hendrycks and Gimpel 2016, arXiv:1606.08415), silu, swish (x s(p x)), "
          "sigmoid, tanh, elu, selu, softplus or identity"),
      number("activation_parameter", &M::activation_parameter, -1e6, 1e6,
             "p of swish (1.702: an approximation of gelu), alpha of elu"),
      flag("gated", &M::gated,
           "the activation gates a second branch: silu gives SwiGLU (Shazeer 2020, "
           "arXiv:2002.05202), identity the bilinear one"),
      number(
          "gate_limit", &M::gate_limit, 0, 1e6,
          "l > 0: the gate is cut at l, the other branch at -l and l (Phi-3-small 20, gpt-oss 7)"),
      number("gate_offset", &M::gate_offset, -1e6, 1e6,
             "added to the other branch (both of these: 1)"),
      number(
          "experts", &M::experts, 0, 1 << 16,
          "feed-forward experts of a layer, of which each token passes some; 0: none (Shazeer et "
          "al. 2017, arXiv:1701.06538)"),
      number("experts_per_token", &M::experts_per_token, 1, 1 << 16, "how many a token passes"),
      number("expert_d_ff", &M::expert_d_ff, 0, 1 << 22, "their width; 0: d_ff"),
      number(
          "shared_experts", &M::shared_experts, 0, 1 << 10,
          "experts that every token passes, as one layer so many times as wide (Dai et al. 2024, "
          "arXiv:2401.06066)"),
      number("shared_expert_d_ff", &M::shared_expert_d_ff, 0, 1 << 22,
             "their width (Qwen); 0: expert_d_ff"),
      flag("shared_expert_gate", &M::shared_expert_gate,
           "what they give is multiplied by a sigmoid of x (Qwen)"),
      number("first_expert_layer", &M::first_expert_layer, 0, 10000,
             "layers in front of it are dense (DeepSeek)"),
      number("expert_layer_every", &M::expert_layer_every, 1, 10000,
             "from there every so many layers has experts (Jamba: 2)"),
      enum_field<&M::router>(
          "router",
          "scores of the experts: softmax (Mixtral, arXiv:2401.04088) or sigmoid "
          "(DeepSeek-V3, arXiv:2412.19437)"),
      flag("router_bias", &M::router_bias, "a learned number added to each score (gpt-oss)"),
      flag("router_renormalise", &M::router_renormalise,
           "a token's weights add up to router_scale"),
      number("router_scale", &M::router_scale, 0, 1e6, "times the weights"),
      number("router_groups", &M::router_groups, 1, 1 << 16, "the experts lie in equal groups"),
      number("router_kept_groups", &M::router_kept_groups, 1, 1 << 16,
             "and are chosen from so many of them"),
      number("router_best_of_group", &M::router_best_of_group, 1, 2,
             "a group counts by the sum of its 1 (DeepSeek-V2) or 2 (V3) best scores"),
      flag("router_selection_bias", &M::router_selection_bias,
           "a bias that moves the choice of experts alone, kept beside the weights and not trained "
           "(DeepSeek-V3, arXiv:2412.19437)"),
      number("router_bias_rate", &M::router_bias_rate, 0, 1,
             "what a step adds to or takes from it, against the load (Wang et al. 2024, "
             "arXiv:2408.15664: 0.001); 0: it stays"),
      number("load_balance_loss", &M::load_balance_loss, 0, 1e3,
             "times the sum of the layers' load-balance losses, added to the loss (Fedus et al. "
             "2021, arXiv:2101.03961: 0.01)"),
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
  };
  return fields;
}

}  // namespace tally
