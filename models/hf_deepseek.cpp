// DeepSeek-V2 and V3: latent attention. Names as LLaMA's, but for attention's and the experts'.
#include "core/error.h"
#include "models/hf_reader.h"
#include "models/hf_writer.h"

namespace tally {
namespace {

/// Sizes that config.json repeats.
void check_head_sizes(HfReader& r, const ModelConfig& m) {
  const auto same = [&](const char* key, int64_t size) {
    const int64_t given = r.integer(key, size);
    check(given == size, r.where(key), " = ", given,
          " does not follow from qk_nope_head_dim and qk_rope_head_dim; it should be ", size);
  };
  same("qk_head_dim", m.qk_nope_head_dim + m.qk_rope_head_dim);
  same("head_dim", m.qk_rope_head_dim);  // of the part that turns, as the tables take it
}

/// What config.json means where it is silent.
struct RoutedDefaults {
  int64_t experts = 0, shared = 0, chosen = 0, width = 0, dense = 0, groups = 1, kept = 1;
  bool renormalise = false;
  double scale = 1;
};

/// The layers from first_k_dense_replace on have experts.
void read_experts(HfReader& r, ModelConfig& m, const RoutedDefaults& d) {
  const int64_t experts = r.integer("n_routed_experts", d.experts),
                shared = r.integer("n_shared_experts", d.shared),
                chosen = r.integer("num_experts_per_tok", d.chosen),
                width = r.integer("moe_intermediate_size", d.width),
                dense = r.integer("first_k_dense_replace", d.dense),
                every = r.integer("moe_layer_freq", 1), groups = r.integer("n_group", d.groups),
                kept = r.integer("topk_group", d.kept);
  const bool renormalise = r.flag("norm_topk_prob", d.renormalise);
  const double scale = r.number("routed_scaling_factor", d.scale);
  for (const char* of_training : {"aux_loss_alpha", "seq_aux", "ep_size"}) r.find(of_training);
  if (experts == 0 || dense >= m.layers) return;
  m.experts = experts, m.shared_experts = shared, m.experts_per_token = chosen;
  m.expert_d_ff = width, m.first_expert_layer = dense, m.expert_layer_every = every;
  m.router_renormalise = renormalise, m.router_scale = scale;
  m.router_groups = groups, m.router_kept_groups = kept;
}

/// A group counts by its best expert, or there are none.
void route_by_softmax(HfReader& r, ModelConfig& m) {
  const Json* method = r.find("topk_method");
  const bool limited = method && *method == "group_limited_greedy";
  check(!method || limited || *method == "greedy", r.where("topk_method"),
        " is not supported; greedy and group_limited_greedy are");
  if (!limited) m.router_groups = m.router_kept_groups = 1;
}

/// Each expert is scored alone, and a bias kept beside the weights moves the choice.
void route_by_sigmoid(HfReader& r, ModelConfig& m) {
  r.only("topk_method", "noaux_tc");
  if (m.experts == 0) return;
  m.router = Router::sigmoid, m.router_selection_bias = true;
  if (m.router_groups > 1) m.router_best_of_group = 2;
}

void write_deepseek(HfWriter& w, const ModelConfig& m) {
  w["head_dim"] = m.qk_rope_head_dim, w["qk_head_dim"] = m.head_dim;
  w.rope();
  w["first_k_dense_replace"] = m.experts > 0 ? m.first_expert_layer : m.layers;
  if (m.experts == 0) return;
  w["n_routed_experts"] = m.experts, w["n_shared_experts"] = m.shared_experts;
  w["num_experts_per_tok"] = m.experts_per_token, w["moe_intermediate_size"] = m.expert_d_ff;
  w["moe_layer_freq"] = m.expert_layer_every;
  w["norm_topk_prob"] = m.router_renormalise, w["routed_scaling_factor"] = m.router_scale;
  w["n_group"] = m.router_groups, w["topk_group"] = m.router_kept_groups;
}

HfFamily deepseek_v2() {
  HfFamily f{};
  f.model_type = "deepseek_v2";
  f.entries = {{"num_hidden_layers", "layers", true},
               {"hidden_size", "d_model", true},
               {"num_attention_heads", "heads", true},
               {"num_key_value_heads", "kv_heads"},
               {"q_lora_rank", "q_lora_rank"},
               {"kv_lora_rank", "kv_lora_rank", true},
               {"qk_nope_head_dim", "qk_nope_head_dim", true},
               {"qk_rope_head_dim", "qk_rope_head_dim", true},
               {"v_head_dim", "v_head_dim", true},
               {"intermediate_size", "d_ff", true},
               {"vocab_size", "vocab", true},
               {"max_position_embeddings", "context"},
               {"rms_norm_eps", "norm_eps"},
               {"mlp_bias", "mlp_bias"},
               {"initializer_range", "init_std"},
               {"tie_word_embeddings", "tied_head"}};
  f.fixed = {{"attention_bias", "false"}, {"scoring_func", "\"softmax\""}};
  f.activation_key = "hidden_act", f.activation = "silu";
  // The norms of the latents have an eps of their own, whatever rms_norm_eps says.
  f.defaults = [](ModelConfig& m) {
    m.attention = AttentionKind::latent, m.latent_norm_eps = 1e-6;
    m.rope_layout = RopeLayout::interleaved, m.norm_eps = 1e-6, m.context = 2048;
  };
  f.read = [](HfReader& r, ModelConfig& m) {
    check_head_sizes(r, m);
    read_experts(r, m, {});
    route_by_softmax(r, m);
    r.read_rope();
  };
  f.write = [](HfWriter& w, const ModelConfig& m) {
    write_deepseek(w, m);
    if (m.experts > 0) w["topk_method"] = m.router_groups > 1 ? "group_limited_greedy" : "greedy";
  };
  f.prefix = "model.", f.blocks = "layers.";
  const auto ranked = [](const ModelConfig& c) { return c.q_lora_rank > 0; };
  const auto plain = [](const ModelConfig& c) { return c.q_lora_rank == 0; };
  f.rows = {{"embedding", "embed_tokens"},
            {"attention_norm", "input_layernorm"},
            {"attention.q_down", "self_attn.q_a_proj"},
            {"attention.q_norm", "self_attn.q_a_layernorm"},
            {.piece = "attention.q", .stored = "self_attn.q_b_proj", .when = ranked},
            {.piece = "attention.q", .stored = "self_attn.q_proj", .when = plain},
            {"attention.kv_down", "self_attn.kv_a_proj_with_mqa"},
            {"attention.kv_norm", "self_attn.kv_a_layernorm"},
            {"attention.kv_up", "self_attn.kv_b_proj"},
            {"attention.out", "self_attn.o_proj"},
            {"mlp_norm", "post_attention_layernorm"},
            {"mlp.gate", "mlp.gate_proj"},
            {"mlp.up", "mlp.up_proj"},
            {"mlp.down", "mlp.down_proj"},
            {"mlp.router", "mlp.gate"},
            {"mlp.router.selection_bias", "mlp.gate.e_score_correction_bias"},
            {"mlp.experts.gate", "mlp.experts.{}.gate_proj"},
            {"mlp.experts.up", "mlp.experts.{}.up_proj"},
            {"mlp.experts.down", "mlp.experts.{}.down_proj"},
            {"mlp.shared.gate", "mlp.shared_experts.gate_proj"},
            {"mlp.shared.up", "mlp.shared_experts.up_proj"},
            {"mlp.shared.down", "mlp.shared_experts.down_proj"},
            {"final_norm", "norm"},
            {"head", "lm_head"}};
  f.buffers = {"rotary_emb.inv_freq"};
  return f;
}

HfFamily deepseek_v3() {
  HfFamily f = deepseek_v2();
  f.model_type = "deepseek_v3";
  // Layers that guess further tokens stand behind the model and are not part of it here.
  f.fixed = {{"attention_bias", "false"},
             {"scoring_func", "\"sigmoid\""},
             {"num_nextn_predict_layers", "0"}};
  f.read = [](HfReader& r, ModelConfig& m) {
    check_head_sizes(r, m);
    read_experts(r, m, {256, 1, 8, 2048, 3, 8, 4, true, 2.5});
    route_by_sigmoid(r, m);
    if (!r.flag("rope_interleave", true)) m.rope_layout = RopeLayout::half;
    r.read_rope();
  };
  f.write = [](HfWriter& w, const ModelConfig& m) {
    write_deepseek(w, m);
    w["rope_interleave"] = m.rope_layout == RopeLayout::interleaved;
  };
  return f;
}

}  // namespace

std::vector<HfFamily> deepseek_families() { return {deepseek_v2(), deepseek_v3()}; }

}  // namespace tally
