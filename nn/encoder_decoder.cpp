#include "nn/encoder_decoder.h"

#include <algorithm>

#include "autograd/functional.h"

namespace tally::nn {

EncoderDecoder::EncoderDecoder(const Options& o, DType dtype, Device device)
    : embedding(o.vocab, o.encoder.attention.d_model, dtype, device),
      encoder(o.encoder, dtype, device),
      decoder(o.decoder, dtype, device),
      options_(o) {
  const int64_t d = o.encoder.attention.d_model;
  check(!o.encoder.attention.causal && o.decoder.attention.causal,
        "encoder_decoder: attention of the decoder must be causal, that of the encoder must not");
  check(o.decoder.attention.d_model == d && o.decoder.d_memory == d,
        "encoder_decoder: one table serves both sides, so decoder.attention.d_model and "
        "decoder.d_memory must be the encoder's width ",
        d, "; got ", o.decoder.attention.d_model, " and ", o.decoder.d_memory);
  if (!o.tied_head) head_weight = empty({o.vocab, d}, dtype, device);
  if (o.head_bias) head_bias = empty({o.vocab}, dtype, device);
}

Tensor EncoderDecoder::embed(const Tensor& ids) {
  check(ids.defined() && ids.ndim() == 2, "encoder_decoder: ids must be (B, T); got ",
        ids.defined() ? ids.shape() : Shape{});
  const ModuleScope scope("embedding");
  return tally::embedding(ids, embedding.weight, options_.embedding_scale, options_.padding_id);
}

EncoderDecoder::Memory EncoderDecoder::encode(const Tensor& source, const Tensor& mask,
                                              Generator* dropout) {
  const Tensor x = embed(source);
  const ModuleScope scope("encoder");
  return {encoder.forward(x, mask, {}, dropout), mask};
}

Tensor EncoderDecoder::outgoing(const Tensor& y) const {
  return options_.output_scale == 1 ? y : scale(y, options_.output_scale);
}

// What the head turns into logits. Scaled here: D numbers a token instead of V.
Tensor EncoderDecoder::decode(const Memory& memory, const Tensor& ids, Generator* dropout) {
  const Tensor x = embed(ids);
  const ModuleScope scope("decoder");
  return outgoing(decoder.forward(x, {}, memory, dropout));
}

Tensor EncoderDecoder::logits(const Memory& memory, const Tensor& ids, Generator* dropout) {
  const Tensor y = decode(memory, ids, dropout);
  const ModuleScope scope("head");
  return linear(y, head(), head_bias);
}

Tensor EncoderDecoder::loss(const Memory& memory, const Tensor& ids, const Tensor& targets,
                            Generator* dropout) {
  return loss_of(memory, {ids, targets, {}, {}}, 0, dropout, nullptr);
}

Tensor EncoderDecoder::loss_of(const Memory& memory, const ModelBatch& b, int64_t count,
                               Generator* dropout, Tensor* stats) {
  const Tensor y = decode(memory, b.ids, dropout);
  const ModuleScope scope("head");
  ops::LossOptions o = options_.loss;
  if (count > 0) o.normalizer = static_cast<double>(count);
  const auto [loss, sums] =
      head_bias.defined() ? cross_entropy_with_stats(linear(y, head(), head_bias), b.targets, o)
                          : linear_cross_entropy_with_stats(y, head(), b.targets, o);
  if (stats) *stats = sums;
  return loss;
}

Tensor EncoderDecoder::batch_logits(const ModelBatch& b) {
  return logits(encode(b.source, b.mask), b.ids);
}

Tensor EncoderDecoder::batch_loss(const ModelBatch& b, int64_t count, Generator* dropout,
                                  Tensor* stats) {
  return loss_of(encode(b.source, b.mask, dropout), b, count, dropout, stats);
}

std::unique_ptr<LanguageModel> EncoderDecoder::on_meta() const {
  auto twin = std::make_unique<EncoderDecoder>(options_, dtype(), kMeta);
  twin->encoder.recompute = encoder.recompute, twin->decoder.recompute = decoder.recompute;
  return twin;
}

void EncoderDecoder::set_recompute(const std::vector<bool>& layers) {
  const auto middle =
      layers.begin() + static_cast<std::ptrdiff_t>(std::min(layers.size(), encoder.layers.size()));
  encoder.recompute.assign(layers.begin(), middle);
  decoder.recompute.assign(middle, layers.end());
}

StackCache EncoderDecoder::make_cache(const Memory& memory, int64_t capacity) const {
  return decoder.make_cache(memory, memory.values.size(0), capacity);
}

Tensor EncoderDecoder::next_logits(const Tensor& ids, StackCache& cache) {
  const PauseTape values_only;
  const Tensor y = decoder.forward_cached(embed(ids), cache);
  const Tensor last = contiguous(y.narrow(1, ids.size(1) - 1, 1)).reshape({y.size(0), y.size(2)});
  return linear(outgoing(last), head(), head_bias);
}

void EncoderDecoder::visit(Visitor& v) {
  v.child("embedding", embedding);
  v.child("encoder", encoder);
  v.child("decoder", decoder);
  v.parameter("head.weight", head_weight);
  v.parameter("head.bias", head_bias);
}

}  // namespace tally::nn
