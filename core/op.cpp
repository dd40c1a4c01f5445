#include "core/op.h"

namespace tally {

void SavedTensor::changed() const {
  fail(saved_by_, ": a tensor ", tensor_.shape(),
       " that it saved for the backward pass was changed in place; saved at version ", version_,
       ", now at version ", tensor_.storage().version(), ", last written by ",
       tensor_.storage().writer(), in_module(),
       "; run backward before changing it, or work on a copy");
}

void detail::check_target(int input, const Tensor& target, const Shape& shape, DType dtype,
                          Device device) {
  check(target.shape() == shape, "backward: the target for the gradient of input ", input,
        " must have its shape ", shape, "; got ", target.shape(), in_module());
  check(target.dtype() == dtype, "backward: the target for the gradient of input ", input,
        " must hold its type ", dtype, "; got ", target.dtype(), in_module());
  check(target.device() == device, "backward: the target for the gradient of input ", input,
        " must be on ", device, "; got ", target.device(), in_module());
}

}  // namespace tally
