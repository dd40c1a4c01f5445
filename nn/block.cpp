#include "nn/block.h"

namespace tally::nn {
namespace {

Tensor normed(const Norm& norm, const char* name, const Tensor& x) {
  const ModuleScope scope(name);
  return norm.forward(x);
}

}  // namespace

Block::Block(const Options& o, DType dtype, Device device)
    : attention_norm(o.norm, o.attention.d_model, o.norm_eps, o.norm_bias, dtype, device),
      attention(o.attention, dtype, device),
      mlp_norm(o.norm, o.attention.d_model, o.norm_eps, o.norm_bias, dtype, device),
      mlp(o.mlp, dtype, device),
      dropout_(o.dropout) {}

Tensor Block::forward(const Tensor& x, const Positions& positions, Generator* dropout) const {
  const auto joined = [&](const Tensor& stream, const Tensor& branch) {
    return dropout && dropout_ > 0 ? tally::dropout(branch, dropout_, *dropout, stream)
                                   : add(stream, branch);
  };
  const Tensor h =
      joined(x, attention.forward(normed(attention_norm, "attention_norm", x), positions, dropout));
  return joined(h, mlp.forward(normed(mlp_norm, "mlp_norm", h)));
}

Tensor Block::forward_cached(const Tensor& x, const Positions& positions,
                             KVCache::Layer& cache) const {
  const Tensor h = add(
      x, attention.forward_cached(normed(attention_norm, "attention_norm", x), positions, cache));
  return add(h, mlp.forward(normed(mlp_norm, "mlp_norm", h)));
}

void Block::visit(Visitor& v) {
  v.child("attention_norm", attention_norm);
  v.child("attention", attention);
  v.child("mlp_norm", mlp_norm);
  v.child("mlp", mlp);
}

}  // namespace tally::nn
