// What a pass of an encoder or an encoder-decoder costs, on meta: see make_report.
#include "models/architecture.h"

namespace tally {
namespace {

MakeIds ids_on_meta(int64_t batch, int64_t tokens) {
  return [=](int64_t) { return empty({batch, tokens}, DType::i64, kMeta); };
}

void decode(const ModelConfig& c, const ReportOptions& o, Ledger& ledger) {
  check(c.architecture == Architecture::encoder_decoder,
        "account: an encoder writes no text; leave out --decode");
  const auto model = build_encoder_decoder(c, o.dtype, kMeta);
  const auto ids = [&](int64_t tokens) { return empty({o.batch, tokens}, DType::i64, kMeta); };
  auto cache = model->make_cache(model->encode(ids(o.seq)), o.seq + 1);
  model->next_logits(ids(o.seq), cache);
  ledger.clear();
  backend(kMeta).reset_peak();
  model->next_logits(ids(1), cache);
}

}  // namespace

void architecture_pass(const ModelConfig& c, const ReportOptions& o, Ledger& ledger) {
  if (o.decode) {
    decode(c, o, ledger);
    return;
  }
  const ModelOnBatch model = build_on_batch(c, o.dtype, kMeta, ids_on_meta(o.batch, o.seq), {},
                                            ids_on_meta(o.batch, o.source > 0 ? o.source : o.seq));
  backend(kMeta).reset_peak();
  model.logits();
}

}  // namespace tally
