// The options of the losses, one by one and together: against compositions of plain ops, and the
// max-z loss against numbers by hand.
#include "core/ops/cross_entropy.h"
#include "core/ops/linear_cross_entropy.h"
#include "tests/op_choices.h"
#include "tests/op_values.h"

using namespace tally;
using Catch::Matchers::Contains;
using ops::LossOptions;
using ops::Reduction;

namespace {

constexpr int64_t kRows = 5, kWidth = 3, kClasses = 7;

/// The loss from plain ops alone: no cross entropy, no gradient by hand.
Tensor composed(const Tensor& h, const Tensor& w, const std::vector<int64_t>& targets,
                const LossOptions& o, const Place& place) {
  std::vector<int64_t> known = targets;
  std::vector<double> counts(targets.size(), 1);
  double count = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == o.ignore_index) known[i] = 0, counts[i] = 0;
    count += counts[i];
  }
  const auto rows = static_cast<int64_t>(targets.size());
  Tensor x = linear(h, w);
  if (o.soft_cap) x = soft_cap(x, *o.soft_cap);
  const Tensor log_z = logsumexp(x, {1}, true);
  const Tensor hit =
      gather(x, from_host<int64_t>(std::span<const int64_t>(known), {rows, 1}, place.device), 1);
  Tensor loss = scale(sub(log_z, hit), 1 - o.label_smoothing);
  loss = add(loss, scale(sub(log_z, mean(x, {1}, true)), o.label_smoothing));
  loss = add(loss, scale(square(log_z), o.z_loss));
  loss = add(loss, scale(square(amax(x, {1}, true)), o.max_z_loss));
  const Tensor total = sum(mul(loss, given(place, counts, {rows, 1})));
  return o.reduction == Reduction::sum ? total : scale(total, 1 / o.normalizer.value_or(count));
}

struct Result {
  double loss = 0;
  std::vector<double> dh, dw;
};
/// Loss and gradients of h and w, drawn anew from the same numbers.
template <class F>
Result result_of(const Place& place, F&& loss_of) {
  Tensor h = make_input(normal({kRows, kWidth}, 1), place.dtype, place.device),
         w = make_input(normal({kClasses, kWidth}, 2), place.dtype, place.device);
  h.requires_grad_(), w.requires_grad_();
  Tape tape;
  const Tensor loss = loss_of(h, w);
  tape.backward(loss, full({}, 0.7, loss.dtype(), place.device));
  return {loss.item(), to_doubles(h.grad()), to_doubles(w.grad())};
}
void check_same(const Result& a, const Result& b, double bound) {
  CHECK(a.loss == Approx(b.loss).epsilon(bound));
  for (const auto& [ours, theirs] : {std::pair{&a.dh, &b.dh}, std::pair{&a.dw, &b.dw}}) {
    REQUIRE(ours->size() == theirs->size());
    for (size_t i = 0; i < ours->size(); ++i)
      CHECK((*ours)[i] == Approx((*theirs)[i]).epsilon(bound).margin(bound));
  }
}

/// Every combination of the options' values.
std::vector<LossOptions> combinations() {
  std::vector<LossOptions> all;
  for (unsigned bits = 0; bits < 128; ++bits) {
    LossOptions o;
    if (bits & 1) o.label_smoothing = 0.2;
    if (bits & 2) o.z_loss = 0.03;
    if (bits & 4) o.max_z_loss = 0.05;
    if (bits & 8) o.soft_cap = 1.5;
    if (bits & 16) o.ignore_index = 4;
    if (bits & 32) o.reduction = Reduction::sum;
    if (bits & 64) o.normalizer = 9;
    if (o.normalizer && o.reduction == Reduction::sum) continue;
    all.push_back(o);
    o.label_smoothing = 1;
    if (bits & 1) all.push_back(o);
  }
  return all;
}

Result of_logits(const std::vector<double>& x, const std::vector<int64_t>& targets,
                 const LossOptions& o, const Place& place) {
  const auto rows = static_cast<int64_t>(targets.size());
  Tensor t = given(place, x, {rows, static_cast<int64_t>(x.size()) / rows});
  t.requires_grad_();
  Tape tape;
  const auto y = cross_entropy_with_stats(
      t, from_host<int64_t>(std::span<const int64_t>(targets), {rows}, place.device), o);
  tape.backward(y[0]);
  return {y[0].item(), to_doubles(t.grad()), to_doubles(y[1])};
}

}  // namespace

