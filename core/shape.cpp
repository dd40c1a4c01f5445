#include "core/shape.h"

#include <algorithm>

namespace tally {

std::string Shape::to_text(std::string_view axes) const {
  std::string text = "(";
  for (int i = 0; i < ndim_; ++i) {
    if (i) text += ", ";
    if (static_cast<int>(axes.size()) == ndim_) {
      text += axes[static_cast<size_t>(i)];
      text += " = ";
    }
    text += std::to_string((*this)[i]);
  }
  return text + ")";
}

Shape contiguous_strides(const Shape& sizes) {
  Shape strides = sizes;
  int64_t step = 1;
  for (int i = sizes.ndim() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

void check_sizes(const Shape& sizes, size_t element_size) {
  int64_t n = static_cast<int64_t>(element_size);
  bool empty = false, fits = true;
  for (int i = 0; i < sizes.ndim(); ++i) {
    check(sizes[i] >= 0, "shape: sizes must not be negative; got ", sizes);
    if (sizes[i] == 0)
      empty = true;
    else
      fits = fits && !__builtin_mul_overflow(n, sizes[i], &n);
  }
  check(empty || (fits && n <= (int64_t{1} << 56)), "shape: ", sizes,
        " needs more bytes than any machine has; check the sizes");
  check(fits, "shape: the product of the sizes other than 0 must fit 64 bits; got ", sizes);
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  const int n = std::max(a.ndim(), b.ndim());
  Shape out = a.ndim() >= b.ndim() ? a : b;
  for (int i = 1; i <= n; ++i) {
    const int64_t x = i <= a.ndim() ? a[-i] : 1, y = i <= b.ndim() ? b[-i] : 1;
    check(x == y || x == 1 || y == 1, op,
          ": shapes must be equal or 1 on each axis counted from the last; got ", a, " and ", b,
          "; reshape one of them");
    out[-i] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace tally
