// The losses: values and gradients, ignored targets, accumulation over micro-batches, memory,
// errors, and the faults that programs of this kind had.
#include <catch2/catch.hpp>

#include "autograd/functional.h"
#include "autograd/proof/proof.h"
#include "backends/register_all.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/linear_cross_entropy.h"
#include "tests/op_choices.h"
#include "tests/places.h"

using namespace tally;
using Catch::Matchers::Contains;
using ops::LossOptions;
using ops::Reduction;

namespace {

struct Setup {
  Setup() {
    register_all();
    register_proof_kernels();
  }
};

Tensor f64(const std::vector<double>& v, const Shape& s) {
  return from_host<double>(std::span<const double>(v), s, kReference);
}
Tensor i64(const std::vector<int64_t>& v) {
  return from_host<int64_t>(std::span<const int64_t>(v), {static_cast<int64_t>(v.size())},
                            kReference);
}
struct Result {
  std::vector<double> loss, gradient, stats;
};
Tensor targets_on(const Place& p, const std::vector<int64_t>& v) {
  return from_host<int64_t>(std::span<const int64_t>(v), {static_cast<int64_t>(v.size())},
                            p.device);
}
// Loss, gradient of its sum, statistics.
Result run_loss(const std::vector<double>& logits, const std::vector<int64_t>& targets,
                const LossOptions& o, const Place& p = {}) {
  const int64_t rows = static_cast<int64_t>(targets.size());
  Tensor x = given(p, logits, {rows, static_cast<int64_t>(logits.size()) / rows});
  x.requires_grad_();
  Tape tape;
  const auto y = cross_entropy_with_stats(x, targets_on(p, targets), o);
  Result r{to_doubles(y[0]), {}, to_doubles(y[1])};
  tape.backward(y[0], full(y[0].shape(), 1, y[0].dtype(), p.device));
  r.gradient = to_doubles(x.grad());
  return r;
}
void check_numbers(const std::vector<double>& a, const std::vector<double>& expected,
                   double bound = 1e-9) {
  REQUIRE(a.size() == expected.size());
  for (size_t i = 0; i < a.size(); ++i) {
    INFO("element " << i << ": " << a[i] << ", expected " << expected[i]);
    CHECK((a[i] == expected[i] ||
           std::fabs(a[i] - expected[i]) <= bound * std::max(1e-3, std::fabs(expected[i]))));
  }
}
LossOptions reduced(Reduction r) {
  LossOptions o;
  o.reduction = r;
  return o;
}

}  // namespace

TEST_CASE_METHOD(
    Setup, "cross_entropy: a batch with every target ignored gives 0, a count of 0 and no gradient",
    "[op][F06][F38]") {
  const Place place = GENERATE(from_range(places()));
  for (Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
    LossOptions o = reduced(reduction);
    o.z_loss = 1e-4;
    const Result r = run_loss({1, 2, 3, 0, 0, 0}, {-100, -100}, o, place);
    for (double loss : r.loss) CHECK(loss == 0);
    CHECK(r.stats == std::vector<double>(4, 0.0));
    CHECK(r.gradient == std::vector<double>(6, 0.0));
  }
  Tensor h = given(place, {1, 2, 3, 4}, {2, 2});
  h.requires_grad_();
  Tape tape;
  const auto fused = linear_cross_entropy_with_stats(h, h, targets_on(place, {-100, -100}));
  CHECK(fused[0].item() == 0);
  CHECK(to_doubles(fused[1]) == std::vector<double>(4, 0.0));
  tape.backward(fused[0]);
  CHECK(to_doubles(h.grad()) == std::vector<double>(4, 0.0));
  CHECK(cross_entropy(f64({}, {0, 5}), i64({})).item() == 0);
}

