#pragma once
#include <span>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "core/storage.h"

namespace tally {

/// A counted handle (8 bytes) to a strided view of a storage. Copying it copies the handle, never
/// the numbers. A default-made tensor is undefined: it stands for "absent" (no bias, no gradient).
///
/// The members below make views of values only; on a tensor that a tape records they refuse, since
/// its gradient would be lost: use the functions of autograd/functional.h there.
class Tensor {
 public:
  struct Impl;

  Tensor() = default;
  Tensor(const Tensor& other) : impl_(other.impl_) { retain(); }
  Tensor(Tensor&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(impl_, other.impl_);
    return *this;
  }
  ~Tensor() { release(); }

  bool defined() const { return impl_ != nullptr; }
  explicit operator bool() const { return defined(); }
  /// True when both handles are the same view object.
  bool is(const Tensor& other) const { return impl_ == other.impl_; }

  const Shape& shape() const;
  const Shape& strides() const;  ///< in elements
  int64_t offset() const;        ///< in elements from the start of the storage
  int ndim() const { return shape().ndim(); }
  /// Size of an axis; negative counts from the end. Error for an axis that is not there.
  int64_t size(int axis) const;
  int64_t numel() const { return shape().numel(); }
  DType dtype() const;
  Device device() const;
  size_t nbytes() const { return static_cast<size_t>(numel()) * size_of(dtype()); }
  bool is_contiguous() const;
  Storage& storage() const;

  /// The same elements in another shape; one size may be -1. Error where strides do not allow a
  /// view.
  Tensor reshape(const Shape& shape) const;
  Tensor transpose(int axis_a, int axis_b) const;
  /// Elements start, start + step, ... of an axis: `length` of them.
  Tensor narrow(int axis, int64_t start, int64_t length, int64_t step = 1) const;
  /// Axes of size 1 repeated with stride 0, new axes in front.
  Tensor expand(const Shape& shape) const;
  /// The same values without history: what a tape recorded of them is not seen through it.
  Tensor detach() const;

  bool requires_grad() const;
  /// Marks a leaf whose gradient a tape shall keep. Error for integers.
  Tensor& requires_grad_(bool on = true);
  /// The gradient that the last backward passes added up; undefined before the first.
  Tensor grad() const;
  void set_grad(Tensor gradient);

  /// The elements of a contiguous tensor in host memory. Error elsewhere or for another type.
  template <class T>
  std::span<T> host() const {
    check_host(dtype_of<T>);
    return {static_cast<T*>(data()), static_cast<size_t>(numel())};
  }
  /// The only element of a one-element tensor, copied from its device.
  double item() const;
  /// Address of the first element; null on meta.
  void* data() const;

  /// True when this handle is the only one to its view and that view the only one to its storage:
  /// a gradient may then be added to in place.
  bool exclusively_owned() const;
  Impl* impl() const { return impl_; }
  /// The same for a tensor that must be there: Error when it is undefined.
  Impl& checked() const {
    if (!impl_) [[unlikely]]
      undefined();
    return *impl_;
  }

 private:
  friend Tensor make_view(const Tensor& base, const Shape& sizes, const Shape& strides,
                          int64_t offset);
  friend Tensor empty(const Shape& shape, DType dtype, Device device);
  explicit Tensor(Impl* owned) : impl_(owned) {}
  [[noreturn, gnu::cold]] static void undefined();
  void retain();
  void release();
  void check_host(DType wanted) const;
  Impl* impl_ = nullptr;
};

struct Tensor::Impl {
  Impl(Storage& owned, const Shape& shape, const Shape& steps, int64_t first, DType type)
      : storage(&owned), offset(first), sizes(shape), strides(steps), dtype(type) {}
  Storage* storage;
  int64_t offset;
  Shape sizes, strides;
  std::atomic<int32_t> references{1};
  DType dtype;
  bool requires_grad = false;
  int32_t slot = -1;  // place on the tape `tape`
  uint32_t tape = 0;  // number of the tape that recorded this tensor, 0: none
  Tensor grad;
};

/// A tensor whose elements are not set. Error for negative or absurd sizes.
Tensor empty(const Shape& shape, DType dtype, Device device);
Tensor empty_like(const Tensor& t);
Tensor zeros(const Shape& shape, DType dtype, Device device);
Tensor full(const Shape& shape, double value, DType dtype, Device device);
/// Copies host values into a new tensor; as many values as the shape has elements.
template <class T>
Tensor from_host(std::span<const T> values, const Shape& shape, Device device);
template <class T>
Tensor from_host(std::initializer_list<T> values, const Shape& shape, Device device) {
  return from_host(std::span<const T>(values.begin(), values.size()), shape, device);
}
/// A copy in host memory of a contiguous tensor's elements.
template <class T>
std::vector<T> to_host(const Tensor& t);

inline const Shape& Tensor::shape() const { return checked().sizes; }
inline const Shape& Tensor::strides() const { return checked().strides; }
inline int64_t Tensor::offset() const { return checked().offset; }
inline DType Tensor::dtype() const { return checked().dtype; }
inline Storage& Tensor::storage() const { return *checked().storage; }
inline Device Tensor::device() const { return checked().storage->device(); }
inline bool Tensor::requires_grad() const { return checked().requires_grad; }
inline void* Tensor::data() const {
  void* base = checked().storage->data();
  return base
             ? static_cast<char*>(base) + static_cast<size_t>(impl_->offset) * size_of(impl_->dtype)
             : nullptr;
}
inline void Tensor::retain() {
  if (impl_) impl_->references.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tally
