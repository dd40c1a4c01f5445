// Arithmetic, reductions, layout, products, look-ups, softmax: values at the edges and errors.
#include <catch2/catch.hpp>

#include "autograd/functional.h"
#include "autograd/proof/proof.h"
#include "backends/register_all.h"
#include "core/ledger.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

constexpr double kInf = INFINITY;

struct Setup {
  Setup() { register_all(); }
};

Tensor f64(std::initializer_list<double> v, const Shape& s) {
  return from_host<double>(v, s, kReference);
}
Tensor i64(std::initializer_list<int64_t> v, const Shape& s) {
  return from_host<int64_t>(v, s, kReference);
}
Tensor leaf(std::initializer_list<double> v, const Shape& s) {
  Tensor t = f64(v, s);
  return t.requires_grad_();
}
Tensor ones(const Shape& s, DType dtype = DType::f64) { return full(s, 1, dtype, kReference); }

using Numbers = std::vector<double>;
Numbers numbers(const Tensor& t) { return to_doubles(t); }
void check_close(const Tensor& t, const Numbers& expected, double tolerance = 1e-9) {
  const Numbers ours = numbers(t);
  REQUIRE(ours.size() == expected.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    INFO("element " << i << ": " << ours[i] << ", expected " << expected[i]);
    CHECK((ours[i] == expected[i] || std::fabs(ours[i] - expected[i]) <= tolerance ||
           (std::isnan(ours[i]) && std::isnan(expected[i]))));
  }
}

}  // namespace

TEST_CASE_METHOD(Setup, "elementwise: the gradient of a repeated operand is summed to its shape",
                 "[op]") {
  const Tensor a = leaf({1, 1, 1}, {1, 3}), b = leaf({1, 1}, {2, 1});
  {
    const Tape tape;
    backward(sum(square(add(a, b))));
  }
  CHECK(a.grad().shape() == Shape{1, 3});
  CHECK(numbers(a.grad()) == Numbers{8, 8, 8});
  CHECK(b.grad().shape() == Shape{2, 1});
  CHECK(numbers(b.grad()) == Numbers{12, 12});

  const Tensor two = leaf({2}, {});
  {
    const Tape tape;
    backward(sum(mul(two, ones({5, 4}))));
  }
  CHECK(numbers(two.grad()) == Numbers{20});

  Tensor c = ones({5, 2, 1}), d = ones({1, 7});
  c.requires_grad_();
  d.requires_grad_();
  {
    const Tape tape;
    backward(sum(add(c, d)));
  }
  CHECK(c.grad().shape() == Shape{5, 2, 1});
  CHECK(numbers(c.grad()) == Numbers(10, 7));
  CHECK(d.grad().shape() == Shape{1, 7});
  CHECK(numbers(d.grad()) == Numbers(7, 10));
}

TEST_CASE_METHOD(Setup, "add: hands its gradient on without a copy", "[op][memory]") {
  const Tensor a = ones({2, 3}), dy = ones({2, 3});
  ops::Add::Saved saved;
  ops::Add::forward(a, a, {}, &saved);
  Ledger ledger;
  const auto [da, db] = ops::Add::backward(dy, std::move(saved));
  CHECK(da.is(dy));
  CHECK(db.is(dy));
  CHECK(ledger.entries().empty());
}

TEST_CASE_METHOD(Setup, "add: two leaves that share one gradient add up apart", "[op]") {
  const Tensor a = leaf({1, 2}, {2}), b = leaf({3, 4}, {2});
  for (int pass = 0; pass < 2; ++pass) {
    const Tape tape;
    backward(sum(add(add(a, b), a)));
  }
  CHECK(numbers(a.grad()) == Numbers{4, 4});
  CHECK(numbers(b.grad()) == Numbers{2, 2});
}

