// What the tape refuses, and that it stays usable.
#include <catch2/catch.hpp>

#include "tests/tape_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

struct ThrowsBackward {
  static constexpr const char* name = "throws_backward";
  struct Attrs {};
  struct Saved {
    SavedTensor x;
  };
  static Tensor forward(const Tensor& x, const Attrs&, Saved* s) {
    Tensor y = ops::Copy::forward(x, {}, nullptr);
    if (s) s->x = y;
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor&, Saved&&, const Into<1>& = {}) {
    fail("throws_backward: on purpose");
  }
};

// A backward with a gradient of the wrong shape.
struct WrongShape {
  static constexpr const char* name = "wrong_shape";
  struct Attrs {};
  struct Saved {};
  static Tensor forward(const Tensor& x, const Attrs&, Saved*) {
    return ops::Copy::forward(x, {}, nullptr);
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&&, const Into<1>& = {}) {
    return {zeros({7}, dy.dtype(), dy.device())};
  }
};

}  // namespace

TEST_CASE_METHOD(Setup, "tape: a saved tensor that was changed in place is reported by name",
                 "[tape][error][F36]") {
  Tensor x = leaf({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto change = [&](const std::function<Tensor(const Tensor&)>& view) {
    Tape tape;
    const Tensor y = scale(x, 2), z = mul(y, y);
    add_one(view(y.detach()));
    CHECK_THROWS_WITH(tape.backward(sum(z)),
                      Contains("mul.forward: a tensor (2, 3) that it saved for the backward pass "
                               "was changed in place") &&
                          Contains("saved at version") && Contains("last written by accumulate"));
    CHECK_FALSE(x.grad().defined());
  };
  change([](const Tensor& y) { return y; });
  change([](const Tensor& y) { return y.reshape({-1}); });
  change([](const Tensor& y) { return y.narrow(0, 1, 1); });
  change([](const Tensor& y) { return y.narrow(1, 0, 2); });
  change([](const Tensor& y) { return y.transpose(0, 1).transpose(0, 1); });
}

TEST_CASE_METHOD(Setup, "tape: an optimizer step between forward and backward is reported",
                 "[tape][error][F36]") {
  Tensor w = leaf({1, 2, 3, 4}, {2, 2});
  const Tensor x = numbers({1, 2}, {1, 2});
  Tape tape;
  const ModuleScope scope("head");
  Tensor h = linear(x, w);
  h = linear(h, w);
  add_one(w);
  CHECK_THROWS_WITH(
      tape.backward(sum(h)),
      Contains("linear.forward: a tensor (2, 2) that it saved") && Contains("in head"));
}

TEST_CASE_METHOD(
    Setup, "tape: an op without a backward refuses by name, and runs where no gradient is asked",
    "[tape][error]") {
  Tensor x = leaf({1, 2}, {2});
  Tape tape;
  CHECK_THROWS_WITH(apply<NoBackward>({}, x),
                    Contains("no_backward: has no backward, and an input needs a gradient") &&
                        Contains("detach()"));
  CHECK(values(apply<NoBackward>({}, x.detach())) == std::vector<double>{1, 2});
  CHECK(tape.size() == 0);
}

TEST_CASE_METHOD(Setup, "tape: views by member functions refuse a recorded tensor",
                 "[tape][error]") {
  Tensor x = leaf({1, 2, 3, 4}, {2, 2});
  const auto refuses = [](const Tensor& t) {
    CHECK_THROWS_WITH(t.reshape({4}), Contains("reshape: this tensor (2, 2) is recorded") &&
                                          Contains("tally::reshape(x, ...)"));
    CHECK_THROWS_WITH(t.transpose(0, 1), Contains("use tally::transpose(x, ...)"));
    CHECK_THROWS_WITH(t.narrow(0, 0, 1), Contains("use tally::narrow(x, ...)"));
    CHECK_THROWS_WITH(t.expand({3, 2, 2}), Contains("use tally::expand(x, ...)"));
    CHECK(t.detach().reshape({4}).numel() == 4);
  };
  CHECK(x.reshape({4}).numel() == 4);  // no tape is open
  Tape tape;
  const Tensor y = scale(x, 2);
  refuses(x);
  refuses(y);
  tape.backward(sum(y));
  CHECK(y.reshape({4}).numel() == 4);  // that recording is over
  refuses(scale(x, 2));                // the tape records again
  CHECK(x.grad().reshape({4}).numel() == 4);
}

TEST_CASE_METHOD(Setup, "backward: refuses a wrong loss or seed, and says what to do",
                 "[tape][error]") {
  Tensor x = leaf({1, 2}, {2});
  CHECK_THROWS_WITH(backward(sum(x)),
                    Contains("no tape is open on this thread") && Contains("tally::Tape tape;"));
  Tape tape;
  const Tensor y = scale(x, 2);
  CHECK_THROWS_WITH(tape.backward({}), Contains("the loss is an undefined tensor"));
  CHECK_THROWS_WITH(tape.backward(y),
                    Contains("must have one element; it has shape (2)") && Contains("sum(x)"));
  CHECK_THROWS_WITH(tape.backward(numbers({1}, {1})),
                    Contains("was not recorded on the open tape"));
  CHECK_THROWS_WITH(tape.backward(y, numbers({1, 2, 3}, {3})),
                    Contains("the seed must have the loss's shape (2); got (3)"));
  CHECK_THROWS_WITH(tape.backward(y, from_host<float>({1, 2}, {2}, kReference)),
                    Contains("the seed must be f64 on reference"));
  const Tensor loss = sum(y);
  backward(loss);
  CHECK(values(x.grad()) == std::vector<double>{2, 2});
  CHECK_THROWS_WITH(backward(loss), Contains("was played before"));
  CHECK(values(x.grad()) == std::vector<double>{2, 2});
}

TEST_CASE_METHOD(Setup, "tape: gradients of gradients are refused", "[tape][error]") {
  Tensor x = leaf({1, 2}, {2});
  Tape tape;
  tape.backward(sum(mul(x, x)));
  CHECK_THROWS_WITH(mul(x.grad(), x), Contains("gradients of gradients are out of scope") &&
                                          Contains("x.grad().detach()"));
  tape.backward(sum(mul(x, x.grad().detach())));
  CHECK(values(x.grad()) == std::vector<double>{4, 8});
}

TEST_CASE_METHOD(Setup, "tape: an error in a backward leaves everything usable", "[tape][error]") {
  Tensor x = leaf({1, 2}, {2}), w = leaf({3, 4}, {2});
  const size_t before = live_bytes();
  Tape tape;
  {
    const ModuleScope scope("layer");
    const Tensor y = apply<ThrowsBackward>({}, mul(x, w));
    CHECK_THROWS_WITH(tape.backward(sum(mul(y, w))), Contains("throws_backward: on purpose"));
    CHECK(std::string(recorder().module) == "layer");
  }
  CHECK(recorder().phase == Phase::forward);
  CHECK(tape.size() == 0);
  x.set_grad({});
  w.set_grad({});
  CHECK(live_bytes() == before);
  tape.backward(sum(mul(x, w)));
  CHECK(values(x.grad()) == std::vector<double>{3, 4});
}

TEST_CASE_METHOD(Setup, "tape: an error in a forward records nothing", "[tape][error]") {
  Tensor x = leaf({1, 2}, {2});
  Tape tape;
  const Tensor y = scale(x, 2);
  CHECK_THROWS_AS(linear(y, numbers({1, 2, 3}, {1, 3})), Error);
  CHECK(tape.size() == 1);
  tape.backward(sum(y));
  CHECK(values(x.grad()) == std::vector<double>{2, 2});
}

TEST_CASE_METHOD(Setup, "tape: a gradient of the wrong shape is an error, the others arrive",
                 "[tape][error]") {
  Tensor x = leaf({1, 2}, {2}), w = leaf({1, 1}, {2});
  Tape tape;
  CHECK_THROWS_WITH(tape.backward(sum(add(apply<WrongShape>({}, x), scale(w, 2)))),
                    Contains("must have the tensor's shape (2); got (7)"));
  CHECK(values(w.grad()) == std::vector<double>{2, 2});
  CHECK(tape.size() == 0);
}

TEST_CASE_METHOD(Setup, "requires_grad_: for leaves that hold floating-point numbers",
                 "[tape][error]") {
  CHECK_THROWS_WITH(from_host<int64_t>({1}, {1}, kReference).requires_grad_(),
                    Contains("only floating-point tensors have gradients; this one holds i64"));
  CHECK_THROWS_WITH(Tensor().requires_grad_(), Contains("the tensor is undefined"));
  Tensor w = leaf({2}, {1});
  Tape tape;
  Tensor y = scale(w, 2);
  CHECK_THROWS_WITH(y.requires_grad_(),
                    Contains("was computed on the open tape") && Contains("detach()"));
  CHECK_NOTHROW(w.requires_grad_());
}
