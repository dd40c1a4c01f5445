// Tensors: sizes, views, element types, devices, and the memory behind them.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "autograd/functional.h"
#include "backends/register_all.h"
#include "core/host_backend.h"
#include "core/ops/accumulate.h"
#include "core/recycle.h"
#include "core/sanitizers.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

struct Setup {
  Setup() { register_all(); }
};

Tensor f32(const Shape& shape) { return zeros(shape, DType::f32, kReference); }
Tensor count_up(const Shape& shape) {
  std::vector<double> v(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i);
  return from_host<double>(v, shape, kReference);
}

}  // namespace

TEST_CASE_METHOD(Setup,
                 "tensor: sizes that no machine has are refused before anything is allocated",
                 "[tensor][error][F38]") {
  CHECK_THROWS_WITH(f32({2, -3}), Contains("sizes must not be negative; got (2, -3)"));
  CHECK_THROWS_WITH(f32({int64_t{1} << 40, int64_t{1} << 40}),
                    Contains("needs more bytes than any machine has"));
  CHECK_THROWS_WITH(f32({0, int64_t{1} << 62, 4}), Contains("must fit 64 bits"));
  CHECK_THROWS_WITH(f32({int64_t{1} << 62, 4, 0}), Contains("must fit 64 bits"));
  CHECK_THROWS_WITH(f32({1, 1, 1, 1, 1, 1, 1}), Contains("at most 6 axes; got 7"));
  CHECK(f32({0, 3}).numel() == 0);
  CHECK(f32({}).numel() == 1);
  CHECK(zeros({int64_t{1} << 40}, DType::f32, kMeta).nbytes() ==
        size_t{4} << 40);  // a shape costs nothing
}

TEST_CASE_METHOD(Setup,
                 "tensor: memory that the machine does not have is an error that says what to do",
                 "[tensor][error]") {
  if (kAddressSanitizer) return;  // which ends the program itself
  CHECK_THROWS_WITH(
      empty({int64_t{1} << 50}, DType::f64, kReference),
      Contains("reference: out of memory asking for") && Contains("use a smaller batch"));
}

TEST_CASE_METHOD(Setup, "reshape: keeps the elements, works out one size, refuses the rest",
                 "[tensor][error][F38]") {
  const Tensor six = count_up({6}), none = f32({0, 3}), other_none = f32({3, 0});
  CHECK(none.reshape({-1, 3}).shape() == Shape{0, 3});
  CHECK(six.reshape({2, -1}).shape() == Shape{2, 3});
  CHECK(six.reshape({3, 2}).reshape({-1}).shape() == Shape{6});
  CHECK(count_up({}).reshape({1, 1}).shape() == Shape{1, 1});
  CHECK(count_up({1}).reshape({}).shape() == Shape{});
  CHECK_THROWS_WITH(other_none.reshape({0, -1}),
                    Contains("-1 is ambiguous beside a size of 0; from (3, 0) to (0, -1)"));
  CHECK_THROWS_WITH(six.reshape({-1, -1}), Contains("only one size may be -1"));
  CHECK_THROWS_WITH(six.reshape({-2, 3}), Contains("sizes must be 0 or more"));
  CHECK_THROWS_WITH(six.reshape({4, -1}), Contains("6 elements of (6) do not divide by 4"));
  CHECK_THROWS_WITH(six.reshape({4, 2}),
                    Contains("the number of elements must stay; from (6) to (4, 2)"));
  CHECK_THROWS_WITH(six.reshape({-5945582035944100121, 1}), Contains("sizes must be 0 or more"));
  CHECK_THROWS_WITH(six.reshape({int64_t{1} << 62, int64_t{1} << 62}),
                    Contains("more elements than fit 64 bits"));
  CHECK_THROWS_WITH(none.reshape({0, int64_t{1} << 62, 4}), Contains("must fit 64 bits"));
  const Tensor turned = count_up({2, 3}).transpose(0, 1);
  CHECK_THROWS_WITH(turned.reshape({6}),
                    Contains("cannot be seen as (6) without a copy; call contiguous(x) first"));
  CHECK(turned.reshape({3, 1, 2}).strides() == Shape{1, 1, 3});
  CHECK(count_up({2, 3, 4}).narrow(1, 0, 2).reshape({2, 8}).strides() == Shape{12, 1});
}