TEST_CASE_METHOD(Setup, "elementwise: equal elements share the gradient, NaN goes through",
                 "[op]") {
  const Tensor a = leaf({1, 2, NAN, 0}, {4}), b = leaf({1, 3, 0, NAN}, {4});
  const Tape tape;
  const Tensor y = maximum(a, b);
  check_close(y, {1, 3, NAN, NAN});
  backward(y, ones({4}));
  check_close(a.grad(), {0.5, 0, 1, 0});
  check_close(b.grad(), {0.5, 1, 0, 1});
  check_close(minimum(a.detach(), b.detach()), {1, 2, NAN, NAN});
  check_close(clamp(f64({-3, 0.5, 3, NAN}, {4}), -1, 1), {-1, 0.5, 1, NAN});
}

TEST_CASE_METHOD(Setup, "functions: slopes where they are delicate", "[op]") {
  const auto slope = [](const Tensor& x, auto f) {
    const Tape tape;
    backward(sum(f(x)));
    return x.grad();
  };
  check_close(slope(leaf({-2, 0, 3}, {3}), [](auto& x) { return abs(x); }), {-1, 0, 1});
  check_close(slope(leaf({0, 2}, {2}), [](auto& x) { return pow(x, 0); }), {0, 0});
  check_close(slope(leaf({0, -2}, {2}), [](auto& x) { return pow(x, 2); }), {0, -4});
  check_close(slope(leaf({0, 0}, {2}), [](auto& x) { return norm(x); }), {0, 0});
  check_close(slope(leaf({-1, 0, 2, 5}, {4}), [](auto& x) { return clamp(x, 0, 2); }),
              {0, 1, 1, 0});
  check_close(slope(leaf({1, 3, 3, 0, 3, 2}, {2, 3}), [](auto& x) { return amax(x, {1}); }),
              {0, 0.5, 0.5, 0, 1, 0});
  check_close(slope(leaf({1, 1, 1}, {3}), [](auto& x) { return amin(x); }),
              {1. / 3, 1. / 3, 1. / 3});
}

TEST_CASE_METHOD(Setup, "softmax: large numbers, -inf and masks", "[op]") {
  const Tensor large = f64({1e4, 1e4 - 1, -1e4}, {3});
  check_close(softmax(large), {0.731058579, 0.268941421, 0});
  check_close(log_softmax(large), {-0.313261688, -1.313261688, -20000.3132617}, 1e-6);
  check_close(softmax(f64({-kInf, 0, 1}, {3})), {0, 0.268941421, 0.731058579});
  check_close(softmax(f64({-kInf, -kInf, -kInf}, {3})), {NAN, NAN, NAN});
  const uint8_t seen[] = {1, 1, 0, 0, 0, 0};
  const Tensor mask = from_host<uint8_t>(seen, {2, 3}, kReference);
  const Tensor x = leaf({1, 1, 1e300, NAN, kInf, 5}, {2, 3});
  const Tape tape;
  const Tensor y = softmax(x, mask);
  check_close(y, {0.5, 0.5, 0, 0, 0, 0});
  backward(y, f64({1, 0, 7, 1, 2, 3}, {2, 3}));
  check_close(x.grad(), {0.25, -0.25, 0, 0, 0, 0});
  check_close(log_softmax(x.detach(), mask),
              {-std::log(2), -std::log(2), -kInf, -kInf, -kInf, -kInf});
}

TEST_CASE_METHOD(Setup, "logsumexp: neither overflows nor turns -inf into NaN", "[op]") {
  check_close(logsumexp(f64({1e4, 1e4, -kInf, -kInf}, {2, 2}), {1}), {1e4 + std::log(2), -kInf});
  const Tensor x = leaf({-kInf, -kInf}, {2});
  const Tape tape;
  backward(logsumexp(x));
  check_close(x.grad(), {0, 0});
}

