#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/arena.h"
#include "core/program.h"
#include "core/random.h"
#include "models/batch_spans.h"
#include "models/gradient_noise.h"
#include "nn/language_model.h"
#include "optim/optimizer.h"

namespace tally {

/// Shape of a step.
struct StepOptions {
  int64_t batch = 1, seq = 1;  // of one micro-batch
  int64_t accumulation = 1;    // micro-batches in a step
  double clip = 1;             // largest global gradient norm; 0: no limit
  int64_t source = 0;          // tokens that the encoder of an encoder-decoder reads
  /// Some targets are -100, other ones in each step: the mean is over those that count.
  bool counts_targets = false;
  bool masks_source = false;  // sources of different lengths, filled up
};

/// What one pass over a micro-batch leaves besides the gradients.
struct StepPass {
  Tensor loss;          // its share of the step's mean
  Tensor log_z, count;  // sum of log Z, and targets that count
};
/// Writes 1 / `counted` into a `share` of forward_backward, of targets that count (0 as 1).
void set_share(const Tensor& share, int64_t counted);
/// Targets that count.
int64_t counted_targets(std::span<const int64_t> targets);
/// Forward and backward pass of one micro-batch of a step over `tokens` tokens. `between` is called
/// when the loss is there and the backward pass is not. `share`: 1 / tokens as one number, where they
/// are others in each step.
StepPass forward_backward(nn::LanguageModel& model, const nn::ModelBatch& batch, int64_t tokens,
                          Generator* dropout, const std::function<void()>& between = {},
                          const Tensor& share = {});

/// How a step is run; the bits are the same.
///   eager      every tensor asks the backend for memory
///   planned    the tensors of a step have places in one arena, planned from a run on meta
///   replayed   planned, and after the first step the recorded calls run again without the engine
enum class StepMode : uint8_t { eager, planned, replayed };

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(nn::Module&)>;

/// One step of training: forward and backward passes over micro-batches, clip, update. The
/// trainer, the report on meta and the benchmarks call it; a walk (models/walk.h) takes the same
/// passes with its own batches.
class TrainingStep {
 public:
  /// Marks the parameters of `model` as leaves and makes its optimizer. `dropout` gives the random
  /// streams; both must outlive the step.
  TrainingStep(nn::LanguageModel& model, MakeOptimizer make_optimizer, const StepOptions& options,
               Generator& dropout);
  ~TrainingStep();

  /// Writes the ids and targets of micro-batch `micro`, batch x seq each, and batch x source of what
  /// is read, with its mask where there is one. May be asked for the same one twice.
  using Batch = std::function<void(int64_t micro, const BatchSpans& to)>;
  /// Mean loss in nats over the tokens of all micro-batches, the norm of its gradient before
  /// clipping, and the sum of log Z over the targets that count. All 0 on meta.
  struct Result {
    double loss = 0, norm = 0, log_z_sum = 0, targets = 0;
    GradientNoise noise;  // where measure_noise is set
    double mean_log_z() const { return targets > 0 ? log_z_sum / targets : 0; }
  };
  /// The gradients of the step. Stops where the loss is not finite, and leaves the gradients there
  /// for whoever wants to know why.
  Result gradients(const Batch& batch);
  /// The update with learning rate `lr`; the gradients are forgotten.
  void update(double lr);
  /// Forgets the gradients instead.
  void discard();

  /// Takes effect at the next step. Eager is what a device without host memory gets.
  void set_mode(StepMode mode);
  StepMode mode() const { return mode_; }
  /// Micro-batches of the steps to come. What was planned and recorded for another number is forgotten.
  void set_accumulation(int64_t passes);
  /// Why the steps are not replayed although they were to be; "" if they are.
  const std::string& why_not_replayed() const { return why_not_; }
  /// The memory of planned steps; null before the first.
  const Arena* arena() const { return arena_.get(); }
  /// Calls of a replayed step, each program counted once; 0 while nothing is recorded.
  size_t recorded_calls() const;

  optim::Optimizer& optimizer() { return *optimizer_; }
  const optim::Optimizer& optimizer() const { return *optimizer_; }
  const StepOptions& options() const { return options_; }
  int64_t tokens() const { return options_.batch * options_.seq * options_.accumulation; }

  /// Reads the gradients once more behind the first of several micro-batches.
  bool measure_noise = false;
  /// Called between the forward and the backward pass of each micro-batch that is not replayed.
  std::function<void()> after_forward;

 private:
  struct Programs;
  enum class Part : uint8_t { first, next, update };
  MemoryPlan plan() const;
  void enter(Part part);
  void read(const Batch& batch, int64_t micro);
  void load(const Batch& batch, int64_t micro);
  void count(const Batch& batch);
  void check_loaded() const;
  StepPass pass();
  void run_pass(int64_t micro, Result& result);
  Result run(const Batch& batch);
  Result replay(const Batch& batch);
  bool recording() const;
  void refuse(const std::string& why);
  void forget_programs();
  bool same_places();
  void measure_first(int64_t micro, bool played, Result& result) const;
  double number(const Tensor& t) const;
  StepValues values(double lr) const;
  void captured(Program& program, const std::function<void()>& work, double lr);

  nn::LanguageModel& model_;
  MakeOptimizer make_optimizer_;
  StepOptions options_;
  Generator& dropout_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  nn::ModelBatch batch_;  // read by every pass: a replayed step finds its batch here
  Tensor share_;          // 1 / targets that count
  std::vector<int64_t> host_ids_, host_targets_, host_source_;
  std::vector<uint8_t> host_mask_;
  optim::ClippedNorm clip_;
  StepMode mode_ = StepMode::eager;
  std::shared_ptr<Arena> arena_;
  MemoryTrace* trace_ = nullptr;
  std::unique_ptr<Programs> programs_;
  bool replaying_ = false;
  std::string why_not_;
};

}  // namespace tally
