#pragma once
#include <string>
#include <vector>

#include "models/profile.h"

namespace tally::cli {

/// What a run keeps of one of its steps, in ledger.json: the calls, and what the machine allows.
struct StepLedger {
  std::vector<Entry> calls;
  Ceilings ceilings;
  double step_seconds = 0;
};
void save_ledger(const std::string& run, const StepLedger& ledger);

struct RunFiles;

/// Writes RUN/report.html from what lies in the run directory: curves, samples, the ledger of a
/// step, configuration and machine; a file that is not there leaves its section out. Error for a
/// file that cannot be read.
void write_report(const std::string& run);

/// Last values that a run logged, as rows.
std::vector<std::vector<std::string>> result_rows(const RunFiles& run);
/// Fields of the configuration in which two runs differ, as rows; the head alone when none does.
std::vector<std::vector<std::string>> difference_rows(const RunFiles& a, const RunFiles& b);
/// What to mind where the two runs have different tokenizers; "" where they have the same.
std::string tokenizer_caution(const RunFiles& a, const RunFiles& b);
/// Two runs in one page: curves over each other, results and the fields that differ.
std::string compare_page(const RunFiles& a, const RunFiles& b);

}  // namespace tally::cli
