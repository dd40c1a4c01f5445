#include "nn/decoder.h"

#include <cmath>

#include "autograd/checkpoint.h"
#include "core/ops/document_ids.h"

namespace tally::nn {

namespace {

// Layers with a window and those without differ, and the last ones take keys and values.
void set_shared(const Decoder::Options& o, int64_t layer, const ops::AttentionOptions& scores,
                SharedAttentionOptions& shared) {
  shared.scores = scores;
  shared.takes = layer >= o.layers - o.taking;
  if (scores.window) {
    shared.keys_as_values = false;
    return;
  }
  if (o.global_head_dim > 0) shared.head_dim = o.global_head_dim;
  if (o.global_kv_heads > 0) shared.kv_heads = o.global_kv_heads;
}

Block::Options block_options(const Decoder::Options& o, int64_t layer) {
  Block::Options block = o.block;
  block.attention.xl_relative = o.positions.kind == PositionKind::xl_relative;
  if (o.positions.kind != PositionKind::alibi ||
      o.positions.of_layer(layer) == LayerPositions::none)
    block.attention.alibi = 0;
  const auto i = static_cast<size_t>(layer);
  if (!o.attention.empty()) block.attention.scores = o.attention[i % o.attention.size()];
  if (block.latent) block.latent->scores = block.attention.scores;
  if (block.shared) {
    set_shared(o, layer, block.attention.scores, *block.shared);
    if (block.shared->takes && o.taking_d_ff > 0) block.mlp.d_ff = o.taking_d_ff;
  }
  const Mixer mixer = o.mixers.empty() ? Mixer::attention : o.mixers[i % o.mixers.size()];
  if (mixer != Mixer::attention) block.latent.reset();
  if (mixer != Mixer::delta_net) block.delta_net.reset();
  if (mixer != Mixer::mamba) block.mamba.reset();
  if (!o.residual_scales.empty())
    block.residual.scale *= o.residual_scales[i % o.residual_scales.size()];
  if (layer < o.first_experts || (layer - o.first_experts) % o.experts_every != 0)
    block.experts.reset();
  block.balance = block.experts && o.load_balance_loss > 0;
  // Deeper layers are left out more often: Huang et al. 2016, arXiv:1603.09382, eq. 4.
  block.residual.drop *= static_cast<double>(layer + 1) / static_cast<double>(o.layers);
  return block;
}

int64_t embedding_width(const Decoder::Options& o) {
  return o.embedding_dim > 0 ? o.embedding_dim : o.block.attention.d_model;
}

// Rows of length 1.
Tensor unit_rows(const Tensor& x) {
  return scale(rms_norm(x, {}, 1e-12), 1 / std::sqrt(static_cast<double>(x.size(-1))));
}

}  // namespace

Decoder::Decoder(const Options& o, DType dtype, Device device)
    : embedding(o.vocab, embedding_width(o), dtype, device),
      position(o.positions,
               {o.block.attention.d_model, o.block.attention.heads, o.block.attention.head_dim,
                o.context},
               dtype, device),
      embedding_norm(norm_if(o.embedding_norm, o.block.norm), o.block.attention.d_model, dtype,
                     device),
      final_norm(norm_if(o.final_norm, o.block.norm), o.block.attention.d_model, dtype, device),
      options_(o) {
  const int64_t d = o.block.attention.d_model;
  for (int64_t i = 0; i < o.layers; ++i)
    blocks.push_back(std::make_unique<Block>(block_options(o, i), dtype, device));
  if (o.block.layer_input > 0)
    layer_inputs.emplace(LayerInputs::Sizes{o.vocab, o.layers, o.block.layer_input, d},
                         o.block.norm, dtype, device);
  if (o.block.shifts) head_shift = empty({}, dtype, device);
  if (o.embedding_dim > 0) {
    project_in = Matrix(d, o.embedding_dim, false, dtype, device);
    project_out = Matrix(o.embedding_dim, d, false, dtype, device);
  }
  if (!o.tied_head) head_weight = empty({o.vocab, embedding_width(o)}, dtype, device);
  if (o.head_bias) head_bias = empty({o.vocab}, dtype, device);
}

Tensor Decoder::embed(const Tensor& ids, int64_t first, Generator* dropout) {
  check(ids.defined() && ids.ndim() == 2, "decoder: ids must be (B, T); got ",
        ids.defined() ? ids.shape() : Shape{});
  check(first + ids.size(1) <= options_.context, "decoder: the context holds ", options_.context,
        " tokens; got ", first, " before and ", ids.size(1),
        " now; shorten the text, or keep its last ", options_.context, " tokens");
  Tensor x = options_.fix_norm == FixNorm::both
                 ? scale(unit_rows(embedding.forward(ids)), options_.embedding_scale)
                 : tally::embedding(ids, embedding.weight, options_.embedding_scale);
  if (project_in.weight.defined()) x = linear(x, project_in.weight);
  x = position.add_to(x, first);
  if (embedding_norm.present()) {
    const ModuleScope scope("norm");
    x = embedding_norm.forward(x);
  }
  const double p = options_.embedding_dropout;
  return dropout && p > 0 ? tally::dropout(x, p, *dropout) : x;
}

// What each layer of a pass is told, and what layers hand to later ones.
struct Decoder::Stack {
  Stack(const Decoder& decoder, const Tensor& ids, const Tensor& x, PositionScheme::Pass places)
      : decoder_(decoder), pass_(std::move(places)) {
    if (!decoder.layer_inputs) return;
    const ModuleScope scope("layer_inputs");
    inputs_ = decoder.layer_inputs->forward(ids, x);
  }
  Positions of_layer(size_t i) {
    const auto layer = static_cast<int64_t>(i);
    Positions places = decoder_.position.of_layer(pass_, layer);
    places.shared = &shared_[decoder_.blocks[i]->window() > 0 ? 1 : 0];
    if (inputs_.defined()) places.layer_input = LayerInputs::of_layer(inputs_, layer);
    return places;
  }

