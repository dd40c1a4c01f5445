// Watching calls: what a watcher is told, and bad numbers that are traced to the first bad call.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/ops/all.h"
#include "core/watch.h"
#include "models/bad_values.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

struct Seen {
  std::string op, formula, module;
  Phase phase;
  std::vector<std::string> before, after;  // "name=first value", "name>" for outputs
};

class Recording : public Watcher {
 public:
  void before(const WatchedCall& call) override {
    Seen s{call.op, call.formula, recorder().module, recorder().phase, {}, {}};
    for (const WatchedView& v : call.views)
      if (!v.output) s.before.push_back(v.name + "=" + to_text(summarize(*v.view, 1).first.at(0)));
    calls.push_back(s);
  }
  void after(const WatchedCall& call, const Entry& entry) override {
    CHECK(std::string(entry.op) == call.op);
    for (const WatchedView& v : call.views)
      if (v.output)
        calls.back().after.push_back(v.name + (v.updated ? "+=" : "=") +
                                     to_text(summarize(*v.view, 1).first.at(0)));
  }
  void saved(const Tensor& t) override { saved_elements += t.numel(); }
  std::vector<Seen> calls;
  int64_t saved_elements = 0;
};

Tensor numbers(std::vector<float> values, const Shape& shape) {
  return from_host<float>(values, shape, kCPU);
}

template <class C>
void check_described() {
  INFO(C::name);
  constexpr size_t views = std::tuple_size_v<decltype(std::declval<const C&>().views())>;
  const std::string names = C::operands;
  CHECK(static_cast<size_t>(std::count(names.begin(), names.end(), ',')) + 1 == views);
  CHECK(std::string(C::formula).size() > 4);
}
template <class... C>
void check_all_described(TypeList<C...>) {
  (check_described<C>(), ...);
}

/// The error of the next step.
std::string error_of_step(Trainer& t) {
  try {
    t.step();
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}
void fill(Trainer& t, const std::string& parameter, float value, size_t from = 0) {
  for (auto& [name, w] : t.model().named_parameters()) {
    if (name == parameter)
      std::fill(w.host<float>().begin() + static_cast<long>(from), w.host<float>().end(), value);
  }
}

}  // namespace

TEST_CASE("watch: every call of core has a formula and a name for each operand", "[watch]") {
  check_all_described(AllCalls{});
}

TEST_CASE("watch: a watcher is told operands, values before and after, layer and phase",
          "[watch]") {
  register_all();
  const Tensor x = numbers({3, 4}, {1, 2}), w = numbers({2, 5}, {1, 2}).requires_grad_();
  Recording seen;
  {
    const ModuleScope scope("layer");
    Tape tape;
    const Tensor y = linear(x, w);
    tape.backward(sum(y));
  }
  REQUIRE(seen.calls.size() >= 3);
  const Seen& first = seen.calls[0];
  CHECK(first.op == "linear.forward");
  CHECK(first.formula == "y = x w^T (+ b)");
  CHECK(first.module == "layer");
  CHECK(first.phase == Phase::forward);
  CHECK(first.before == std::vector<std::string>{"x=3", "w=2"});
  CHECK(first.after == std::vector<std::string>{"y=26"});
  CHECK(seen.saved_elements == 4);  // x and w
  const Seen& last = seen.calls.back();
  CHECK(last.op == "linear.backward");
  CHECK(last.phase == Phase::backward);
  CHECK(last.before.front() == "dy=1");
  CHECK(last.after == std::vector<std::string>{"dw=3"});
}

TEST_CASE("watch: an update in place shows the old value before and the new one after", "[watch]") {
  register_all();
  const Tensor sum = numbers({1}, {1}), x = numbers({2}, {1});
  Recording seen;
  ops::Accumulate::into(sum, x);
  REQUIRE(seen.calls.size() == 1);
  CHECK(seen.calls[0].after == std::vector<std::string>{"sum+=3"});
}

TEST_CASE("watch: the innermost watcher listens, and none afterwards", "[watch]") {
  register_all();
  Recording outer;
  {
    const Recording inner;
    ops::Accumulate::into(numbers({1}, {1}), numbers({2}, {1}));
    CHECK(inner.calls.size() == 1);
  }
  CHECK(outer.calls.empty());
  ops::Accumulate::into(numbers({1}, {1}), numbers({2}, {1}));
  CHECK(outer.calls.size() == 1);
}

