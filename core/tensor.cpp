#include "core/tensor.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/program.h"
#include "core/recorder.h"
#include "core/recycle.h"

namespace tally {
namespace {

thread_local constinit FreeList<sizeof(Tensor::Impl)> t_headers;

void drain_at_exit() {
  struct Drain {
    ~Drain() { t_headers.drain(); }
  };
  thread_local const Drain drain;
}

// What the host writes is a constant of a program that is being captured.
void note_host_write(const Tensor& t, const void* values, const char* what) {
  t.storage().note_write(what);
  if (Program* program = recorder().program) [[unlikely]]
    program->add_bytes(t.storage(), t.data(), values, t.nbytes());
}

void note_fill(const Tensor& t) {
  t.storage().note_write("full");
  Program* program = recorder().program;
  if (!program) return;
  std::vector<std::byte> image(t.nbytes());
  Backend& b = backend(t.device());
  if (!b.is_meta()) b.copy_to_host(image.data(), t.data(), image.size());
  program->add_bytes(t.storage(), t.data(), image.data(), image.size());
}

}  // namespace

void Tensor::release() {
  if (!impl_) return;
  // The only owner need not pay for an atomic subtraction: nobody else can add a reference.
  const bool alone = impl_->references.load(std::memory_order_acquire) == 1;
  if (!alone && impl_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  impl_->storage->release();
  impl_->~Impl();
  t_headers.give(impl_, drain_at_exit);
}

void Tensor::undefined() {
  fail("tensor: an undefined tensor has no shape, type or values", in_module(),
       "; it stands for an absent input or gradient: ask defined() first");
}

Tensor make_view(const Tensor& base, const Shape& sizes, const Shape& strides, int64_t offset) {
  auto* p =
      new (t_headers.take()) Tensor::Impl(base.storage(), sizes, strides, offset, base.dtype());
  base.storage().retain();
  return Tensor(p);
}

Tensor empty(const Shape& shape, DType dtype, Device device) {
  check_sizes(shape, size_of(dtype));
  Storage* storage = Storage::create(device, static_cast<size_t>(shape.numel()) * size_of(dtype));
  return Tensor(new (t_headers.take())
                    Tensor::Impl(*storage, shape, contiguous_strides(shape), 0, dtype));
}

Tensor empty_like(const Tensor& t) { return empty(t.shape(), t.dtype(), t.device()); }

Tensor zeros(const Shape& shape, DType dtype, Device device) {
  Tensor t = empty(shape, dtype, device);
  if (!backend(device).is_meta()) backend(device).zero(t.data(), t.nbytes());
  note_host_write(t, nullptr, "zeros");
  return t;
}

Tensor full(const Shape& shape, double value, DType dtype, Device device) {
  Tensor t = empty(shape, dtype, device);
  const auto fill = [&]<class T>(T v) {
    if (backend(device).is_meta()) return;
    std::array<T, 256> values;  // copied piece by piece: no second tensor in host memory
    values.fill(v);
    auto* to = static_cast<std::byte*>(t.data());
    for (size_t left = t.nbytes(), bytes = 0; left > 0; left -= bytes, to += bytes) {
      bytes = std::min(left, sizeof(values));
      backend(device).copy_from_host(to, values.data(), bytes);
    }
  };
  switch (dtype) {
    case DType::f32:
      fill(static_cast<float>(value));
      break;
    case DType::f64:
      fill(value);
      break;
    case DType::bf16:
      fill(bf16(static_cast<float>(value)));
      break;
    case DType::f16:
      fill(f16(static_cast<float>(value)));
      break;
    case DType::i64:
      fill(static_cast<int64_t>(value));
      break;
    case DType::u8:
      fill(static_cast<uint8_t>(value));
      break;
    default:
      fail("full: not for the proof types; got ", dtype);
  }
  note_fill(t);
  return t;
}

template <class T>
Tensor from_host(std::span<const T> values, const Shape& shape, Device device) {
  Tensor t = empty(shape, dtype_of<T>, device);
  check(static_cast<int64_t>(values.size()) == t.numel(), "from_host: ", shape, " needs ",
        t.numel(), " values; got ", values.size());
  if (!backend(device).is_meta())
    backend(device).copy_from_host(t.data(), values.data(), t.nbytes());
  note_host_write(t, values.data(), "from_host");
  return t;
}

template <class T>
std::vector<T> to_host(const Tensor& t) {
  check(t.defined(), "to_host: the tensor is undefined");
  check(!recorder().program,
        "to_host: a step is being captured, and what the host does with its numbers would not be "
        "done again; read them after the capture (Program::output)",
        in_module());
  check(t.dtype() == dtype_of<T>, "to_host: the tensor holds ", t.dtype(), ", asked for ",
        dtype_of<T>);
  check(t.is_contiguous(), "to_host: the tensor must be contiguous; call contiguous(x) first");
  check(!backend(t.device()).is_meta(), "to_host: a tensor on meta has a shape and no values");
  std::vector<T> values(static_cast<size_t>(t.numel()));
  backend(t.device()).copy_to_host(values.data(), t.data(), t.nbytes());
  return values;
}

template Tensor from_host(std::span<const float>, const Shape&, Device);
template Tensor from_host(std::span<const double>, const Shape&, Device);
template Tensor from_host(std::span<const bf16>, const Shape&, Device);
template Tensor from_host(std::span<const f16>, const Shape&, Device);
template Tensor from_host(std::span<const int64_t>, const Shape&, Device);
template Tensor from_host(std::span<const uint8_t>, const Shape&, Device);
template std::vector<float> to_host(const Tensor&);
template std::vector<double> to_host(const Tensor&);
template std::vector<bf16> to_host(const Tensor&);
template std::vector<f16> to_host(const Tensor&);
template std::vector<int64_t> to_host(const Tensor&);
template std::vector<uint8_t> to_host(const Tensor&);

Tensor Tensor::detach() const { return make_view(*this, shape(), strides(), offset()); }

Tensor& Tensor::requires_grad_(bool on) {
  check(defined(), "requires_grad_: the tensor is undefined");
  check(!on || is_floating(dtype()),
        "requires_grad_: only floating-point tensors have gradients; this one holds ", dtype());
  const Recorder& r = recorder();
  const bool computed = r.tape && impl_->tape == r.tape->number && !impl_->requires_grad;
  check(!on || !computed, "requires_grad_: this tensor ", shape(),
        " was computed on the open tape, and only leaves keep a gradient; use detach() to make a "
        "leaf of its values");
  impl_->requires_grad = on;
  return *this;
}

Tensor Tensor::grad() const { return checked().grad; }

void Tensor::set_grad(Tensor gradient) {
  check(!gradient.defined() || gradient.shape() == shape(),
        "set_grad: the gradient must have the tensor's shape ", shape(), "; got ",
        gradient.defined() ? gradient.shape() : Shape{});
  check(!gradient.defined() || gradient.dtype() == dtype(),
        "set_grad: the gradient must hold the tensor's type ", dtype(), "; got ",
        gradient.defined() ? gradient.dtype() : dtype());
  impl_->grad = std::move(gradient);
}

bool Tensor::exclusively_owned() const {
  return impl_ && impl_->references.load(std::memory_order_acquire) == 1 &&
         storage().references() == 1;
}

void Tensor::check_host(DType wanted) const {
  check(defined(), "host: the tensor is undefined");
  check(dtype() == wanted, "host: the tensor holds ", dtype(), ", asked for ", wanted);
  check(backend(device()).host_memory(), "host: the tensor is on ", device(),
        "; copy it with to_host<T>(x)");
  check(is_contiguous(), "host: the tensor must be contiguous; call contiguous(x) first");
}

double Tensor::item() const {
  check(defined() && numel() == 1, "item: the tensor must have one element; it has shape ",
        defined() ? shape() : Shape{0});
  const Tensor flat = detach().reshape({1});
  switch (dtype()) {
    case DType::f32:
      return static_cast<double>(to_host<float>(flat)[0]);
    case DType::f64:
      return to_host<double>(flat)[0];
    case DType::bf16:
      return static_cast<double>(static_cast<float>(to_host<bf16>(flat)[0]));
    case DType::f16:
      return static_cast<double>(static_cast<float>(to_host<f16>(flat)[0]));
    case DType::i64:
      return static_cast<double>(to_host<int64_t>(flat)[0]);
    case DType::u8:
      return static_cast<double>(to_host<uint8_t>(flat)[0]);
    default:
      fail("item: not for the proof types; got ", dtype());
  }
}

}  // namespace tally
