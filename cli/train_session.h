#pragma once
#include <map>
#include <optional>
#include <string>

#include "cli/common.h"
#include "cli/run_inputs.h"
#include "data/text_data.h"
#include "data/tokenizer.h"
#include "models/config.h"
#include "models/objective.h"
#include "models/run_directory.h"

namespace tally::cli {

/// A run that is about to start or to go on.
struct Session {
  RunConfig config;
  RunInputs inputs;
  Tokenizer tokenizer = Tokenizer::bytes();
  std::optional<TokenSplits> data;
  std::vector<EvaluationSet> evaluation;  // beside what is held out
  ObjectiveTokens tokens;
  std::map<std::string, std::string> facts;  // what a resume must find unchanged
  std::string trunk, checkpoint;             // of a branch: the run and the folder it goes on from
};

/// The configuration of a new run, checked; its data are not opened yet.
Session new_session(const TrainOptions& o);
/// Chooses or learns the tokenizer of a new run and opens its data. Error where the training part or
/// what is held out is shorter than a window.
void open_session_data(const TrainOptions& o, Session& s);
/// A run that goes on where it stopped, with its data. Error where the options ask for something
/// else than it began with.
Session resumed_session(const TrainOptions& o, const RunDirectory& run);
/// A new run that goes on from a checkpoint of another, with its data and tokenizer. Error where the
/// options ask for another beginning.
Session branched_session(const TrainOptions& o);
/// What env.json keeps: the machine, and that --resume needs no other option.
Json session_environment(const Session& s);

}  // namespace tally::cli