TEST_CASE_METHOD(Setup, "bf16: sums are kept in f32", "[op]") {
  const Tensor many = ones({70000}, DType::bf16);
  CHECK(sum(many).item() == 70144);  // the nearest bf16 to 70000
  CHECK(mean(many).item() == 1);
  CHECK(numbers(softmax(zeros({512}, DType::bf16, kReference))) == Numbers(512, 0.001953125));
  const Tensor row = ones({1, 4096}, DType::bf16);
  CHECK(matmul(row, row, false, true).item() == 4096);
  CHECK(numbers(cumsum(ones({512}, DType::bf16), 0))[511] == 512);
  Tensor table = zeros({1, 1}, DType::bf16, kReference);
  table.requires_grad_();
  const Tape tape;
  backward(sum(index_select(table, zeros({1024}, DType::i64, kReference), 0)));
  CHECK(numbers(table.grad())[0] == 1024);
}

TEST_CASE_METHOD(Setup, "empty tensors: sums are 0, shapes are kept, choices refuse",
                 "[op][error]") {
  const auto empty_of = [](const Shape& s) { return zeros(s, DType::f64, kReference); };
  CHECK(numbers(matmul(empty_of({3, 0}), empty_of({0, 4}))) == Numbers(12, 0));
  CHECK(sum(empty_of({0, 3})).item() == 0);
  CHECK(numbers(sum(empty_of({2, 0}), {-1})) == Numbers{0, 0});
  CHECK(softmax(empty_of({0})).shape() == Shape{0});
  CHECK(concat({empty_of({0, 2}), ones({1, 2})}, 0).shape() == Shape{1, 2});
  CHECK(std::isnan(mean(empty_of({0})).item()));
  CHECK(std::isnan(var(empty_of({0})).item()));
  CHECK(std::isnan(var(ones({1}), {}, false, true).item()));
  CHECK(norm(empty_of({0})).item() == 0);
  CHECK(logsumexp(empty_of({0})).item() == -kInf);
  CHECK_THROWS_WITH(amax(empty_of({0})), Contains("amax: there is no element to choose from"));
  CHECK_THROWS_WITH(amin(empty_of({2, 0}), {1}), Contains("amin") && Contains("(2, 0)"));
  CHECK(amax(empty_of({0, 3}), {1}).shape() == Shape{0});
  CHECK(index_select(ones({4, 2}), empty({0}, DType::i64, kReference), 0).shape() == Shape{0, 2});
}

TEST_CASE_METHOD(Setup, "reshape: odd requests are errors with shape and reason", "[op][error]") {
  const auto of = [](const Shape& s) { return zeros(s, DType::f64, kReference); };
  CHECK(reshape(of({0, 3}), {-1, 3}).shape() == Shape{0, 3});
  CHECK_THROWS_WITH(reshape(of({3, 0}), {0, -1}), Contains("ambiguous"));
  CHECK_THROWS_WITH(reshape(of({6}), {-1, -1}), Contains("only one size may be -1"));
  CHECK_THROWS_WITH(reshape(of({6}), {-2, 3}), Contains("0 or more"));
  CHECK_THROWS_WITH(reshape(of({6}), {4, -1}), Contains("do not divide by 4"));
  CHECK_THROWS_AS(reshape(of({6}), {-5945582035944100121, 1}), Error);
  CHECK_THROWS_AS(of({0, int64_t{1} << 62, 4}), Error);
  CHECK_THROWS_AS(of({int64_t{1} << 40, int64_t{1} << 40}), Error);
  CHECK_THROWS_WITH(of({2, 3}).size(5), Contains("-2..1") && Contains("got 5"));
  CHECK_THROWS_WITH(reshape(transpose(of({2, 3}), 0, 1), {6}), Contains("contiguous(x)"));
  CHECK_THROWS_WITH(permute(of({2, 3}), {0, 0}), Contains("each axis of (2, 3) once"));
  CHECK_THROWS_WITH(expand(of({2, 3}), {2, 4}), Contains("only axes of size 1 repeat"));
  CHECK_THROWS_WITH(narrow(of({2, 3}), 1, 2, 2), Contains("must lie in axis 1"));
  CHECK_THROWS_WITH(slice(of({2, 3}), 1, 0, 3, 0), Contains("step must be 1 or more"));
}

