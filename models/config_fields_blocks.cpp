// Fields of a block: norms and their places, branches, experts.
#include "models/field_rows.h"

namespace tally {
std::vector<Field<ModelConfig>> detail::block_fields() {
  using M = ModelConfig;
  return {
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
          "sigmoid, tanh, elu, selu, softplus, identity, learned_swish (x s(beta x), beta "
          "trained) or xielu (two curvatures trained: Huang and Schlag 2024, arXiv:2411.13010)"),
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
      flag("dense_branch", &M::dense_branch,
           "a dense layer, d_ff wide, beside the experts; each between norms of its own, and the "
           "router sees the stream itself (Gemma 4; needs placement = double)"),
      number("first_expert_layer", &M::first_expert_layer, 0, 10000,
             "layers in front of it are dense (DeepSeek)"),
      number("expert_layer_every", &M::expert_layer_every, 1, 10000,
             "from there every so many layers has experts (Jamba: 2)"),
      enum_field<&M::router>(
          "router",
          "scores of the experts: softmax (Mixtral, arXiv:2401.04088) or sigmoid "
          "(DeepSeek-V3, arXiv:2412.19437)"),
      flag("router_bias", &M::router_bias, "a learned number added to each score (gpt-oss)"),
      flag("router_norm", &M::router_norm,
           "the router sees x / rms(x) times a learned row over sqrt(d_model) (Gemma 4)"),
      flag("router_expert_scale", &M::router_expert_scale,
           "a token's weight times a learned number of the expert (Gemma 4)"),
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
  };
}

}  // namespace tally
