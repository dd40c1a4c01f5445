#pragma once
#include "autograd/functional.h"

namespace tally::nn {

/// What a layer with a recurrence keeps of past tokens, the same size however many they are: the
/// last inputs of its convolution and the state of its scan. Undefined before the first token.
///   recent (B, W - 1, C)   state as the scan's: (B, H, K, M) or (B, C, N), in its accumulator's type
struct RecurrentState {
  Tensor recent, state;

  /// The convolution of the next tokens, (B, T, C), which moves on by them.
  ///   x (B, T, C)   weight (C, W)   bias (C) or undefined   documents (B, S) i64 of all tokens so far,
  ///   these among them, or undefined
  Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const Tensor& documents) {
    const int64_t past = weight.size(1) - 1, tokens = x.size(1);
    if (!recent.defined()) recent = zeros({x.size(0), past, x.size(2)}, x.dtype(), x.device());
    const Tensor all = concat({recent, x}, 1);
    recent = contiguous(narrow(all, 1, tokens, past));
    return contiguous(narrow(causal_conv1d(all, weight, bias, last_of(documents, past + tokens)), 1,
                             past, tokens));
  }

 private:
  // The last `count` of them; in front of the first there is none, and what lies there is 0.
  static Tensor last_of(const Tensor& documents, int64_t count) {
    if (!documents.defined()) return {};
    const int64_t missing = count - documents.size(1);
    if (missing <= 0) return contiguous(documents.narrow(1, -missing, count));
    return concat({zeros({documents.size(0), missing}, DType::i64, documents.device()), documents},
                  1);
  }
};

}  // namespace tally::nn
