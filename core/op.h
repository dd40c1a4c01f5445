#pragma once
#include <array>
#include <cmath>
#include <type_traits>

#include "core/kernel.h"

namespace tally {

using std::abs;
using std::cos;
using std::erf;
using std::exp;
using std::log;
using std::sin;
using std::sqrt;
using std::tanh;

/// A tensor kept for the backward pass. Reading it throws when something has written to it since,
/// naming the op that saved it and the one that wrote.
class SavedTensor {
 public:
  SavedTensor() = default;
  SavedTensor(const Tensor& t)  // NOLINT(google-explicit-constructor)
      : tensor_(t),
        version_(t.defined() ? t.storage().version() : 0),
        saved_by_(recorder().last_call) {
    if (recorder().watcher && t.defined()) [[unlikely]]
      recorder().watcher->saved(t);
  }
  const Tensor& get() const {
    if (tensor_.defined() && tensor_.storage().version() != version_) [[unlikely]]
      changed();
    return tensor_;
  }
  /// The tensor, whatever was written to it since.
  const Tensor& unchecked() const { return tensor_; }
  operator const Tensor&() const { return get(); }  // NOLINT(google-explicit-constructor)
  bool defined() const { return tensor_.defined(); }
  /// Lets go of the memory as soon as the backward pass is done with it.
  void release() { tensor_ = Tensor(); }

 private:
  [[noreturn]] void changed() const;
  Tensor tensor_;
  uint32_t version_ = 0;
  const char* saved_by_ = "nothing";
};

/// A gradient that a backward call writes: fresh, added to an existing one, or not wanted.
class GradTensor {
 public:
  GradTensor() = default;
  GradTensor(Tensor t, bool accumulate) : tensor_(std::move(t)), accumulate_(accumulate) {}
  const Tensor& tensor() const { return tensor_; }
  bool accumulates() const { return accumulate_; }
  bool wanted() const { return tensor_.defined(); }
  operator Tensor() const { return tensor_; }  // NOLINT(google-explicit-constructor)

 private:
  Tensor tensor_;
  bool accumulate_ = false;
};

namespace detail {
/// Error unless a gradient of this shape and type can be written into `target`.
void check_target(int input, const Tensor& target, const Shape& shape, DType dtype, Device device);
}  // namespace detail

/// Where a backward pass puts the gradients of its N inputs. Default: each into a fresh tensor.
template <int N>
struct Into {
  std::array<Tensor, N> target{};   // defined: add to this one
  std::array<bool, N> skip{};       // true: not wanted
  std::array<bool, N> overwrite{};  // true: write into `target` instead of adding to it

  bool wants(int i) const { return !skip[static_cast<size_t>(i)]; }
  /// The gradient of input i, which has the shape and type of `like`; undefined when not wanted or
  /// when the input itself is absent. Error when the given target does not fit.
  GradTensor at(int i, const Tensor& like) const {
    if (!like.defined()) return {};
    return at(i, like.shape(), like.dtype(), like.device());
  }
  /// The same for an input that is not kept until the backward pass.
  GradTensor at(int i, const Shape& shape, DType dtype, Device device) const {
    if (!wants(i)) return {};
    const Tensor& t = target[static_cast<size_t>(i)];
    if (!t.defined()) return {empty(shape, dtype, device), false};
    detail::check_target(i, t, shape, dtype, device);
    return {t, !overwrite[static_cast<size_t>(i)]};
  }
  /// The part of this for an inner op whose inputs are inputs `which` of ours; -1 is a fresh one.
  template <class... I>
  Into<sizeof...(I)> pick(I... which) const {
    Into<sizeof...(I)> part;
    size_t k = 0;
    const auto take = [&](int i) {
      if (i >= 0) {
        part.target[k] = target[static_cast<size_t>(i)];
        part.skip[k] = skip[static_cast<size_t>(i)];
        part.overwrite[k] = overwrite[static_cast<size_t>(i)];
      }
      ++k;
    };
    (take(which), ...);
    return part;
  }
};

/// An op is a struct with
///   name                                             for messages and the ledger
///   Attrs, Saved                                     its scalars; what its backward needs
///   forward(inputs..., attrs, saved)                 Tensor or std::array; saved may be null
///   backward(dy..., std::move(saved), into)          std::array, a gradient for each input
/// and, unless it is made of other ops, the calls Forward and Backward. See core/ops/README.md.
template <class O, class... Ts>
concept HasForward = requires(const Ts&... in, const typename O::Attrs& a, typename O::Saved* s) {
  { O::name } -> std::convertible_to<const char*>;
  O::forward(in..., a, s);
};

/// Error unless all defined tensors hold one floating-point type; names them by position.
template <class... Ts>
void check_same_dtype(const char* op, const Tensor& first, const Ts&... others) {
  check(is_floating(first.dtype()), op, ": needs floating-point tensors; got ", first.dtype(),
        in_module());
  [[maybe_unused]] const auto one = [&](const Tensor& t) {
    check(!t.defined() || t.dtype() == first.dtype(), op, ": all tensors must hold one type; got ",
          first.dtype(), " and ", t.defined() ? t.dtype() : first.dtype(), in_module(),
          "; convert with to(x, dtype)");
  };
  (one(others), ...);
}
/// What a tensor is like, without its values: what an op keeps of its output to check dy by.
struct Like {
  Shape shape;
  DType dtype = DType::f32;
  Device device;
  Like() = default;
  Like(const Tensor& t) : shape(t.shape()), dtype(t.dtype()), device(t.device()) {}
};
/// Error unless `dy` is there and has the shape of the output whose gradient it is.
void check_upstream(const char* op, const Tensor& dy, const Shape& shape);
/// The same with the element type of the output.
void check_upstream(const char* op, const Tensor& dy, const Shape& shape, DType dtype);
/// The same with the output's device too.
void check_upstream(const char* op, const Tensor& dy, const Like& output);
inline void check_upstream(const char* op, const Tensor& dy, const Tensor& output) {
  check_upstream(op, dy, Like(output));
}
inline void check_defined(const char* op, const char* what, const Tensor& t) {
  check(t.defined(), op, ": ", what, " is missing (undefined tensor)", in_module());
}

/// Error unless `t` is on `device`, where what it is used with lies.
inline void check_device(const char* op, const Tensor& t, Device device) {
  check(t.device() == device, op, ": all tensors must be on one device; got ", device, " and ",
        t.device(), in_module(), "; move one with to(x, device)");
}

/// True for a NaN: of any scalar, those of the proofs too, which know comparisons and no isnan.
template <class T>
bool is_nan(const T& x) {
  return !(x == x);  // NOLINT(misc-redundant-expression)
}
/// Larger of two, a NaN where one is: comparing only, no operation is counted.
template <class T>
T larger(const T& a, const T& b) {
  return a < b || is_nan(b) ? b : a;
}

}  // namespace tally
