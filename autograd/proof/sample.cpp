#include "autograd/proof/sample.h"

#include <algorithm>

#include "autograd/proof/proof_kernels.h"
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

SampleInput type_alone() {
  SampleInput input = constant(values({1}, {0}));
  input.type_alone = true;
  return input;
}

SampleInput accumulating(SampleInput input) {
  input.accumulator = true;
  return input;
}

const char* name_of(Layout layout) {
  static const char* const names[] = {
      "dense",      "rows apart", "every second row", "every second column",
      "transposed", "turned",     "repeated"};
  return names[static_cast<int>(layout)];
}

bool can_lie(const Shape& shape, Layout layout) {
  switch (layout) {
    case Layout::dense:
      return true;
    case Layout::transposed:
      return shape.ndim() >= 2;
    case Layout::turned:
      return shape.ndim() >= 3;
    default:
      return shape.ndim() >= 1;
  }
}

SampleInput laid_out(SampleInput input, Layout layout) {
  check(input.present && can_lie(input.shape, layout), "laid_out: no ", name_of(layout), " of ",
        input.shape);
  input.layout = layout;
  if (layout != Layout::repeated || input.values.empty()) return input;
  const size_t row = input.values.size() / static_cast<size_t>(input.shape[0]);
  for (size_t i = row; i < input.values.size(); ++i) input.values[i] = input.values[i - row];
  return input;
}

namespace {

Shape resized(Shape s, int axis, int64_t size) {
  s[axis] = size;
  return s;
}
Shape swapped(Shape s, int a, int b) {
  std::swap(s[a], s[b]);
  return s;
}

// A tensor of `shape` that lies so; its numbers are not set.
Tensor lying(const Shape& shape, Layout layout, DType dtype, Device device) {
  const auto base = [&](const Shape& s) { return empty(s, dtype, device); };
  switch (layout) {
    case Layout::dense:
      break;
    case Layout::rows_apart:
      return base(resized(shape, -1, shape[-1] + 3)).narrow(-1, 2, shape[-1]);
    case Layout::every_second_row:
      return base(resized(shape, 0, 2 * shape[0])).narrow(0, 0, shape[0], 2);
    case Layout::every_second_column:
      return base(resized(shape, -1, 2 * shape[-1])).narrow(-1, 0, shape[-1], 2);
    case Layout::transposed:
      return base(swapped(shape, -1, -2)).transpose(-1, -2);
    case Layout::turned:
      return base(swapped(shape, 0, 1)).transpose(0, 1);
    case Layout::repeated:
      return base(resized(shape, 0, std::min<int64_t>(shape[0], 1))).expand(shape);
  }
  return base(shape);
}

template <class T>
T exactly(double v) {
  if constexpr (std::is_same_v<T, bf16>)
    return bf16(static_cast<float>(v));
  else if constexpr (std::is_same_v<T, Rounded>)
    return Rounded::term(v, 0);
  else if constexpr (std::is_same_v<T, RoundedHalf>)
    return RoundedHalf::exact(v);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<int64_t>(v));  // -1 as the byte 255
  else
    return static_cast<T>(v);
}

}  // namespace

Tensor make_input(const SampleInput& input, DType dtype, Device device) {
  if (!input.present) return {};
  if (input.accumulator) dtype = acc_dtype(dtype);
  if (!is_floating(input.dtype)) dtype = input.dtype;
  const auto build = [&]<class T>(std::type_identity<T>) {
    Tensor t = lying(input.shape, input.layout, dtype, device);
    if (backend(device).is_meta() || t.numel() == 0) return t;
    // What lies around a view is no number: whoever reads it shows.
    std::vector<T> data(t.storage().bytes() / sizeof(T), exactly<T>(is_floating(dtype) ? NAN : -1));
    View view(t);
    view.data = data.data() + t.offset();
    const double* next = input.values.data();
    detail::each_element<T>(view, [&](T& x) { x = exactly<T>(*next++); });
    backend(device).copy_from_host(t.storage().data(), data.data(), t.storage().bytes());
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
