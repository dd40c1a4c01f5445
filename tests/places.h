#pragma once
// Where the same few numbers must come out: the loops that define an op, and the CPU's kernels.
#include <vector>

#include "autograd/proof/sample.h"
#include "core/device.h"

namespace tally {

struct Place {
  Device device = kReference;
  DType dtype = DType::f64;
  double bound = 1e-9;  // relative: what is asked of this element type
};

inline std::vector<Place> places() {
  return {{}, {kReference, DType::f32, 1e-6}, {kCPU, DType::f32, 1e-6}};
}

/// Numbers as a tensor there.
inline Tensor given(const Place& place, std::vector<double> numbers, const Shape& shape) {
  return make_input(values(shape, std::move(numbers)), place.dtype, place.device);
}

}  // namespace tally
