// What a pass of an encoder or an encoder-decoder costs, on meta: see make_report.
#include "autograd/tape.h"
#include "models/architecture.h"
#include "optim/make.h"

namespace tally {
namespace {

double live_on_meta() { return static_cast<double>(backend(kMeta).memory().live); }

MakeIds ids_on_meta(int64_t batch, int64_t tokens) {
  return [=](int64_t) { return empty({batch, tokens}, DType::i64, kMeta); };
}

// As TrainingStep does it: forward, backward, clipping, update.
void step_of(const ModelOnBatch& model, Report& r) {
  model.module->requires_grad();
  const auto optimizer = optim::make_optimizer(*model.module, r.options.optimizer);
  r.optimizer = optim::state_bytes(*optimizer);
  r.gradients = r.weights;
  backend(kMeta).reset_peak();
  const double before = live_on_meta();
  Generator dropout;
  {
    Tape tape;
    Tensor loss = model.loss(&dropout);
    r.saved = live_on_meta() - before;
    tape.backward(loss);
  }
  const optim::ClippedNorm clipped = optim::clip_factor(optimizer->groups(), 1);
  optimizer->step(1e-3, clipped.factor);
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

void architecture_pass(const ModelConfig& c, const ReportOptions& o, Report& r, Ledger& ledger) {
  check(o.recompute == "none" && o.accumulation == 1,
        "account: recompute and accumulation are for architecture = decoder; leave them out");
  if (o.decode) {
    decode(c, o, ledger);
    return;
  }
  const ModelOnBatch model = build_on_batch(c, o.dtype, kMeta, ids_on_meta(o.batch, o.seq), {},
                                            ids_on_meta(o.batch, o.source > 0 ? o.source : o.seq));
  if (o.train) {
    step_of(model, r);
  } else {
    backend(kMeta).reset_peak();
    model.logits();
  }
}

}  // namespace tally