TEST_CASE("watch: a summary reads strided views of every element type", "[watch]") {
  register_all();
  const Tensor x = numbers({1, 2, 3, NAN, -5, INFINITY}, {2, 3}).transpose(0, 1);
  const ValueSummary s = summarize(View(x), 10);
  CHECK(s.first.size() == 6);
  CHECK(s.first[0] == 1);
  CHECK(std::isnan(s.first[1]));
  CHECK(s.first[2] == 2);
  CHECK(s.nans == 1);
  CHECK(s.infinities == 1);
  CHECK(s.min == -5);
  CHECK(s.max == 3);
  CHECK(s.mean == Approx(0.25));
  CHECK(s.rms == Approx(std::sqrt((1 + 4 + 9 + 25) / 4.0)));
  CHECK(to_text(s) == "min -5, max 3, 1 NaN, 1 infinite");
  CHECK(summarize(View(from_host<int64_t>({7, 9}, {2}, kCPU))).max == 9);
  CHECK(summarize(View(empty({4}, DType::f32, kMeta)), 4).first.empty());
  CHECK(to_text(summarize(View(zeros({0}, DType::f32, kCPU)))) == "empty");
}

TEST_CASE("training: a NaN in a weight is traced to the op that read it first",
          "[watch][training][error][F47]") {
  Made m(small());
  losses(*m.trainer, 2);
  fill(*m.trainer, "blocks.0.mlp.down.weight", NAN, 100);
  const std::string error = error_of_step(*m.trainer);
  CHECK_THAT(error, Contains("train: step 3: the loss is nan"));
  CHECK_THAT(error, Contains("first value that is not finite is in y (4, 32, 64) of linear.forward "
                             "in blocks[0].mlp, forward"));
  CHECK_THAT(error, Contains("its inputs: x (4, 32,"));
  CHECK_THAT(error, Contains("NaN; the first bad weight") || Contains("; w ("));
  CHECK(error_of_step(*m.trainer) == error);  // nothing moved: weights, masks, gradients
}

TEST_CASE("training: a weight of 1e30 is traced to the product that overflows",
          "[watch][training][error][F47]") {
  Made m(small());
  fill(*m.trainer, "blocks.0.mlp.gate_up.weight", 1e30F);
  const std::string error = error_of_step(*m.trainer);
  CHECK_THAT(error, Contains("of gate.forward in blocks[0].mlp, forward"));
  CHECK_THAT(error, Contains("its inputs: a (4, 32,") && Contains("all weights are finite") &&
                        Contains("infinite"));
}

TEST_CASE("training: what overflows in the backward pass alone is found there",
          "[watch][training][error]") {
  RunConfig c = small();
  c.model.tied_head = false;
  c.model.norm_eps = 1e-12;
  Made m(c);
  // The norm hides how small its input is going forward; its gradient does not.
  for (auto& [name, w] : m.trainer->model().named_parameters()) {
    if (name == "embedding.weight")
      for (float& v : w.host<float>()) v *= 1e-37F;
    if (name == "final_norm.weight")
      for (float& v : w.host<float>()) v *= 1e37F;
  }
  const std::string error = error_of_step(*m.trainer);
  CHECK_THAT(error, Contains("train: step 1"));
  CHECK_THAT(error, Contains("the gradient norm is"));
  CHECK_THAT(error,
             Contains("is not finite is in dx (4, 32, 64) of rms_norm.backward in final_norm, "
                      "backward"));
}

TEST_CASE("bad values: work that stays finite gives no text, and its own errors pass",
          "[watch][error]") {
  register_all();
  CHECK(first_bad_call([] { linear(numbers({1}, {1, 1}), numbers({2}, {1, 1})); }).empty());
  CHECK_THROWS_WITH(first_bad_call([] { fail("something else"); }), "something else");
  const std::string found = first_bad_call([] {
    linear(numbers({1e30F}, {1, 1}), numbers({1e30F}, {1, 1}));
  });
  CHECK(found ==
        "the first value that is not finite is in y (1, 1) of linear.forward, forward (1 "
        "infinite); its inputs: x (1, 1) min 1e+30, max 1e+30; w (1, 1) min 1e+30, max 1e+30");
}
