// What a pass of a model of any architecture is made of, for the account on meta and for the profile.
#include "models/architecture.h"
#include "models/training_step.h"
#include "nn/decoder.h"

namespace tally {
namespace {

MakeIds ids_on_meta(int64_t batch, int64_t tokens) {
  return [=](int64_t) { return empty({batch, tokens}, DType::i64, kMeta); };
}

template <class Model, class Cache>
std::function<void()> with_cache(Model& model, Cache cache, const Tensor& ids, const Tensor& next) {
  model.next_logits(ids, cache);
  return [&model, next, cache = std::make_shared<Cache>(std::move(cache))] {
    model.next_logits(next, *cache);
  };
}

}  // namespace

void architecture_pass(const ModelConfig& c, const ReportOptions& o) {
  const ModelOnBatch model = build_on_batch(c, o.dtype, kMeta, ids_on_meta(o.batch, o.seq), {},
                                            ids_on_meta(o.batch, o.source > 0 ? o.source : o.seq));
  backend(kMeta).reset_peak();
  model.logits();
}

StepOptions step_shape(const ModelConfig& c, int64_t batch, int64_t seq, int64_t source) {
  StepOptions shape{batch, seq};
  if (c.architecture == Architecture::encoder_decoder) shape.source = source > 0 ? source : seq;
  shape.counts_targets = c.architecture != Architecture::decoder;
  return shape;
}

std::function<void()> prepare_decoding(nn::LanguageModel& model, const ModelConfig& c,
                                       const Tensor& ids, const Tensor& next) {
  check(c.architecture != Architecture::encoder,
        "--decode: an encoder writes no text; leave it out");
  const int64_t batch = ids.size(0), capacity = ids.size(1) + next.size(1);
  if (c.architecture == Architecture::encoder_decoder) {
    auto& writer = static_cast<nn::EncoderDecoder&>(model);
    return with_cache(writer, writer.make_cache(writer.encode(ids), capacity), ids, next);
  }
  auto& decoder = static_cast<nn::Decoder&>(model);
  return with_cache(decoder, decoder.make_cache(batch, capacity), ids, next);
}

}  // namespace tally
