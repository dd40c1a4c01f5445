// Modules as rows of the table of samples: norms, mixtures, latent and relative attention, blocks.
#include "nn/block.h"
#include "nn/latent_attention.h"
#include "nn/module_sample.h"
#include "nn/samples.h"

namespace tally::nn {
namespace {

using Tensors = std::vector<Tensor>;

SampleInput block_angles(int64_t positions, int64_t width) {
  return accumulating(constant(normal({positions, width}, 92)));
}

void add_norms(std::vector<Sample>& all) {
  struct Form {
    const char* name;
    NormOptions options;
  };
  const double eps = 0.1;
  const Form forms[] = {
      {"LayerNorm", {NormKind::layer_norm, eps}},
      {"LayerNorm with a bias", {NormKind::layer_norm, eps, true}},
      {"LayerNorm, gain 1 + w, a bias",
       {NormKind::layer_norm, eps, true, NormGain::one_plus_gamma}},
      {"LayerNorm without a gain", {NormKind::layer_norm, eps, false, NormGain::none}},
      {"RMSNorm", {NormKind::rms_norm, eps}},
      {"RMSNorm, gain 1 + w", {NormKind::rms_norm, eps, false, NormGain::one_plus_gamma}},
      {"RMSNorm without a gain", {NormKind::rms_norm, eps, false, NormGain::none}},
      {"RMSNorm rounded before the gain", {NormKind::rms_norm, eps, false, NormGain::gamma, true}},
      {"ScaleNorm", {NormKind::scale_norm, eps}}};
  for (const auto& [name, o] : forms) {
    for (const Shape& s : {Shape{2, 3, 5}, {1, 1, 1}, {0, 3, 4}, {3, 17}}) {
      const int64_t width = s[-1];
      const ModuleUse<Norm> use{
          [o = o, width](DType t, Device d) { return std::make_unique<Norm>(o, width, t, d); },
          [](Norm& m, const Tensors& in) -> Tensors { return {m.forward(in[0])}; }};
      all.push_back(module_sample("norm_layer", std::string(name) + " of " + to_text(s), use,
                                  {normal(s, 1)}));
    }
  }
}

Sample mixture(const std::string& name, MixtureOptions o, bool balance, const SampleInput& x) {
  o.d_model = x.shape[-1];
  const ModuleUse<MixtureOfExperts> use{
      [o](DType t, Device d) { return std::make_unique<MixtureOfExperts>(o, t, d); },
      [balance](MixtureOfExperts& m, const Tensors& in) -> Tensors {
        if (in[1].defined()) m.selection_bias = in[1];
        const MixtureOutput out = m.route(in[0]);
        if (!balance) return {out.y};
        return {out.y, out.balance_loss()};
      }};
  const SampleInput bias = o.selection_bias ? constant(normal({o.experts}, 9, 0.3)) : absent();
  return module_sample("mixture_of_experts", name, use, {x, bias}).bounded();
}

void add_mixtures(std::vector<Sample>& all) {
  for (int options = 0; options < 32; ++options) {
    MixtureOptions o;
    o.d_ff = 2, o.experts = 3;
    o.router.k = options & 1 ? 1 : 2;
    o.router.score = options & 2 ? ops::RouterScore::sigmoid : ops::RouterScore::softmax;
    o.gated = (options & 4) != 0;
    o.bias = o.router_bias = o.selection_bias = (options & 8) != 0;
    o.shared_ff = options & 16 ? 3 : 0;
    o.shared_gate = options & 16 && options & 1;
    all.push_back(mixture("options " + to_text(options), o, (options & 4) != 0,
                          normal({2, 2, 3}, 20 + static_cast<uint64_t>(options))));
  }
  MixtureOptions limited;
  limited.d_ff = 3, limited.experts = 4, limited.router.k = 3;
  limited.activation = ops::ActivationKind::swish, limited.parameter = 1.7;
  limited.limit = 0.8, limited.offset = 1;
  MixtureOptions groups = limited;
  groups.limit = 0;
  groups.router = {1, ops::RouterScore::sigmoid, true, 2.5, 2, 1, 2};
  for (int options = 1; options < 4; ++options) {
    MixtureOptions o;
    o.d_ff = 2, o.experts = 3, o.norm_eps = 0.1;
    o.router_norm = options & 1, o.expert_scale = (options & 2) != 0, o.router_bias = options == 3;
    all.push_back(mixture("a router of its own norm and numbers, options " + to_text(options), o,
                          true, normal({2, 2, 3}, 70 + static_cast<uint64_t>(options))));
  }
  MixtureOptions one;
  one.d_ff = 1, one.experts = 1, one.router.k = 1;
  all.push_back(mixture("limits and an offset", limited, true, normal({3, 5}, 60)));
  all.push_back(mixture("groups of experts", groups, false, normal({3, 5}, 61)));
  all.push_back(mixture("one of everything", one, true, normal({1, 1}, 62)));
  all.push_back(mixture("no tokens", limited, false, normal({0, 3}, 63)));
  all.push_back(mixture("a wide row", limited, false, normal({2, 17}, 64)));
}

Sample latent(const std::string& name, LatentAttentionOptions o, const SampleInput& x,
              bool turned) {
  o.d_model = x.shape[-1];
  const ModuleUse<LatentAttention> use{
      [o](DType t, Device d) { return std::make_unique<LatentAttention>(o, t, d); },
      [](LatentAttention& m, const Tensors& in) -> Tensors {
        Generator dropout(5);
        return {m.forward(in[0], {in[1], 1, {}, {}}, &dropout)};
      }};
  return module_sample("latent_attention", name, use,
                       {x, turned ? block_angles(x.shape[1] + 1, o.qk_rope_head_dim) : absent()})
      .bounded();  // one key of all heads: a view that repeats it is read once
}

void add_latent(std::vector<Sample>& all) {
  for (int options = 0; options < 32; ++options) {
    LatentAttentionOptions o;
    o.heads = 2, o.kv_lora_rank = 3, o.qk_nope_head_dim = 2, o.qk_rope_head_dim = 2;
    o.v_head_dim = 3, o.norm_eps = 0.1;
    o.q_lora_rank = options & 1 ? 2 : 0;
    o.scale = options & 2 ? 0.4 : 0;
    o.rope_pairs = options & 4 ? ops::RotaryPairs::half_split : ops::RotaryPairs::interleaved;
    o.dropout = options & 8 ? 0.3 : 0;
    o.sink = options & 2 && options & 16, o.off_by_one = options & 4 && !o.sink;
    all.push_back(latent("options " + to_text(options), o,
                         normal({1, 3, 4}, 30 + static_cast<uint64_t>(options)),
                         (options & 16) != 0));
  }
  LatentAttentionOptions one;
  one.kv_lora_rank = one.qk_nope_head_dim = one.v_head_dim = 1, one.qk_rope_head_dim = 2;
  LatentAttentionOptions odd = one;
  odd.heads = 3, odd.kv_lora_rank = 5, odd.qk_nope_head_dim = 3, odd.qk_rope_head_dim = 4;
  all.push_back(latent("one token of one number", one, normal({1, 1, 1}, 70), false));
  all.push_back(latent("no tokens", one, normal({2, 0, 3}, 71), true));
  all.push_back(latent("odd sizes", odd, normal({2, 5, 7}, 72), true));
}

Sample relative(const std::string& name, AttentionOptions o, const SampleInput& x) {
  o.d_model = x.shape[-1], o.xl_relative = true;
  const ModuleUse<Attention> use{
      [o](DType t, Device d) { return std::make_unique<Attention>(o, t, d); },
      [](Attention& m, const Tensors& in) -> Tensors {
        Generator dropout(5);
        return {m.forward(in[0], {{}, 0, {}, in[1]}, &dropout)};
      }};
  const SampleInput distances = constant(normal({x.shape[1], o.d_model}, 93));
  return module_sample("relative_attention", name, use, {x, distances});
}

void add_relative(std::vector<Sample>& all) {
  for (int options = 0; options < 16; ++options) {
    AttentionOptions o;
    o.heads = 2, o.kv_heads = options & 1 ? 1 : 2, o.head_dim = 2;
    o.fused = (options & 2) != 0;
    o.out_bias = (options & 4) != 0;
    o.qkv_bias = o.out_bias && o.fused;  // of k alone it adds the same to a row: a gradient of 0
    if (options & 8) o.scores.window = 2, o.scores.soft_cap = 2, o.dropout = 0.2;
    all.push_back(relative("options " + to_text(options), o,
                           normal({2, 3, 4}, 40 + static_cast<uint64_t>(options))));
  }
  AttentionOptions one;
  one.head_dim = 1;
  all.push_back(relative("one token of one number", one, normal({1, 1, 1}, 80)));
  all.push_back(relative("no tokens", one, normal({2, 0, 3}, 81)));
}

Sample block(const std::string& name, Block::Options o, const SampleInput& x, bool turned) {
  const int64_t d = x.shape[-1];
  o.attention.d_model = o.mlp.d_model = d;
  if (o.experts) o.experts->d_model = d;
  const ModuleUse<Block> use{
      [o](DType t, Device dev) { return std::make_unique<Block>(o, t, dev); },
      [](Block& m, const Tensors& in) -> Tensors {
        Generator dropout(6);
        const auto [y, balance] = m.run(in[0], {in[1], 0, {}, {}}, &dropout);
        if (!balance.defined()) return {y};
        return {y, balance};
      }};
  return module_sample("block", name, use,
                       {x, turned ? block_angles(x.shape[1], o.attention.head_dim) : absent()});
}

Block::Options small_block() {
  Block::Options o;
  o.norm.eps = 0.1;
  o.attention.heads = 2, o.attention.kv_heads = 1, o.attention.head_dim = 2;
  o.mlp.d_ff = 3;
  return o;
}

constexpr const char* kPlacements[] = {"pre", "post", "double norm", "output norm", "no norm"};
constexpr const char* kBranches[] = {"serial", "parallel, one norm", "parallel, two norms"};

void add_blocks(std::vector<Sample>& all) {
  uint64_t seed = 100;
  for (int placement = 0; placement < 5; ++placement) {
    for (int branches = 0; branches < 3; ++branches) {
      for (const NormKind kind : {NormKind::rms_norm, NormKind::layer_norm, NormKind::scale_norm}) {
        Block::Options o = small_block();
        o.placement = static_cast<Placement>(placement);
        o.parallel = static_cast<Parallel>(branches);
        o.norm.kind = kind;
        if (branches > 0 && o.placement == Placement::post) continue;  // refused
        all.push_back(block(std::string(kPlacements[placement]) + ", " + kBranches[branches] +
                                ", norm " + to_text(static_cast<int>(kind)),
                            o, normal({1, 3, 4}, ++seed), true));
      }
    }
  }
  for (int gain = 0; gain < 3; ++gain) {
    for (const double drop : {0.0, 0.4}) {
      Block::Options o = small_block();
      o.residual = {0.5, static_cast<ResidualGain>(gain), drop};
      o.dropout = drop / 2;
      all.push_back(block("residual gain " + to_text(gain) + ", drop " + to_text(drop), o,
                          normal({3, 2, 4}, ++seed), false));
    }
  }
  for (const bool gated : {false, true}) {
    Block::Options o = small_block();
    o.parallel = Parallel::shared_norm, o.fused_parallel = true;
    o.mlp.gated = gated;
    all.push_back(block(gated ? "fused parallel, gated" : "fused parallel, plain", o,
                        normal({2, 3, 4}, ++seed), true));
  }
  Block::Options mixed = small_block();
  mixed.experts.emplace();
  mixed.experts->d_ff = 2, mixed.experts->experts = 3;
  mixed.balance = true;
  Block::Options beside = mixed;
  beside.placement = Placement::double_norm, beside.dense_branch = true;
  beside.experts->router_norm = beside.experts->expert_scale = true;
  beside.experts->norm_eps = 0.1;
  Block::Options rich = small_block();
  rich.attention.sink = rich.attention.gate = rich.attention.qkv_bias = true;
  rich.attention.qk_norm = {QKNorm::Width::head, {NormKind::rms_norm, 0.1}};
  rich.attention.scores.window = 2, rich.attention.scores.soft_cap = 2;
  rich.mlp.bias = true;
  all.push_back(
      block("experts and their balance", mixed, normal({1, 3, 4}, ++seed), true).bounded());
  all.push_back(
      block("a dense branch beside experts", beside, normal({1, 3, 4}, ++seed), true).bounded());
  all.push_back(
      block("sink, gate, QK-norm, window, cap, biases", rich, normal({2, 3, 4}, ++seed), true));
  all.push_back(block("no tokens", small_block(), normal({2, 0, 4}, ++seed), true));
  all.push_back(block("one token", small_block(), normal({1, 1, 1}, ++seed), true));
  all.push_back(block("odd sizes", rich, normal({1, 5, 7}, ++seed), true));
}

}  // namespace

void add_modules(std::vector<Sample>& all) {
  add_norms(all);
  add_mixtures(all);
  add_latent(all);
  add_relative(all);
  add_blocks(all);
}

}  // namespace tally::nn
