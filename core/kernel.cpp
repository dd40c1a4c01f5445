#include "core/kernel.h"

namespace tally::detail {

void check_views(const char* call, Device device, std::span<const View* const> views, bool any_strides) {
  for (size_t i = 0; i < views.size(); ++i) {
    const View& v = *views[i];
    if (!v.defined()) continue;
    if (v.device != device) [[unlikely]] {
      fail(call, ": all tensors must be on one device; view ", i, " ", v.shape, " is on ", v.device, ", the call runs on ",
           device, in_module(), "; move it with to(x, device)");
    }
    if (!any_strides && !v.is_rows() && v.numel() > 0) [[unlikely]] {
      fail(call, ": rows of the last axis must be dense and evenly spaced; view ", i, " has shape ", v.shape,
           " and strides ", v.strides, in_module(), "; call contiguous(x) first");
    }
  }
}

void no_kernel(const char* call, Device device, DType dtype) {
  fail(call, ": no kernel for ", dtype, " on ", device, in_module(),
       "; register one in kernels<Call>, or call tally::register_all() at the start of the program");
}

}  // namespace tally::detail
