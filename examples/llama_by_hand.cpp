// Forward and backward of a LLaMA-style decoder with no tape: every line of the backward pass is a
// line of the forward pass reversed. At the end the tape computes the same, and every gradient must
// have the same bits.
#include <cstdio>
#include <cstring>
#include <map>

#include "autograd/functional.h"
#include "backends/register_all.h"
#include "core/ops/all.h"
#include "core/ops/position.h"
#include "core/random.h"
#include "models/build.h"
#include "models/zoo.h"

using namespace tally;

namespace {

using Gradients = std::map<std::string, Tensor>;

/// What one block keeps for its backward pass.
struct SavedBlock {
  ops::RMSNorm::Saved attention_norm, mlp_norm;
  nn::AttentionLayer::Saved attention;
  nn::FeedForwardLayer::Saved mlp;
};

struct SavedModel {
  ops::Embedding::Saved embedding;
  std::vector<SavedBlock> blocks;
  ops::RMSNorm::Saved final_norm;
  ops::LinearCrossEntropy::Saved head;
};

/// The parts of a model that the passes below read.
struct Llama {
  nn::Decoder& model;
  nn::AttentionLayer::Attrs attention;
  Tensor rope;
  double eps;
};

//   h = x + attention(norm(x))
//   y = h + mlp(norm(h))
Tensor block_forward(const Llama& m, const nn::Block& b, const Tensor& x, SavedBlock& s) {
  const auto& a = b.attention;
  const auto& f = *b.mlp;
  const Tensor n1 = ops::RMSNorm::forward(x, b.attention_norm.weight, {m.eps}, &s.attention_norm);
  const Tensor branch =
      nn::AttentionLayer::forward(n1, a.q.weight, {}, {}, {}, {}, {}, a.out.weight, {}, m.rope, {},
                                  {}, {}, {}, {}, {}, {}, {}, {}, m.attention, &s.attention);
  const Tensor h = ops::Add::forward(x, branch, {}, nullptr);
  const Tensor n2 = ops::RMSNorm::forward(h, b.mlp_norm.weight, {m.eps}, &s.mlp_norm);
  const Tensor thought =
      nn::FeedForwardLayer::forward(n2, {}, {}, f.up.weight, {}, f.down.weight, {}, {}, {},
                                    {ops::ActivationKind::silu, true}, &s.mlp);
  return ops::Add::forward(h, thought, {}, nullptr);
}

/// Adds a gradient to one that has arrived before: the residual stream feeds both the branch's norm
/// and the addition.
template <int N>
Into<N> adding_to(const Tensor& first) {
  Into<N> into;
  into.target[0] = first;
  return into;
}

// dy goes to h and, through the mlp, to h again; then the same for x and the attention.
Tensor block_backward(Tensor dy, SavedBlock&& s, const std::string& at, Gradients& g) {
  auto thought = nn::FeedForwardLayer::backward(dy, std::move(s.mlp));
  g[at + "mlp.gate_up.weight"] = thought[3];
  g[at + "mlp.down.weight"] = thought[5];
  auto [dh, dw2] = ops::RMSNorm::backward(thought[0], std::move(s.mlp_norm), adding_to<2>(dy));
  g[at + "mlp_norm.weight"] = dw2;

  auto branch = nn::AttentionLayer::backward(dh, std::move(s.attention));
  g[at + "attention.qkv.weight"] = branch[1];
  g[at + "attention.out.weight"] = branch[7];
  auto [dx, dw1] = ops::RMSNorm::backward(branch[0], std::move(s.attention_norm), adding_to<2>(dh));
  g[at + "attention_norm.weight"] = dw1;
  return dx;
}

Tensor forward(const Llama& m, const Tensor& ids, const Tensor& targets, SavedModel& s) {
  Tensor x = ops::Embedding::forward(ids, m.model.embedding.weight, {}, &s.embedding);
  s.blocks.resize(m.model.blocks.size());
  for (size_t i = 0; i < s.blocks.size(); ++i)
    x = block_forward(m, *m.model.blocks[i], x, s.blocks[i]);
  const Tensor n = ops::RMSNorm::forward(x, m.model.final_norm.weight, {m.eps}, &s.final_norm);
  return ops::LinearCrossEntropy::forward(n, m.model.head_weight, targets, {}, &s.head)[0];
}

Gradients backward(const Tensor& dloss, SavedModel&& s) {
  Gradients g;
  auto head = ops::LinearCrossEntropy::backward({dloss, Tensor()}, std::move(s.head));
  g["head.weight"] = head[1];
  auto [dx, dw] = ops::RMSNorm::backward(head[0], std::move(s.final_norm));
  g["final_norm.weight"] = dw;
  for (size_t i = s.blocks.size(); i-- > 0;)
    dx = block_backward(dx, std::move(s.blocks[i]), "blocks." + std::to_string(i) + ".", g);
  g["embedding.weight"] = ops::Embedding::backward(dx, std::move(s.embedding))[1];
  return g;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.nbytes()) == 0;
}

}  // namespace

int main() {
  register_all();
  RunConfig config = find_preset("llama-smoke").config;
  config.model.tied_head = false;
  config.resolve_and_check("llama-smoke");
  const ModelConfig& c = config.model;
  const auto model = build_model(c, DType::f32, kCPU);
  initialise(*model, c, 1);
  std::vector<int64_t> text(2 * 32), next(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    text[i] = Philox::word(1, 0, i) % c.vocab;
    next[i] = Philox::word(1, 1, i) % c.vocab;
  }
  const Tensor ids = from_host<int64_t>(text, {2, 32}, kCPU),
               targets = from_host<int64_t>(next, {2, 32}, kCPU);

  Llama llama{
      *model, {}, rope_table(c.context, c.head_dim, c.rope_base, DType::f32, kCPU), c.norm_eps};
  llama.attention.heads = c.heads;
  llama.attention.kv_heads = c.kv_heads;
  llama.attention.head_dim = c.head_dim;
  SavedModel saved;
  const Tensor loss = forward(llama, ids, targets, saved);
  const Gradients by_hand = backward(full(loss.shape(), 1, DType::f32, kCPU), std::move(saved));

  model->requires_grad();
  Tape tape;
  const Tensor taped = model->loss(ids, targets);
  tape.backward(taped);

  bool equal = same_bits(loss, taped);
  std::printf("loss by hand %.7f, by the tape %.7f\n", loss.item(), taped.item());
  for (const auto& [name, t] : model->named_parameters()) {
    const auto it = by_hand.find(name);
    const bool same = it != by_hand.end() && same_bits(it->second, t.grad());
    equal = equal && same;
    std::printf("%-36s %s\n", name.c_str(), same ? "same bits" : "DIFFERENT");
  }
  std::printf(equal ? "every gradient is the same, bit for bit\n" : "by hand and tape differ\n");
  return equal ? 0 : 1;
}
