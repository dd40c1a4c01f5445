#include "core/view.h"

#include "core/op.h"

namespace tally {
namespace {

// Distance of consecutive rows when the leading axes collapse into one, else -1.
int64_t collapsed_row_stride(const Shape& sizes, const Shape& strides) {
  const int n = sizes.ndim();
  if (n == 0) return 1;
  if (sizes[-1] > 1 && strides[-1] != 1) return -1;
  int64_t row_stride = -1, expected = 0;
  for (int i = n - 2; i >= 0; --i) {
    if (sizes[i] == 0) return sizes[-1];
    if (sizes[i] == 1) continue;
    if (row_stride < 0)
      row_stride = strides[i];
    else if (strides[i] != expected)
      return -1;
    expected = strides[i] * sizes[i];
  }
  return row_stride < 0 ? sizes[-1] : row_stride;
}

}  // namespace

View::View(const Tensor& t) {
  if (!t.defined()) return;
  data = t.data();
  shape = t.shape();
  strides = t.strides();
  row_stride = collapsed_row_stride(shape, strides);
  dtype = t.dtype();
  device = t.device();
  storage = &t.storage();
  is_scalar = shape.ndim() == 0;
}

View::View(const SavedTensor& t) : View(t.get()) {}

Out::Out(const GradTensor& t) : Out(t.tensor()) { accumulate = t.accumulates(); }

}  // namespace tally
