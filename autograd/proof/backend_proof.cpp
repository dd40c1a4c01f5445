// The backend proof: a fast device against the reference, within what rounding can do.
#include <algorithm>
#include <limits>

#include "autograd/proof/proof.h"

namespace tally {
namespace {

using Tensors = std::vector<Tensor>;

class RoundingScope {
 public:
  explicit RoundingScope(DType dtype) : outer_(rounding()) { rounding() = rounding_of(dtype); }
  ~RoundingScope() { rounding() = outer_; }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  Rounding outer_;
};

// The numbers of `exact`, which has the type of a run, on another device or in another type.
Tensor same_numbers(const Tensor& exact, SampleInput like, DType dtype, Device device) {
  if (!exact.defined()) return {};
  like.shape = exact.shape();
  like.values = to_doubles(exact);
  return make_input(like, dtype, device);
}

struct Element {
  double fast, reference, value, error;  // `error` bounds |reference - value| and |fast - value|
};

// The quotient of difference and limit.
double judge(const Element& e, double largest, double tiny) {
  if (std::isnan(e.fast) && std::isnan(e.reference)) return 0;
  if (e.fast == e.reference) return 0;
  const bool overflow = std::fabs(e.value) + e.error >= largest;
  if (!std::isfinite(e.fast) || !std::isfinite(e.reference)) return overflow ? 0 : INFINITY;
  const double apart = std::fabs(e.fast - e.reference) / (2 * e.error + tiny);
  const double off = std::fabs(e.reference - e.value) / (e.error + tiny);
  return overflow ? apart : std::max(apart, off);
}

std::vector<Element> elements(const Tensor& fast, const Tensor& reference, const Tensor& rounded) {
  const auto a = to_doubles(fast), b = to_doubles(reference);
  std::vector<Element> out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back({a[i], b[i], b[i], 0});
  size_t i = 0;
  const auto put = [&](double v, double error) {
    out[i].value = v;
    out[i++].error = error;
  };
  if (rounded.dtype() == DType::rounded) {
    detail::each_element<Rounded>(View(rounded), [&](const Rounded& x) { put(x.v, x.error()); });
  } else if (rounded.dtype() == DType::rounded_half) {
    detail::each_element<RoundedHalf>(View(rounded),
                                      [&](const RoundedHalf& x) { put(x.v, x.inherited); });
  }
  return out;
}

// Distance of `x` from the next number of its type: one unit in the last place.
double unit_in_the_last_place(double x, DType dtype) {
  const int digits = dtype == DType::f64 ? 53 : dtype == DType::bf16 ? 8 : 24;
  const int least = dtype == DType::f64 ? -1022 : -126;  // exponent of the smallest normal number
  const int exponent = x == 0 ? least : std::max(std::ilogb(x), least);
  return std::ldexp(1, exponent - digits + 1);
}

void compare(ProofResult& r, const std::string& what, const Tensor& fast, const Tensor& reference,
             const Tensor& rounded, DType dtype) {
  if (fast.defined() != reference.defined() ||
      (fast.defined() && fast.shape() != reference.shape())) {
    r.error = INFINITY;
    r.note = what + ": one device gives a tensor, the other none or one of another shape";
    return;
  }
  if (!fast.defined()) return;
  const double largest =
      dtype == DType::f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const auto list = elements(fast, reference, rounded);
  // Of the largest number: beside it, what is left of terms that cancel has no digits of its own.
  double scale = 0;
  for (const Element& e : list) {
    if (std::isfinite(e.reference)) scale = std::max(scale, std::fabs(e.reference));
  }
  const double unit = unit_in_the_last_place(scale, fast.dtype());
  for (size_t i = 0; i < list.size(); ++i) {
    const double quotient = judge(list[i], largest, rounding().tiny);
    const double apart = std::fabs(list[i].fast - list[i].reference);
    if (std::isfinite(apart)) r.ulp = std::max(r.ulp, apart / unit);
    if (!(quotient > r.error)) continue;
    r.error = quotient;
    r.note = what + ", element " + to_text(i) + ": " + to_text(list[i].fast) + ", reference " +
             to_text(list[i].reference) + ", in float64 " + to_text(list[i].value) +
             ", rounding may do " + to_text(list[i].error);
  }
}

}  // namespace

Rounding rounding_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {0x1p-24, 0, 0x1p-126};
    case DType::f64:
      return {0x1p-53, 0, 0x1p-1022};
    case DType::bf16:
      return {0x1p-24, 0x1p-8, 0x1p-126};
    default:
      fail("rounding_of: nothing is computed in ", dtype);
  }
}

ProofResult prove_backend(const Sample& s, Device device, DType dtype, const Arrange& arrange) {
  ProofResult r;
  r.op = s.op;
  r.sample = s.name;
  r.bound = 1;
  if (skips_narrow(s, dtype, r)) return r;
  const RoundingScope scope(dtype);
  const DType rounded_type = dtype == DType::bf16 ? DType::rounded_half : DType::rounded;
  const Tensors inputs = make_inputs(s, dtype, kReference);
  const SampleRun reference = run_sample(s, inputs);
  Tensors there, rounded_inputs, upstream_there, rounded_upstream;
  for (size_t i = 0; i < inputs.size(); ++i) {
    there.push_back(same_numbers(inputs[i], s.inputs[i], dtype, device));
    rounded_inputs.push_back(same_numbers(inputs[i], s.inputs[i], rounded_type, kReference));
  }
  // An output may have a type of its own (statistics, casts): its gradient has the same.
  const Tensors rounded_outputs = s.by_hand ? s.by_hand(rounded_inputs).outputs : Tensors{};
  for (size_t i = 0; i < reference.upstream.size(); ++i) {
    const Tensor& dy = reference.upstream[i];
    upstream_there.push_back(dy.defined() ? same_numbers(dy, {}, dy.dtype(), device) : Tensor());
    rounded_upstream.push_back(
        dy.defined() ? same_numbers(dy, {}, rounded_outputs[i].dtype(), kReference) : Tensor());
  }
  int place = 0;
  for (Tensors* list : {&there, &upstream_there}) {
    for (Tensor& t : *list) {
      if (arrange && t.defined()) t = arrange(t, place);
      ++place;
    }
  }
  const SampleRun fast = run_sample(s, there, upstream_there);
  const SampleRun rounded = run_sample(s, rounded_inputs, rounded_upstream);
  for (size_t i = 0; i < fast.outputs.size(); ++i) {
    compare(r, "output " + to_text(i), fast.outputs[i], reference.outputs[i], rounded.outputs[i],
            dtype);
  }
  for (size_t i = 0; i < fast.gradients.size(); ++i) {
    compare(r, "gradient of input " + to_text(i), fast.gradients[i], reference.gradients[i],
            rounded.gradients[i], dtype);
  }
  return r;
}

}  // namespace tally
