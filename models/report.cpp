#include "models/report.h"

#include <algorithm>

#include "models/architecture.h"
#include "models/build.h"
#include "models/config_attention.h"
#include "models/recompute.h"
#include "models/training_step.h"
#include "optim/make.h"

namespace tally {
namespace {

double live() { return static_cast<double>(backend(kMeta).memory().live); }

Tensor meta_ids(int64_t batch, int64_t tokens) { return empty({batch, tokens}, DType::i64, kMeta); }

void train_pass(const ModelConfig& c, const ReportOptions& o, Report& r) {
  const auto model = build_language_model(c, o.dtype, kMeta);
  model->set_recompute(recompute_layers(o.recompute, c.all_layers(), "account"));
  const auto optimizer = [&](nn::Module& m) { return optim::make_optimizer(m, o.optimizer); };
  Generator dropout;
  StepOptions shape = step_shape(c, o.batch, o.seq, o.source);
  shape.accumulation = o.accumulation;
  TrainingStep step(*model, optimizer, shape, dropout);
  r.optimizer = optim::state_bytes(step.optimizer());
  r.gradients = r.weights;
  backend(kMeta).reset_peak();
  const double before = live();
  step.after_forward = [&, first = true]() mutable {
    if (first) r.saved = live() - before;
    first = false;
  };
  step.gradients([](int64_t, const BatchSpans&) {});
  step.update(1e-3);
}

void decode_pass(const ModelConfig& c, const ReportOptions& o, Ledger& ledger) {
  const auto model = build_language_model(c, o.dtype, kMeta);
  const auto decode = prepare_decoding(*model, c, meta_ids(o.batch, o.seq), meta_ids(o.batch, 1));
  ledger.clear();
  backend(kMeta).reset_peak();
  decode();
}

void decoder_pass(const ModelConfig& c, const ReportOptions& o) {
  const auto model = build_model(c, o.dtype, kMeta);
  backend(kMeta).reset_peak();
  model->logits(meta_ids(o.batch, o.seq));
}

}  // namespace

Report make_report(const ModelConfig& config, const ReportOptions& given) {
  ReportOptions o = given;
  if (o.seq == 0) o.seq = std::max<int64_t>(1, config.context - (o.decode ? 1 : 0));
  const int64_t needed = o.seq + (o.decode ? 1 : 0);
  check(needed <= config.context, "account: ", o.seq,
        o.decode ? " cached tokens and a new one" : " tokens", " do not fit the context of ",
        config.context, "; use a smaller --seq, or --set model.context=", needed);
  check(!(o.train && o.decode), "account: choose one of --train and --decode");
  Report r;
  r.config = config;
  r.options = o;
  r.parameters = parameter_counts(config);
  r.weights = static_cast<double>(r.parameters.total()) * static_cast<double>(size_of(o.dtype));
  const CacheSize cached = cache_size(config, needed, o.seq);
  r.kv_cache_per_token = cached.numbers_per_token * static_cast<double>(size_of(o.dtype));
  r.kv_cache = cached.numbers * static_cast<double>(o.batch * size_of(o.dtype)) +
               cached.state * static_cast<double>(o.batch * size_of(acc_dtype(o.dtype)));
  r.tokens = o.batch * (o.decode ? 1 : o.seq) * (o.train ? o.accumulation : 1);
  const double outside = live();  // of others who are at work on meta
  Ledger ledger;
  if (o.train)
    train_pass(config, o, r);
  else if (o.decode)
    decode_pass(config, o, ledger);
  else if (config.architecture != Architecture::decoder)
    architecture_pass(config, o);
  else
    decoder_pass(config, o);
  r.peak = static_cast<double>(backend(kMeta).memory().peak) - outside;
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

RecomputeChoice choose_recompute(const ModelConfig& config, ReportOptions options, double bytes) {
  options.train = true;
  const auto choice = [&](int64_t layers) {
    RecomputeChoice c;
    c.layers = layers;
    c.recompute = options.recompute = recompute_first(layers, config.all_layers());
    const Report r = make_report(config, options);
    c.peak = r.peak;
    for (const LedgerTotal& phase : r.by_phase) {
      if (phase.key == to_text(Phase::recompute)) c.extra_flops = phase.cost.flops;
    }
    c.fits = c.peak <= bytes;
    return c;
  };
  RecomputeChoice best = choice(0);
  if (best.fits) return best;
  best = choice(config.all_layers());
  int64_t low = 0, high = config.all_layers();  // low does not fit, high does if any does
  while (best.fits && high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    const RecomputeChoice c = choice(middle);
    (c.fits ? high : low) = middle;
    if (c.fits) best = c;
  }
  return best;
}

}  // namespace tally