TEST_CASE_METHOD(Setup, "slice: counts from the end and cuts off as Python does", "[op]") {
  const Tensor x = f64({0, 1, 2, 3, 4, 5, 6}, {7});
  CHECK(numbers(slice(x, 0, 1, 6, 2)) == Numbers{1, 3, 5});
  CHECK(numbers(slice(x, 0, -2, 100)) == Numbers{5, 6});
  CHECK(numbers(slice(x, 0, -100, -5)) == Numbers{0, 1});
  CHECK(slice(x, 0, 5, 2).shape() == Shape{0});
}

TEST_CASE_METHOD(Setup, "gather: refuses an index outside, naming position and value",
                 "[op][error]") {
  const Tensor x = ones({4, 2});
  CHECK_THROWS_WITH(index_select(x, i64({-1}, {1}), 0),
                    Contains("index_select: indices must be in 0..3; position 0 of (1) holds -1"));
  CHECK_THROWS_WITH(index_select(x, i64({0, 4}, {2}), 0), Contains("position 1") && Contains("4"));
  CHECK_THROWS_WITH(
      gather(x, i64({0, 1, int64_t{1} << 32, 0}, {2, 2}), 1),
      Contains("gather: indices must be in 0..1; position 2 of (2, 2) holds 4294967296"));
  CHECK_THROWS_WITH(gather(x, i64({0}, {1}), 0), Contains("gather: index must have the axes of x"));
  CHECK_THROWS_WITH(gather(x, ones({1, 1}), 0), Contains("index must be i64; got f64"));
  CHECK_THROWS_WITH(gather(x, i64({0}, {1, 1}), 2), Contains("axis must be in -2..1"));
  CHECK_THROWS_WITH(index_select(x, i64({0}, {1, 1}), 0), Contains("index must be a list (I)"));
}

TEST_CASE_METHOD(Setup, "index_select: adds up the gradients of rows that repeat", "[op]") {
  Tensor x = zeros({4, 2}, DType::f64, kReference);
  x.requires_grad_();
  const Tape tape;
  backward(index_select(x, i64({1, 1, 3}, {3}), 0), f64({1, 2, 10, 20, 5, 6}, {3, 2}));
  CHECK(numbers(x.grad()) == Numbers{0, 0, 11, 22, 0, 0, 5, 6});
}

TEST_CASE_METHOD(Setup, "top_k: equal ones in order of place, NaN first", "[op][error]") {
  const Tensor x = leaf({1, 5, 5, 2, NAN, 5}, {6});
  const Tape tape;
  const auto [values, places] = top_k(x, 4);
  check_close(values, {NAN, 5, 5, 5});
  CHECK(numbers(places) == Numbers{4, 1, 2, 5});
  backward(values, f64({1, 2, 3, 4}, {4}));
  CHECK(numbers(x.grad()) == Numbers{0, 2, 3, 0, 1, 4});
  CHECK_THROWS_WITH(top_k(x, 7), Contains("top_k: k must be in 0..6"));
  CHECK_THROWS_WITH(top_k(x, -1), Contains("got -1"));
  CHECK_THROWS_WITH(top_k(f64({1}, {}), 1), Contains("it is a scalar"));
}

