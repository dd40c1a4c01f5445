#pragma once
#include <span>
#include <string>
#include <vector>

#include "data/json.h"
#include "models/walk.h"

// A step that was walked, as text, JSON and a page.
namespace tally::cli {

/// Which calls of a step are shown.
struct StepFilter {
  int64_t from = 1, to = 0;  // numbers; to 0: the last
  std::string op, module;    // beginnings of the name and of the path; "" for all
};
/// Error for a range without a call, and for an op or a module that no call of the step has, with
/// the nearest that there is.
std::vector<WalkedCall> filtered(const Walk& walk, const StepFilter& filter);

/// A row for each operand of a call: shape, element type, range, first values.
std::vector<std::vector<std::string>> operand_rows(const WalkedCall& call);
/// "1.07 GFLOP".
std::string flops_text(double flops);
/// FLOPs, bytes, live bytes and what was saved, in a line.
std::string cost_line(const WalkedCall& call);

/// A paragraph for each call.
std::string step_text(std::span<const WalkedCall> calls);
Json step_json(std::span<const WalkedCall> calls);

/// One self-contained page: what the step comes to, live bytes over its calls, and every call to
/// unfold, by phase and layer.
std::string step_page(const std::string& title, const std::string& subtitle, const Walk& walk,
                      std::span<const WalkedCall> calls);

}  // namespace tally::cli
