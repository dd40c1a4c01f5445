#pragma once
#include <functional>
#include <string>

namespace tally {

/// Runs `work` with every call watched, up to the first one that wrote a NaN or an infinity, and
/// says which it was: its output, op, layer and phase, and the ranges of its inputs as they were
/// when it read them. "" when every output was finite. An Error of `work` itself is passed on.
///
/// Costs a pass over all values: for a step that is known to have gone wrong, not for every step.
std::string first_bad_call(const std::function<void()>& work);

}  // namespace tally
