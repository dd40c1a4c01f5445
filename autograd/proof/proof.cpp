#include "autograd/proof/proof.h"

#include <cstring>

#include "core/ops/layout.h"
#include "core/random.h"

namespace tally {
namespace {

using Tensors = std::vector<Tensor>;

Tensors make_inputs(const Sample& s, DType dtype, Device device) {
  Tensors in;
  for (const SampleInput& i : s.inputs) in.push_back(make_input(i, dtype, device));
  return in;
}

ProofResult skipped(const Sample& s, std::string why) {
  ProofResult r{s.op, s.name, true, 0, 0, {}};
  r.skipped = true;
  r.note = std::move(why);
  return r;
}

double dot(const std::vector<double>& a, const std::vector<double>& b, double& magnitude) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
    magnitude += std::fabs(a[i] * b[i]);
  }
  return sum;
}

double largest(const std::vector<double>& v) {
  double m = 0;
  for (double x : v) m = std::max(m, std::fabs(x));
  return m;
}

// Analytic gradients of <dy, outputs> by hand in float64, one vector an input (empty: none).
std::vector<std::vector<double>> gradients_by_hand(const Sample& s, const Tensors& inputs, Tensors& dy) {
  Sample::Explicit e = s.by_hand(inputs);
  dy.clear();
  for (size_t i = 0; i < e.outputs.size(); ++i) dy.push_back(random_like(e.outputs[i], 100 + i));
  const Tensors dx = e.backward(dy, {});
  std::vector<std::vector<double>> out(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!s.inputs[i].differentiable) continue;
    check(dx[i].defined(), s.op, ": backward returned no gradient for input ", i, " of sample '", s.name, "'");
    check(dx[i].shape() == inputs[i].shape(), s.op, ": the gradient of input ", i, " has shape ", dx[i].shape(), ", the input ",
          inputs[i].shape(), "; is a sum over the broadcast axes missing?");
    out[i] = to_doubles(dx[i]);
  }
  return out;
}

double objective(const Sample& s, const Tensors& inputs, const Tensors& dy) {
  const Tensors y = s.by_hand(inputs).outputs;
  double sum = 0, magnitude = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    if (dy[i].defined()) sum += dot(to_doubles(y[i]), to_doubles(dy[i]), magnitude);
  }
  return sum;
}

// What the numbers suggest when analytic and numeric gradients part.
std::string likely_mistake(const std::vector<double>& a, const std::vector<double>& n, const Shape& shape) {
  const double scale = std::max(largest(n), 1e-300);
  const auto all = [&](auto&& expected) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::fabs(a[i] - expected(i)) > 1e-5 * scale) return false;
    }
    return true;
  };
  if (largest(a) == 0) return "the gradient is zero everywhere: it is never written";
  if (all([&](size_t i) { return -n[i]; })) return "wrong sign";
  double an = 0, nn = 0;
  for (size_t i = 0; i < a.size(); ++i) an += a[i] * n[i], nn += n[i] * n[i];
  const double factor = an / nn;
  if (all([&](size_t i) { return factor * n[i]; })) return "off by a factor of " + to_text(factor) + ": a forgotten or doubled constant, or a mean taken for a sum";
  if (shape.ndim() == 2 && shape[0] == shape[1]) {
    const size_t m = static_cast<size_t>(shape[0]);
    if (all([&](size_t i) { return n[i % m * m + i / m]; })) return "transposed";
  }
  size_t wrong = 0, last = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::fabs(a[i] - n[i]) > 1e-5 * scale) ++wrong, last = i;
  }
  if (wrong * 4 <= a.size()) {
    return to_text(wrong) + " of " + to_text(a.size()) + " elements differ, element " + to_text(last) + " among them: a border, a mask or an index is off by one";
  }
  double part = 0;
  for (size_t i = 0; i < a.size(); ++i) part = std::max(part, std::fabs(a[i]) / scale);
  return part < 0.999 ? "smaller than it should be: a path of the gradient is not added up" : "wrong formula";
}

}  // namespace

std::vector<double> to_doubles(const Tensor& t) {
  std::vector<double> out;
  const auto take = [&]<class T>(std::type_identity<T>) {
    detail::each_element<T>(View(t), [&](const T& x) {
      if constexpr (std::is_same_v<T, bf16>) out.push_back(static_cast<double>(static_cast<float>(x)));
      else out.push_back(static_cast<double>(x));
    });
  };
  switch (t.dtype()) {
    case DType::f32: take(std::type_identity<float>{}); break;
    case DType::f64: take(std::type_identity<double>{}); break;
    case DType::bf16: take(std::type_identity<bf16>{}); break;
    case DType::i64: take(std::type_identity<int64_t>{}); break;
    case DType::dual: take(std::type_identity<Dual>{}); break;
    default: fail("to_doubles: not for ", t.dtype());
  }
  return out;
}

Tensor random_like(const Tensor& t, uint64_t seed) {
  if (!is_floating(t.dtype())) return {};
  return make_input(normal(t.shape(), seed), t.dtype(), t.device());
}

