// Views, copies, look-ups, choices and casts: values at the edges and errors.
#include <unistd.h>

#include "core/ops/all.h"
#include "core/sanitizers.h"
#include "tests/op_values.h"

using namespace tally;
using Catch::Matchers::Contains;

TEST_CASE_METHOD(Setup, "reshape: odd requests are errors with shape and reason",
                 "[op][error][F38]") {
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
                 "[op][error][F39]") {
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

TEST_CASE_METHOD(Setup, "index_select: adds up the gradients of rows that repeat", "[op][F39]") {
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

TEST_CASE_METHOD(Setup, "views: offsets beyond 32 bits are kept", "[op][F40]") {
  const Tensor table = empty({262144, 8960}, DType::bf16, kMeta);
  CHECK(narrow(narrow(table, 0, 239674, 1), 1, 8959, 1).offset() == 2147487999);
  const Tensor scores = empty({16384, 133120}, DType::bf16, kMeta);
  CHECK(softmax(scores).shape() == scores.shape());
  CHECK(narrow(narrow(scores, 0, 16383, 1), 1, 133119, 1).offset() == 2181038079);
}

TEST_CASE_METHOD(Setup, "views: rows beyond 2^31 elements are read and written where they lie",
                 "[op][memory][F40]") {
  // Gigabytes of untouched pages: only what is written becomes memory.
  const Tensor table = empty({262144, 8960}, DType::bf16, kCPU);
  const Tensor row = narrow(table, 0, 239674, 1);
  const auto numbers_of_row = row.host<bf16>();
  std::fill(numbers_of_row.begin(), numbers_of_row.end(), bf16(1));
  numbers_of_row.back() = bf16(3);
  CHECK(&numbers_of_row.back() - static_cast<bf16*>(table.data()) == 2147487999);
  const Tensor ids = from_host<int64_t>({239674}, {1}, kCPU);
  for (const Tensor& y : {embedding(ids, table), index_select(table, ids, 0), copy(row)}) {
    CHECK(numbers(y).back() == 3);
    CHECK(sum(to(y, DType::f32)).item() == 8962);
  }
  ops::Embedding::Saved saved;
  ops::Embedding::forward(ids, table, {}, &saved);
  Into<2> into;
  into.target[1] = table;
  ops::Embedding::backward(full({1, 8960}, 2, DType::bf16, kCPU), std::move(saved), into);
  CHECK(numbers(row).back() == 5);
  CHECK(numbers(row).front() == 3);
}

TEST_CASE_METHOD(Setup, "views: rows that lie 2^31 elements apart give what dense ones give",
                 "[op][memory][F40]") {
  const auto check_rows = [](const Tensor& far) {  // two rows
    INFO(to_text(far.device()) << " in " << to_text(far.dtype()) << ", strides "
                               << to_text(far.strides()));
    CHECK(far.strides()[0] > INT32_MAX);
    const int64_t n = far.size(1);
    std::vector<double> values(static_cast<size_t>(2 * n));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * i % 29) / 8;
    const Tensor dense = make_input(tally::values({2, n}, values), far.dtype(), far.device());
    ops::Copy::Call call{dense, GradTensor(far, false)};
    run(far.device(), call);
    CHECK(numbers(far) == values);
    const Tensor w = narrow(dense, 0, 0, 1);
    CHECK(numbers(softmax(far)) == numbers(softmax(dense)));
    CHECK(numbers(rms_norm(far)) == numbers(rms_norm(dense)));
    CHECK(numbers(layer_norm(far)) == numbers(layer_norm(dense)));
    CHECK(numbers(add(far, far)) == numbers(add(dense, dense)));
    CHECK(numbers(sum(far, {1})) == numbers(sum(dense, {1})));
    CHECK(numbers(linear(far, w)) == numbers(linear(dense, w)));
    CHECK(numbers(activation(far, ops::ActivationKind::silu)) ==
          numbers(activation(dense, ops::ActivationKind::silu)));
  };
  check_rows(narrow(empty({16384, 133120}, DType::bf16, kCPU), 0, 0, 2, 16383));
  if (kAddressSanitizer) return;  // which keeps an eighth of a tensor's size beside it
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * 4096;
  if (memory > 20e9)  // else the system hands out no 17 GB, not even untouched
    check_rows(narrow(empty({2, (int64_t{1} << 31) + 8}, DType::f32, kCPU), 1, 0, 1000));
}
