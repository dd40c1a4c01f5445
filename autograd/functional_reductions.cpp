#include "autograd/functional_basic.h"
#include "autograd/tape.h"
#include "core/ops/cumsum.h"
#include "core/ops/reductions.h"
#include "core/ops/softmax.h"
#include "core/ops/top_k.h"

namespace tally {

Tensor sum(const Tensor& x, const Shape& axes, bool keepdim) {
  return apply<ops::Sum>({axes, keepdim}, x);
}
Tensor mean(const Tensor& x, const Shape& axes, bool keepdim) {
  return apply<ops::Mean>({axes, keepdim}, x);
}
Tensor amax(const Tensor& x, const Shape& axes, bool keepdim) {
  return apply<ops::AMax>({axes, keepdim}, x);
}
Tensor amin(const Tensor& x, const Shape& axes, bool keepdim) {
  return apply<ops::AMin>({axes, keepdim}, x);
}
Tensor norm(const Tensor& x, const Shape& axes, bool keepdim) {
  return apply<ops::Norm>({axes, keepdim}, x);
}
Tensor logsumexp(const Tensor& x, const Shape& axes, bool keepdim) {
  return apply<ops::LogSumExp>({axes, keepdim}, x);
}
Tensor var(const Tensor& x, const Shape& axes, bool keepdim, bool unbiased) {
  return apply<ops::Var>({axes, keepdim, unbiased ? 1.0 : 0.0}, x);
}
Tensor cumsum(const Tensor& x, int axis) { return apply<ops::CumSum>({axis}, x); }
Tensor softmax(const Tensor& x, const Tensor& mask, double scale) {
  return apply<ops::Softmax>({scale}, x, mask);
}
Tensor log_softmax(const Tensor& x, const Tensor& mask, double scale) {
  return apply<ops::LogSoftmax>({scale}, x, mask);
}
std::array<Tensor, 2> top_k(const Tensor& x, int64_t k) { return apply<ops::TopK>({k}, x); }

}  // namespace tally
