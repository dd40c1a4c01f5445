#pragma once
#include <string>
#include <vector>

#include "cli/evaluation_sets.h"
#include "data/json.h"

namespace tally::cli {

/// What a run directory's env.json says of how the run was made. Empty where it does not say, as in
/// a directory without that file.
struct RunInputs {
  std::vector<std::string> data;            // files
  std::vector<EvaluationInput> evaluation;  // beside what is held out
  std::string device, dtype;
  std::string data_hash;              // of the training split
  Json environment = Json::object();  // the whole file

  /// The files. Error that ends with `advice` where the run does not say.
  const std::vector<std::string>& files(const std::string& advice) const;
  std::string path;  // of the file, for errors
};

/// Error when the file is there and is not of that form.
RunInputs read_run_inputs(const std::string& run);

}  // namespace tally::cli
