#pragma once
#include "core/op.h"
#include "core/recorder.h"

namespace tally::ops {

/// For ops without a backward that run beside the tape: Error where the gradient of `t`, the op's
/// `what`, would be lost in silence. The words are those of apply<Op> (autograd/tape.h).
inline void check_no_gradient(const char* op, const char* what, const Tensor& t) {
  const TapeNumber* tape = recorder().tape;
  if (!tape || !t.defined()) return;
  const Tensor::Impl& i = *t.impl();
  check(!i.requires_grad && !(i.tape == tape->number && i.slot >= 0), op, ": has no backward, and ",
        what, " needs a gradient", in_module(), "; pass x.detach() if none should flow");
}

}  // namespace tally::ops
