// Arithmetic, reductions, products and softmax: values at the edges and errors.
#include "core/ops/elementwise.h"
#include "tests/op_values.h"

using namespace tally;
using Catch::Matchers::Contains;

TEST_CASE_METHOD(Setup, "elementwise: the gradient of a repeated operand is summed to its shape",
                 "[op][F35]") {
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

TEST_CASE_METHOD(Setup, "elementwise: values by hand", "[op]") {
  const Tensor a = f64({6, -4}, {2}), b = f64({2, 0.5}, {2});
  check_close(add(a, b), {8, -3.5});
  check_close(sub(a, b), {4, -4.5});
  check_close(mul(a, b), {12, -2});
  check_close(div(a, b), {3, -8});
  check_close(add(a, 1.5), {7.5, -2.5});
  check_close(matmul(f64({1, 2, 3, 4}, {2, 2}), f64({5, 6, 7, 8}, {2, 2})), {19, 22, 43, 50});
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

TEST_CASE_METHOD(Setup, "softmax: large numbers, -inf and masks", "[op][F02]") {
  for (const Place& p : places()) {
    INFO(to_text(p.device) << " " << to_text(p.dtype));
    const Tensor large = given(p, {1e4, 1e4 - 1, -1e4}, {3});
    const double high = 0.73105857863, low = 0.26894142137;
    check_near(softmax(large), {high, low, 0}, p.bound);
    check_near(log_softmax(large), {-0.3132616875182, -1.3132616875182, -20000.3132616875},
               p.bound);
    check_near(softmax(given(p, {-kInf, 0, 1}, {3})), {0, low, high}, p.bound);
    check_near(softmax(given(p, {-kInf, -kInf, -kInf}, {3})), {NAN, NAN, NAN}, p.bound);
  }
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

TEST_CASE_METHOD(Setup, "softmax: what a mask hides has no weight, whatever it is", "[op][F02]") {
  const Place p = GENERATE(from_range(places()));
  const uint8_t seen[] = {1, 1, 0, 0, 0, 0};
  const Tensor mask = from_host<uint8_t>(seen, {2, 3}, p.device);
  const Tensor x = given(p, {1, 1, 1e30, NAN, kInf, 5}, {2, 3});
  check_near(softmax(x, mask), {0.5, 0.5, 0, 0, 0, 0}, p.bound);
  check_near(log_softmax(x, mask), {-std::log(2), -std::log(2), -kInf, -kInf, -kInf, -kInf},
             p.bound);
}

TEST_CASE_METHOD(Setup, "amax and amin: a NaN wins wherever it stands", "[op]") {
  const Place place = GENERATE(from_range(places()));
  for (const size_t at : {0, 1, 2}) {
    Numbers x{1, 3, 2};
    x[at] = NAN;
    CHECK(std::isnan(amax(given(place, x, {3})).item()));
    CHECK(std::isnan(amin(given(place, x, {3})).item()));
  }
}

TEST_CASE_METHOD(Setup, "logsumexp: neither overflows nor turns -inf into NaN", "[op][F02]") {
  check_close(logsumexp(f64({1e4, 1e4, -kInf, -kInf}, {2, 2}), {1}), {1e4 + std::log(2), -kInf});
  const Tensor x = leaf({-kInf, -kInf}, {2});
  const Tape tape;
  backward(logsumexp(x));
  check_close(x.grad(), {0, 0});
}

TEST_CASE_METHOD(Setup, "bf16: sums are kept in f32", "[op][F15]") {
  for (Device device : {kReference, kCPU}) {
    const Tensor many = full({70000}, 1, DType::bf16, device);
    CHECK(sum(many).item() == 70144);  // the nearest bf16 to 70000
    CHECK(mean(many).item() == 1);
    CHECK(numbers(softmax(zeros({512}, DType::bf16, device))) == Numbers(512, 0.001953125));
    const Tensor row = full({1, 4096}, 1, DType::bf16, device);
    CHECK(matmul(row, row, false, true).item() == 4096);
    CHECK(linear(row, row).item() == 4096);
    // f16 is for files: its arithmetic is refused, and in f32 nothing is lost.
    const Tensor half = full({4096}, 1, DType::f16, device);
    CHECK_THROWS_WITH(sum(half), Contains("sum") && Contains("f16"));
    CHECK(sum(to(half, DType::f32)).item() == 4096);
  }
  CHECK(numbers(cumsum(ones({512}, DType::bf16), 0))[511] == 512);
  Tensor table = zeros({1, 1}, DType::bf16, kReference);
  table.requires_grad_();
  const Tape tape;
  backward(sum(index_select(table, zeros({1024}, DType::i64, kReference), 0)));
  CHECK(numbers(table.grad())[0] == 1024);
}

TEST_CASE_METHOD(Setup, "empty tensors: sums are 0, shapes are kept, choices refuse",
                 "[op][error][F38]") {
  const Place place = GENERATE(from_range(places()));
  const auto empty_of = [&](const Shape& s) { return zeros(s, place.dtype, place.device); };
  const auto ones = [&](const Shape& s) { return full(s, 1, place.dtype, place.device); };
  CHECK(numbers(matmul(empty_of({3, 0}), empty_of({0, 4}))) == Numbers(12, 0));
  CHECK(numbers(linear(empty_of({3, 0}), empty_of({4, 0}))) == Numbers(12, 0));
  CHECK(sum(empty_of({0, 3})).item() == 0);
  CHECK(numbers(sum(empty_of({2, 0}), {-1})) == Numbers{0, 0});
  CHECK(softmax(empty_of({0})).shape() == Shape{0});
  CHECK(concat({empty_of({0, 2}), ones({1, 2})}, 0).shape() == Shape{1, 2});
  CHECK(std::isnan(mean(empty_of({0})).item()));
  CHECK(std::isnan(var(empty_of({0})).item()));
  CHECK(std::isnan(var(empty_of({0}), {}, false, true).item()));
  CHECK(std::isnan(var(ones({1}), {}, false, true).item()));
  CHECK(norm(empty_of({0})).item() == 0);
  CHECK(logsumexp(empty_of({0})).item() == -kInf);
  CHECK_THROWS_WITH(amax(empty_of({0})), Contains("amax: there is no element to choose from"));
  CHECK_THROWS_WITH(amin(empty_of({2, 0}), {1}), Contains("amin") && Contains("(2, 0)"));
  CHECK(amax(empty_of({0, 3}), {1}).shape() == Shape{0});
  const Tensor no_ids = empty({0}, DType::i64, place.device);
  CHECK(index_select(ones({4, 2}), no_ids, 0).shape() == Shape{0, 2});
  CHECK(embedding(no_ids, ones({4, 2})).shape() == Shape{0, 2});
  CHECK(cross_entropy(empty_of({0, 5}), no_ids).item() == 0);
  CHECK(layer_norm(empty_of({2, 0})).shape() == Shape{2, 0});
  CHECK(rms_norm(empty_of({2, 0})).shape() == Shape{2, 0});
  Tensor none = empty_of({3, 0}), w = empty_of({0, 4});  // gradients of nothing have a shape
  none.requires_grad_();
  w.requires_grad_();
  const Tape tape;
  backward(sum(matmul(none, w)));
  CHECK(none.grad().shape() == Shape{3, 0});
  CHECK(w.grad().shape() == Shape{0, 4});
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
