#include "models/training_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autograd/functional.h"
#include "core/ops/embedding.h"
#include "data/draws.h"
#include "models/probe_measures.h"

namespace tally {

// A step in four recorded pieces. The host looks at the loss and at the norm between them; the
// second pass, which adds to the gradients of the first, serves all later ones.
struct TrainingStep::Programs {
  Program first, next, norm, update;
  struct Outputs {
    size_t loss = 0, log_z = 0, count = 0;
  } first_pass, next_pass;
  size_t norm_value = 0;
  std::vector<const void*> places;  // of the gradients after the first pass
  bool complete = false;
};

namespace {

// Nobody listens to what happens on the side.
struct Unheard {
  Recorder before = std::exchange(recorder(), Recorder{});
  ~Unheard() { recorder() = before; }
};

}  // namespace

TrainingStep::TrainingStep(nn::LanguageModel& model, MakeOptimizer make_optimizer,
                           const StepOptions& options, Generator& dropout)
    : model_(model),
      make_optimizer_(std::move(make_optimizer)),
      options_(options),
      dropout_(dropout) {
  model_.requires_grad();
  optimizer_ = make_optimizer_(model_);
  batch_.ids = empty({options.batch, options.seq}, DType::i64, model.device());
  batch_.targets = empty_like(batch_.ids);
  if (options.source > 0)
    batch_.source = empty({options.batch, options.source}, DType::i64, model.device());
  if (options.masks_source)
    batch_.mask = empty({options.batch, options.source}, DType::u8, model.device());
  if (options.counts_targets) share_ = empty({}, acc_dtype(model.dtype()), model.device());
  if (backend(model.device()).is_meta()) return;  // no values, however large the batch
  host_ids_.resize(static_cast<size_t>(batch_.ids.numel()));
  host_targets_.resize(host_ids_.size());
  host_source_.resize(static_cast<size_t>(options.batch * options.source));
  if (options.masks_source) host_mask_.resize(host_source_.size());
}

TrainingStep::~TrainingStep() = default;

void TrainingStep::set_mode(StepMode mode) {
  mode_ = backend(model_.device()).host_memory() ? mode : StepMode::eager;
  forget_programs();
  why_not_.clear();
  if (mode_ == StepMode::eager) arena_.reset();
}

void TrainingStep::set_accumulation(int64_t passes) {
  check(passes >= 1, "a step needs at least 1 forward pass; got ", passes);
  if (passes == options_.accumulation) return;
  options_.accumulation = passes;
  forget_programs();  // they divide the loss by the tokens of a step
  arena_.reset();
}

// The same step on meta tells what it allocates, before a byte of it exists.
MemoryPlan TrainingStep::plan() const {
  const Unheard unheard;
  const auto twin = model_.on_meta();
  StepOptions options = options_;
  options.accumulation = std::min<int64_t>(options.accumulation, 2);  // later passes are the second
  Generator streams;
  TrainingStep step(*twin, make_optimizer_, options, streams);
  return plan_memory([&](MemoryTrace& trace) {
    step.trace_ = &trace;
    step.gradients([](int64_t, const BatchSpans&) {});
    step.update(0);
  });
}

void TrainingStep::enter(Part part) {
  if (trace_) trace_->begin_section();
  if (!arena_ || mode_ == StepMode::eager) return;
  const size_t last = options_.accumulation > 1 ? 2 : 1;
  if (part == Part::first) arena_->begin_step();
  arena_->begin_section(part == Part::first ? 0 : part == Part::next ? 1 : last);
}

void TrainingStep::read(const Batch& batch, int64_t micro) {
  batch(micro, {host_ids_, host_targets_, host_source_, host_mask_});
}

void TrainingStep::load(const Batch& batch, int64_t micro) {
  if (backend(model_.device()).is_meta()) return;
  read(batch, micro);
  const auto put = [](const Tensor& t, const auto& v) {
    if (!t.defined()) return;
    backend(t.device()).copy_from_host(t.data(), v.data(), t.nbytes());
    t.storage().note_write("batch");
  };
  put(batch_.ids, host_ids_);
  put(batch_.targets, host_targets_);
  put(batch_.source, host_source_);
  put(batch_.mask, host_mask_);
}

// The mean is over all micro-batches: how many targets count must be known before the first.
void TrainingStep::count(const Batch& batch) {
  if (!options_.counts_targets || backend(model_.device()).is_meta()) return;
  int64_t counted = 0;
  for (int64_t micro = 0; micro < options_.accumulation; ++micro) {
    read(batch, micro);
    counted += counted_targets(host_targets_);
  }
  set_share(share_, counted);
}

void set_share(const Tensor& share, int64_t counted) {
  const double value = 1 / static_cast<double>(std::max<int64_t>(counted, 1));
  const auto narrow = static_cast<float>(value);
  const bool wide = share.dtype() == DType::f64;
  backend(share.device())
      .copy_from_host(share.data(), wide ? static_cast<const void*>(&value) : &narrow,
                      share.nbytes());
  share.storage().note_write("count");
}

int64_t counted_targets(std::span<const int64_t> targets) {
  return std::ranges::count_if(targets, [](int64_t t) { return t != kIgnoredTarget; });
}

StepPass TrainingStep::pass() {
  return forward_backward(model_, batch_, tokens(), &dropout_, after_forward, share_);
}

StepPass forward_backward(nn::LanguageModel& model, const nn::ModelBatch& batch, int64_t tokens,
                          Generator* dropout, const std::function<void()>& between,
                          const Tensor& share) {
  Tape tape;
  Tensor stats;
  Tensor loss = model.batch_loss(batch, share.defined() ? 1 : tokens, dropout, &stats);
  if (share.defined()) loss = mul(loss, share);
  if (between) between();
  tape.backward(loss);
  const Tensor sums = stats.detach();
  return {loss, sums.narrow(0, ops::LossStats::kLogZ, 1),
          sums.narrow(0, ops::LossStats::kCount, 1)};
}

double TrainingStep::number(const Tensor& t) const {
  return backend(t.device()).is_meta() ? 0 : t.item();
}

StepValues TrainingStep::values(double lr) const {
  return {lr, optimizer_->steps() + 1, dropout_.position()};
}

TrainingStep::Result TrainingStep::gradients(const Batch& batch) {
  replaying_ = false;
  if (programs_ && !programs_->complete) forget_programs();  // an error broke the recording off
  count(batch);
  if (mode_ == StepMode::eager) return run(batch);
  if (!arena_) arena_ = Arena::create(plan(), model_.device());
  // Where somebody still holds a tensor of a step, the engine runs: it goes round such a place.
  if (programs_ && arena_->stats().live == 0) {
    const uint64_t start = dropout_.position();
    const Result r = replay(batch);
    replaying_ = std::isfinite(r.loss) && std::isfinite(r.norm);
    if (replaying_) return r;
    dropout_.set_position(start);  // once more with the engine, which has the gradients by name
  }
  if (mode_ == StepMode::replayed && why_not_.empty() && !programs_) {
    programs_ = std::make_unique<Programs>();
    if (!optimizer_->replayable()) refuse("the optimizer's update cannot be recorded");
  }
  const UseMemory arena(*arena_);
  return run(batch);
}

void TrainingStep::run_pass(int64_t micro, Result& result) {
  enter(micro == 0 ? Part::first : Part::next);
  StepPass made;
  if (recording() && micro < 2) {
    Program& program = micro == 0 ? programs_->first : programs_->next;
    Programs::Outputs& outputs = micro == 0 ? programs_->first_pass : programs_->next_pass;
    captured(
        program,
        [&] {
          made = pass();
          outputs = {program.output(made.loss), program.output(made.log_z),
                     program.output(made.count)};
        },
        0);
  } else {
    made = pass();
  }
  result.loss += number(made.loss);
  result.log_z_sum += number(made.log_z);
  result.targets += number(made.count);
}

TrainingStep::Result TrainingStep::run(const Batch& batch) {
  Result r;
  for (int64_t micro = 0; micro < options_.accumulation; ++micro) {
    load(batch, micro);
    // The sections of a plan are its first pass, one later pass and the update.
    run_pass(micro, r);
    if (!std::isfinite(r.loss)) return r;
    measure_first(micro, false, r);
    if (recording() && micro < 2 && !same_places())
      refuse("gradients change their places from one micro-batch to the next");
  }
  enter(Part::update);
  const auto clip = [&] { clip_ = optim::clip_factor(optimizer_->groups(), options_.clip); };
  if (recording()) {
    captured(
        programs_->norm,
        [&] {
          clip();
          programs_->norm_value = programs_->norm.output(clip_.norm);
        },
        0);
  } else {
    clip();
  }
  r.norm = number(clip_.norm);
  r.noise.squares = r.norm * r.norm;
  return r;
}

void TrainingStep::update(double lr) {
  if (replaying_) {
    programs_->update.run(values(lr));
    optimizer_->set_steps(optimizer_->steps() + 1);
    replaying_ = false;
    return;
  }
  const auto work = [&] {
    optimizer_->step(lr, clip_.factor);
    model_.after_update();
  };
  if (mode_ == StepMode::eager) {
    work();
  } else {
    const UseMemory arena(*arena_);
    if (recording()) {
      captured(programs_->update, work, lr);
      programs_->complete = recording();
    } else {
      work();
    }
  }
  discard();
}

void TrainingStep::discard() {
  clip_ = {};
  model_.forget_step();
  optimizer_->zero_grad();
  replaying_ = false;
  if (programs_ && !programs_->complete) forget_programs();
}

// What the ops of a step that is not replayed check.
void TrainingStep::check_loaded() const {
  const Tensor& targets = batch_.targets;
  ops::check_ids("train", batch_.ids, model_.vocab());
  if (batch_.source.defined()) ops::check_ids("train", batch_.source, model_.vocab());
  ops::check_targets("train", targets, targets.shape(), model_.vocab(),
                     ops::LossOptions().ignore_index);
}

TrainingStep::Result TrainingStep::replay(const Batch& batch) {
  Programs& p = *programs_;
  Result r;
  for (int64_t micro = 0; micro < options_.accumulation; ++micro) {
    load(batch, micro);
    check_loaded();
    Program& pass = micro == 0 ? p.first : p.next;
    pass.run(values(0));
    dropout_.set_position(dropout_.position() + pass.streams());
    const Programs::Outputs& outputs = micro == 0 ? p.first_pass : p.next_pass;
    r.loss += pass.value(outputs.loss);
    r.log_z_sum += pass.value(outputs.log_z);
    r.targets += pass.value(outputs.count);
    if (!std::isfinite(r.loss)) return r;
    measure_first(micro, true, r);
  }
  p.norm.run(values(0));
  r.norm = p.norm.value(p.norm_value);
  r.noise.squares = r.norm * r.norm;
  return r;
}

bool TrainingStep::recording() const {
  return programs_ && !programs_->complete && why_not_.empty();
}

void TrainingStep::captured(Program& program, const std::function<void()>& work, double lr) {
  Program::Capture capture(program, values(lr));
  work();
  try {
    capture.finish(dropout_.position());
  } catch (const Error& e) {
    refuse(e.what());
  }
}

void TrainingStep::refuse(const std::string& why) {
  why_not_ = why;
  forget_programs();
}

void TrainingStep::forget_programs() { programs_.reset(); }

// True when every gradient is still where the first pass put it: a recorded pass writes there.
bool TrainingStep::same_places() {
  std::vector<const void*> places;
  for (const optim::ParameterGroup& g : optimizer_->groups()) {
    for (const auto& [name, t] : g.parameters)
      places.push_back(t.grad().defined() ? t.grad().data() : nullptr);
  }
  if (programs_->places.empty()) programs_->places = places;
  return places == programs_->places;
}

// A replayed pass writes the gradients where they were recorded, and no tensor has them.
void TrainingStep::measure_first(int64_t micro, bool played, Result& result) const {
  if (!measure_noise || micro > 0 || options_.accumulation < 2) return;
  size_t i = 0;
  for (const optim::ParameterGroup& g : optimizer_->groups()) {
    for (const auto& [name, t] : g.parameters) {
      View gradient = t;
      gradient.data = played               ? const_cast<void*>(programs_->places[i])
                      : t.grad().defined() ? t.grad().data()
                                           : nullptr;
      if (gradient.data) result.noise.first_squares += square_sum(gradient);
      ++i;
    }
  }
  result.noise.passes = options_.accumulation;
}

size_t TrainingStep::recorded_calls() const {
  if (!programs_ || !programs_->complete) return 0;
  return programs_->first.size() + programs_->next.size() + programs_->norm.size() +
         programs_->update.size();
}

}  // namespace tally
