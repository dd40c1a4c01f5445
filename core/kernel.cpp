#include "core/kernel.h"

namespace tally::detail {

void check_views(const char* call, Device device, std::span<const View* const> views,
                 bool any_strides) {
  for (size_t i = 0; i < views.size(); ++i) {
    const View& v = *views[i];
    if (!v.defined()) continue;
    if (v.device != device) [[unlikely]] {
      fail(call, ": all tensors must be on one device; view ", i, " ", v.shape, " is on ", v.device,
           ", the call runs on ", device, in_module(), "; move it with to(x, device)");
    }
    if (!any_strides && !v.is_rows() && v.numel() > 0) [[unlikely]] {
      fail(call, ": rows of the last axis must be dense and evenly spaced; view ", i, " has shape ",
           v.shape, " and strides ", v.strides, in_module(), "; call contiguous(x) first");
    }
  }
}

void check_no_overlap(const char* call, const View& out) {
  int64_t reached = 1;  // elements from the first to the last of the axes seen so far
  Shape sizes = out.shape, strides = out.strides;
  for (int done = 0; done < sizes.ndim(); ++done) {  // axes from the smallest stride up
    int next = -1;
    for (int i = 0; i < sizes.ndim(); ++i) {
      if (sizes[i] == 0) return;
      if (sizes[i] > 1 && (next < 0 || strides[i] < strides[next])) next = i;
    }
    if (next < 0) return;
    check(strides[next] >= reached, call, ": an output must not overlap itself; it has shape ",
          out.shape, " and strides ", out.strides, in_module(),
          "; an expanded tensor cannot be written to");
    reached = strides[next] * (sizes[next] - 1) + reached;
    sizes[next] = 1;
  }
}

void no_kernel(const char* call, Device device, DType dtype) {
  fail(
      call, ": no kernel for ", dtype, " on ", device, in_module(),
      "; register one in kernels<Call>, or call tally::register_all() at the start of the program");
}

}  // namespace tally::detail
