#include "models/trainer.h"

#include <algorithm>
#include <cmath>

#include "autograd/functional.h"
#include "models/bad_values.h"
#include "models/build.h"
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

// Streams of dropout lie far from those that made the initial weights.
constexpr uint64_t kDropoutKey = 0x9E3779B97F4A7C15u;

}  // namespace

optim::WarmupCosine schedule_of(const TrainConfig& t) {
  return {t.lr, t.schedule == Schedule::constant ? 1.0 : t.final_lr_fraction, t.warmup, t.steps};
}

Generator dropout_of(const TrainConfig& t) {
  return Generator(static_cast<uint64_t>(t.seed) ^ kDropoutKey);
}

double Evaluation::perplexity() const { return std::exp(loss); }

Trainer::Trainer(const RunConfig& config, TokenSplits data, std::vector<uint32_t> byte_lengths,
                 DType dtype, Device device)
    : config_(config),
      data_(std::move(data)),
      byte_lengths_(std::move(byte_lengths)),
      train_(data_.train, config.train.seq ? config.train.seq : config.model.context,
             static_cast<uint64_t>(config.train.seed)),
      model_(build_model(config.model, dtype, device)),
      schedule_(schedule_of(config.train)),
      dropout_(dropout_of(config.train)) {
  const TrainConfig& t = config_.train;
  check_dtype(dtype);
  initialise(*model_, config_.model, static_cast<uint64_t>(t.seed));
  model_->requires_grad();
  optimizer_ = std::make_unique<optim::AdamW>(optim::decay_groups(*model_, t.weight_decay),
                                              optim::AdamW::Options{t.beta1, t.beta2, t.eps});
  ids_.resize(static_cast<size_t>(t.batch * train_.context()));
  targets_.resize(ids_.size());
}

void Trainer::check_dtype(DType dtype) {
  check(dtype == DType::f32 || dtype == DType::f64, "train: trains in f32 or f64; got ", dtype,
        " (weights in bf16 without an f32 copy stop moving at small learning rates)");
}

int64_t Trainer::tokens_per_step() const {
  return config_.train.batch * train_.context() * config_.train.accumulation;
}

double Trainer::model_flops_per_step() const {
  ReportOptions o;
  o.batch = config_.train.batch;
  o.seq = train_.context();
  o.train = true;
  return make_report(config_.model, o).model.causal *
         static_cast<double>(config_.train.accumulation);
}

// The gradients of one step's micro-batches, summed, each weighted by its share of the tokens: the
// exact mean over all of them. Returns that mean.
double Trainer::accumulate_gradients(int64_t step, double* log_z) {
  const TrainConfig& t = config_.train;
  const Shape shape{t.batch, train_.context()};
  double loss = 0;
  for (int64_t micro = 0; micro < t.accumulation; ++micro) {
    train_.batch(step * t.accumulation + micro, ids_, targets_);
    Tape tape;
    Tensor stats;
    const Tensor part = model_->loss(from_host<int64_t>(ids_, shape, model_->device()),
                                     from_host<int64_t>(targets_, shape, model_->device()),
                                     tokens_per_step(), &dropout_, &stats);
    loss += part.item();
    const Tensor sums = stats.detach();
    *log_z = sums.narrow(0, ops::LossStats::kLogZ, 1).item() /
             std::max(sums.narrow(0, ops::LossStats::kCount, 1).item(), 1.0);
    if (!std::isfinite(loss)) return loss;
    tape.backward(part);
  }
  return loss;
}

// Nothing was updated yet, so the same weights, batch and masks give the same step again.
std::string Trainer::first_bad_call_of(int64_t step, uint64_t dropout_position) {
  optimizer_->zero_grad();
  dropout_.set_position(dropout_position);
  const std::string found = first_bad_call([&] {
    double log_z = 0;
    if (std::isfinite(accumulate_gradients(step, &log_z)))
      optim::clip_factor(optimizer_->groups(), config_.train.clip);
  });
  optimizer_->zero_grad();
  dropout_.set_position(dropout_position);
  return found.empty() ? "computed once more, every value was finite" : found;
}

