#include "autograd/functional_basic.h"
#include "autograd/tape.h"
#include "core/ops/clip.h"
#include "core/ops/elementwise.h"
#include "core/ops/functions.h"
#include "core/ops/where.h"

namespace tally {

Tensor add(const Tensor& a, const Tensor& b) { return apply<ops::Add>({}, a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return apply<ops::Sub>({}, a, b); }
Tensor mul(const Tensor& a, const Tensor& b) { return apply<ops::Mul>({}, a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return apply<ops::Div>({}, a, b); }
Tensor maximum(const Tensor& a, const Tensor& b) { return apply<ops::Maximum>({}, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return apply<ops::Minimum>({}, a, b); }
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return apply<ops::Where>({}, condition, a, b);
}
Tensor scale(const Tensor& x, double factor) { return apply<ops::Scale>({factor}, x); }
Tensor add(const Tensor& x, double number) { return apply<ops::AddScalar>({number}, x); }
Tensor neg(const Tensor& x) { return apply<ops::Neg>({}, x); }
Tensor abs(const Tensor& x) { return apply<ops::Abs>({}, x); }
Tensor exp(const Tensor& x) { return apply<ops::Exp>({}, x); }
Tensor log(const Tensor& x) { return apply<ops::Log>({}, x); }
Tensor sqrt(const Tensor& x) { return apply<ops::Sqrt>({}, x); }
Tensor rsqrt(const Tensor& x) { return apply<ops::Rsqrt>({}, x); }
Tensor reciprocal(const Tensor& x) { return apply<ops::Reciprocal>({}, x); }
Tensor square(const Tensor& x) { return apply<ops::Square>({}, x); }
Tensor pow(const Tensor& x, double exponent) { return apply<ops::Pow>({exponent}, x); }
Tensor sin(const Tensor& x) { return apply<ops::Sin>({}, x); }
Tensor cos(const Tensor& x) { return apply<ops::Cos>({}, x); }
Tensor erf(const Tensor& x) { return apply<ops::Erf>({}, x); }
Tensor clamp(const Tensor& x, double low, double high) { return apply<ops::Clamp>({low, high}, x); }

}  // namespace tally