TEST_CASE_METHOD(Setup, "losses: every combination of options equals its composition",
                 "[op][L70][L71][L74]") {
  const Place place = GENERATE(from_range(places()));
  const double bound = place.dtype == DType::f64 ? 1e-11 : 1e-5;
  const std::vector<int64_t> targets{0, 4, 6, 4, 2};
  const Tensor ids = from_host<int64_t>(std::span<const int64_t>(targets), {kRows}, place.device);
  for (const LossOptions& o : combinations()) {
    INFO("smoothing " << o.label_smoothing << ", z " << o.z_loss << ", max-z " << o.max_z_loss
                      << ", cap " << o.soft_cap.value_or(0) << ", ignored " << o.ignore_index
                      << ", sum " << (o.reduction == Reduction::sum) << ", normalizer "
                      << o.normalizer.value_or(0) << ", bound " << place.bound);
    const Result plain = result_of(
        place, [&](const Tensor& h, const Tensor& w) { return composed(h, w, targets, o, place); });
    const Result fused = result_of(place, [&](const Tensor& h, const Tensor& w) {
      return linear_cross_entropy(h, w, ids, o);
    });
    const Result apart = result_of(place, [&](const Tensor& h, const Tensor& w) {
      return cross_entropy(linear(h, w), ids, o);
    });
    check_same(fused, plain, bound);
    check_same(apart, plain, bound);
  }
}

TEST_CASE_METHOD(Setup, "cross_entropy: the max-z loss pulls the first of the largest logits to 0",
                 "[op][L71]") {
  const Place place = GENERATE(from_range(places()));
  LossOptions o;
  o.reduction = Reduction::sum;
  const std::vector<double> x{1, 3, 3, -4, -2, -5};
  const Result without = of_logits(x, {0, 2}, o, place);
  o.max_z_loss = 0.1;
  const Result with = of_logits(x, {0, 2}, o, place);
  CHECK(with.loss - without.loss == Approx(0.1 * (9 + 4)).epsilon(place.bound * 10));
  const std::vector<double> pull{0, 0.2 * 3, 0, 0, 0.2 * -2, 0};
  for (size_t i = 0; i < pull.size(); ++i)
    CHECK(with.dh[i] - without.dh[i] == Approx(pull[i]).margin(place.bound * 10));
  CHECK(with.dw == without.dw);  // the statistics: what probes and reports show is the loss itself
  // Averaged over the targets that count, as all else.
  o.reduction = Reduction::mean;
  LossOptions none;
  const double mean = of_logits(x, {0, -100}, o, place).loss,
               plain = of_logits(x, {0, -100}, none, place).loss;
  CHECK(mean - plain == Approx(0.1 * 9).epsilon(place.bound * 10));
}

TEST_CASE_METHOD(Setup, "losses: a max-z loss must be a number, 0 or more", "[op][error]") {
  const Tensor x = f64({1, 2, 3, 0, 0, 0}, {2, 3}), t = i64({0, 1}, {2});
  for (const double value : {-1.0, double(NAN), double(INFINITY)}) {
    LossOptions o;
    o.max_z_loss = value;
    CHECK_THROWS_WITH(cross_entropy(x, t, o),
                      Contains("cross_entropy: max_z_loss must be a finite number, 0 or more"));
    CHECK_THROWS_WITH(linear_cross_entropy(x, x, t, o), Contains("linear_cross_entropy: max_z"));
  }
}

TEST_CASE_METHOD(Setup, "losses: the max-z loss costs what it declares", "[op]") {
  register_proof_kernels();
  LossOptions o;
  o.max_z_loss = 0.1, o.soft_cap = 2;
  check_every_choice<ops::CrossEntropy>(o, {normal({2, 5}, 1), indices({2}, 2, 5)});
  check_every_choice<ops::LinearCrossEntropy>(
      o, {normal({3, 4}, 1), normal({5, 4}, 2), indices({3}, 3, 5)});
}
