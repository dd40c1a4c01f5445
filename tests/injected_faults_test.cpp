// Numbers that are not finite, put into weights and into what ops write: each stops the step before
// the update, by name, and training goes on afterwards as if nothing had been (F47).
#include <catch2/catch.hpp>
#include <cstring>

#include "core/ops/all.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::array kBad{std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()};

struct Random {
  uint64_t state = 1;
  int64_t below(int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(n));
  }
};

RunConfig two_layers() {
  RunConfig c = tiny();
  c.model.layers = 2;
  c.resolve_and_check("two layers");
  return c;
}

std::vector<std::vector<float>> moments(Trainer& t) {
  std::vector<std::vector<float>> all;
  for (auto& [name, m] : t.optimizer().state()) all.push_back(to_host<float>(m));
  return all;
}

/// What a step says that must stop; the weights and moments are those from before.
std::string stopped(Trainer& t, int64_t& count) {
  const auto before = weights(t), moments_before = moments(t);
  const int64_t done = t.steps_done();
  std::string said;
  try {
    t.step();
  } catch (const Error& e) {
    said = e.what();
  }
  ++count;
  REQUIRE_FALSE(said.empty());
  REQUIRE(t.steps_done() == done);
  // NaN is no number that equals itself: compared by their bytes.
  const auto same = [](const auto& a, const auto& b) {
    for (size_t i = 0; i < a.size(); ++i)
      if (std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0) return false;
    return a.size() == b.size();
  };
  REQUIRE(same(weights(t), before));
  REQUIRE(same(moments(t), moments_before));
  return said;
}

/// A kernel that leaves one number of its first output bad.
template <class C>
struct Poisoned {
  static inline Kernel<C> whole = nullptr;
  static inline int64_t element = 0;
  static inline float bad = 0;

  static void run(const C& call) {
    whole(call);
    bool first = true;
    const auto poison = [&]<class V>(const V& view) {
      if constexpr (std::is_base_of_v<Out, V>) {
        if (!first || !view.defined() || view.dtype != DType::f32) return;
        first = false;
        int64_t left = element % view.numel(), offset = 0;
        for (int axis = view.shape.ndim() - 1; axis >= 0; --axis) {
          offset += left % view.shape[axis] * view.strides[axis];
          left /= view.shape[axis];
        }
        view.template pointer<float>()[offset] = bad;
      }
    };
    std::apply([&](const auto&... v) { (poison(v), ...); }, call.views());
  }
};

/// Stops with a bad number in what `C` writes, for each of `times` elements.
template <class C>
void poison(Trainer& t, int times, Random& random, int64_t& count) {
  auto& kernel = kernels<C>[kCPU.kind][static_cast<size_t>(DType::f32)];
  REQUIRE(kernel);
  Poisoned<C>::whole = kernel;
  kernel = Poisoned<C>::run;
  t.set_mode(StepMode::replayed);  // what was recorded has the whole kernel
  for (int i = 0; i < times; ++i) {
    Poisoned<C>::element = random.below(int64_t{1} << 30);
    Poisoned<C>::bad = kBad[0];
    INFO(C::name << ", element " << Poisoned<C>::element);
    const std::string said = stopped(t, count);
    CHECK_THAT(said, Contains(C::name));
    CHECK_THAT(said, Contains("step 4"));
  }
  kernel = Poisoned<C>::whole;
  t.set_mode(StepMode::replayed);
}

}  // namespace

TEST_CASE("training: 500 injected NaN and infinities stop the step before the update",
          "[training][error][F47]") {
  const RunConfig c = two_layers();
  Made whole(c, 50), hurt(c, 50);
  losses(*whole.trainer, 3);
  losses(*hurt.trainer, 3);
  Trainer& t = *hurt.trainer;
  Random random;
  int64_t count = 0;

  for (auto& [name, w] : t.model().named_parameters()) {
    for (int i = 0; i < 18; ++i) {
      // Of the table only rows that the batch reads: 'e' is in every line.
      const int64_t columns = w.size(-1);
      const int64_t element = name == "embedding.weight" ? 'e' * columns + random.below(columns)
                                                         : random.below(w.numel());
      float& x = w.host<float>()[static_cast<size_t>(element)];
      const float was = std::exchange(x, kBad[static_cast<size_t>(i % 3)]);
      INFO(name << ", element " << element << ": " << x);
      CHECK_THAT(stopped(t, count), Contains(name));
      x = was;
    }
  }
  const int64_t weights_hurt = count;
  CHECK(weights_hurt >= 200);

  constexpr int kTimes = 17;
  poison<ops::Embedding::Forward>(t, kTimes, random, count);
  poison<ops::Embedding::Backward>(t, kTimes, random, count);
  poison<ops::Linear::Forward>(t, kTimes, random, count);
  poison<ops::Linear::Backward>(t, kTimes, random, count);
  poison<ops::RMSNorm::Forward>(t, kTimes, random, count);
  poison<ops::RMSNorm::Backward>(t, kTimes, random, count);
  poison<ops::Rope::Forward>(t, kTimes, random, count);
  poison<ops::Rope::Backward>(t, kTimes, random, count);
  poison<ops::AttentionForward>(t, kTimes, random, count);
  poison<ops::AttentionBackward>(t, kTimes, random, count);
  poison<ops::Gate::Forward>(t, kTimes, random, count);
  poison<ops::Gate::Backward>(t, kTimes, random, count);
  poison<ops::Dropout::Call>(t, kTimes, random, count);
  poison<ops::LinearCrossEntropy::Forward>(t, kTimes, random, count);
  poison<ops::LinearCrossEntropy::Backward>(t, kTimes, random, count);
  CHECK(count >= 500);
  WARN(count << " stopped, " << weights_hurt << " of them by a weight");

  CHECK(losses(t, 12) == losses(*whole.trainer, 12));
  CHECK(weights(t) == weights(*whole.trainer));
}
