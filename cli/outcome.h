#pragma once
#include <functional>

namespace tally::cli {

/// Runs a verb and returns the program's exit code: the verb's own, or 1 after one line on stderr
/// when it threw or when what it printed on stdout did not arrive (a full disk, a closed stream).
int outcome_of(const std::function<int()>& verb);

}  // namespace tally::cli
