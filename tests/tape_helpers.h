#pragma once
// What tests of the tape begin with.
#include "autograd/functional.h"
#include "autograd/tape.h"
#include "backends/register_all.h"
#include "core/host_backend.h"
#include "core/ops/all.h"

namespace tally::test {

struct Setup {
  Setup() { register_all(); }
};

inline Tensor numbers(std::initializer_list<double> v, const Shape& shape) {
  return from_host<double>(v, shape, kReference);
}
inline Tensor leaf(std::initializer_list<double> v, const Shape& shape) {
  Tensor t = numbers(v, shape);
  t.requires_grad_();
  return t;
}
inline std::vector<double> values(const Tensor& t) { return to_host<double>(t); }
inline size_t live_bytes() { return backend(kReference).memory().live; }

// Changes numbers behind the tape's back, as an optimizer does.
inline void add_one(const Tensor& t) {
  ops::Accumulate::into(t, full(t.shape(), 1, t.dtype(), t.device()));
}

struct NoBackward {
  static constexpr const char* name = "no_backward";
  struct Attrs {};
  struct Saved {};
  static Tensor forward(const Tensor& x, const Attrs&, Saved*) {
    return ops::Copy::forward(x, {}, nullptr);
  }
};

}  // namespace tally::test