TEST_CASE_METHOD(Setup, "narrow: takes what lies inside, with any step, and nothing else",
                 "[tensor][error]") {
  const Tensor t = count_up({5});
  const auto elements = [&](int64_t start, int64_t length, int64_t step) {
    return to_host<double>(contiguous(t.narrow(0, start, length, step)));
  };
  CHECK(elements(0, 3, 2) == std::vector<double>{0, 2, 4});
  CHECK(elements(1, 2, 3) == std::vector<double>{1, 4});
  CHECK(elements(4, 1, 9) == std::vector<double>{4});
  CHECK(elements(5, 0, 1).empty());
  CHECK(elements(4, 1, std::numeric_limits<int64_t>::max()) == std::vector<double>{4});
  for (int64_t step : {1, 2, 3, 100}) {  // one past the end, whatever the step
    CHECK_THROWS_WITH(t.narrow(0, 5, 1, step), Contains("narrow: elements 5 to"));
  }
  CHECK_THROWS_WITH(t.narrow(0, 1, 3, 2), Contains("must lie in axis 0 of (5)"));
  CHECK_THROWS_AS(t.narrow(0, -1, 1), Error);
  CHECK_THROWS_AS(t.narrow(0, 0, -1), Error);
  CHECK_THROWS_AS(t.narrow(0, 6, 0), Error);
  CHECK_THROWS_WITH(t.narrow(0, 0, 1, 0), Contains("step must be 1 or more; got 0"));
  CHECK_THROWS_WITH(t.narrow(1, 0, 1),
                    Contains("narrow: axis must be in -1..0 for a tensor of shape (5); got 1"));
  CHECK_THROWS_AS(t.narrow(0, std::numeric_limits<int64_t>::max(), 1), Error);
  CHECK_THROWS_AS(t.narrow(0, 1, std::numeric_limits<int64_t>::max()), Error);
}

TEST_CASE_METHOD(Setup, "tensor: axes that are not there are refused", "[tensor][error][F38]") {
  const Tensor t = count_up({2, 3});
  CHECK(t.size(-1) == 3);
  CHECK_THROWS_WITH(t.size(5),
                    Contains("size: axis must be in -2..1 for a tensor of shape (2, 3); got 5"));
  CHECK_THROWS_AS(t.size(-3), Error);
  CHECK_THROWS_AS(t.transpose(0, 2), Error);
  CHECK_THROWS_AS(count_up({}).size(0), Error);
}

TEST_CASE_METHOD(Setup, "expand: repeats axes of size 1 and refuses the rest", "[tensor][error]") {
  const Tensor t = count_up({3, 1});
  CHECK(t.expand({2, 3, 4}).strides() == Shape{0, 1, 0});
  CHECK(to_host<double>(contiguous(t.expand({3, 2}))) == std::vector<double>{0, 0, 1, 1, 2, 2});
  CHECK(t.expand({3, 0}).numel() == 0);
  CHECK_THROWS_WITH(t.expand({2, 1}),
                    Contains("only axes of size 1 repeat; from (3, 1) to (2, 1)"));
  CHECK_THROWS_WITH(t.expand({1}), Contains("has fewer axes than"));
  CHECK_THROWS_AS(t.expand({3, -1}), Error);
}

TEST_CASE_METHOD(Setup, "tensor: an output that overlaps itself is refused", "[tensor][error]") {
  const Tensor x = count_up({2, 3}), once = count_up({3});
  CHECK_THROWS_WITH(ops::Accumulate::into(once.expand({2, 3}), x),
                    Contains("accumulate: an output must not overlap itself") &&
                        Contains("an expanded tensor cannot be written to"));
  CHECK(to_host<double>(once) == std::vector<double>{0, 1, 2});
  const Tensor wide = count_up({2, 5});
  ops::Accumulate::into(wide.narrow(1, 1, 3), x);  // rows apart are no overlap
  CHECK(to_host<double>(wide) == std::vector<double>{0, 1, 3, 5, 4, 5, 9, 11, 13, 9});
}

TEST_CASE_METHOD(Setup, "tensor: an undefined one is an error, not a crash", "[tensor][error]") {
  const Tensor none;
  CHECK_FALSE(none.defined());
  CHECK_THROWS_WITH(none.shape(), Contains("an undefined tensor has no shape, type or values"));
  CHECK_THROWS_AS(none.numel(), Error);
  CHECK_THROWS_AS(none.dtype(), Error);
  CHECK_THROWS_AS(none.device(), Error);
  CHECK_THROWS_AS(none.data(), Error);
  CHECK_THROWS_AS(none.grad(), Error);
  CHECK_THROWS_AS(none.detach(), Error);
  CHECK_THROWS_AS(none.reshape({1}), Error);
  CHECK_THROWS_AS(none.transpose(0, 0), Error);
  CHECK_THROWS_AS(none.narrow(0, 0, 0), Error);
  CHECK_THROWS_AS(none.expand({1}), Error);
  CHECK_THROWS_AS(none.item(), Error);
  CHECK_THROWS_AS(none.is_contiguous(), Error);
  CHECK_THROWS_AS(Tensor().set_grad({}), Error);
  CHECK_THROWS_AS(to_host<float>(none), Error);
  CHECK_FALSE(none.exclusively_owned());
}

