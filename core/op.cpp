#include "core/op.h"

namespace tally {

void SavedTensor::changed() const {
  fail(saved_by_, ": a tensor ", tensor_.shape(),
       " that it saved for the backward pass was changed in place; saved at version ", version_,
       ", now at version ", tensor_.storage().version(), ", last written by ",
       tensor_.storage().writer(), in_module(),
       "; run backward before changing it, or work on a copy");
}

void check_upstream(const char* op, const Tensor& dy, const Shape& shape) {
  check(dy.defined(), op, ": the gradient of the output is missing (undefined tensor)",
        in_module());
  check(dy.shape() == shape, op, ": the gradient of the output must have the output's shape ",
        shape, "; got ", dy.shape(), in_module());
}
void check_upstream(const char* op, const Tensor& dy, const Shape& shape, DType dtype) {
  check_upstream(op, dy, shape);
  check(dy.dtype() == dtype, op, ": the gradient of the output must hold the output's type ", dtype,
        "; got ", dy.dtype(), in_module());
}
void check_upstream(const char* op, const Tensor& dy, const Like& output) {
  check_upstream(op, dy, output.shape, output.dtype);
  check_device(op, dy, output.device);
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
