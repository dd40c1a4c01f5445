// Shapes and strides of tensors: what a view can be, and the views themselves.
#include <utility>

#include "core/recorder.h"
#include "core/tensor.h"

namespace tally {
namespace {

// A view made behind the tape's back would lose the gradient in silence.
void check_not_recorded(const Tensor& t, const char* what) {
  const Recorder& r = recorder();
  const Tensor::Impl& i = t.checked();
  if (!r.tape) return;
  check(
      !i.requires_grad && !(i.tape == r.tape->number && i.slot >= 0), what, ": this tensor ",
      i.sizes,
      " is recorded by a tape, and a view of it made by a member function would lose its gradient; "
      "use tally::",
      what, "(x, ...), or x.detach() for the values alone");
}

int checked_axis(const Tensor& t, int axis, const char* what) {
  const int n = t.ndim();
  check(axis >= -n && axis < n, what, ": axis must be in -", n, "..", n - 1,
        " for a tensor of shape ", t.shape(), "; got ", axis);
  return axis < 0 ? axis + n : axis;
}

Shape resolve(const Tensor& t, Shape s) {
  int64_t known = 1, unknown = -1;
  for (int i = 0; i < s.ndim(); ++i) {
    if (s[i] == -1) {
      check(unknown < 0, "reshape: only one size may be -1; got ", s);
      unknown = i;
      continue;
    }
    check(s[i] >= 0, "reshape: sizes must be 0 or more, or one of them -1; got ", s);
    check(!__builtin_mul_overflow(known, s[i], &known), "reshape: ", s,
          " has more elements than fit 64 bits");
  }
  if (unknown >= 0) {
    check(known != 0, "reshape: -1 is ambiguous beside a size of 0; from ", t.shape(), " to ", s);
    check(t.numel() % known == 0, "reshape: ", t.numel(), " elements of ", t.shape(),
          " do not divide by ", known, "; asked for ", s);
    s[static_cast<int>(unknown)] = t.numel() / known;
  }
  check_sizes(s, size_of(t.dtype()));
  check(s.numel() == t.numel(), "reshape: the number of elements must stay; from ", t.shape(),
        " to ", s);
  return s;
}

// Strides of `t` seen as `s`, if no copy is needed: runs of axes that are dense together are
// matched from the last to the first.
bool view_strides(const Tensor& t, const Shape& s, Shape& strides) {
  if (t.numel() == 0) {
    strides = contiguous_strides(s);
    return true;
  }
  int from = t.ndim() - 1;
  int64_t run = 1,
          step = 1;  // elements of the current run not yet covered, stride of its last axis
  bool open = false;
  for (int to = s.ndim() - 1; to >= 0; --to) {
    if (s[to] == 1) {
      strides[to] = open ? step : 1;
      continue;
    }
    while (!open || run == 1) {
      while (from >= 0 && t.shape()[from] == 1) --from;
      run = t.shape()[from];
      step = t.strides()[from];
      for (--from; from >= 0; --from) {
        if (t.shape()[from] == 1) continue;
        if (t.strides()[from] != step * run) break;
        run *= t.shape()[from];
      }
      open = true;
    }
    if (run % s[to] != 0) return false;
    strides[to] = step;
    step *= s[to];
    run /= s[to];
    open = run > 1;
  }
  return true;
}

}  // namespace

int64_t Tensor::size(int axis) const { return shape()[checked_axis(*this, axis, "size")]; }

bool Tensor::is_contiguous() const {
  if (numel() == 0) return true;
  int64_t step = 1;
  for (int i = ndim() - 1; i >= 0; --i) {
    if (shape()[i] != 1 && strides()[i] != step) return false;
    step *= shape()[i];
  }
  return true;
}

Tensor Tensor::reshape(const Shape& asked) const {
  check_not_recorded(*this, "reshape");
  const Shape sizes = resolve(*this, asked);
  Shape strides = sizes;
  check(view_strides(*this, sizes, strides), "reshape: strides ", impl_->strides, " of ", shape(),
        " cannot be seen as ", sizes, " without a copy; call contiguous(x) first");
  return make_view(*this, sizes, strides, offset());
}

Tensor Tensor::transpose(int axis_a, int axis_b) const {
  check_not_recorded(*this, "transpose");
  const int a = checked_axis(*this, axis_a, "transpose"),
            b = checked_axis(*this, axis_b, "transpose");
  Shape sizes = shape(), s = strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(s[a], s[b]);
  return make_view(*this, sizes, s, offset());
}

Tensor Tensor::narrow(int axis, int64_t start, int64_t length, int64_t step) const {
  check_not_recorded(*this, "narrow");
  const int a = checked_axis(*this, axis, "narrow");
  const int64_t n = shape()[a];
  check(step >= 1, "narrow: step must be 1 or more; got ", step);
  const bool inside = length == 0 ? start <= n : start < n && length - 1 <= (n - 1 - start) / step;
  check(start >= 0 && length >= 0 && inside, "narrow: elements ", start, " to ", start, " + (",
        length, " - 1) * ", step, " must lie in axis ", a, " of ", shape());
  Shape sizes = shape(), s = strides();
  sizes[a] = length;
  const int64_t moved = length ? start * s[a] : 0;
  if (length > 1) s[a] *= step;
  return make_view(*this, sizes, s, offset() + moved);
}

Tensor Tensor::expand(const Shape& asked) const {
  check_not_recorded(*this, "expand");
  check(asked.ndim() >= ndim(), "expand: ", asked, " has fewer axes than ", shape());
  Shape s = asked;
  for (int i = 1; i <= asked.ndim(); ++i) {
    const int64_t have = i <= ndim() ? shape()[-i] : 1;
    check(asked[-i] == have || have == 1, "expand: only axes of size 1 repeat; from ", shape(),
          " to ", asked);
    s[-i] = have == asked[-i] && i <= ndim() ? strides()[-i] : 0;
  }
  check_sizes(asked, size_of(dtype()));
  return make_view(*this, asked, s, offset());
}

}  // namespace tally
