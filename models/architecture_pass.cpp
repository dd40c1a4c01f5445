#include "autograd/tape.h"
#include "models/architecture.h"
#include "optim/adamw.h"

namespace tally {
namespace {

Tensor ids_on_meta(int64_t batch, int64_t tokens) {
  return empty({batch, tokens}, DType::i64, kMeta);
}
double live_on_meta() { return static_cast<double>(backend(kMeta).memory().live); }

template <class Loss>
void step_of(nn::Module& model, Report& r, const Loss& loss_of) {
  model.requires_grad();
  optim::AdamW optimizer(optim::decay_groups(model, 0.1), {});
  r.optimizer = 2 * r.weights;
  r.gradients = r.weights;
  backend(kMeta).reset_peak();
  const double before = live_on_meta();
  Tape tape;
  Generator dropout;
  Tensor loss = loss_of(&dropout);
  r.saved = live_on_meta() - before;
  tape.backward(loss);
  const PhaseScope scope(Phase::optimizer);
  optimizer.step(1e-3);
}

void encoder_pass(const ModelConfig& c, const ReportOptions& o, Report& r) {
  check(!o.decode, "account: an encoder writes no text; leave out --decode");
  const auto model = build_encoder(c, o.dtype, kMeta);
  const Tensor ids = ids_on_meta(o.batch, o.seq),
               types = c.segment_types > 0 ? ids_on_meta(o.batch, o.seq) : Tensor();
  if (o.train) {
    step_of(*model, r, [&](Generator* dropout) {
      return model->loss(ids, ids_on_meta(o.batch, o.seq), types, {}, dropout);
    });
  } else {
    backend(kMeta).reset_peak();
    model->logits(ids, types);
  }
}

void both_pass(const ModelConfig& c, const ReportOptions& o, Report& r, Ledger& ledger) {
  const auto model = build_encoder_decoder(c, o.dtype, kMeta);
  const Tensor source = ids_on_meta(o.batch, o.seq);
  if (o.train) {
    step_of(*model, r, [&](Generator* dropout) {
      return model->loss(model->encode(source, {}, dropout), ids_on_meta(o.batch, o.seq),
                         ids_on_meta(o.batch, o.seq), dropout);
    });
  } else if (o.decode) {
    auto cache = model->make_cache(model->encode(source), o.seq + 1);
    model->next_logits(ids_on_meta(o.batch, o.seq), cache);
    ledger.clear();
    backend(kMeta).reset_peak();
    model->next_logits(ids_on_meta(o.batch, 1), cache);
  } else {
    backend(kMeta).reset_peak();
    model->logits(model->encode(source), ids_on_meta(o.batch, o.seq));
  }
}

}  // namespace

void architecture_pass(const ModelConfig& c, const ReportOptions& o, Report& r, Ledger& ledger) {
  check(o.recompute == "none" && o.accumulation == 1,
        "account: recompute and accumulation are for architecture = decoder; leave them out");
  if (c.architecture == Architecture::encoder)
    encoder_pass(c, o, r);
  else
    both_pass(c, o, r, ledger);
}

}  // namespace tally