TEST_CASE_METHOD(Setup, "concat and split: any number of parts, and back", "[op][error]") {
  std::vector<Tensor> parts;
  std::vector<int64_t> sizes;
  Numbers expected;
  for (int i = 0; i < 20; ++i) {
    parts.push_back(full({i % 3}, i, DType::f64, kReference));
    parts.back().requires_grad_();
    sizes.push_back(i % 3);
    expected.insert(expected.end(), static_cast<size_t>(i % 3), i);
  }
  const Tape tape;
  const Tensor y = concat(parts, 0);
  CHECK(numbers(y) == expected);
  const std::vector<Tensor> again = split(y, sizes, 0);
  Tensor loss = sum(again[19]);
  for (int i = 0; i < 19; i += 2) loss = add(loss, scale(sum(again[static_cast<size_t>(i)]), 2));
  backward(loss);
  CHECK(numbers(parts[19].grad()) == Numbers{1});
  CHECK(numbers(parts[2].grad()) == Numbers{2, 2});
  CHECK(numbers(parts[5].grad()) == Numbers{0, 0});

  CHECK_THROWS_WITH(concat({ones({2, 3}), ones({2, 4})}, 0), Contains("equal but for axis 0"));
  CHECK_THROWS_WITH(concat({ones({2}), ones({2}, DType::f32)}, 0), Contains("one type"));
  CHECK_THROWS_WITH(concat({ones({2})}, 1), Contains("axis must be in -1..0"));
  CHECK_THROWS_WITH(concat(std::vector<Tensor>{}, 0), Contains("at least one tensor"));
  CHECK_THROWS_WITH(split(ones({4}), std::vector<int64_t>{1, 2}, 0), Contains("they add up to 3"));
}

TEST_CASE_METHOD(Setup, "split: parts without a gradient get zeros, and all of them add up",
                 "[op]") {
  const Tensor x = leaf({1, 2, 3, 4, 5, 6}, {2, 3});
  for (int pass = 0; pass < 2; ++pass) {
    const Tape tape;
    const std::vector<Tensor> y = split(x, std::vector<int64_t>{1, 1, 1}, 1);
    backward(add(sum(y[0]), scale(sum(y[2]), 3)));
  }
  CHECK(numbers(x.grad()) == Numbers{2, 0, 6, 2, 0, 6});
}

TEST_CASE_METHOD(Setup, "matmul: refuses what does not fit by name", "[op][error]") {
  CHECK_THROWS_WITH(matmul(ones({2, 3}), ones({2, 3})), Contains("must agree in K"));
  CHECK_THROWS_WITH(matmul(ones({2, 3}), ones({3, 2}), true), Contains("(2, 3) transposed"));
  CHECK_THROWS_WITH(matmul(ones({}), ones({3})), Contains("at least one axis"));
  CHECK_THROWS_WITH(matmul(ones({3}), ones({3, 2}), true), Contains("cannot be transposed"));
  CHECK_THROWS_WITH(matmul(ones({2, 2, 3}), ones({3, 3, 2})), Contains("matmul: shapes"));
  CHECK_THROWS_WITH(matmul(ones({2, 3}), ones({3, 2}, DType::f32)), Contains("one type"));
  const Tensor every_second = narrow(ones({4, 6}), 1, 0, 3, 2);
  CHECK_THROWS_WITH(matmul(every_second, ones({3, 2})), Contains("contiguous(x)"));
}

TEST_CASE_METHOD(Setup, "elementwise: refuses other types and shapes by name", "[op][error]") {
  CHECK_THROWS_WITH(add(ones({2}), ones({3})), Contains("add: shapes"));
  CHECK_THROWS_WITH(mul(ones({2}), ones({2}, DType::f32)), Contains("f64 and f32"));
  CHECK_THROWS_WITH(exp(i64({1}, {1})), Contains("exp: needs floating-point"));
  CHECK_THROWS_WITH(sub(ones({2}), Tensor()), Contains("sub: b is missing"));
  CHECK_THROWS_WITH(clamp(ones({1}), 2, 1), Contains("low must not be above high"));
  CHECK_THROWS_WITH(where(ones({2}), ones({2}), ones({2})), Contains("condition must be u8"));
  CHECK_THROWS_WITH(sum(ones({2, 3}), {2}), Contains("sum: axis must be in -2..1"));
  CHECK_THROWS_WITH(sum(ones({2, 3}), {0, -2}), Contains("named twice"));
  CHECK_THROWS_WITH(cumsum(ones({2}), 1), Contains("cumsum: axis must be in -1..0"));
  CHECK_THROWS_WITH(softmax(ones({})), Contains("softmax: x needs an axis"));
  CHECK_THROWS_WITH(softmax(ones({2, 3}), ones({2, 3})), Contains("mask must be u8"));
  CHECK_THROWS_WITH(softmax(ones({3}), zeros({2, 3}, DType::u8, kReference)),
                    Contains("must broadcast to x (3)"));
}

