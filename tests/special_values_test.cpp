// Special values through every op, forward and backward: what the formula gives in a wider type is
// what every backend gives in kind: a number, an infinity of a sign, or NaN.
#include <cfloat>
#include <map>
#include <set>

#include "autograd/samples/attention_grid.h"
#include "core/sanitizers.h"
#include "tests/large_samples.h"
#include "tests/representative_samples.h"

using namespace tally;

namespace {

using Numbers = std::vector<double>;
/// Which numbers of a list become the special one.
enum class Place : uint8_t { first, middle, last, all };
using Places = std::vector<Place>;
constexpr const char* kPlaces[] = {" begins with ", " has ", " ends with ", " all "};

// Those that modules get: what they add to their ops is a way from op to op. And samples from a
// product of shapes, which show no formula that the others do not, but other ways through kernels.
const Numbers& few_special_values() {
  static const Numbers list{NAN,  INFINITY, -INFINITY, static_cast<double>(FLT_MAX), 1e20, -1e20,
                            88.8, 1e-40,    -0.0};
  return list;
}

const Numbers& special_values() {
  static const Numbers list = [] {
    Numbers out{NAN};
    for (double v : {0.0,
                     static_cast<double>(FLT_TRUE_MIN),
                     1e-40,
                     static_cast<double>(FLT_MIN - FLT_TRUE_MIN),
                     static_cast<double>(FLT_MIN),
                     1e-30,
                     1e-20,
                     static_cast<double>(FLT_EPSILON),
                     1 - FLT_EPSILON / 2.0,
                     1.0,
                     1 + static_cast<double>(FLT_EPSILON),
                     20.0,
                     87.4,
                     88.7,
                     88.8,
                     90.0,
                     104.0,
                     1e10,
                     1e19,
                     1e20,
                     static_cast<double>(FLT_MAX),
                     static_cast<double>(INFINITY)}) {
      out.push_back(v);
      out.push_back(-v);
    }
    return out;
  }();
  return list;
}

bool is_subnormal(double v) { return v != 0 && std::fabs(v) < static_cast<double>(FLT_MIN); }

double rounded_to(DType dtype, double v) {
  const auto f = static_cast<float>(v);
  return static_cast<double>(dtype == DType::bf16 ? static_cast<float>(bf16(f)) : f);
}

int kind_of(double v) { return std::isnan(v) ? 2 : std::isfinite(v) ? 0 : v > 0 ? 1 : -1; }
const char* name_of(int kind) {
  return kind == 2 ? "NaN" : kind == 0 ? "a number" : kind == 1 ? "+inf" : "-inf";
}

/// Outputs and gradients as numbers.
struct Results {
  std::vector<Numbers> lists;
  std::vector<Numbers> choices;  // integers
  RoundedRange range;            // of the loops in the wider type
};

Results results(const Sample& s, const std::vector<Numbers>& upstream, DType dtype, Device device) {
  Results r;
  rounded_range() = {};
  const std::vector<Tensor> inputs = make_inputs(s, dtype, device);
  if (!s.by_hand) {
    for (const Tensor& y : s.apply(inputs)) r.lists.push_back(to_doubles(y));
  } else {
    const Sample::Explicit e = s.by_hand(inputs);
    std::vector<Tensor> dy;
    for (size_t i = 0; i < e.outputs.size(); ++i) {
      const Tensor& y = e.outputs[i];
      r.lists.push_back(to_doubles(y));
      if (!is_floating(y.dtype())) r.choices.push_back(r.lists.back());
      dy.push_back(is_floating(y.dtype())
                       ? make_input(values(y.shape(), upstream[i]), y.dtype(), device)
                       : Tensor());
    }
    const auto gradients = e.backward(dy);
    for (size_t i = 0; i < gradients.size(); ++i) {
      const bool there = gradients[i].defined() && s.inputs[i].differentiable;
      r.lists.push_back(there ? to_doubles(gradients[i]) : Numbers{});
    }
  }
  r.range = rounded_range();
  return r;
}

/// One sample in one type, with the numbers of its inputs and upstream gradients to be changed.
class Trial {
 public:
  Trial(const Sample& s, DType dtype, const Numbers& specials, const Places& places)
      : sample_(s),
        specials_(specials),
        places_(places),
        dtype_(dtype),
        wide_(dtype == DType::bf16 ? DType::rounded_half : DType::rounded) {
    rounding() = rounding_of(dtype);
    for (SampleInput& in : sample_.inputs) {
      if (!is_floating(in.dtype)) continue;
      for (double& v : in.values) v = rounded_to(dtype, v);
    }
    if (!sample_.by_hand) return;
    for (const Tensor& dy : run_sample(sample_, make_inputs(sample_, dtype, kReference)).upstream)
      upstream_.push_back(dy.defined() ? to_doubles(dy) : Numbers{});
  }
  /// Every special value at one place, or at all places, of every list of numbers.
  void run() {
    for (size_t i = 0; i < sample_.inputs.size(); ++i) {
      SampleInput& in = sample_.inputs[i];
      if (in.present && is_floating(in.dtype)) each_value(in.values, "input " + to_text(i));
    }
    for (size_t i = 0; i < upstream_.size(); ++i)
      each_value(upstream_[i], "upstream gradient " + to_text(i));
  }
  int64_t trials = 0, judged = 0;
  std::vector<std::string> wrong;

