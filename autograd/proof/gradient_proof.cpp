// The gradient proofs: the adjoint identity by dual numbers, and central differences.
#include <algorithm>
#include <map>

#include "autograd/proof/likely_mistake.h"
#include "autograd/proof/proof.h"

namespace tally {
namespace {

using Tensors = std::vector<Tensor>;
using Numbers = std::vector<double>;

double dot(const Numbers& a, const Numbers& b, double& magnitude) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
    magnitude += std::fabs(a[i] * b[i]);
  }
  return sum;
}

std::vector<Numbers> numbers_of(const Tensors& list) {
  std::vector<Numbers> out;
  for (const Tensor& t : list) out.push_back(t.defined() ? to_doubles(t) : Numbers{});
  return out;
}

// Forward and backward by hand in float64, and the gradients as numbers (empty: none).
struct Analytic {
  Tensors inputs;
  SampleRun run;
  std::vector<Numbers> gradients;

  explicit Analytic(const Sample& s)
      : inputs(make_inputs(s, DType::f64, kReference)), run(run_sample(s, inputs)) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!s.inputs[i].differentiable) continue;
      const Tensor& dx = run.gradients[i];
      check(dx.defined(), s.op, ": backward returned no gradient for input ", i, " of sample '",
            s.name, "'");
      check(dx.shape() == inputs[i].shape(), s.op, ": the gradient of input ", i, " has shape ",
            dx.shape(), ", the input ", inputs[i].shape(),
            "; is a sum over the broadcast axes missing?");
    }
    gradients = numbers_of(run.gradients);
  }
};

std::string mistake_of(const Sample& s, const Analytic& a, const std::vector<Numbers>& numeric,
                       int input) {
  GradientFacts facts{s,
                      input,
                      numbers_of(a.inputs),
                      numbers_of(a.run.outputs),
                      numbers_of(a.run.upstream),
                      a.gradients,
                      numeric,
                      {},
                      {}};
  for (const Tensor& y : a.run.outputs) facts.output_shapes.push_back(y.shape());
  facts.analytic_for = [&](const std::vector<Numbers>& dy) {
    Tensors upstream;
    for (size_t o = 0; o < dy.size(); ++o) {
      const Tensor& like = a.run.upstream[o];
      upstream.push_back(like.defined()
                             ? make_input(values(like.shape(), dy[o]), DType::f64, kReference)
                             : Tensor());
    }
    return numbers_of(run_sample(s, a.inputs, upstream).gradients);
  };
  return likely_mistake(facts);
}

// Derivative of <dy, y> along the directions of `duals`, and the sum of the absolute terms.
double derivative(const Sample& s, const Tensors& duals, const std::vector<Numbers>& dy,
                  double& magnitude) {
  const Tensors y = s.by_hand(duals).outputs;
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    if (dy[i].empty() || y[i].dtype() != DType::dual) continue;
    Numbers d;
    detail::each_element<Dual>(View(y[i]), [&](const Dual& x) { d.push_back(x.d); });
    sum += dot(dy[i], d, magnitude);
  }
  return sum;
}

// Where the elements of an input lie, in order; some at one place where memory is repeated.
template <class T>
std::vector<T*> places_of(const Tensor& t) {
  std::vector<T*> list;
  detail::each_element<T>(View(t), [&](T& x) { list.push_back(&x); });
  return list;
}

// Every derivative by dual numbers, one direction at a time: exact, for the report of a failure.
std::vector<Numbers> gradients_by_duals(const Sample& s, const Analytic& a) {
  Tensors duals = make_inputs(s, DType::dual, kReference);
  const auto dy = numbers_of(a.run.upstream);
  std::vector<Numbers> numeric(duals.size());
  for (size_t i = 0; i < duals.size(); ++i) {
    if (a.gradients[i].empty()) continue;
    for (Dual* x : places_of<Dual>(duals[i])) {
      double unused = 0;
      x->d = 1;
      numeric[i].push_back(derivative(s, duals, dy, unused));
      x->d = 0;
    }
  }
  return numeric;
}

// Central differences of fourth order: the truncation error is h^4, far below the bound at this h.
// Outputs are subtracted one by one, so that those that do not move cancel exactly. `noise` is what
// rounding may have done to the result.
Numbers differences(const Sample& s, Tensors& inputs, size_t i, const std::vector<Numbers>& dy,
                    Numbers& noise) {
  const auto outputs_at = [&](double* x, double value) {
    *x = value;
    return numbers_of(s.by_hand(inputs).outputs);
  };
  const auto x = places_of<double>(inputs[i]);
  Numbers numeric(x.size());
  noise.assign(x.size(), 0);
  for (size_t k = 0; k < x.size(); ++k) {
    const double at = *x[k], h = 1e-4 * std::max(1.0, std::fabs(at));
    const auto a = outputs_at(x[k], at + h), b = outputs_at(x[k], at - h);
    const auto c = outputs_at(x[k], at + h / 2), d = outputs_at(x[k], at - h / 2);
    *x[k] = at;
    for (size_t o = 0; o < dy.size(); ++o) {
      for (size_t e = 0; e < dy[o].size(); ++e) {
        numeric[k] += dy[o][e] * (8 * (c[o][e] - d[o][e]) - (a[o][e] - b[o][e])) / (6 * h);
        if (a[o][e] != b[o][e]) noise[k] += std::fabs(dy[o][e] * a[o][e]) * 4e-16 / h;
      }
    }
  }
  return numeric;
}

