#include "core/op.h"

namespace tally {

void SavedTensor::changed() const {
  fail(saved_by_, ": a tensor ", tensor_.shape(), " that it saved for the backward pass was changed in place; saved at version ",
       version_, ", now at version ", tensor_.storage().version(), ", last written by ", tensor_.storage().writer(),
       in_module(), "; run backward before changing it, or work on a copy");
}

}  // namespace tally
