#pragma once
#include "autograd/functional.h"

namespace tally::nn {

/// What a layer with a recurrence keeps of past tokens, the same size however many they are: the
/// last inputs of its convolution and the state of its scan. Undefined before the first token.
///   recent (B, W - 1, C)   state as the scan's: (B, H, K, M) or (B, C, N), in its accumulator's type
struct RecurrentState {
  Tensor recent, state;

  /// The convolution of the next tokens, (B, T, C), which moves on by them.
  ///   x (B, T, C)   weight (C, W)   bias (C) or undefined
  Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    const int64_t past = weight.size(1) - 1, tokens = x.size(1);
    if (!recent.defined()) recent = zeros({x.size(0), past, x.size(2)}, x.dtype(), x.device());
    const Tensor all = concat({recent, x}, 1);
    recent = contiguous(narrow(all, 1, tokens, past));
    return contiguous(narrow(causal_conv1d(all, weight, bias), 1, past, tokens));
  }
};

}  // namespace tally::nn
