#include "models/trainer.h"

#include <algorithm>
#include <cmath>

#include "core/ops/clip.h"
#include "models/architecture.h"
#include "models/bad_values.h"
#include "models/batch_rows.h"
#include "models/build.h"
#include "models/manifest.h"
#include "models/mup.h"
#include "models/recompute.h"
#include "models/report.h"

namespace tally {
namespace {

// Name of the first tensor that holds a NaN or an infinity; "" if all are finite.
std::string first_bad(const NamedTensors& tensors) {
  for (const auto& [name, t] : tensors) {
    if (ops::first_not_finite(std::span(&t, 1)) == 0) return name;
  }
  return "";
}

std::string optimizer_name(const TrainConfig& t) {
  return std::string(enum_names(t.optimizer)[static_cast<size_t>(t.optimizer)]);
}

// Streams of dropout lie far from those that made the initial weights.
constexpr uint64_t kDropoutKey = 0x9E3779B97F4A7C15u;
// Nor may the order of the data after a rollback be that of a neighbouring seed.
constexpr uint64_t kRollbackKey = 0xD1B54A32D192ED03u;
constexpr int64_t kMostRollbacks = 8;  // to one checkpoint

}  // namespace

optim::LearningRate schedule_of(const TrainConfig& t, const ModelConfig& model) {
  const auto share = [&](double of_steps) {
    return static_cast<int64_t>(std::llround(of_steps * static_cast<double>(t.steps)));
  };
  optim::LearningRate s;
  s.schedule = t.schedule, s.decay = t.decay;
  s.peak = t.lr, s.final_fraction = t.final_lr_fraction;
  s.warmup = t.warmup, s.total = t.steps, s.warmup_from = t.warmup_from;
  s.decay_steps = share(t.decay_fraction);
  for (const double m : t.milestones) s.milestones.push_back(share(m));
  s.milestone_factor = t.milestone_factor;
  s.d_model = model.d_model;
  if (t.schedule_unit == ScheduleUnit::tokens) s.by_tokens = ramp_of(t);
  return s;
}

optim::BatchRamp ramp_of(const TrainConfig& t) {
  return {t.accumulation_start ? t.accumulation_start : t.accumulation, t.accumulation,
          t.accumulation_start ? t.ramp_steps : 0};
}

optim::OptimizerChoice optimizer_of(const TrainConfig& t, const ModelConfig& model) {
  return {t.optimizer,
          t.weight_decay,
          t.beta1,
          t.beta2,
          t.eps,
          t.momentum,
          t.nesterov,
          t.amsgrad,
          t.muon_scaling,
          t.precondition_every,
          t.precondition_longest,
          t.rest_lr_scale,
          1 / mup_width(model),
          t.bf16_update,
          static_cast<uint64_t>(t.seed)};
}

Generator dropout_of(const TrainConfig& t) {
  return Generator(static_cast<uint64_t>(t.seed) ^ kDropoutKey);
}

uint64_t data_seed(const TrainConfig& t, int64_t rollbacks) {
  return static_cast<uint64_t>(t.seed) ^ (static_cast<uint64_t>(rollbacks) * kRollbackKey);
}

int64_t skipped_steps(const RunDirectory::State& state, const std::string& checkpoint) {
  const int64_t n = whole_fact(state.facts, "skipped_steps", checkpoint);
  check(n >= 0 && n <= state.step, checkpoint, "/state.json: skipped_steps must be from 0 to step");
  return n;
}

int64_t rollbacks_before(const RunDirectory::State& state, const std::string& checkpoint) {
  return whole_fact(state.facts, "rollbacks", checkpoint);
}

Trainer::Trainer(const RunConfig& config, TokenSplits data, std::vector<uint32_t> byte_lengths,
                 DType dtype, Device device, const ObjectiveTokens& tokens)
    : config_(config),
      data_(std::move(data)),
      byte_lengths_(std::move(byte_lengths)),
      train_(data_.train, objective_window(config.model, config.train), data_seed(config.train, 0)),
      objective_(config.model, config.train, tokens, train_.context()),
      model_(build_language_model(config.model, dtype, device)),
      schedule_(schedule_of(config.train, config.model)),
      ramp_(ramp_of(config.train)),
      dropout_(dropout_of(config.train)),
      guard_(config.train),
      early_stop_(config.train) {
  const TrainConfig& t = config_.train;
  check_dtype(dtype);
  initialise(*model_, config_.model, static_cast<uint64_t>(t.seed));
  model_->set_recompute(recompute_layers(t.recompute, config_.model.all_layers()));
  const auto optimizer = [choice = optimizer_of(t, config_.model)](nn::Module& model) {
    return optim::make_optimizer(model, choice);
  };
  const StepOptions step{t.batch,
                         objective_.length(),
                         t.accumulation,
                         t.clip,
                         objective_.source(),
                         objective_.counts_targets(),
                         objective_.masks_source()};
  step_ = std::make_unique<TrainingStep>(*model_, optimizer, step, dropout_);
  step_->set_mode(StepMode::replayed);
}

nn::Decoder& Trainer::decoder() {
  check(config_.model.architecture == Architecture::decoder, "train: ", config_.model.name,
        " is no decoder");
  return static_cast<nn::Decoder&>(*model_);
}

void Trainer::check_dtype(DType dtype) {
  check(dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16,
        "train: trains in f32, f64 or bf16 with f32 masters; got ", dtype);
}

int64_t Trainer::tokens_per_step() const { return passes_of_last_step() * tokens_per_pass(); }

double Trainer::model_flops_per_step() const {
  if (flops_per_pass_ == 0) {
    ReportOptions o;
    o.batch = config_.train.batch;
    o.seq = objective_.length(), o.source = objective_.source();
    o.train = true;
    flops_per_pass_ = make_report(config_.model, o).model.causal;
  }
  return flops_per_pass_ * static_cast<double>(passes_of_last_step());
}

TrainingStep::Batch Trainer::batch_of(int64_t step) {
  return [this, first = ramp_.before(step)](int64_t micro, const BatchSpans& to) {
    objective_.batch(train_, first + micro, to);
  };
}

// Nothing was updated yet, so the same weights, batch and masks give the same step again.
std::string Trainer::first_bad_call_of(int64_t step, uint64_t dropout_position) {
  step_->discard();
  step_->set_mode(StepMode::eager);  // every call anew, each with its values
  dropout_.set_position(dropout_position);
  const std::string found = first_bad_call([&] { step_->gradients(batch_of(step)); });
  step_->discard();
  dropout_.set_position(dropout_position);
  return found.empty() ? "computed once more, every value was finite" : found;
}

void Trainer::check_finite(double loss, double norm, int64_t step, uint64_t dropout_position) {
  if (std::isfinite(loss) && std::isfinite(norm)) return;
  const std::string weight = first_bad(named_model());
  const std::string gradient =
      weight.empty() && std::isfinite(loss) ? optim::first_bad_gradient(optimizer().groups()) : "";
  const std::string call = first_bad_call_of(step, dropout_position);
  fail("train: step ", step + 1, ": the ", std::isfinite(loss) ? "gradient norm" : "loss", " is ",
       std::isfinite(loss) ? norm : loss,
       !weight.empty()     ? "; the first bad weight is " + weight
       : !gradient.empty() ? "; the first bad gradient is that of " + gradient
                           : "; all weights are finite",
       "; ", call,
       "; stopped before the update, the last checkpoint is untouched; lower the learning rate or "
       "look at the data of this step");
}

StepResult Trainer::step() {
  const int64_t t = steps_done();
  const uint64_t dropout_position = dropout_.position();
  step_->set_accumulation(ramp_.at(t));
  const TrainingStep::Result r = step_->gradients(batch_of(t));
  train_.will_read(ramp_.before(t + 1), ramp_.at(t + 1), config_.train.batch);
  if (config_.train.rollback_after == 0) check_finite(r.loss, r.norm, t, dropout_position);
  const double lr = schedule_.at(t);
  const bool skipped = guard_.skips(r.loss, r.norm);
  if (skipped)
    step_->discard();
  else
    step_->update(lr);
  return {t + 1, tokens_seen(), r.loss, r.norm, lr, r.mean_log_z(), r.noise, skipped};
}

bool Trainer::wants_rollback() const {
  const int64_t after = config_.train.rollback_after;
  return after > 0 && guard_.in_a_row() >= after;
}

void Trainer::roll_back(const RunDirectory& run) {
  const std::string folder = run.latest();
  check(!folder.empty(), run.path(), ": has no checkpoint to go back to");
  check_manifest(folder);
  const RunDirectory::State state = run.read_state(folder);
  rollbacks_here_ = state.step == rolled_back_to_ ? rollbacks_here_ + 1 : 1;
  rolled_back_to_ = state.step;
  check(rollbacks_here_ <= kMostRollbacks, "train: went back to step ", state.step, " ",
        kMostRollbacks, " times, each time with another order of the data, and the steps after it ",
        "were skipped or not finite every time; lower the learning rate, or allow more "
        "(train.skip_deviations)");
  const int64_t before = rollbacks_;
  restore(state, folder);
  rollbacks_ = std::max(before, rollbacks_) + 1;
  train_ = Dataset(data_.train, train_.context(), data_seed(config_.train, rollbacks_));
}

Evaluation Trainer::evaluate(const TokenFile& tokens, int64_t batches) {
  return tally::evaluate(*model_, objective_, tokens, byte_lengths_, config_.train.batch,
                         train_.context(), batches);
}

Evaluation Trainer::evaluate(int64_t batches) {
  check(has_validation(), "evaluate: nothing is held out; train with --val-fraction above 0");
  return evaluate(*data_.val, batches);
}

std::vector<int64_t> Trainer::first_source() const {
  const Dataset windows(data_.val ? *data_.val : data_.train, train_.context());
  BatchRows row(objective_, 1);
  objective_.windows_in_order(windows, 0, row.spans());
  if (row.source.empty()) return row.ids;
  if (!row.mask.empty()) row.source.resize(static_cast<size_t>(std::ranges::count(row.mask, 1)));
  return row.source;
}

NamedTensors Trainer::named_model() { return model_->named_state(); }

void Trainer::save(RunDirectory& run, const std::map<std::string, std::string>& facts) {
  RunDirectory::State state;
  state.step = steps_done();
  state.facts = facts;
  state.facts["dropout_position"] = to_text(dropout_.position());
  state.facts["optimizer"] = optimizer_name(config_.train);
  guard_.save(state.facts);
  early_stop_.save(state.facts);
  if (rollbacks_ > 0) state.facts["rollbacks"] = to_text(rollbacks_);
  if (config_.train.keep_best) state.best = early_stop_.best_step();
  const NamedTensors model = named_model(), moments = step_->optimizer().state();
  for (const NamedTensors* tensors : {&model, &moments}) {
    const std::string bad = first_bad(*tensors);
    check(bad.empty(), "train: step ", state.step, ": ", bad,
          " is not finite after this update, so it is not saved; the last checkpoint is untouched; "
          "lower the learning rate");
  }
  run.save(state, model, moments, config_.train.keep_checkpoints);
}

void Trainer::resume(const RunDirectory& run, const std::map<std::string, std::string>& facts) {
  const std::string folder = run.latest();
  check(!folder.empty(), run.path(),
        ": has no checkpoint to go on from; start the run again with another --out");
  take(run, facts, folder);
}

void Trainer::branch(const RunDirectory& trunk, const std::map<std::string, std::string>& facts,
                     const std::string& checkpoint) {
  take(trunk, facts, checkpoint);
  early_stop_ = EarlyStop(config_.train);
}

void Trainer::take(const RunDirectory& run, const std::map<std::string, std::string>& facts,
                   const std::string& folder) {
  check_manifest(folder);
  const RunDirectory::State state = run.read_state(folder);
  for (const auto& [key, value] : facts) {
    const auto it = state.facts.find(key);
    check(it != state.facts.end() && it->second == value, run.path(), ": was trained with another ",
          key, " (", it == state.facts.end() ? std::string("not recorded") : it->second, "; now ",
          value, "); resume with the same, or start a new run");
  }
  const auto saved = state.facts.find("optimizer");
  const std::string was =
                        saved == state.facts.end() ? "adamw" : saved->second,  // before it was said
      now = optimizer_name(config_.train);
  check(was == now, run.path(), ": was trained with another optimizer (", was, "; now ", now,
        "), whose moments are not its own; set train.optimizer=", was, ", or start a new run");
  restore(state, folder);
}

void Trainer::restore(const RunDirectory::State& state, const std::string& folder) {
  RunDirectory::load(folder + "/model.safetensors", named_model());
  RunDirectory::load(folder + "/optimizer.safetensors", step_->optimizer().state());
  guard_.load(state.facts, folder);
  early_stop_.load(state.facts, folder);
  step_->optimizer().set_steps(state.step - skipped_steps(state, folder));
  dropout_.set_position(state.dropout_position(folder));
  rollbacks_ = rollbacks_before(state, folder);
  train_ = Dataset(data_.train, train_.context(), data_seed(config_.train, rollbacks_));
}

}  // namespace tally
