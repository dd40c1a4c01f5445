#pragma once
#include "core/op.h"

namespace tally::ops {

/// Rows of one head in a (B,T,H,K) view of any strides: element (t, d) is head(t, d).
template <class T>
struct Head {
  T* data = nullptr;
  int64_t row = 0, column = 0;  // strides of the token and of the element
  T& operator()(int64_t t, int64_t d) const { return data[t * row + d * column]; }
};
template <class T>
Head<T> head(const Out& view, int64_t b, int64_t h) {
  const Shape& s = view.strides;
  return {view.pointer<T>() + b * s[0] + h * s[2], s[1], s[3]};
}
template <class T>
Head<const T> head(const In& view, int64_t b, int64_t h) {
  const Shape& s = view.strides;
  return {view.pointer<const T>() + b * s[0] + h * s[2], s[1], s[3]};
}

}  // namespace tally::ops
