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
  /// Lines of metrics.jsonl in order: all, or of long runs some thousands at even distances, the first,
  /// the last and the highest losses among them.
  std::vector<std::string> metrics;  // as text, a fifth of what an object takes; each is one
  struct Sample {
    int64_t step = 0;
    std::string source, text;  // no source of a decoder
  };
  std::vector<Sample> samples;
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
