#pragma once
#include <span>

#include "data/draws.h"

namespace tally {

/// The prefix language model's objective: go on from a text that is seen whole. Raffel et al. 2019,
/// arXiv:1910.10683, sec. 3.2.3 (its mask: see core/ops/attention).

/// The length of the prefix of one sequence of `length` tokens: uniform in 1 .. length - 1. Throws
/// Error under 2 tokens.
int64_t draw_prefix(const SequenceKey& key, int64_t length);

/// Sets the targets that lie inside the prefix to kIgnoredTarget. targets[t] is the token behind
/// token t, so the first that counts is targets[prefix - 1], the first behind the prefix. Throws
/// Error unless 0 <= prefix <= the number of targets.
void ignore_prefix(int64_t prefix, std::span<int64_t> targets);

}  // namespace tally