 private:
  const Decoder& decoder_;
  PositionScheme::Pass pass_;
  KeyValues shared_[2];  // of layers that see all, and of those with a window
  Tensor inputs_;
};

std::array<Tensor, 2> Decoder::through_block(size_t i, const Tensor& x, const Positions& places,
                                             Generator* dropout) const {
  const ModuleScope scope("blocks", static_cast<int>(i));
  const Block& block = *blocks[i];
  if (i >= recompute.size() || !recompute[i]) return block.run(x, places, dropout);
  const bool takes = block.shared && block.shared->takes(), makes = block.shared && !takes;
  const auto segment = [&block, makes, table = places.table, offset = places.offset,
                        distances = places.distances, documents = places.documents](
                           const Tensor& in, const Tensor& bias, const Tensor& own, const Tensor& k,
                           const Tensor& v, Generator* streams) {
    KeyValues handed{k, v};
    auto [y, balance] =
        block.run(in, {table, offset, bias, distances, documents, &handed, own}, streams);
    if (!makes) handed = {};
    return std::array{y, balance, handed.k, handed.v};
  };
  const KeyValues taken = takes ? *places.shared : KeyValues();
  auto [y, balance, k, v] =
      checkpoint(segment, dropout, x, places.bias, places.layer_input, taken.k, taken.v);
  if (makes) *places.shared = {k, v};
  return {y, balance};
}

// `seen`: these tokens and those before them, where documents are kept apart.
PositionScheme::Pass Decoder::pass(int64_t first, const Tensor& ids, const Tensor& seen) const {
  PositionScheme::Pass p = position.pass(first, ids.size(1));
  if (options_.document_end >= 0)
    p.set_documents(ops::DocumentIds::forward(seen, {options_.document_end, dtype()}, nullptr));
  return p;
}

Tensor Decoder::hidden(const Tensor& ids, Generator* dropout, Tensor* balance) {
  Tensor x;
  {
    const ModuleScope scope("embedding");
    x = embed(ids, 0, dropout);
  }
  Stack stack(*this, ids, x, pass(0, ids, ids));
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto [y, part] = through_block(i, x, stack.of_layer(i), dropout);
    x = y;
    if (balance && part.defined()) *balance = balance->defined() ? add(*balance, part) : part;
  }
  return final_hidden(x);
}

Tensor Decoder::final_hidden(const Tensor& x) const {
  const ModuleScope scope("final_norm");
  Tensor h = final_norm.forward(x);
  if (project_out.weight.defined()) h = linear(h, project_out.weight);
  if (head_shift.defined()) h = add(h, head_shift);
  return options_.logit_scale == 1 ? h : scale(h, options_.logit_scale);
}

Tensor Decoder::head() const {
  const Tensor& w = options_.tied_head ? embedding.weight : head_weight;
  return options_.fix_norm == FixNorm::none ? w : unit_rows(w);
}

Tensor Decoder::logits_of(const Tensor& h) const {
  const ModuleScope scope("head");
  const Tensor x = linear(h, head(), head_bias);
  return options_.final_soft_cap > 0 ? soft_cap(x, options_.final_soft_cap) : x;
}

Tensor Decoder::logits(const Tensor& ids) { return logits_of(hidden(ids)); }