ProofResult prove_adjoint(const Sample& s) {
  if (!s.by_hand) return skipped(s, "no backward: refuses inputs that need a gradient");
  ProofResult r{s.op, s.name, false, 0, 1e-12, {}};
  const Tensors inputs = make_inputs(s, DType::f64, kReference);
  Tensors dy;
  const auto gradients = gradients_by_hand(s, inputs, dy);
  // The same inputs as dual numbers, each with a random direction where it has a gradient.
  Tensors duals = make_inputs(s, DType::dual, kReference);
  double right = 0, magnitude = 0;
  for (size_t i = 0; i < duals.size(); ++i) {
    if (!s.inputs[i].differentiable) continue;
    const auto direction = to_doubles(random_like(inputs[i], 200 + i));
    Dual* d = static_cast<Dual*>(duals[i].data());
    for (size_t k = 0; k < direction.size(); ++k) d[k].d = direction[k];
    right += dot(gradients[i], direction, magnitude);
  }
  const Tensors y = s.by_hand(duals).outputs;
  double left = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    if (!dy[i].defined() || y[i].dtype() != DType::dual) continue;
    std::vector<double> derivative;
    detail::each_element<Dual>(View(y[i]), [&](const Dual& x) { derivative.push_back(x.d); });
    left += dot(to_doubles(dy[i]), derivative, magnitude);
  }
  r.error = std::fabs(left - right) / std::max(magnitude, 1e-300);
  if (!(r.error <= r.bound)) r.note = "<dy, J t> = " + to_text(left) + ", <J^T dy, t> = " + to_text(right);
  if (std::isnan(r.error)) r.error = INFINITY;
  return r;
}

ProofResult prove_by_differences(const Sample& s) {
  if (!s.by_hand) return skipped(s, "no backward: refuses inputs that need a gradient");
  if (!s.smooth) return skipped(s, "at a kink, in saturation or at an extreme: proven by the adjoint alone");
  ProofResult r{s.op, s.name, false, 0, 1e-7, {}};
  Tensors inputs = make_inputs(s, DType::f64, kReference);
  Tensors dy;
  const auto gradients = gradients_by_hand(s, inputs, dy);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!s.inputs[i].differentiable) continue;
    std::vector<double> numeric(gradients[i].size());
    double* x = static_cast<double*>(inputs[i].data());
    for (size_t k = 0; k < numeric.size(); ++k) {
      const double at = x[k], h = 1e-4 * std::max(1.0, std::fabs(at));
      const auto f = [&](double step) {
        x[k] = at + step;
        return objective(s, inputs, dy);
      };
      // Fourth order: the truncation error is h^4, far below the bound at this h.
      numeric[k] = (8 * (f(h / 2) - f(-h / 2)) - (f(h) - f(-h))) / (6 * h);
      x[k] = at;
    }
    const double scale = std::max(largest(numeric), largest(gradients[i]));
    for (size_t k = 0; k < numeric.size(); ++k) {
      const double error = std::fabs(gradients[i][k] - numeric[k]) / std::max(scale, 1e-8);
      if (error <= r.error) continue;
      r.error = error;
      r.note = "input " + to_text(i) + ", element " + to_text(k) + ": analytic " + to_text(gradients[i][k]) + ", numeric " + to_text(numeric[k]);
      if (error > r.bound) r.note += "; likely: " + likely_mistake(gradients[i], numeric, s.inputs[i].shape);
    }
  }
  return r;
}

ProofResult prove_cost(const Sample& s) {
  ProofResult r{s.op, s.name, false, 0, 0, {}};
  for (DType dtype : {DType::counted, DType::counted_half}) {
    counted_calls().clear();
    const Tensors inputs = make_inputs(s, dtype, kReference);
    if (s.by_hand) {
      Sample::Explicit e = s.by_hand(inputs);
      Tensors dy;
      for (const Tensor& y : e.outputs) dy.push_back(random_like(y, 100));
      e.backward(dy, {});
    } else {
      s.apply(inputs);
    }
    for (const CountedCall& c : counted_calls()) {
      const double differences[] = {c.declared.flops - c.counted.flops, c.declared.bytes_read - c.counted.bytes_read,
                                    c.declared.bytes_written - c.counted.bytes_written};
      for (double d : differences) {
        const double error = s.bounded_cost ? std::max(-d, 0.0) : std::fabs(d);
        if (error <= r.error) continue;
        r.error = error;
        r.note = c.call + ": declared " + to_text(c.declared.flops) + " FLOP, " + to_text(c.declared.bytes_read) + " B read, " +
                 to_text(c.declared.bytes_written) + " B written; counted " + to_text(c.counted.flops) + ", " +
                 to_text(c.counted.bytes_read) + ", " + to_text(c.counted.bytes_written);
      }
    }
  }
  return r;
}

ProofResult prove_tape(const Sample& s, Device device, DType dtype) {
  if (!s.by_hand) return skipped(s, "no backward: refuses inputs that need a gradient");
  ProofResult r{s.op, s.name, false, 0, 0, {}};
  const Tensors inputs = make_inputs(s, dtype, device);
  Tensors leaves = make_inputs(s, dtype, device), expected(inputs.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (s.inputs[i].differentiable) leaves[i].requires_grad_();
  }
  for (int pass = 0; pass < 2; ++pass) {  // the second adds to the first
    Sample::Explicit e = s.by_hand(inputs);
    Tensors dy(e.outputs.size());  // as the tape's seed: the first output alone has a gradient
    dy[0] = random_like(e.outputs[0], 300);
    for (Tensor& t : expected) {  // targets of their own: two gradients may be one tensor, as in add
      if (t.defined()) t = ops::Copy::forward(t, {}, nullptr);
    }
    expected = e.backward(dy, pass ? expected : Tensors{});
    Tape tape;
    const Tensors y = s.apply(leaves);
    tape.backward(y[0], random_like(y[0], 300));  // not dy[0], which a gradient may share memory with
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!s.inputs[i].differentiable) continue;
    const auto a = to_doubles(expected[i]), b = to_doubles(leaves[i].grad());
    if (a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0)) continue;
    r.error = 1;
    r.note = "the gradients of input " + to_text(i) + " differ between the tape and the calls by hand";
  }
  return r;
}

}  // namespace tally
