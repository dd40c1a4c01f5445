#include "autograd/proof/sample.h"

#include "autograd/proof/rounded.h"
#include "autograd/proof/scalars.h"
#include "autograd/samples/all.h"
#include "core/random.h"

namespace tally {

SampleInput normal(const Shape& shape, uint64_t seed, double scale, double shift) {
  SampleInput in;
  in.shape = shape;
  for (int64_t i = 0; i < shape.numel(); ++i)
    in.values.push_back(shift + scale * normal_at(seed, 0, static_cast<uint64_t>(i)));
  return in;
}

SampleInput values(const Shape& shape, std::vector<double> numbers) {
  check(static_cast<int64_t>(numbers.size()) == shape.numel(), "values: ", shape, " needs ",
        shape.numel(), " numbers; got ", numbers.size());
  SampleInput in;
  in.shape = shape;
  in.values = std::move(numbers);
  return in;
}

SampleInput indices(const Shape& shape, uint64_t seed, int64_t limit) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < shape.numel(); ++i) {
    numbers.push_back(
        std::floor(uniform_at(seed, 1, static_cast<uint64_t>(i)) * static_cast<double>(limit)));
  }
  return indices(shape, std::move(numbers));
}

SampleInput indices(const Shape& shape, std::vector<double> numbers) {
  SampleInput in = values(shape, std::move(numbers));
  in.dtype = DType::i64;
  in.differentiable = false;
  return in;
}

SampleInput flags(const Shape& shape, std::vector<double> numbers) {
  SampleInput in = indices(shape, std::move(numbers));
  in.dtype = DType::u8;
  return in;
}

SampleInput absent() {
  SampleInput in;
  in.present = in.differentiable = false;
  return in;
}

SampleInput constant(SampleInput input) {
  input.differentiable = false;
  return input;
}

SampleInput accumulating(SampleInput input) {
  input.accumulator = true;
  return input;
}

namespace {

template <class T>
T exactly(double v) {
  if constexpr (std::is_same_v<T, bf16>)
    return bf16(static_cast<float>(v));
  else if constexpr (std::is_same_v<T, Rounded>)
    return Rounded::term(v, 0);
  else if constexpr (std::is_same_v<T, RoundedHalf>)
    return RoundedHalf::exact(v);
  else
    return static_cast<T>(v);
}

}  // namespace

Tensor make_input(const SampleInput& input, DType dtype, Device device) {
  if (!input.present) return {};
  if (input.accumulator) dtype = acc_dtype(dtype);
  if (!is_floating(input.dtype)) dtype = input.dtype;
  const auto build = [&]<class T>(std::type_identity<T>) {
    std::vector<T> data;
    for (double v : input.values) data.push_back(exactly<T>(v));
    Tensor t = empty(input.shape, dtype, device);
    if (!backend(device).is_meta())
      backend(device).copy_from_host(t.data(), data.data(), t.nbytes());
    return t;
  };
  switch (dtype) {
    case DType::f32:
      return build(std::type_identity<float>{});
    case DType::f64:
      return build(std::type_identity<double>{});
    case DType::bf16:
      return build(std::type_identity<bf16>{});
    case DType::i64:
      return build(std::type_identity<int64_t>{});
    case DType::u8:
      return build(std::type_identity<uint8_t>{});
    case DType::dual:
      return build(std::type_identity<Dual>{});
    case DType::counted:
      return build(std::type_identity<Counted>{});
    case DType::counted_half:
      return build(std::type_identity<CountedHalf>{});
    case DType::rounded:
      return build(std::type_identity<Rounded>{});
    case DType::rounded_half:
      return build(std::type_identity<RoundedHalf>{});
    case DType::f16:
      break;
  }
  fail("make_input: samples are not made in f16, a storage type");
}

std::vector<Sample> core_samples() {
  std::vector<Sample> all;
  for (const auto& group : samples::all()) all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace tally
