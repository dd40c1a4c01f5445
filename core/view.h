#pragma once
#include "core/cost.h"
#include "core/recorder.h"
#include "core/tensor.h"

namespace tally {

/// How the counting scalar learns of accesses that a flag on the element cannot show: integer
/// indices, masks, and rows that are gathered or scattered (charged per index, repeats included).
/// Only autograd/proof/scalars.h specialises it.
template <class T>
struct Probe {
  static void index(const int64_t*) {}
  static void wrote_index(const int64_t*) {}
  static void flag(const uint8_t*) {}
  static void gather(const T*, int64_t) {}
  static void scatter(const T*, int64_t) {}
};

class SavedTensor;

/// What a kernel sees of a tensor: not owning, no history. `row_stride` is the distance of rows of
/// the last axis when that axis is dense and all others collapse into one, else -1.
struct View {
  void* data = nullptr;
  Shape shape, strides;
  int64_t row_stride = -1;
  DType dtype = DType::f32;
  Device device;
  Storage* storage = nullptr;  // whose memory it is; null for memory that no tensor owns

  View() = default;
  View(const Tensor& t);  // NOLINT(google-explicit-constructor): a call is written from tensors
  View(const SavedTensor& t);  // NOLINT(google-explicit-constructor)

  bool defined() const { return shape.ndim() > 0 || is_scalar; }
  int64_t numel() const { return defined() ? shape.numel() : 0; }
  int64_t cols() const { return shape.ndim() ? shape[-1] : 1; }
  int64_t rows() const { return cols() ? numel() / cols() : drop_last_numel(); }
  double nbytes() const {
    return static_cast<double>(numel()) * static_cast<double>(size_of(dtype));
  }
  bool is_rows() const { return row_stride >= 0; }
  /// True when the elements lie one after the other.
  bool is_dense() const { return is_rows() && (row_stride == cols() || rows() <= 1); }
  template <class T>
  T* pointer() const {
    return static_cast<T*>(data);
  }

  bool is_scalar = false;  // defined and without axes

 private:
  int64_t drop_last_numel() const { return shape.ndim() ? shape.drop_last().numel() : 0; }
};

/// Memory that a call reads.
struct In : View {
  using View::View;
  template <class T>
  const T* row(int64_t i) const {
    return pointer<T>() + i * row_stride;
  }
  template <class T>
  const T& at(int64_t i) const {  // of a dense view
    return pointer<T>()[i];
  }
  /// Element i of a dense view of indices, T being the scalar of the loops.
  template <class T>
  int64_t index(int64_t i) const {
    Probe<T>::index(pointer<int64_t>() + i);
    return pointer<int64_t>()[i];
  }
  /// Element i of a view of flags (u8, 1 = yes), counted from its first; T as above.
  template <class T>
  bool flag(int64_t i) const {
    Probe<T>::flag(pointer<uint8_t>() + i);
    return pointer<uint8_t>()[i] != 0;
  }
  /// A row that is read because an index names it.
  template <class T>
  const T* gathered(int64_t i) const {
    Probe<T>::gather(row<T>(i), cols());
    return row<T>(i);
  }
};

class GradTensor;

/// Memory that a call writes, or adds to when `accumulate` is set. run() raises the version of its
/// storage, so that a backward pass notices when something it saved was changed.
struct Out : View {
  bool accumulate = false;

  Out() = default;
  Out(const Tensor& t) : View(t) {}  // NOLINT(google-explicit-constructor)
  Out(const GradTensor& t);          // NOLINT(google-explicit-constructor)

  template <class T>
  T* row(int64_t i) const {
    return pointer<T>() + i * row_stride;
  }
  template <class T>
  T& at(int64_t i) const {
    return pointer<T>()[i];
  }
  /// Writes or adds `value` to an element of this view.
  template <class T>
  void put(T& element, const acc_t<T>& value) const {
    element = accumulate ? T(acc_t<T>(element) + value) : T(value);
  }
  /// Writes element i of a view of indices, T being the scalar of the loops.
  template <class T>
  void put_index(int64_t i, int64_t value) const {
    Probe<T>::wrote_index(pointer<int64_t>() + i);
    pointer<int64_t>()[i] = value;
  }
  /// A row that is added to because an index names it.
  template <class T>
  T* scattered(int64_t i) const {
    Probe<T>::scatter(row<T>(i), cols());
    return row<T>(i);
  }
};

/// Memory that a call reads and writes in place: a parameter in its update.
struct InOut : Out {
  using Out::Out;
};

/// What a call reads: nothing for views that are absent.
template <class... V>
Cost reads(const V&... v) {
  return {0, (v.nbytes() + ... + 0.0), 0};
}
/// The same where the loops reach them only under a condition on shapes (no rows: no weight is
/// read).
template <class... V>
Cost reads_if(bool reached, const V&... v) {
  return reached ? reads(v...) : Cost{};
}
/// What a call writes; adding to an output also reads it and costs an addition an element.
template <class... V>
Cost writes(const V&... v) {
  const auto one = [](const auto& out) {
    const double again = out.accumulate ? 1 : 0;
    return Cost{again * static_cast<double>(out.numel()), again * out.nbytes(), out.nbytes()};
  };
  return (one(v) + ... + Cost{});
}
/// What a call reads and writes back.
template <class... V>
Cost updates(const V&... v) {
  return reads(v...) + Cost{0, 0, (v.nbytes() + ... + 0.0)};
}
inline Cost flops(double n) { return {n, 0, 0}; }

}  // namespace tally
