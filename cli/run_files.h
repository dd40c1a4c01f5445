#pragma once
#include <string>
#include <utility>
#include <vector>

#include "cli/run_report.h"
#include "data/json.h"

namespace tally::cli {

/// What lies in a run directory, read.
struct RunFiles {
  std::string path;
  Json config = Json::object(), environment = Json::object();
  std::vector<Json> metrics;                             // an object for each line of metrics.jsonl
  std::vector<std::pair<int64_t, std::string>> samples;  // step, text
  StepLedger ledger;
};
/// Throws Error, naming file and field, for one that is damaged or of another type.
RunFiles read_run(const std::string& path);

/// The values of a field of metrics.jsonl with their steps, in order.
struct Curve {
  std::vector<double> step, value;
};
Curve curve(const RunFiles& run, const std::string& field);

/// Every leaf of a JSON document as "dotted.path", value.
std::vector<std::pair<std::string, std::string>> flattened(const Json& json);

}  // namespace tally::cli
