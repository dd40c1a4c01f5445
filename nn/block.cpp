#include "nn/block.h"

namespace tally::nn {
namespace {

Tensor normed(const Norm& norm, const char* name, const Tensor& x) {
  if (!norm.present()) return x;
  const ModuleScope scope(name);
  return norm.forward(x);
}

bool before_branch(Placement p) { return p == Placement::pre || p == Placement::double_norm; }
bool behind_branch(Placement p) { return p == Placement::double_norm || p == Placement::output; }

Tensor shifted(const Tensor& x, const Tensor& shift) {
  if (!shift.defined()) return x;
  const ModuleScope scope("shift");  // the block's own additions are what joins the stream
  return add(x, shift);
}

KeyValues& handed_on(const Positions& positions) {
  check(positions.shared,
        "block: shared attention needs Positions::shared, where layers hand on keys and values");
  return *positions.shared;
}

NormOptions first_norm(const Block::Options& o) {
  return norm_if(before_branch(o.placement) || o.placement == Placement::post, o.norm);
}
NormOptions second_norm(const Block::Options& o) {
  return norm_if(o.parallel != Parallel::shared_norm, first_norm(o));
}
NormOptions output_norm(const Block::Options& o) {
  return norm_if(behind_branch(o.placement), o.norm);
}
bool has_both(const Block::Options& o) { return o.dense_branch && o.experts; }
NormOptions branch_norm(const Block::Options& o) { return norm_if(has_both(o), o.norm); }
Tensor gain_of(const Block::Options& o, DType dtype, Device device) {
  if (o.residual.gain == ResidualGain::none) return {};
  const bool one = o.residual.gain == ResidualGain::scalar;
  return empty(one ? Shape{} : Shape{o.attention.d_model}, dtype, device);
}

// The layers of a block without what its own input holds.
AttentionOptions attention_part(const Block::Options& o) {
  AttentionOptions a = o.attention;
  a.own_projections = !o.fused_parallel, a.shift = o.shifts;
  return o.latent || o.shared || o.delta_net || o.mamba ? AttentionOptions{} : a;
}
FeedForwardOptions mlp_part(const Block::Options& o) {
  FeedForwardOptions f = o.mlp;
  f.own_inputs = !o.fused_parallel, f.shifts = o.shifts;
  return f;
}

}  // namespace

Block::Block(const Options& o, DType dtype, Device device)
    : attention_norm(first_norm(o), o.attention.d_model, dtype, device),
      attention(attention_part(o), dtype, device),
      attention_output_norm(output_norm(o), o.attention.d_model, dtype, device),
      attention_gain(gain_of(o, dtype, device)),
      mlp_norm(second_norm(o), o.attention.d_model, dtype, device),
      dense_output_norm(branch_norm(o), o.attention.d_model, dtype, device),
      experts_norm(branch_norm(o), o.attention.d_model, dtype, device),
      experts_output_norm(branch_norm(o), o.attention.d_model, dtype, device),
      mlp_output_norm(output_norm(o), o.attention.d_model, dtype, device),
      mlp_gain(gain_of(o, dtype, device)),
      options_(o) {
  check(
      o.parallel == Parallel::none || o.placement != Placement::post,
      "block: parallel branches have one sum, behind which placement = post has two norms; choose "
      "another placement or parallel = none");
  check(!o.shifts || (!o.experts && !o.fused_parallel),
        "block: scalar biases belong to separate products of dense layers; leave out experts and "
        "fused_parallel, or the shifts");
  check(
      o.latent.has_value() + o.shared.has_value() + o.delta_net.has_value() + o.mamba.has_value() <=
          1,
      "block: one layer mixes its tokens; give one of latent, shared, delta_net and mamba, or "
      "none");
  check(!(o.delta_net || o.mamba) || (!o.shifts && !o.fused_parallel),
        "block: a recurrence has products of its own, without scalar biases; leave out shifts and "
        "fused_parallel");
  if (o.shifts) attention_shift = empty({}, dtype, device), mlp_shift = empty({}, dtype, device);
  if (o.latent) latent.emplace(*o.latent, dtype, device);
  if (o.shared) shared.emplace(*o.shared, dtype, device);
  if (o.layer_input > 0)
    layer_input.emplace(o.layer_input, o.attention.d_model, o.mlp.activation, o.norm, dtype,
                        device);
  if (o.scaled) layer_scale = full({1}, 1, dtype, device);
  if (o.delta_net) delta_net.emplace(*o.delta_net, dtype, device);
  if (o.mamba) mamba.emplace(*o.mamba, dtype, device);
  check(!has_both(o) || (o.placement == Placement::double_norm && o.parallel == Parallel::none),
        "block: a dense branch beside experts has norms on both sides; choose placement = double "
        "and parallel = none");
  if (o.experts) experts.emplace(*o.experts, dtype, device);
  if (!o.experts || o.dense_branch) mlp.emplace(mlp_part(o), dtype, device);
  if (!o.fused_parallel) return;
  check(!o.experts && !o.latent && !o.shared && o.parallel == Parallel::shared_norm &&
            !behind_branch(o.placement) && !attention_gain.defined() && o.residual.drop == 0 &&
            o.dropout == 0 && !o.attention.xl_relative && !o.attention.sink &&
            !o.attention.off_by_one && !o.attention.gate &&
            o.mlp.learned == LearnedActivation::none && o.attention.qkv_bias == o.mlp.bias,
        "block: fused parallel branches share a norm and biases of the first product, and have no "
        "norm, gain, sink, gate, latent or dropout of their own");
  input = Matrix(parallel_attrs().rows(), o.attention.d_model, o.mlp.bias, dtype, device);
}

ParallelLayer::Attrs Block::parallel_attrs() const {
  return {attention.attrs(), options_.mlp.attrs(), options_.mlp.d_ff};
}

Tensor Block::fused(const Tensor& x, const Positions& positions, Generator* dropout,
                    KVCache::Layer* cache) const {
  const Tensor seen = normed(attention_norm, "attention_norm", x);
  ParallelLayer::Attrs a = parallel_attrs();
  a.attention.rope.offset = positions.offset;
  Tensor y;
  {
    const ModuleScope scope("parallel");
    a.attention.attention.dropout = attention_dropout(options_.attention.dropout, dropout);
    if (cache)
      y = fused_cached(seen, positions, a, *cache);
    else
      y = apply<ParallelLayer>(a, seen, input.weight, input.bias, attention.out.weight,
                               attention.out.bias, mlp->down.weight, mlp->down.bias,
                               positions.table, positions.bias, attention.qk_norm.q.gain,
                               attention.qk_norm.q.shift, attention.qk_norm.k.gain,
                               attention.qk_norm.k.shift, positions.documents);
  }
  return join(x, y, {}, dropout);
}

Tensor Block::fused_cached(const Tensor& seen, const Positions& positions,
                           const ParallelLayer::Attrs& a, KVCache::Layer& cache) const {
  const PauseTape values_only;
  AttentionLayer::Heads heads;
  const Tensor all = ParallelLayer::project(seen, input.weight, input.bias, positions.table,
                                            attention.qk_norm, a, heads, nullptr);
  const Tensor o = attention.attend_cached(heads, positions, a.attention.attention, cache);
  return ParallelLayer::finish(all, o, attention.out.weight, attention.out.bias, mlp->down.weight,
                               mlp->down.bias, a, nullptr);
}

Tensor Block::join(const Tensor& stream, const Tensor& branch, const Tensor& gain,
                   Generator* dropout) const {
  const ResidualOptions& r = options_.residual;
  const bool drops = dropout && options_.dropout > 0;
  if (r.scale == 1 && !gain.defined() && (!dropout || r.drop == 0))
    return drops ? tally::dropout(branch, options_.dropout, *dropout, stream) : add(stream, branch);
  const Tensor kept = drops ? tally::dropout(branch, options_.dropout, *dropout) : branch;
  return residual_add(stream, kept, gain, r.scale, r.drop, dropout);
}

// Tensors are let go of as soon as nothing reads them: that is most of the memory of a pass.
template <class Attend>
std::array<Tensor, 2> Block::through(const Tensor& x, const Attend& attend,
                                     Generator* dropout) const {
  const bool post = options_.placement == Placement::post;
  Tensor seen = post ? x : normed(attention_norm, "attention_norm", x);
  Tensor h = normed(attention_output_norm, "attention_output_norm",
                    attend(shifted(seen, attention_shift)));
  if (options_.parallel != Parallel::shared_norm) seen = Tensor();
  h = join(x, h, attention_gain, dropout);
  if (post) h = normed(attention_norm, "attention_norm", h);
  if (options_.parallel == Parallel::none) seen = h;
  if (options_.parallel == Parallel::two_norms) seen = x;
  Tensor balance;
  if (!post) seen = normed(mlp_norm, "mlp_norm", seen);
  Tensor y = feed_forward(shifted(seen, mlp_shift), h, balance, dropout != nullptr);
  seen = Tensor();
  y = join(h, normed(mlp_output_norm, "mlp_output_norm", y), mlp_gain, dropout);
  return {post ? normed(mlp_norm, "mlp_norm", y) : y, balance};
}

Tensor Block::feed_forward(const Tensor& x, const Tensor& stream, Tensor& balance,
                           bool training) const {
  if (!experts) return mlp->forward(x);
  Tensor dense, given = x, seen;
  if (mlp) {
    dense = normed(dense_output_norm, "dense_output_norm", mlp->forward(x));
    given = normed(experts_norm, "experts_norm", stream);
    seen = stream;
  }
  MixtureOutput out;
  {
    const ModuleScope scope("mlp");
    out = experts->route(given, training, seen);
    if (options_.balance) balance = out.balance_loss();
  }
  if (!mlp) return out.y;
  out.y = normed(experts_output_norm, "experts_output_norm", out.y);
  const ModuleScope scope("mlp");
  return add(dense, out.y);
}

Tensor Block::mix(const Tensor& x, const Positions& positions, Generator* dropout) const {
  if (delta_net) return delta_net->forward(x, positions.documents);
  if (mamba) return mamba->forward(x, positions.documents);
  if (shared) return shared->forward(x, positions, handed_on(positions), dropout);
  return latent ? latent->forward(x, positions, dropout) : attention.forward(x, positions, dropout);
}

Tensor Block::mix_cached(const Tensor& x, const Positions& positions, KVCache::Layer& cache) const {
  if (delta_net) return delta_net->forward_cached(x, cache.advance(x.size(1)), positions.documents);
  if (mamba) return mamba->forward_cached(x, cache.advance(x.size(1)), positions.documents);
  if (shared) return shared->forward_cached(x, positions, handed_on(positions), cache);
  return latent ? latent->forward_cached(x, positions, cache)
                : attention.forward_cached(x, positions, cache);
}

KVCache::Layer Block::make_cache(int64_t batch, int64_t capacity, DType dtype,
                                 Device device) const {
  if (is_recurrent()) return KVCache::Layer(capacity);
  if (shared) return shared->make_cache(batch, capacity);
  const AttentionOptions& a = options_.attention;
  const Shape shape = latent ? Shape{batch, capacity, 1, latent->cached_numbers()}
                             : Shape{batch, capacity, a.kv_heads, a.head_dim};
  return {shape, dtype, device, window(), !latent};
}

std::array<Tensor, 2> Block::run(const Tensor& x, const Positions& positions,
                                 Generator* dropout) const {
  if (options_.fused_parallel)
    return {finish(fused(x, positions, dropout, nullptr), positions), Tensor()};
  auto [y, balance] = through(
      x, [&](const Tensor& seen) { return mix(seen, positions, dropout); }, dropout);
  return {finish(std::move(y), positions), balance};
}

Tensor Block::forward_cached(const Tensor& x, const Positions& positions,
                             KVCache::Layer& cache) const {
  if (options_.fused_parallel) return finish(fused(x, positions, nullptr, &cache), positions);
  return finish(
      through(
          x, [&](const Tensor& seen) { return mix_cached(seen, positions, cache); }, nullptr)[0],
      positions);
}

Tensor Block::finish(Tensor y, const Positions& positions) const {
  if (layer_input) y = layer_input->forward(y, positions.layer_input);
  return layer_scale.defined() ? mul(y, layer_scale.detach()) : y;
}

void Block::visit(Visitor& v) {
  v.child("attention_norm", attention_norm);
  v.parameter("attention_shift", attention_shift);
  v.parameter("input.weight", input.weight);
  v.parameter("input.bias", input.bias);
  if (latent)
    v.child("attention", *latent);
  else if (shared)
    v.child("attention", *shared);
  else if (delta_net)
    v.child("delta_net", *delta_net);
  else if (mamba)
    v.child("mamba", *mamba);
  else
    v.child("attention", attention);
  v.child("attention_output_norm", attention_output_norm);
  v.parameter("attention_gain", attention_gain);
  v.child("mlp_norm", mlp_norm);
  v.parameter("mlp_shift", mlp_shift);
  if (mlp) v.child("mlp", *mlp);
  v.child("dense_output_norm", dense_output_norm);
  v.child("experts_norm", experts_norm);
  if (experts) v.child("mlp", *experts);
  v.child("experts_output_norm", experts_output_norm);
  v.child("mlp_output_norm", mlp_output_norm);
  v.parameter("mlp_gain", mlp_gain);
  if (layer_input) v.child("layer_input", *layer_input);
  v.buffer("layer_scale", layer_scale);
}

}  // namespace tally::nn
