#pragma once
// Every op of core, and the one list of their calls.
#include "core/ops/accumulate.h"
#include "core/ops/embedding.h"
#include "core/ops/linear.h"
#include "core/ops/rms_norm.h"
#include "core/ops/rope.h"

namespace tally {

using AllCalls = TypeList<
    // clang-format off
    ops::Accumulate::Call,
    ops::Embedding::Forward, ops::Embedding::Backward,
    ops::Linear::Forward, ops::Linear::Backward,
    ops::RMSNorm::Forward, ops::RMSNorm::Backward,
    ops::Rope::Forward, ops::Rope::Backward
    // clang-format on
    >;

}  // namespace tally
