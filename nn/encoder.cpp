#include "nn/encoder.h"

#include "core/ops/document_ids.h"

namespace tally::nn {
namespace {

void check_encoder_ids(const char* what, const Tensor& t, const Tensor& like) {
  check(t.defined() && t.ndim() == 2 && (!like.defined() || t.shape() == like.shape()),
        "encoder: ", what, " must be (B, T)", like.defined() ? " as ids; " : "; ", "got ",
        t.defined() ? t.shape() : Shape{}, in_module());
}

}  // namespace

Encoder::Encoder(const Options& o, DType dtype, Device device)
    : embedding(o.vocab, o.stack.attention.d_model, dtype, device),
      stack(o.stack, dtype, device),
      head_bias(empty({o.vocab}, dtype, device)),
      options_(o) {
  check(!o.stack.attention.causal, "encoder: attention must not be causal; use a decoder for that");
  const int64_t d = o.stack.attention.d_model;
  if (o.types > 0) types.emplace(o.types, d, dtype, device);
  if (!o.head_transform) return;
  transform.emplace(d, d, true, dtype, device);
  transform_norm.emplace(o.stack.norm, d, dtype, device);
}

Tensor Encoder::hidden(const Tensor& ids, const Tensor& kinds, const Tensor& mask,
                       Generator* dropout) {
  check_encoder_ids("ids", ids, {});
  check(kinds.defined() == types.has_value(), "encoder: the type of each token is ",
        types ? "missing: this model has " : "given, and this model has ", options_.types, " types",
        in_module());
  Tensor x;
  {
    const ModuleScope scope("embedding");
    x = tally::embedding(ids, embedding.weight, 1, options_.padding_id);
    if (types) {
      check_encoder_ids("types", kinds, ids);
      x = add(x, types->forward(kinds));
    }
  }
  Tensor documents;
  if (options_.document_end >= 0)
    documents = ops::DocumentIds::forward(ids, {options_.document_end, dtype()}, nullptr);
  const ModuleScope scope("encoder");
  return stack.forward(x, mask, {}, dropout, documents);
}

Tensor Encoder::logits(const Tensor& ids, const Tensor& kinds, const Tensor& mask,
                       Generator* dropout) {
  Tensor h = hidden(ids, kinds, mask, dropout);
  const ModuleScope scope("head");
  if (transform)
    h = transform_norm->forward(activation(transform->forward(h), options_.head_activation));
  return linear(h, embedding.weight, head_bias);
}

Tensor Encoder::loss(const Tensor& ids, const Tensor& targets, const Tensor& kinds,
                     const Tensor& mask, Generator* dropout) {
  return loss_of(logits(ids, kinds, mask, dropout), targets, 0, nullptr);
}

Tensor Encoder::loss_of(const Tensor& scores, const Tensor& targets, int64_t count,
                        Tensor* stats) const {
  const ModuleScope scope("head");
  ops::LossOptions o = options_.loss;
  if (count > 0) o.normalizer = static_cast<double>(count);
  const auto [loss, sums] = cross_entropy_with_stats(scores, targets, o);
  if (stats) *stats = sums;
  return loss;
}

Tensor Encoder::first_types(const Tensor& ids) const {
  return types ? zeros(ids.shape(), DType::i64, ids.device()) : Tensor();
}

Tensor Encoder::batch_logits(const ModelBatch& b) {
  return logits(b.ids, first_types(b.ids), b.mask);
}

Tensor Encoder::batch_loss(const ModelBatch& b, int64_t count, Generator* dropout, Tensor* stats) {
  return loss_of(logits(b.ids, first_types(b.ids), b.mask, dropout), b.targets, count, stats);
}

std::unique_ptr<LanguageModel> Encoder::on_meta() const {
  auto twin = std::make_unique<Encoder>(options_, dtype(), kMeta);
  twin->stack.recompute = stack.recompute;
  return twin;
}

void Encoder::visit(Visitor& v) {
  v.child("embedding", embedding);
  if (types) v.child("types", *types);
  v.child("encoder", stack);
  if (transform) v.child("head.transform", *transform);
  if (transform_norm) v.child("head.norm", *transform_norm);
  v.parameter("head.bias", head_bias);
}

}  // namespace tally::nn