 private:
  void each_value(Numbers& numbers, const std::string& where) {
    if (numbers.empty()) return;
    const Numbers before = numbers;
    for (const Place place : places_) {
      for (const double special : specials_) {
        const double v = rounded_to(dtype_, special);
        const auto put = [&](double x) {
          numbers = place == Place::all ? Numbers(before.size(), x) : before;
          const size_t last = numbers.size() - 1;
          numbers[place == Place::first ? 0 : place == Place::last ? last : (last + 1) / 2] = x;
        };
        put(v);
        judge(where + kPlaces[static_cast<size_t>(place)] + to_text(v), v, put);
        numbers = before;
      }
    }
  }
  template <class Put>
  void judge(const std::string& what, double v, Put put) {
    ++trials;
    Results truth = results(sample_, upstream_, wide_, kReference), flushed = truth;
    const Results plain = results(sample_, upstream_, dtype_, kReference),
                  fast = results(sample_, upstream_, dtype_, kCPU);
    // Where the largest number is passed on the way, kinds depend on the order of the operations;
    // where elements are equal in one type alone, other ones are chosen.
    if (truth.range.largest > 0.5 * static_cast<double>(FLT_MAX)) return;
    if (truth.choices != plain.choices) return;
    if (is_subnormal(v)) {  // which kernels take for 0
      put(std::copysign(0.0, v));
      flushed = results(sample_, upstream_, wide_, kReference);
    }
    ++judged;
    const bool underflows = truth.range.least < static_cast<double>(FLT_MIN);
    for (size_t i = 0; i < truth.lists.size(); ++i) {
      for (size_t k = 0; k < truth.lists[i].size(); ++k) {
        const int t = kind_of(truth.lists[i][k]), f = kind_of(flushed.lists[i][k]);
        const int p = kind_of(plain.lists[i][k]), c = kind_of(fast.lists[i][k]);
        if (p == t && (c == t || c == f)) continue;
        if (t != 0 && underflows && (p == t || p == 2) && (c == t || c == 2)) continue;
        wrong.push_back(sample_.op + " '" + sample_.name + "' in " + to_text(dtype_) + ", " + what +
                        ": list " + to_text(i) + ", element " + to_text(k) + " is " + name_of(t) +
                        "; the reference gives " + name_of(p) + ", the cpu " + name_of(c));
        return;
      }
    }
  }

  Sample sample_;
  const Numbers& specials_;
  const Places& places_;
  DType dtype_, wide_;
  std::vector<Numbers> upstream_;
};

using Samples = std::vector<const Sample*>;

/// Small samples of ops or of modules: those that are their own, or those from products of shapes.
Samples small_samples(bool modules, bool derived) {
  Samples chosen;
  if (!derived) {
    for (const Sample* s : representative_samples(100, modules))
      if (s->module == modules && (modules || (!s->derived && numel_of(*s) <= 100)))
        chosen.push_back(s);
    return chosen;
  }
  for (const Sample& s : all_samples())
    if (s.derived && s.module == modules && numel_of(s) <= 100) chosen.push_back(&s);
  return chosen;
}

// Under the sanitizers, ten times as slow, one sample in eight.
constexpr size_t kEvery = kSanitized ? 8 : 1;

void prove(DType dtype, const Samples& samples, const Numbers& specials, const Places& places) {
  std::map<std::string, int> failures;
  int64_t trials = 0, judged = 0;
  std::string first;
  for (size_t i = 0; i < samples.size(); i += kEvery) {
    const Sample* s = samples[i];
    if (dtype == DType::bf16 && !s->narrow) continue;
    Trial trial(*s, dtype, specials, places);
    trial.run();
    trials += trial.trials, judged += trial.judged;
    failures[s->op] += static_cast<int>(trial.wrong.size());
    for (size_t w = 0; w < trial.wrong.size() && w < 3; ++w) first += trial.wrong[w] + "\n";
  }
  rounding() = {};
  INFO(first);
  for (const auto& [op, count] : failures) {
    INFO(op << ": " << count);
    CHECK(count == 0);
  }
  CHECK(trials * int64_t{kEvery} > 10 * std::ssize(samples));
  CHECK(judged > trials / 2);
}

/// Every choice of keys under everything that changes a score, over several tiles and panels of the
/// cpu's kernels.
std::vector<Sample> attention_in_tiles() {
  using namespace samples;
  std::vector<Sample> list;
  uint64_t seed = 1;
  for (const auto& [keys, attrs] : key_choices()) {
    for (int c = 0; c < kScoreChangeCount; ++c) {
      const std::string name = keys + ", " + kScoreChanges[c];
      list.push_back(attention_of(name, attrs, {1, 35, 41, 2, 1, 3, 2}, static_cast<ScoreChange>(c),
                                  seed += 10));
    }
  }
  return list;
}

}  // namespace

TEST_CASE("special values: every op gives a number, an infinity or NaN where its formula does",
          "[op]") {
  prove(DType::f32, small_samples(false, false), special_values(), {Place::middle, Place::all});
}

TEST_CASE("special values: the same for bf16", "[op]") {
  prove(DType::bf16, small_samples(false, false), special_values(), {Place::middle, Place::all});
}

TEST_CASE("special values: the same for modules", "[op]") {
  prove(DType::f32, small_samples(true, false), few_special_values(), {Place::middle});
}

TEST_CASE("special values: the same for samples from products of shapes", "[op]") {
  prove(DType::f32, small_samples(false, true), few_special_values(), {Place::middle});
}

TEST_CASE("special values: attention hides a NaN and an infinity in any tile", "[op]") {
  set_up_proofs();
  const std::vector<Sample> list = attention_in_tiles();
  Samples samples;
  for (const Sample& s : list) samples.push_back(&s);
  prove(DType::f32, samples, {NAN, INFINITY, -INFINITY},
        {Place::first, Place::middle, Place::last});
}

TEST_CASE("special values: attention hides them in parts too", "[op]") {
  set_up_proofs();
  const std::vector<Sample> list = large_patterns();
  Samples samples;
  for (const Sample& s : list) samples.push_back(&s);
  prove(DType::f32, samples, {NAN}, {Place::first, Place::middle, Place::last});
}
