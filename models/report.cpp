#include "models/report.h"

#include "autograd/tape.h"
#include "models/build.h"
#include "optim/adamw.h"

namespace tally {
namespace {

double live() { return static_cast<double>(backend(kMeta).memory().live); }

Tensor meta_ids(int64_t batch, int64_t tokens) { return empty({batch, tokens}, DType::i64, kMeta); }

void train_pass(nn::Decoder& model, const ReportOptions& o, Report& r) {
  model.requires_grad();
  optim::AdamW optimizer(optim::decay_groups(model, 0.1), {});
  r.optimizer = 2 * r.weights;
  const Tensor ids = meta_ids(o.batch, o.seq), targets = meta_ids(o.batch, o.seq);
  backend(kMeta).reset_peak();
  const double before = live();
  {
    Tape tape;
    const Tensor loss = model.loss(ids, targets, o.batch * o.seq);
    r.saved = live() - before;
    tape.backward(loss);
  }
  r.gradients = r.weights;
  const optim::ClippedNorm clip = optim::clip_factor(optimizer.groups(), 1);
  optimizer.step(1e-3, clip.factor);
  optimizer.zero_grad();
}

}  // namespace

Report make_report(const ModelConfig& config, const ReportOptions& given) {
  ReportOptions o = given;
  if (o.seq == 0) o.seq = config.context;
  const int64_t needed = o.seq + (o.decode ? 1 : 0);
  check(needed <= config.context, "account: ", needed, " tokens do not fit the context of ",
        config.context, "; use a smaller --seq, or --set model.context=", needed);
  check(!(o.train && o.decode), "account: choose one of --train and --decode");
  Report r;
  r.config = config;
  r.options = o;
  r.parameters = parameter_counts(config);
  r.weights = static_cast<double>(r.parameters.total()) * static_cast<double>(size_of(o.dtype));
  r.kv_cache_per_token = 2.0 *
                         static_cast<double>(config.layers * config.kv_heads * config.head_dim) *
                         static_cast<double>(size_of(o.dtype));
  r.kv_cache = r.kv_cache_per_token * static_cast<double>(o.batch * needed);
  r.tokens = o.batch * (o.decode ? 1 : o.seq);
  const auto model = build_model(config, o.dtype, kMeta);
  Ledger ledger;
  if (o.train) {
    train_pass(*model, o, r);
  } else if (o.decode) {
    nn::KVCache cache = model->make_cache(o.batch, needed);
    model->next_logits(meta_ids(o.batch, o.seq), cache);
    ledger.clear();
    backend(kMeta).reset_peak();
    model->next_logits(meta_ids(o.batch, 1), cache);
  } else {
    backend(kMeta).reset_peak();
    model->logits(meta_ids(o.batch, o.seq));
  }
  r.peak = static_cast<double>(backend(kMeta).memory().peak);
  r.entries.assign(ledger.entries().begin(), ledger.entries().end());
  r.by_op = ledger.totals(Ledger::By::op);
  r.by_layer = ledger.totals(Ledger::By::layer);
  r.by_class = ledger.totals(Ledger::By::kind);
  r.by_phase = ledger.totals(Ledger::By::phase);
  r.cost = ledger.total();
  r.model = ledger.model_total();
  return r;
}

int64_t largest_batch(const ModelConfig& config, ReportOptions options, double bytes) {
  const auto fits = [&](int64_t batch) {
    options.batch = batch;
    return make_report(config, options).peak <= bytes;
  };
  if (!fits(1)) return 0;
  int64_t low = 1;
  while (low < (int64_t{1} << 24) && fits(2 * low)) low *= 2;
  for (int64_t step = low / 2; step > 0; step /= 2) {
    if (fits(low + step)) low += step;
  }
  return low;
}

}  // namespace tally
