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

/// Whether token t of T, which are the last of those that documents (B,S) numbers, begins a document:
/// what a recurrence keeps of those before does not reach it. Never where documents are absent.
inline bool begins_document(const View& documents, int64_t b, int64_t t, int64_t tokens) {
  if (!documents.defined()) return false;
  const int64_t at = documents.shape[1] - tokens + t;
  return at > 0 && element<int64_t>(documents, b, at) != element<int64_t>(documents, b, at - 1);
}

/// Error unless documents are absent, or number those of x (B,T,...) and maybe of tokens before.
inline void check_documents(const char* op, const Tensor& documents, const Tensor& x) {
  check(!documents.defined() || (documents.dtype() == DType::i64 && documents.ndim() == 2 &&
                                 documents.size(0) == x.size(0) && documents.size(1) >= x.size(1)),
        op,
        ": documents must be i64, a number for each token and maybe for those before, (B,S) with ",
        "B = ", x.size(0), " and S at least ", x.size(1), "; got ",
        documents.defined() ? documents.shape() : Shape{}, in_module());
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