// The gradient of memory: the sum over the elements that lie there, for each of them.
Numbers of_memory(const Tensor& x, const Numbers& gradient) {
  const auto places = places_of<double>(x);
  std::map<const double*, double> sums;
  for (size_t k = 0; k < places.size(); ++k) sums[places[k]] += gradient[k];
  Numbers out;
  for (const double* place : places) out.push_back(sums[place]);
  return out;
}

// Puts the worst element of one input into the result.
void compare(ProofResult& r, size_t input, const Numbers& analytic, const Numbers& numeric,
             const Numbers& noise, double bound) {
  const double scale = std::max(largest(numeric), largest(analytic));
  for (size_t k = 0; k < numeric.size(); ++k) {
    const double base = std::max({scale, noise.empty() ? 0 : noise[k] / bound, 1e-300});
    double error = std::fabs(analytic[k] - numeric[k]) / base;
    if (std::isnan(error)) error = INFINITY;
    if (r.input >= 0 && error <= r.error) continue;
    r.error = error;
    r.input = static_cast<int>(input);
    r.element = static_cast<int64_t>(k);
    r.analytic = analytic[k];
    r.numeric = numeric[k];
  }
}

void describe(ProofResult& r) {
  if (r.input < 0) return;
  r.note = "input " + to_text(r.input) + ", element " + to_text(r.element) + ": analytic " +
           to_text(r.analytic) + ", numeric " + to_text(r.numeric);
  if (!r.mistake.empty()) r.note += "; likely: " + r.mistake;
}

ProofResult start(const Sample& s, double bound) {
  ProofResult r;
  r.op = s.op;
  r.sample = s.name;
  r.bound = bound;
  r.skipped = !s.by_hand;
  if (r.skipped) r.note = "no backward: refuses inputs that need a gradient";
  return r;
}

// An op that refuses its own sample has failed its proof: the other samples are still worth a look.
template <class Prove>
ProofResult guarded(ProofResult r, Prove&& prove) {
  if (r.skipped) return r;
  try {
    prove(r);
  } catch (const Error& e) {
    r.error = INFINITY;
    r.mistake = r.note = e.what();
  }
  return r;
}

void adjoint(const Sample& s, ProofResult& r) {
  const Analytic a(s);
  // The same inputs as dual numbers, each with a random direction where it has a gradient.
  const Tensors duals = make_inputs(s, DType::dual, kReference);
  double right = 0, magnitude = 0;
  for (size_t i = 0; i < duals.size(); ++i) {
    if (a.gradients[i].empty()) continue;
    const Numbers random = to_doubles(random_like(a.inputs[i], 200 + i));
    const auto places = places_of<Dual>(duals[i]);
    for (size_t k = 0; k < places.size(); ++k) places[k]->d = random[k];
    Numbers direction;  // read back: elements at one place have one
    for (const Dual* x : places) direction.push_back(x->d);
    right += dot(a.gradients[i], direction, magnitude);
  }
  const double left = derivative(s, duals, numbers_of(a.run.upstream), magnitude);
  r.error = std::fabs(left - right) / std::max(magnitude, 1e-300);
  if (std::isnan(r.error)) r.error = INFINITY;
  if (r.ok()) return;
  const auto numeric = gradients_by_duals(s, a);
  ProofResult worst;
  for (size_t i = 0; i < numeric.size(); ++i)
    if (!numeric[i].empty())
      compare(worst, i, of_memory(a.inputs[i], a.gradients[i]), numeric[i], {}, r.bound);
  r.input = worst.input;
  r.element = worst.element;
  r.analytic = worst.analytic;
  r.numeric = worst.numeric;
  if (r.input >= 0) r.mistake = mistake_of(s, a, numeric, r.input);
  describe(r);
}

void by_differences(const Sample& s, ProofResult& r) {
  const Analytic a(s);
  const auto dy = numbers_of(a.run.upstream);
  std::vector<Numbers> numeric(a.inputs.size());
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    if (a.gradients[i].empty()) continue;
    Numbers noise;
    Tensors inputs = make_inputs(s, DType::f64, kReference);
    numeric[i] = differences(s, inputs, i, dy, noise);
    compare(r, i, of_memory(inputs[i], a.gradients[i]), numeric[i], noise, r.bound);
  }
  if (!r.ok()) r.mistake = mistake_of(s, a, numeric, r.input);
  describe(r);
}

}  // namespace

ProofResult prove_adjoint(const Sample& s) {
  return guarded(start(s, 1e-12), [&](ProofResult& r) { adjoint(s, r); });
}

ProofResult prove_by_differences(const Sample& s) {
  ProofResult r = start(s, 1e-7);
  if (!r.skipped && !s.smooth) {
    r.skipped = true;
    r.note = "at a kink, in saturation or at an extreme: proven by the adjoint alone";
  }
  return guarded(std::move(r), [&](ProofResult& result) { by_differences(s, result); });
}

}  // namespace tally
