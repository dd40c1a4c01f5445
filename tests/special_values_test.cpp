// Special values through every op, forward and backward: what the formula gives in a wider type is
// what every backend gives in kind: a number, an infinity of a sign, or NaN.
#include <cfloat>
#include <map>
#include <set>

#include "core/ledger.h"
#include "tests/representative_samples.h"

using namespace tally;

namespace {

using Numbers = std::vector<double>;

// Those that modules get: what they add to their ops is a way from op to op.
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

/// Where the cpu multiplies what a mask hides by 0, with the rest of a tile: an infinity or a NaN
/// there is a NaN in what it does not concern.
bool in_one_product(const Sample& s) {
  const Ledger ledger;
  run_sample(s, make_inputs(s, DType::f32, kReference));
  for (const Entry& e : ledger.entries()) {
    const std::string call = e.op;
    if (call.starts_with("attention.") || call.starts_with("linear_cross_entropy.")) return true;
  }
  return false;
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
  Trial(const Sample& s, DType dtype, const Numbers& specials, const std::vector<bool>& places)
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
    for (const bool all : places_) {
      for (const double special : specials_) {
        const double v = rounded_to(dtype_, special);
        const auto put = [&](double x) {
          numbers = all ? Numbers(before.size(), x) : before;
          numbers[numbers.size() / 2] = x;
        };
        put(v);
        judge(where + (all ? " all " : " has ") + to_text(v), v, put);
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
    const bool spreads = !std::isfinite(v) && has_tiles_;
    for (size_t i = 0; i < truth.lists.size(); ++i) {
      for (size_t k = 0; k < truth.lists[i].size(); ++k) {
        const int t = kind_of(truth.lists[i][k]), f = kind_of(flushed.lists[i][k]);
        const int p = kind_of(plain.lists[i][k]), c = kind_of(fast.lists[i][k]);
        if (p == t && (c == t || c == f)) continue;
        if (t != 0 && underflows && (p == t || p == 2) && (c == t || c == 2)) continue;
        if (p == t && c == 2 && spreads) continue;
        wrong.push_back(sample_.op + " '" + sample_.name + "' in " + to_text(dtype_) + ", " + what +
                        ": list " + to_text(i) + ", element " + to_text(k) + " is " + name_of(t) +
                        "; the reference gives " + name_of(p) + ", the cpu " + name_of(c));
        return;
      }
    }
  }

  Sample sample_;
  bool has_tiles_ = in_one_product(sample_);
  const Numbers& specials_;
  const std::vector<bool>& places_;
  DType dtype_, wide_;
  std::vector<Numbers> upstream_;
};

void prove(DType dtype, bool modules) {
  const Numbers& specials = modules ? few_special_values() : special_values();
  const std::vector<bool> places = modules ? std::vector<bool>{false} : std::vector{false, true};
  std::map<std::string, int> failures;
  int64_t trials = 0, judged = 0;
  std::string first;
  for (const Sample* s : representative_samples(100, modules)) {
    if (!modules && (s->derived || numel_of(*s) > 100)) continue;
    if (s->module != modules || (dtype == DType::bf16 && !s->narrow)) continue;
    Trial trial(*s, dtype, specials, places);
    trial.run();
    trials += trial.trials, judged += trial.judged;
    failures[s->op] += static_cast<int>(trial.wrong.size());
    for (size_t i = 0; i < trial.wrong.size() && i < 3; ++i) first += trial.wrong[i] + "\n";
  }
  rounding() = {};
  INFO(first);
  for (const auto& [op, count] : failures) {
    INFO(op << ": " << count);
    CHECK(count == 0);
  }
  CHECK(trials > 10000);
  CHECK(judged > trials / 2);
}

}  // namespace

TEST_CASE("special values: every op gives a number, an infinity or NaN where its formula does",
          "[op]") {
  prove(DType::f32, false);
}

TEST_CASE("special values: the same for bf16", "[op]") { prove(DType::bf16, false); }

TEST_CASE("special values: the same for modules", "[op]") { prove(DType::f32, true); }
