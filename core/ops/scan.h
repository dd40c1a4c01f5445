#pragma once
#include "core/op.h"

namespace tally::ops {

/// A recurrence keeps its state before every so many tokens; its backward pass computes those in
/// between again. So memory for T tokens is T / 16 states, and the work one more forward.
inline constexpr int64_t kScanChunk = 16;
inline int64_t scan_chunks(int64_t tokens) { return (tokens + kScanChunk - 1) / kScanChunk; }

/// An element of a view of any strides, by its place along each axis.
template <class T, class... I>
T& element(const View& v, I... at) {
  int64_t offset = 0;
  int axis = 0;
  ((offset += at * v.strides[axis++]), ...);
  return v.pointer<T>()[offset];
}

/// Error unless a state is absent or has this shape and the type that `like` accumulates in.
inline void check_state(const char* op, const Tensor& state, const Shape& shape,
                        const Tensor& like) {
  if (!state.defined()) return;
  check(state.shape() == shape && state.dtype() == acc_dtype(like.dtype()), op,
        ": the state must be ", shape, " in ", acc_dtype(like.dtype()), "; got ", state.shape(),
        " in ", state.dtype(), in_module());
}

}  // namespace tally::ops
