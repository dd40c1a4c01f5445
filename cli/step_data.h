#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "models/target.h"
#include "models/walk.h"

namespace tally::cli {

/// A model with weights (those of a run or a checkpoint, else the initial ones) and all that its
/// next training step needs.
struct StepModel {
  Target target;
  std::unique_ptr<nn::LanguageModel> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<Generator> dropout;  // where the model has any
  double lr = 0;
  int64_t steps_done = 0, rollbacks = 0;  // of the run before this step
};
/// `seed`: of initial weights, for targets without weights.
StepModel make_step_model(const std::string& name, const std::vector<std::string>& set, DType dtype,
                          Device device);

/// The micro-batches of one step, and where they come from.
struct StepBatch {
  std::vector<nn::ModelBatch> micro;
  std::string source;
  bool counts_targets = false;
};
/// A batch of `--text`, of `--data`, of the run's own data, or of made-up tokens, in this order of
/// preference. What is hidden of a text does not depend on the seed; with train.pairs it is a text, a
/// tab and what is to be written. Of made-up tokens an encoder-decoder reads as many as it writes.
/// Error where a text needs a tokenizer that the target does not have.
StepBatch make_step_batch(const StepOptions& options, const StepModel& model);

}  // namespace tally::cli
