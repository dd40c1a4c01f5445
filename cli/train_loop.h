#pragma once
#include "cli/train_session.h"
#include "models/trainer.h"

namespace tally::cli {

/// Trains to the end of the run, or until it is interrupted, its time is up, or nothing gets better:
/// steps, evaluations, samples, checkpoints, one line a logged step. Returns the exit status.
int run_training(const TrainOptions& options, Session& session, Trainer& trainer,
                 RunDirectory& run);

}  // namespace tally::cli
