#pragma once
#include "autograd/proof/sample.h"
#include "nn/attention.h"
#include "nn/feed_forward.h"
#include "nn/parallel.h"

namespace tally::nn {

// What each layer must equal, in value and gradient: the same from plain ops on the tape.

Sample::Function plain_composition(ops::ActivationKind kind);
Sample::Function gated_composition(ops::ActivationKind kind);
/// One matrix [gate | up] of 2 f rows.
Sample::Function fused_composition(ops::ActivationKind kind, int64_t f);
Sample::Function attention_composition(const AttentionLayer::Attrs& a);
Sample::Function parallel_composition(const ParallelLayer::Attrs& a);

/// Attrs of so many heads.
AttentionLayer::Attrs attention_attrs(int64_t heads, int64_t kv_heads, int64_t head_dim);
/// A table of angles as rope_table makes it, but from numbers that any scalar can hold.
SampleInput angles(int64_t positions, int64_t width);

}  // namespace tally::nn