TEST_CASE_METHOD(Setup, "tensor: values leave by their own type from a dense tensor on the host",
                 "[tensor][error]") {
  const Tensor t = count_up({2, 2});
  CHECK(t.host<double>()[3] == 3);
  CHECK_THROWS_WITH(t.host<float>(), Contains("the tensor holds f64, asked for f32"));
  CHECK_THROWS_WITH(t.transpose(0, 1).host<double>(), Contains("must be contiguous"));
  CHECK_THROWS_WITH(zeros({2}, DType::f64, kMeta).host<double>(),
                    Contains("the tensor is on meta"));
  CHECK_THROWS_WITH(to_host<double>(zeros({2}, DType::f64, kMeta)),
                    Contains("has a shape and no values"));
  CHECK_THROWS_WITH(t.item(), Contains("must have one element; it has shape (2, 2)"));
  CHECK(count_up({2, 2}).narrow(0, 1, 1).narrow(1, 1, 1).item() == 3);
  CHECK(full({1, 1}, -7, DType::i64, kReference).item() == -7);
  CHECK(full({}, 0.5, DType::bf16, kReference).item() == 0.5);
  CHECK(full({}, 0.5, DType::f16, kReference).item() == 0.5);
  CHECK_THROWS_WITH(from_host<double>({1, 2, 3}, {2, 2}, kReference),
                    Contains("(2, 2) needs 4 values; got 3"));
  const auto many = to_host<float>(full({1000}, 3, DType::f32, kReference));
  CHECK(std::count(many.begin(), many.end(), 3.0F) == 1000);
}

TEST_CASE_METHOD(Setup, "set_grad: takes a gradient of the tensor's shape and type",
                 "[tensor][error]") {
  Tensor w = count_up({3});
  CHECK_THROWS_WITH(w.set_grad(count_up({4})),
                    Contains("must have the tensor's shape (3); got (4)"));
  CHECK_THROWS_WITH(w.set_grad(f32({3})), Contains("must hold the tensor's type f64; got f32"));
  w.set_grad(count_up({3}));
  CHECK(w.grad().numel() == 3);
  w.set_grad({});
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE_METHOD(Setup, "tensor: rows and widths beyond 32 bits are reached", "[tensor][F40]") {
  // 2.3 GB of untouched pages: only what is written becomes memory.
  const Tensor table = empty({262144, 8960}, DType::u8, kReference);
  const Tensor row = table.narrow(0, 239674, 1);
  CHECK(row.narrow(1, 8959, 1).offset() == 2147487999);
  static_cast<uint8_t*>(table.data())[2147487999] = 77;
  CHECK(to_host<uint8_t>(contiguous(row))[8959] == 77);
  const Tensor wide = zeros({16384, 133120}, DType::bf16, kMeta);
  CHECK(wide.narrow(0, 16383, 1).offset() == 2180904960);
  CHECK(wide.narrow(0, 16383, 1).narrow(1, 133119, 1).offset() == 2181038079);
}

TEST_CASE_METHOD(Setup, "memory: live and peak bytes are those that tensors asked for",
                 "[memory]") {
  Backend& b = backend(kReference);
  const size_t before = b.memory().live;
  b.reset_peak();
  {
    const Tensor a = f32({1000});
    {
      const Tensor c = f32({77}), view = c.reshape({7, 11});
      CHECK(b.memory().live == before + 4000 + 308);
      CHECK(view.storage().references() == 2);
    }
    CHECK(b.memory().live == before + 4000);
    const Tensor again = a;
    CHECK(b.memory().live == before + 4000);
    CHECK(b.memory().peak == before + 4308);
    CHECK(b.memory().allocations == 2);
  }
  CHECK(b.memory().live == before);
  b.reset_peak();
  CHECK(b.memory().peak == before);
}

TEST_CASE("memory: blocks are aligned, large enough, and used again", "[memory]") {
  HostBackend host("test");
  for (size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{1024}, size_t{1025},
                       size_t{1088}, size_t{2049}, size_t{100000}, size_t{4194305}}) {
    auto* p = static_cast<std::byte*>(host.allocate(bytes));
    CHECK(reinterpret_cast<uintptr_t>(p) % 64 == 0);
    p[0] = p[bytes - 1] = std::byte{1};
    host.release(p, bytes);
    if (kRecycle) {
      CHECK(host.cached_bytes() >= bytes);
      CHECK(host.cached_bytes() <= bytes + bytes / 8 + 64);
      CHECK(host.allocate(bytes) == p);
      CHECK(host.cached_bytes() == 0);
      host.release(p, bytes);
    }
    host.trim();
    CHECK(host.cached_bytes() == 0);
  }
  void* nothing = host.allocate(0);
  CHECK(nothing != nullptr);  // memset and memcpy want an address for no bytes too
  host.release(nothing, 0);
}