TEST_CASE_METHOD(Setup, "cross_entropy: refuses a target that is no class, in every reduction",
                 "[op][error][F07]") {
  const Place place = GENERATE(from_range(places()));
  const auto ids = [&](const std::vector<int64_t>& v) { return targets_on(place, v); };
  const Tensor x = given(place, {1, 2, 3, 0, 0, 0}, {2, 3});
  for (Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
    LossOptions o = reduced(reduction);
    CHECK_THROWS_WITH(cross_entropy(x, ids({0, -4}), o),
                      Contains("classes 0..2") && Contains("position 1 of (2) holds -4"));
    CHECK_THROWS_WITH(cross_entropy(x, ids({0, 255}), o), Contains("position 1 of (2) holds 255"));
    CHECK_THROWS_WITH(cross_entropy(x, ids({3, 0}), o), Contains("position 0 of (2) holds 3"));
    o.ignore_index = 255;
    const auto y = cross_entropy_with_stats(x, ids({0, 255}), o);
    CHECK(to_doubles(y[1])[ops::LossStats::kCount] == 1);
    CHECK(to_doubles(y[0])[0] == Approx(2.40760596444438).epsilon(place.bound));
    if (reduction == Reduction::none) CHECK(to_doubles(y[0])[1] == 0);
  }
  const Tensor h = given(place, {1, 2, 3, 4}, {2, 2});
  CHECK_THROWS_WITH(linear_cross_entropy(h, h, ids({1, 2})),
                    Contains("linear_cross_entropy: targets must be classes 0..1") &&
                        Contains("position 1 of (2) holds 2"));
}

TEST_CASE_METHOD(Setup, "cross_entropy: large logits neither overflow nor lose the loss",
                 "[op][F08]") {
  const Place place = GENERATE(from_range(places()));
  const LossOptions each = reduced(Reduction::none);
  const std::vector<double> x{1000, 0, -1000, 1000, 0, -1000, 1000, 0, -1000};
  const Result r = run_loss(x, {0, 1, 2}, each, place);
  check_numbers(r.loss, {0, 1000, 2000});
  check_numbers(r.gradient, {0, 0, 0, 1, -1, 0, 1, 0, -1});
  const Result inf = run_loss({-INFINITY, 0, 0, -INFINITY, 0, 0}, {1, 0}, each, place);
  check_numbers({inf.loss[0]}, {0.69314718056}, place.bound);
  CHECK(inf.loss[1] == INFINITY);  // not clipped in silence
  check_numbers({inf.gradient.begin(), inf.gradient.begin() + 3}, {0, -0.5, 0.5}, place.bound);
}

TEST_CASE_METHOD(Setup, "cross_entropy: adding a constant to all logits changes log Z alone",
                 "[op][L70]") {
  const Result a = run_loss({0.3, -1, 2, 0.5, 0, -2}, {0, 2}, {}),
               b = run_loss({7.3, 6, 9, 7.5, 7, 5}, {0, 2}, {});
  check_numbers(b.loss, a.loss);
  check_numbers(b.gradient, a.gradient);
  CHECK(b.stats[ops::LossStats::kLogZ] == Approx(a.stats[ops::LossStats::kLogZ] + 14));
}

TEST_CASE_METHOD(Setup, "losses: micro-batches add up to the exact mean over all targets",
                 "[op][F09]") {
  const std::vector<double> logits{2, 0, 0, 2, 1, 1, 5, -5, 0, 3}, plain{2, 0, 0, 2, 1, 1, 0, 3};
  struct Case {
    std::vector<double> logits;
    std::vector<int64_t> targets;
  };
  const Tensor identity = f64({1, 0, 0, 1}, {2, 2});
  for (const Case& c : {Case{plain, {0, 0, 1, 1}}, Case{logits, {0, 0, 1, -100, 1}}}) {
    const int64_t rows = static_cast<int64_t>(c.targets.size());
    for (bool fused : {false, true}) {
      const auto gradients = [&](const std::vector<int64_t>& sizes, double& total) {
        Tensor x = f64(c.logits, {rows, 2}).requires_grad_();
        LossOptions o;
        o.normalizer = 4;
        total = 0;
        int64_t at = 0;
        std::vector<double> g;
        for (int64_t size : sizes) {
          Tensor part =
              f64({c.logits.begin() + 2 * at, c.logits.begin() + 2 * (at + size)}, {size, 2});
          part.requires_grad_();
          const Tensor targets = i64({c.targets.begin() + at, c.targets.begin() + at + size});
          Tape tape;
          const Tensor y = fused ? linear_cross_entropy(part, identity, targets, o)
                                 : cross_entropy(part, targets, o);
          total += y.item();
          tape.backward(y);
          for (double v : to_doubles(part.grad())) g.push_back(v);
          at += size;
        }
        return g;
      };
      const std::vector<std::vector<int64_t>> splits =
          rows == 4 ? std::vector<std::vector<int64_t>>{{3, 1}, {2, 2}, {1, 1, 1, 1}}
                    : std::vector<std::vector<int64_t>>{{3, 2}, {4, 1}, {1, 1, 1, 1, 1}};
      double whole = 0, split = 0;
      const auto expected = gradients({rows}, whole);
      CHECK(whole == Approx(0.748897639).epsilon(1e-8));
      for (const auto& sizes : splits) {
        check_numbers(gradients(sizes, split), expected);
        CHECK(split == Approx(whole).epsilon(1e-12));
      }
    }
  }
  const double first = run_loss({2, 0, 0, 2, 1, 1}, {0, 0, 1}, {}).loss[0],
               last = run_loss({0, 3}, {1}, {}).loss[0];
  CHECK((first + last) / 2 ==
        Approx(0.515460876).epsilon(1e-8));  // the mean of means: another number
}