void Trainer::check_finite(double loss, double norm, int64_t step, uint64_t dropout_position) {
  if (std::isfinite(loss) && std::isfinite(norm)) return;
  const std::string weight = first_bad(named_model());
  const std::string gradient =
      weight.empty() && std::isfinite(loss) ? optim::first_bad_gradient(optimizer_->groups()) : "";
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
  const int64_t t = optimizer_->steps();
  const uint64_t dropout_position = dropout_.position();
  double log_z = 0;
  const double loss = accumulate_gradients(t, &log_z);
  check_finite(loss, 0, t, dropout_position);
  const optim::ClippedNorm clip = optim::clip_factor(optimizer_->groups(), config_.train.clip);
  const double norm = clip.norm.item();
  check_finite(loss, norm, t, dropout_position);
  const double lr = schedule_.at(t);
  optimizer_->step(lr, clip.factor);
  optimizer_->zero_grad();
  return {t + 1, (t + 1) * tokens_per_step(), loss, norm, lr, log_z};
}

Evaluation evaluate(nn::Decoder& model, const TokenFile& tokens,
                    std::span<const uint32_t> byte_lengths, int64_t batch, int64_t context,
                    int64_t batches) {
  const Dataset windows(tokens, context);
  int64_t last = windows.windows();
  if (batches > 0) last = std::min(last, batches * batch);
  Evaluation e;
  double nats = 0;
  for (int64_t at = 0; at < last; at += batch) {
    const int64_t rows = std::min(batch, last - at);
    std::vector<int64_t> ids(static_cast<size_t>(rows * context)), targets(ids.size());
    windows.windows_in_order(at, ids, targets);
    const Shape shape{rows, context};
    const PauseTape values_only;
    const Tensor loss = model.loss(from_host<int64_t>(ids, shape, model.device()),
                                   from_host<int64_t>(targets, shape, model.device()));
    nats += loss.item() * static_cast<double>(rows * context);
    e.tokens += rows * context;
    e.bytes += source_bytes(targets, byte_lengths);
  }
  e.loss = nats / static_cast<double>(e.tokens);
  e.bits_per_byte = e.bytes > 0 ? bits_per_byte(nats, e.bytes) : 0;
  return e;
}

Evaluation Trainer::evaluate(const TokenFile& tokens, int64_t batches) {
  return tally::evaluate(*model_, tokens, byte_lengths_, config_.train.batch, train_.context(),
                         batches);
}

Evaluation Trainer::evaluate(int64_t batches) {
  check(has_validation(), "evaluate: nothing is held out; train with --val-fraction above 0");
  return evaluate(*data_.val, batches);
}

NamedTensors Trainer::named_model() { return model_->named_parameters(); }

void Trainer::save(RunDirectory& run, const std::map<std::string, std::string>& facts) {
  RunDirectory::State state;
  state.step = optimizer_->steps();
  state.facts = facts;
  state.facts["dropout_position"] = to_text(dropout_.position());
  const NamedTensors model = named_model(), moments = optimizer_->state();
  for (const NamedTensors* tensors : {&model, &moments}) {
    const std::string bad = first_bad(*tensors);
    check(bad.empty(), "train: step ", state.step, ": ", bad,
          " is not finite after this update, so it is not saved; the last checkpoint is untouched; "
          "lower the learning rate");
  }
  run.save(state, model, moments);
}

void Trainer::resume(const RunDirectory& run, const std::map<std::string, std::string>& facts) {
  const std::string folder = run.latest();
  check(!folder.empty(), run.path(),
        ": has no checkpoint to go on from; start the run again with another --out");
  const RunDirectory::State state = run.read_state(folder);
  for (const auto& [key, value] : facts) {
    const auto it = state.facts.find(key);
    check(it != state.facts.end() && it->second == value, run.path(), ": was trained with another ",
          key, " (", it == state.facts.end() ? std::string("not recorded") : it->second, "; now ",
          value, "); resume with the same, or start a new run");
  }
  RunDirectory::load(folder + "/model.safetensors", named_model());
  RunDirectory::load(folder + "/optimizer.safetensors", optimizer_->state());
  optimizer_->set_steps(state.step);
  const auto position = state.facts.find("dropout_position");
  check(position != state.facts.end(), folder, "/state.json: dropout_position is missing");
  dropout_.set_position(std::stoull(position->second));
}

}  // namespace tally