TEST_CASE_METHOD(Setup, "tensor: one in a static object outlives everything else", "[memory]") {
  static const Tensor kept = f32({3});
  static Tensor with_gradient = f32({2});
  with_gradient.set_grad(f32({2}));
  CHECK(kept.defined());
}

TEST_CASE("dtype: bf16 rounds to nearest, ties to even", "[dtype]") {
  CHECK(static_cast<float>(bf16(1.0F)) == 1.0F);
  CHECK(bf16(0x1.01p0F).bits == bf16(1.0F).bits);           // a tie, down to even
  CHECK(static_cast<float>(bf16(0x1.03p0F)) == 0x1.04p0F);  // a tie, up to even
  CHECK(static_cast<float>(bf16(0x1.010002p0F)) == 0x1.02p0F);
  CHECK(std::isinf(static_cast<float>(bf16(std::numeric_limits<float>::max()))));
  CHECK(std::isnan(static_cast<float>(bf16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(
      std::isnan(static_cast<float>(bf16(std::bit_cast<float>(0x7f800001U)))));  // not to infinity
  CHECK(std::signbit(static_cast<float>(bf16(-0.0F))));
}

TEST_CASE("dtype: f16 keeps its 65536 values, rounds, and overflows to infinity", "[dtype]") {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    f16 h;
    h.bits = static_cast<uint16_t>(bits);
    const float f = static_cast<float>(h);
    if (std::isnan(f)) continue;
    REQUIRE(f16(f).bits == bits);
  }
  CHECK(static_cast<float>(f16(65504.0F)) == 65504.0F);
  CHECK(static_cast<float>(f16(65519.0F)) == 65504.0F);
  CHECK(std::isinf(static_cast<float>(f16(65520.0F))));
  CHECK(f16(0x1p-25F).bits == 0);  // a tie between 0 and the smallest: even
  CHECK(f16(0x1.8p-25F).bits == 1);
  CHECK(std::isnan(static_cast<float>(f16(NAN))));
}

TEST_CASE_METHOD(Setup,
                 "dtype and device: are parsed by name, and others are refused with the choices",
                 "[dtype][error]") {
  CHECK(parse_dtype("bf16") == DType::bf16);
  CHECK(to_text(DType::i64) == "i64");
  CHECK_THROWS_WITH(parse_dtype("float32"),
                    Contains("must be one of f32, f64, bf16, i64, f16, u8; got 'float32'"));
  CHECK_THROWS_AS(parse_dtype("dual"), Error);
  CHECK(parse_device("cpu") == kCPU);
  CHECK(to_text(parse_device("cpu:3")) == "cpu:3");
  CHECK_THROWS_WITH(parse_device("gpu"), Contains("reference") && Contains("cpu") &&
                                             Contains("meta") && Contains("got 'gpu'"));
  for (const char* wrong : {"cpu:", "cpu:x", "cpu:12", "cpu:-1", "", ":", ":0"})
    CHECK_THROWS_AS(parse_device(wrong), Error);
}

TEST_CASE_METHOD(Setup, "device: one that is not registered is refused by everything", "[error]") {
  const Device none{7, 0};
  CHECK_THROWS_WITH(
      f32({1}) = zeros({1}, DType::f32, none),
      Contains("no backend of kind 7 is registered; registered: ") && Contains("cpu"));
  CHECK_THROWS_WITH(register_backend(std::make_unique<HostBackend>("again"), kCPU.kind),
                    Contains("kind 1 is taken; cannot add again"));
  CHECK_THROWS_WITH(register_backend(nullptr), Contains("a backend must be given"));
  CHECK_THROWS_WITH(register_backend(std::make_unique<HostBackend>("x"), 200),
                    Contains("at most 8 kinds; got kind 200"));
}

TEST_CASE("shape: prints with axis letters when it has them", "[tensor]") {
  CHECK(to_text(Shape{2, 3}) == "(2, 3)");
  CHECK((Shape{2, 3}.to_text("BT")) == "(B = 2, T = 3)");
  CHECK(to_text(Shape{}) == "()");
  CHECK(broadcast_shapes("add", {5, 1, 3}, {2, 1}) == Shape{5, 2, 3});
  CHECK(broadcast_shapes("add", {0, 1}, {1, 4}) == Shape{0, 4});
  CHECK_THROWS_WITH(
      broadcast_shapes("add", {2, 3}, {2}),
      Contains(
          "add: shapes must be equal or 1 on each axis counted from the last; got (2, 3) and (2)"));
}

TEST_CASE("error: numbers of every type are shown", "[error]") {
  CHECK(to_text(0.5F) == "0.5");
  CHECK(to_text(0.25) == "0.25");
  CHECK(to_text(int64_t{-3}) == "-3");
  CHECK(to_text(true) == "true");
  CHECK_THROWS_WITH(check(false, "x = ", 1.5F), "x = 1.5");
}