TEST_CASE_METHOD(Setup, "cross_entropy: the z-loss is averaged over the targets that count",
                 "[op][F10][L71]") {
  LossOptions o;
  o.z_loss = 1e-4;
  const std::vector<double> gradient{9.545224793e-4,
                                     2.274330013e-5,
                                     2.274330013e-5,
                                     1.0346991e-9,
                                     1.9999979310e-3,
                                     1.0346991e-9,
                                     0,
                                     0,
                                     0};
  const Result r = run_loss({10, 0, 0, 0, 20, 0, 5, 5, 5}, {0, 1, -100}, o);
  CHECK(r.stats[ops::LossStats::kCount] == 2);
  CHECK(r.stats[ops::LossStats::kLogZ] == Approx(10.0000907957 + 20.0000000041).epsilon(1e-11));
  CHECK(r.stats[ops::LossStats::kLogZSquared] / 2 == Approx(250.000908044).epsilon(1e-11));
  CHECK(r.loss[0] == Approx(0.0250454907343).epsilon(1e-11));
  check_numbers(r.gradient, gradient);
  const Result fast = run_loss({10, 0, 0, 0, 20, 0, 5, 5, 5}, {0, 1, -100}, o, places()[2]);
  CHECK(fast.loss[0] == Approx(0.0250454907343).epsilon(1e-6));
  check_numbers(fast.gradient, gradient, 1e-4);  // of 1e-3 at least: 1e-7 absolute
  // Micro-batches that share the count of 2 add up to the same: nothing is scaled a second time.
  o.normalizer = 2;
  const Result one = run_loss({10, 0, 0}, {0}, o),
               rest = run_loss({0, 20, 0, 5, 5, 5}, {1, -100}, o);
  CHECK(one.loss[0] + rest.loss[0] == Approx(0.0250454907343).epsilon(1e-11));
  check_numbers(one.gradient, {gradient.begin(), gradient.begin() + 3});
  check_numbers(rest.gradient, {gradient.begin() + 3, gradient.end()});
  o.normalizer.reset();
  o.z_loss = 0;
  const double nll = run_loss({10, 0, 0, 0, 20, 0, 5, 5, 5}, {0, 1, -100}, o).loss[0];
  CHECK(r.loss[0] - nll == Approx(1e-4 * 250.000908044).epsilon(1e-9));
  CHECK(r.stats[ops::LossStats::kNll] / 2 == Approx(nll).epsilon(1e-12));
}

TEST_CASE_METHOD(Setup, "losses: every choice of wanted gradients costs what it declares", "[op]") {
  LossOptions o;
  o.z_loss = 0.1;
  o.label_smoothing = 0.1;
  check_every_choice<ops::CrossEntropy>(o, {normal({2, 5}, 1), indices({2}, 2, 5)});
  check_every_choice<ops::LinearCrossEntropy>(
      o, {normal({3, 4}, 1), normal({5, 4}, 2), indices({3}, 3, 5)});
}

