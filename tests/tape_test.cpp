// The tape: what it records, what it adds up, and what it leaves behind.
#include <atomic>
#include <cstdlib>
#include <new>
#include <sstream>
#include <thread>

#include <catch2/catch.hpp>

#include "core/sanitizers.h"
#include "tests/tape_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {
std::atomic<int64_t> g_heap_allocations{0};
}

// Every allocation of the program is counted: a step of training must make none.
[[gnu::noinline]] void* operator new(size_t bytes) {
  g_heap_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  g_heap_allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace {

// y0 = x, y1 = 3 x, and the places of nothing in particular: an integer output.
struct ThreeOutputs {
  static constexpr const char* name = "three_outputs";
  struct Attrs {};
  struct Saved {};
  static std::array<Tensor, 3> forward(const Tensor& x, const Attrs&, Saved*) {
    return {ops::Copy::forward(x, {}, nullptr), ops::Scale::forward(x, {3}, nullptr),
            zeros({2}, DType::i64, x.device())};
  }
  static std::array<Tensor, 1> backward(const std::array<Tensor, 3>& dy, Saved&&,
                                        const Into<1>& = {}) {
    if (!dy[1].defined()) return {dy[0]};
    Tensor from_second = ops::Scale::forward(dy[1], {3}, nullptr);
    return {dy[0].defined() ? ops::Accumulate::sum(dy[0], from_second) : from_second};
  }
};

}  // namespace

TEST_CASE_METHOD(Setup, "tape: a chain gives the bits of the calls by hand", "[tape]") {
  const Tensor x = numbers({1, -2, 3, 0.5, 0.25, -1}, {2, 3});
  Tensor w = leaf({0.5, 1, -1, 2, 0.1, 0.3}, {2, 3}), gain = leaf({1.5, 0.5}, {2});
  const Tensor seed = numbers({1, 2, 3, 4}, {2, 2});
  {
    Tape tape;
    tape.backward(rms_norm(linear(x, w), gain, 1e-5), seed);
  }
  ops::Linear::Saved linear_saved;
  ops::RMSNorm::Saved norm_saved;
  const Tensor h = ops::Linear::forward(x, w, {}, {}, &linear_saved);
  ops::RMSNorm::forward(h, gain, {1e-5}, &norm_saved);
  auto [dh, dgain] = ops::RMSNorm::backward(seed, std::move(norm_saved));
  auto [dx, dw, db] = ops::Linear::backward(dh, std::move(linear_saved));
  CHECK(values(w.grad()) == values(dw));
  CHECK(values(gain.grad()) == values(dgain));
}

TEST_CASE_METHOD(Setup, "tape: a tensor that is used twice gets both gradients", "[tape]") {
  Tensor x = leaf({3, -2}, {2});
  {
    Tape tape;
    tape.backward(sum(mul(x, x)));  // twice in one op
  }
  CHECK(values(x.grad()) == std::vector<double>{6, -4});
  x.set_grad({});
  {
    Tape tape;
    const Tensor y = scale(x, 2);  // a diamond: z = y^2 + y
    tape.backward(sum(add(mul(y, y), y)));
  }
  CHECK(values(x.grad()) == std::vector<double>{2 * 2 * 6 + 2, 2 * 2 * -4 + 2});
  x.set_grad({});
  {
    Tape tape;
    Tensor stream = x;  // a residual stream of three layers: h += 2 h
    for (int layer = 0; layer < 3; ++layer) stream = add(stream, scale(stream, 2));
    tape.backward(sum(stream));
  }
  CHECK(values(x.grad()) == std::vector<double>{27, 27});
}

TEST_CASE_METHOD(Setup,
                 "tape: several backward passes add up in a leaf, in place when nobody looks on",
                 "[tape]") {
  Tensor x = leaf({1, 2}, {2});
  const auto pass = [&] {
    Tape tape;
    tape.backward(sum(mul(x, x)));
  };
  pass();
  const void* place = x.grad().data();
  pass();
  CHECK(values(x.grad()) == std::vector<double>{4, 8});
  CHECK(x.grad().data() == place);
  const Tensor kept = x.grad();  // somebody looks on: his numbers stay
  pass();
  CHECK(values(x.grad()) == std::vector<double>{6, 12});
  CHECK(values(kept) == std::vector<double>{4, 8});
  CHECK(x.grad().data() != kept.data());
  const Tensor view = x.grad().reshape({2, 1});
  pass();
  CHECK(values(x.grad()) == std::vector<double>{8, 16});
  CHECK(values(view) == std::vector<double>{6, 12});
}

TEST_CASE_METHOD(Setup, "tape: a seed is not changed by what is added to the gradient", "[tape]") {
  Tensor x = leaf({1, 2}, {2});
  const Tensor seed = numbers({5, 7}, {2});
  for (int pass = 0; pass < 2; ++pass) {
    Tape tape;
    tape.backward(add(x, x), seed);
  }
  CHECK(values(x.grad()) == std::vector<double>{20, 28});
  CHECK(values(seed) == std::vector<double>{5, 7});
}

TEST_CASE_METHOD(Setup, "tape: the loss may be a leaf", "[tape]") {
  Tensor x = leaf({2}, {1});
  for (int pass = 1; pass <= 2; ++pass) {
    Tape tape;
    const Tensor y = scale(x, 5);
    tape.backward(x);
    CHECK(values(x.grad()) == std::vector<double>{1.0 * pass});
  }
}

TEST_CASE_METHOD(Setup, "tape: a leaf that the loss does not reach keeps the gradient it had",
                 "[tape]") {
  Tensor x = leaf({1}, {1}), idle = leaf({1}, {1}), before = leaf({1}, {1});
  before.set_grad(numbers({9}, {1}));
  Tape tape;
  const Tensor unused = add(scale(idle, 2), before);
  tape.backward(scale(x, 3));
  CHECK(values(x.grad()) == std::vector<double>{3});
  CHECK_FALSE(idle.grad().defined());
  CHECK(values(before.grad()) == std::vector<double>{9});
}

TEST_CASE_METHOD(Setup, "tape: the gradients of broadcast operands have the shapes of the operands",
                 "[tape][F35]") {
  Tensor a = leaf({1, 1, 1}, {1, 3}), b = leaf({1, 1}, {2, 1});
  {
    Tape tape;
    const Tensor s = add(a, b);
    tape.backward(sum(mul(s, s)));
  }
  CHECK(a.grad().shape() == Shape{1, 3});
  CHECK(values(a.grad()) == std::vector<double>{8, 8, 8});
  CHECK(b.grad().shape() == Shape{2, 1});
  CHECK(values(b.grad()) == std::vector<double>{12, 12});
  Tensor two = leaf({2}, {}), wide = full({5, 4}, 1, DType::f64, kReference);
  {
    Tape tape;
    tape.backward(sum(mul(two, wide)));
  }
  CHECK(two.grad().shape() == Shape{});
  CHECK(two.grad().item() == 20);
  Tensor p = full({5, 2, 1}, 1, DType::f64, kReference),
         q = full({1, 7}, 1, DType::f64, kReference);
  p.requires_grad_();
  q.requires_grad_();
  {
    Tape tape;
    tape.backward(sum(add(p, q)));
  }
  CHECK(values(p.grad()) == std::vector<double>(10, 7));
  CHECK(values(q.grad()) == std::vector<double>(7, 10));
  CHECK(p.grad().shape() == Shape{5, 2, 1});
  CHECK(q.grad().shape() == Shape{1, 7});
}

TEST_CASE_METHOD(Setup, "tape: writing to what no backward needs is no error", "[tape]") {
  Tensor x = leaf({1, 2}, {2});
  Tape tape;
  const Tensor y = scale(x, 2), z = sum(y);
  add_one(y);  // scale and sum keep nothing
  tape.backward(z);
  CHECK(values(x.grad()) == std::vector<double>{2, 2});
}

TEST_CASE_METHOD(Setup, "tape: an op may have several outputs, of which some get no gradient",
                 "[tape]") {
  Tensor x = leaf({1, 2}, {2});
  const auto gradient = [&](const std::function<Tensor(const std::array<Tensor, 3>&)>& loss) {
    x.set_grad({});
    Tape tape;
    tape.backward(loss(apply<ThreeOutputs>({}, x)));
    return values(x.grad());
  };
  CHECK(gradient([](const auto& y) { return sum(y[0]); }) == std::vector<double>{1, 1});
  CHECK(gradient([](const auto& y) { return sum(y[1]); }) == std::vector<double>{3, 3});
  CHECK(gradient([](const auto& y) { return sum(mul(y[0], y[1])); }) == std::vector<double>{6, 12});
  Tape tape;
  const auto y = apply<ThreeOutputs>({}, x);
  CHECK(apply<NoBackward>({}, y[2]).numel() == 2);  // indices carry no gradient
}

TEST_CASE_METHOD(Setup, "tape: the inner of two tapes records, and a leaf may be on both",
                 "[tape]") {
  Tensor w = leaf({2, 3}, {2});
  Tape outer;
  const Tensor y = mul(w, w);
  {
    Tape inner;
    CHECK_THROWS_WITH(scale(y, 2),
                      Contains("was recorded by an outer tape") && Contains("x.detach()"));
    const Tensor z = mul(w, y.detach());
    CHECK(inner.size() == 1);
    CHECK(outer.size() == 1);
    backward(sum(z));
    CHECK(values(w.grad()) == std::vector<double>{4, 9});
  }
  const Tensor loss = sum(mul(y, w));  // w^3
  CHECK(outer.size() == 3);
  backward(loss);
  CHECK(values(w.grad()) == std::vector<double>{4 + 12, 9 + 27});
}

TEST_CASE_METHOD(Setup, "tape: tapes may close in any order", "[tape]") {
  Tensor w = leaf({2}, {1});
  auto first = std::make_unique<Tape>();
  auto second = std::make_unique<Tape>();
  first.reset();
  second->backward(mul(w, w));
  CHECK(values(w.grad()) == std::vector<double>{4});
  second.reset();
  CHECK(Tape::open() == nullptr);
}

TEST_CASE_METHOD(Setup, "tape: without a tape nothing is recorded", "[tape]") {
  Tensor w = leaf({2}, {1});
  const Tensor y = mul(w, w);
  CHECK(y.impl()->tape == 0);
  Tape tape;
  CHECK_THROWS_WITH(tape.backward(scale(y, 1)), Contains("was not recorded"));
}

TEST_CASE_METHOD(Setup, "tape: prints one line an op, with its layer", "[tape]") {
  Tensor w = leaf({2}, {1});
  Tape tape;
  {
    const ModuleScope scope("block", 3);
    mul(w, w);
  }
  scale(w, 2);
  std::ostringstream text;
  tape.print(text);
  CHECK(text.str() == "0  mul  inputs 0 0  block[3]\n1  scale  inputs 0  \n");
}

TEST_CASE_METHOD(
    Setup, "tape: memory returns to the start, and a step in the steady state allocates nothing",
    "[tape][memory]") {
  Tensor w = full({32, 32}, 0.01, DType::f32, kReference),
         gain = full({32}, 1, DType::f32, kReference);
  const Tensor x = full({4, 32}, 0.5, DType::f32, kReference);
  w.requires_grad_();
  gain.requires_grad_();
  auto& host = dynamic_cast<HostBackend&>(backend(kReference));
  const size_t before = live_bytes();
  Tape tape;
  const auto step = [&] {
    Tensor h = x;
    for (int layer = 0; layer < 4; ++layer) h = add(h, mul(linear(h, w), gain));
    backward(mean(h));
  };
  const auto zero_grad = [&] {
    w.set_grad({});
    gain.set_grad({});
  };
  step();
  zero_grad();
  CHECK(live_bytes() == before);
  step();  // vectors have their sizes now
  const size_t with_gradients = live_bytes(), cached = host.cached_bytes();
  CHECK(with_gradients == before + w.nbytes() + gain.nbytes());
  host.reset_peak();
  step();
  const size_t allocations = host.memory().allocations, peak = host.memory().peak;
  for (int i = 0; i < 5; ++i) {
    host.reset_peak();
    step();
    REQUIRE(host.memory().allocations == allocations);
    REQUIRE(host.memory().peak == peak);
  }
  CHECK(host.cached_bytes() == cached);
  CHECK(live_bytes() == with_gradients);
}

TEST_CASE_METHOD(Setup, "tape: a recorded step makes no allocation on the heap", "[tape][memory]") {
  if (kSanitized) return;  // headers are not recycled there
  Tensor w = full({8, 8}, 0.01, DType::f32, kReference);
  w.requires_grad_();
  const Tensor x = full({4, 8}, 0.5, DType::f32, kReference);
  Tape tape;
  int64_t made = 0;
  for (int i = 0; i < 4; ++i) {
    const int64_t before = g_heap_allocations.load();
    Tensor h = x;
    for (int layer = 0; layer < 4; ++layer) h = add(h, linear(h, w));
    tape.backward(h, x);
    made = g_heap_allocations.load() - before;
  }
  CHECK(made == 0);
}

TEST_CASE_METHOD(Setup, "tape: threads record apart", "[tape][threads]") {
  std::array<double, 4> result{};
  std::vector<std::thread> threads;
  const Tensor shared = numbers({2}, {1});
  for (size_t t = 0; t < result.size(); ++t) {
    threads.emplace_back([&, t] {
      Tensor w = numbers({static_cast<double>(t)}, {1});
      w.requires_grad_();
      for (int pass = 0; pass < 20; ++pass) {
        const ModuleScope scope("worker", static_cast<int>(t));
        Tape tape;
        backward(mul(mul(w, w), shared));
      }
      result[t] = w.grad().item();
    });
  }
  for (std::thread& t : threads) t.join();
  for (size_t t = 0; t < result.size(); ++t) CHECK(result[t] == 20 * 4 * static_cast<double>(t));
}
