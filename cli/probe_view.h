#pragma once
#include "cli/page.h"
#include "cli/run_files.h"
#include "models/probes.h"

namespace tally::cli {

/// What a line of metrics.jsonl holds under "probes": an object for each probe, a number for each
/// place; what is not finite as a text.
Json probes_json(const ProbeValues& values);

/// A section for each probe that the run logged, a line for each layer or parameter; probes by
/// parameter have a section for each kind of parameter, a line for each block.
void add_probe_sections(Page& page, const RunFiles& run);

}  // namespace tally::cli