TEST_CASE_METHOD(Setup, "linear_cross_entropy: the logits never exist at once", "[op][memory]") {
  const int64_t rows = 8192, classes = 128256, width = 64;
  Tensor h = empty({rows, width}, DType::f32, kMeta),
         w = empty({classes, width}, DType::f32, kMeta);
  h.requires_grad_();
  w.requires_grad_();
  const Tensor targets = empty({rows}, DType::i64, kMeta);
  backend(kMeta).reset_peak();
  const size_t before = backend(kMeta).memory().live, logits = size_t{4} * 8192 * 128256;
  {
    const Ledger ledger;
    Tape tape;
    tape.backward(linear_cross_entropy(h, w, targets));
    CHECK(ledger.model_total().full == 6.0 * 8192 * 128256 * 64);  // nothing is computed twice
    CHECK(ledger.total().flops < 1.1 * ledger.model_total().full);
  }
  const size_t peak = backend(kMeta).memory().peak - before;
  CHECK(peak < logits / 20);
  CHECK(peak >= h.nbytes() + w.nbytes());
}

TEST_CASE_METHOD(Setup, "linear_cross_entropy: computes gradients only when someone wants them",
                 "[op]") {
  const Tensor h = empty({64, 8}, DType::f32, kMeta), w = empty({32, 8}, DType::f32, kMeta);
  const Tensor targets = empty({64}, DType::i64, kMeta);
  const Ledger ledger;
  linear_cross_entropy(h, w, targets);
  CHECK(ledger.model_total().full == 2.0 * 64 * 32 * 8);
}

TEST_CASE_METHOD(
    Setup, "linear_cross_entropy: multiplies by the upstream gradient, and adds to what is there",
    "[op]") {
  using O = ops::LinearCrossEntropy;
  const auto in = [](const Shape& s, uint64_t seed) {
    return make_input(normal(s, seed), DType::f64, kReference);
  };
  const Tensor h = in({4, 3}, 1), w = in({5, 3}, 2), targets = i64({0, 4, -100, 2});
  const auto grads = [&](double dy, const Into<3>& into) {
    O::Saved saved;
    O::forward(h, w, targets, {}, &saved);
    return O::backward({full({}, dy, DType::f64, kReference), Tensor()}, std::move(saved), into);
  };
  const auto one = grads(1, {}), two = grads(2, {});
  Into<3> into;
  into.target[0] = full(h.shape(), 1, DType::f64, kReference);
  into.skip[1] = true;
  const auto added = grads(2, into);
  CHECK(!added[1].defined());
  for (size_t i = 0; i < 12; ++i) {
    CHECK(two[0].host<double>()[i] == 2 * one[0].host<double>()[i]);
    CHECK(added[0].host<double>()[i] == 1 + 2 * one[0].host<double>()[i]);
  }
}

TEST_CASE_METHOD(Setup, "cross_entropy: reads targets that are a slice of a batch", "[op][F37]") {
  const Tensor ids = from_host<int64_t>({0, 1, 2, 2, 1, 0}, {2, 3}, kReference),
               targets = ids.narrow(1, 1, 2);
  const Tensor x = make_input(normal({2, 2, 3}, 1), DType::f64, kReference);
  const Tensor dense = from_host<int64_t>({1, 2, 1, 0}, {2, 2}, kReference);
  CHECK(cross_entropy(x, targets).item() == cross_entropy(x, dense).item());
  CHECK(linear_cross_entropy(x, x.reshape({4, 3}), targets).item() ==
        linear_cross_entropy(x, x.reshape({4, 3}), dense).item());
}