TEST_CASE_METHOD(Setup, "to: types and devices, each copy a line of the ledger", "[op][error]") {
  const Tensor x = leaf({1.0009765625, -2, 0.1}, {3});
  {
    const Tape tape;
    const Tensor y = to(x, DType::bf16);
    CHECK(y.dtype() == DType::bf16);
    CHECK(numbers(y) == Numbers{1, -2, 0.10009765625});
    backward(sum(to(y, DType::f32)));
    CHECK(x.grad().dtype() == DType::f64);
    CHECK(numbers(x.grad()) == Numbers{1, 1, 1});
  }
  CHECK(to(x, DType::f64).is(x));
  CHECK(numbers(to(i64({3, -1}, {2}), DType::f32)) == Numbers{3, -1});
  CHECK(numbers(to(f64({65519, 1e6}, {2}), DType::f16)) == Numbers{65504, kInf});
  CHECK_THROWS_WITH(to(x, DType::i64), Contains("f64 does not become the integer type i64"));

  Ledger ledger;
  const Tensor there = to(x, kCPU);
  CHECK(there.device() == kCPU);
  CHECK(numbers(there) == numbers(x));
  REQUIRE(ledger.entries().size() == 1);
  CHECK(std::string(ledger.entries()[0].op) == "to_device");
  CHECK(ledger.entries()[0].cost.bytes_written == 24);
  CHECK(to(x, kReference).is(x));
  CHECK(to(x, kMeta).shape() == Shape{3});
  CHECK_THROWS_WITH(to(to(x, kMeta), kCPU), Contains("no values"));
  CHECK_THROWS_WITH(to(transpose(ones({2, 3}), 0, 1), kCPU), Contains("contiguous(x)"));
  CHECK_THROWS_WITH(add(x.detach(), there.detach()), Contains("to(x, device)"));
}

TEST_CASE_METHOD(Setup, "to: the gradient comes back to the device of x", "[op]") {
  const Tensor x = leaf({1, 2}, {2});
  const Tape tape;
  backward(sum(square(to(x, kCPU))));
  CHECK(x.grad().device() == kReference);
  CHECK(numbers(x.grad()) == Numbers{2, 4});
}

TEST_CASE_METHOD(Setup, "copy: any element type, and a dense one is not copied", "[op][memory]") {
  const Tensor ids = i64({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(contiguous(ids).is(ids));
  Ledger ledger;
  CHECK(numbers(contiguous(transpose(ids, 0, 1))) == Numbers{1, 4, 2, 5, 3, 6});
  CHECK(ledger.entries().size() == 1);
  const uint8_t flags[] = {1, 0, 0, 1};
  const Tensor mask = from_host<uint8_t>(flags, {2, 2}, kReference);
  CHECK(to_host<uint8_t>(copy(mask)) == std::vector<uint8_t>{1, 0, 0, 1});
}

TEST_CASE_METHOD(Setup, "views: offsets beyond 32 bits are kept", "[op]") {
  const Tensor table = empty({262144, 8960}, DType::bf16, kMeta);
  CHECK(narrow(narrow(table, 0, 239674, 1), 1, 8959, 1).offset() == 2147487999);
  const Tensor scores = empty({16384, 133120}, DType::bf16, kMeta);
  CHECK(softmax(scores).shape() == scores.shape());
  CHECK(narrow(narrow(scores, 0, 16383, 1), 1, 133119, 1).offset() == 2181038079);
}
