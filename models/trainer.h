#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "core/random.h"
#include "data/dataset.h"
#include "data/text_data.h"
#include "models/config.h"
#include "models/early_stop.h"
#include "models/evaluation.h"
#include "models/objective.h"
#include "models/run_directory.h"
#include "models/step_guard.h"
#include "models/training_step.h"
#include "nn/decoder.h"
#include "optim/make.h"
#include "optim/schedule.h"

namespace tally {

/// One step.
struct StepResult {
  int64_t step = 0;      // steps done, this one included
  int64_t tokens = 0;    // seen so far
  double loss = 0;       // mean over the tokens of the step, nats
  double grad_norm = 0;  // before clipping
  double lr = 0;
  double log_z = 0;      // mean of log Z over the tokens of the step
  GradientNoise noise;   // while measured
  bool skipped = false;  // the guard let no update happen
};

/// What training makes of a configuration: the learning rate of every step, its batch, its optimizer,
/// and the masks of dropout.
optim::LearningRate schedule_of(const TrainConfig& config, const ModelConfig& model);
optim::BatchRamp ramp_of(const TrainConfig& config);
optim::OptimizerChoice optimizer_of(const TrainConfig& config, const ModelConfig& model);
Generator dropout_of(const TrainConfig& config);
/// Of the order of the data after so many rollbacks.
uint64_t data_seed(const TrainConfig& config, int64_t rollbacks);
/// What a checkpoint says beside its step: updates that were skipped, and rollbacks before it.
int64_t skipped_steps(const RunDirectory::State& state, const std::string& checkpoint);
int64_t rollbacks_before(const RunDirectory::State& state, const std::string& checkpoint);

/// Trains one model on one device. Everything it does is a function of the configuration, the data
/// and the step number, so a run that was broken off continues bit for bit.
class Trainer {
 public:
  /// `byte_lengths`: bytes of text that each token stands for (Tokenizer::byte_lengths). `tokens`:
  /// what the objective of an encoder or an encoder-decoder needs (objective_tokens).
  Trainer(const RunConfig& config, TokenSplits data, std::vector<uint32_t> byte_lengths,
          DType dtype, Device device, const ObjectiveTokens& tokens = {});
  /// Error for an element type that weights are not trained in.
  static void check_dtype(DType dtype);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// One update: accumulated forward and backward passes, clip, optimizer. Throws Error before any
  /// weight changes when the loss or a gradient is not finite, naming the first bad tensor, and the
  /// op whose output was the first to hold a NaN or an infinity: the step is computed once more,
  /// watched, from the same weights, batch and dropout. Where train.rollback_after is set, such a
  /// step is skipped instead; where train.skip_deviations is, one far from those before it.
  StepResult step();
  /// True when so many steps in a row were skipped that the run should go back.
  bool wants_rollback() const;
  /// Goes back to the newest checkpoint of `run` and on with another order of the data. Error when
  /// that has been done too often from there.
  void roll_back(const RunDirectory& run);
  int64_t rollbacks() const { return rollbacks_; }
  const StepGuard& guard() const { return guard_; }

  /// Takes the loss of the first evaluation set after the last step; true where it is the best.
  bool judge(double loss) { return early_stop_.judge(steps_done(), loss); }
  const EarlyStop& early_stop() const { return early_stop_; }

  /// Loss over the held-out split in the order of the text; `batches` 0: all of it.
  Evaluation evaluate(int64_t batches = 0);
  /// Loss of any tokens under this model.
  Evaluation evaluate(const TokenFile& tokens, int64_t batches = 0);
  bool has_validation() const { return data_.val.has_value(); }

  /// Steps of the data and of the schedule; updates are fewer where some were skipped.
  int64_t steps_done() const { return step_->optimizer().steps() + guard_.skipped(); }
  /// Products of one step's forward and backward pass (attention: the causal half).
  double model_flops_per_step() const;
  /// Of the step that was done last, or is the first; fewer while the batch still grows.
  int64_t tokens_per_step() const;
  /// Of all steps so far.
  int64_t tokens_seen() const { return ramp_.before(steps_done()) * tokens_per_pass(); }

  /// Writes a checkpoint; `facts` go along and are compared on resume. Error by name, and nothing
  /// is written, when a weight or a moment is not finite.
  void save(RunDirectory& run, const std::map<std::string, std::string>& facts);
  /// Continues from the newest checkpoint. Error by name when its facts differ from `facts`.
  void resume(const RunDirectory& run, const std::map<std::string, std::string>& facts);
  /// The same from the folder of a checkpoint of another run, whose best model is not ours.
  void branch(const RunDirectory& trunk, const std::map<std::string, std::string>& facts,
              const std::string& checkpoint);

  /// What the model's encoder reads of the first held-out window, or of the training's where nothing
  /// is held out, without filler.
  std::vector<int64_t> first_source() const;

  nn::LanguageModel& model() { return *model_; }
  /// The same, where it is one. Error for another architecture.
  nn::Decoder& decoder();
  const optim::Optimizer& optimizer() const { return step_->optimizer(); }
  optim::Optimizer& optimizer() { return step_->optimizer(); }
  /// How its steps are run: replayed unless changed; the bits are the same.
  void set_mode(StepMode mode) { step_->set_mode(mode); }
  /// Whether the next steps measure the noise of their gradients (StepResult::noise).
  void measure_noise(bool on) { step_->measure_noise = on; }
  const TrainingStep& training_step() const { return *step_; }
  const RunConfig& config() const { return config_; }

 private:
  TrainingStep::Batch batch_of(int64_t step);
  void take(const RunDirectory& run, const std::map<std::string, std::string>& facts,
            const std::string& folder);
  void restore(const RunDirectory::State& state, const std::string& folder);
  void check_finite(double loss, double norm, int64_t step, uint64_t dropout_position);
  std::string first_bad_call_of(int64_t step, uint64_t dropout_position);
  NamedTensors named_model();
  int64_t tokens_per_pass() const { return config_.train.batch * train_.context(); }
  int64_t passes_of_last_step() const { return ramp_.at(std::max<int64_t>(steps_done() - 1, 0)); }

  RunConfig config_;
  TokenSplits data_;
  std::vector<uint32_t> byte_lengths_;
  Dataset train_;
  Objective objective_;
  std::unique_ptr<nn::LanguageModel> model_;
  optim::LearningRate schedule_;
  optim::BatchRamp ramp_;  // forward passes in a step
  mutable double flops_per_pass_ = 0;
  Generator dropout_;
  StepGuard guard_;
  EarlyStop early_stop_;
  int64_t rollbacks_ = 0, rollbacks_here_ = 0, rolled_back_to_ = -1;
  std::unique_ptr<TrainingStep> step_;
};

}  // namespace tally