ops::LossOptions Decoder::loss_options() const {
  ops::LossOptions o;
  o.label_smoothing = options_.label_smoothing;
  o.z_loss = options_.z_loss, o.max_z_loss = options_.max_z_loss;
  if (options_.final_soft_cap > 0) o.soft_cap = options_.final_soft_cap;
  return o;
}

Tensor Decoder::loss(const Tensor& ids, const Tensor& targets, int64_t count, Generator* dropout,
                     Tensor* stats) {
  Tensor balance;
  Tensor h = hidden(ids, dropout, &balance), wanted = targets;
  const ModuleScope scope("head");
  ops::LossOptions o = loss_options();
  if (count > 0) o.normalizer = static_cast<double>(count);
  if (options_.prefix > 1) {
    const int64_t tokens = ids.size(1), inside = std::min(options_.prefix, tokens) - 1;
    h = contiguous(narrow(h, 1, inside, tokens - inside));
    wanted = targets.narrow(1, inside, tokens - inside);
    if (o.normalizer)
      *o.normalizer *= static_cast<double>(tokens - inside) / static_cast<double>(tokens);
  }
  const auto [loss, sums] = head_bias.defined()
                                ? cross_entropy_with_stats(linear(h, head(), head_bias), wanted, o)
                                : linear_cross_entropy_with_stats(h, head(), wanted, o);
  if (stats) *stats = sums;
  if (!balance.defined()) return loss;
  // Micro-batches that share a count add up to the mean of their balances.
  const double share =
      count > 0 ? static_cast<double>(targets.numel()) / static_cast<double>(count) : 1;
  return add(loss, scale(balance, options_.load_balance_loss * share));
}

// The tokens to compute: these, or, where they outdate what is in the cache, all.
Tensor Decoder::with_outdated(const Tensor& ids, KVCache& cache) const {
  const bool keeps =
      position.may_outdate_cache() || options_.prefix > 0 || options_.document_end >= 0;
  if (!keeps) return ids;
  const int64_t cached = cache.length();
  Tensor all = cached > 0 ? concat({cache.tokens, ids}, 1) : ids;
  cache.tokens = all;
  // Inside a prefix tokens see those behind them, which have just come.
  const bool inside = cached > 0 && cached < options_.prefix;
  if (!inside && !position.outdates_cache(cached, ids.size(1))) return ids;
  cache.clear();
  return all;
}

Tensor Decoder::next_logits(const Tensor& next, KVCache& cache) {
  const PauseTape values_only;
  const Tensor ids = with_outdated(next, cache);
  const int64_t first = cache.length();
  Tensor x = embed(ids, first, nullptr);
  Stack stack(*this, ids, x, pass(first, ids, cache.tokens));
  for (size_t i = 0; i < blocks.size(); ++i) {
    const ModuleScope scope("blocks", static_cast<int>(i));
    x = blocks[i]->forward_cached(x, stack.of_layer(i), cache.layer(static_cast<int64_t>(i)));
  }
  const Tensor last = x.narrow(1, ids.size(1) - 1, 1).reshape({ids.size(0), x.size(2)});
  return logits_of(final_hidden(last));
}

KVCache Decoder::make_cache(int64_t batch, int64_t capacity) const {
  std::vector<KVCache::Layer> layers;
  for (const auto& block : blocks)
    layers.push_back(block->make_cache(batch, capacity, dtype(), device()));
  return KVCache(std::move(layers));
}

std::unique_ptr<LanguageModel> Decoder::on_meta() const {
  auto twin = std::make_unique<Decoder>(options_, dtype(), kMeta);
  twin->recompute = recompute;
  return twin;
}

void Decoder::after_update() const {
  const PhaseScope phase(Phase::optimizer);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (!blocks[i]->experts) continue;
    const ModuleScope scope("blocks", static_cast<int>(i));
    blocks[i]->experts->update_selection_bias();
  }
}
void Decoder::forget_step() const {
  for (const auto& block : blocks) {
    if (block->experts) block->experts->forget_load();
  }
}

void Decoder::visit(Visitor& v) {
  v.child("embedding", embedding);
  v.parameter("project_in.weight", project_in.weight);
  if (layer_inputs) v.child("layer_inputs", *layer_inputs);
  v.child("position", position);
  v.child("embedding_norm", embedding_norm);
  for (size_t i = 0; i < blocks.size(); ++i) v.child("blocks." + std::to_string(i), *blocks[i]);
  v.child("final_norm", final_norm);
  v.parameter("project_out.weight", project_out.weight);
  v.parameter("head.shift", head_shift);
  v.parameter("head.weight", head_weight);
  v.parameter("head.bias", head_bias);
}

}  // namespace tally::nn