TEST_CASE_METHOD(Setup, "losses: say what does not fit", "[op][error][F05]") {
  const Tensor x = f64({1, 2, 3, 0, 0, 0}, {2, 3}), t = i64({0, 1});
  const auto with = [](auto&& change) {
    LossOptions o;
    change(o);
    return o;
  };
  CHECK_THROWS_WITH(cross_entropy({}, t), Contains("cross_entropy: logits is missing"));
  CHECK_THROWS_WITH(cross_entropy(x, {}), Contains("targets is missing"));
  CHECK_THROWS_WITH(cross_entropy(t, t), Contains("logits must be (..., V) floating-point"));
  CHECK_THROWS_WITH(cross_entropy(x, x), Contains("targets must be i64; got f64"));
  CHECK_THROWS_WITH(cross_entropy(x, i64({0})), Contains("one target a row, (2); got (1)"));
  CHECK_THROWS_WITH(cross_entropy(x, t, with([](auto& o) { o.label_smoothing = 1.5; })),
                    Contains("label_smoothing must be in 0..1; got 1.5"));
  CHECK_THROWS_WITH(cross_entropy(x, t, with([](auto& o) { o.z_loss = -1; })),
                    Contains("z_loss must be a finite number, 0 or more"));
  for (double cap : {0.0, -1.0, double(NAN), double(INFINITY)}) {
    CHECK_THROWS_WITH(cross_entropy(x, t, with([&](auto& o) { o.soft_cap = cap; })),
                      Contains("soft_cap must be a finite number above 0"));
  }
  for (double cap : {1e-39, 1e39})
    CHECK_THROWS_WITH(cross_entropy(x, t, with([&](auto& o) { o.soft_cap = cap; })),
                      Contains("soft_cap must be a normal number of f32"));
  CHECK_THROWS_WITH(cross_entropy(x, t, with([](auto& o) { o.normalizer = 0; })),
                    Contains("normalizer must be a finite number above 0"));
  CHECK_THROWS_WITH(
      cross_entropy(x, t, with([](auto& o) { o.normalizer = 2, o.reduction = Reduction::sum; })),
      Contains("for the mean only"));
  CHECK_THROWS_WITH(linear_cross_entropy({}, x, t), Contains("h is missing"));
  CHECK_THROWS_WITH(linear_cross_entropy(x, {}, t), Contains("weight is missing"));
  CHECK_THROWS_WITH(linear_cross_entropy(x, f64({1, 2}, {1, 2}), t),
                    Contains("(V, D) with D the last axis of h"));
  CHECK_THROWS_WITH(linear_cross_entropy(x, x, t, reduced(Reduction::none)),
                    Contains("reduces to the mean or the sum"));
  const ModuleScope scope("decoder");
  CHECK_THROWS_WITH(cross_entropy(x, i64({0, 7})), Contains("holds 7 in decoder"));
}

TEST_CASE_METHOD(
    Setup,
    "linear_cross_entropy: an ignored row that is no number leaves the gradient of the "
    "weight alone",
    "[op]") {
  const Device device = GENERATE(kReference, kCPU);
  constexpr int64_t kWidth = 3, kClasses = 4;
  const auto weight_gradient = [&](const std::vector<float>& h,
                                   const std::vector<int64_t>& targets) {
    const auto rows = static_cast<int64_t>(targets.size());
    Tensor x = from_host<float>(std::span<const float>(h), {rows, kWidth}, device),
           w = from_host<float>(std::vector<float>{0.1F, -0.2F, 0.3F, 0.4F, -0.5F, 0.6F, -0.7F,
                                                   0.8F, 0.9F, -1, 0.2F, -0.3F},
                                {kClasses, kWidth}, device);
    x.requires_grad_(), w.requires_grad_();
    Tape tape;
    tape.backward(linear_cross_entropy(x, w, from_host<int64_t>(targets, {rows}, device)));
    return to_host<float>(w.grad());
  };
  const std::vector<float> first{1, 2, 3}, last{-1, 0.5F, 2}, bad{NAN, INFINITY, 1};
  const auto rows = [](std::initializer_list<std::vector<float>> list) {
    std::vector<float> all;
    for (const auto& row : list) all.insert(all.end(), row.begin(), row.end());
    return all;
  };
  const auto want = weight_gradient(rows({first, last}), {1, 2}),
             got = weight_gradient(rows({first, bad, last}), {1, -100, 2});
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) CHECK(got[i] == Approx(want[i]).epsilon(1e-5));
  for (const float g : weight_gradient(rows({bad, bad}), {-100, -100})) CHECK(g == 0);
}
