// The proofs that compare runs: tape and calls by hand, numbers of threads, meta and a real device.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "autograd/proof/proof.h"
#include "autograd/proof/taped_sample.h"
#include "core/ledger.h"
#include "core/parallel.h"

namespace tally {
namespace {

using Tensors = std::vector<Tensor>;

ProofResult start(const Sample& s) {
  ProofResult r;
  r.op = s.op;
  r.sample = s.name;
  return r;
}

void fail_with(ProofResult& r, std::string note) {
  r.error = 1;
  r.note = std::move(note);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  const auto x = to_doubles(a), y = to_doubles(b);
  return a.shape() == b.shape() &&
         (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0);
}

Tensors copies(const Tensors& list) {
  Tensors out;
  for (const Tensor& t : list) {
    out.push_back(t.defined() ? empty_like(t) : Tensor());
    if (t.defined() && t.numel() > 0)
      backend(t.device()).copy(out.back().data(), t.data(), t.nbytes());
  }
  return out;
}

// The same pass twice, the second added to the first, must double every gradient; coarse, since the
// order of sums may change, but an = in place of += is off by half.
bool doubles(const Tensor& twice, const Tensor& once, DType dtype) {
  const auto a = to_doubles(twice), b = to_doubles(once);
  double scale = 0;
  for (double x : b) scale = std::max(scale, std::fabs(x));
  for (size_t i = 0; i < a.size(); ++i) {
    const double off = std::fabs(a[i] - 2 * b[i]);
    if (off > (dtype == DType::bf16 ? 0.1 : 0.01) * scale) return false;
  }
  return true;
}

// The gradients of two passes, the second added to the first: by hand and on the tape.
void compare_passes(const Sample& s, Device device, DType dtype, const Sample::Skips& skip,
                    const std::string& variant, ProofResult& r) {
  Tensors leaves = make_inputs(s, dtype, device), by_hand(leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!skip[i]) leaves[i].requires_grad_();
  }
  for (int pass = 0; pass < 2; ++pass) {
    const std::string when = (pass ? "accumulated" : "fresh") + variant + ": ";
    const Sample::Explicit e = s.by_hand(leaves);
    const Tensors before = copies(by_hand);
    by_hand = e.backward(random_upstream(e.outputs), copies(by_hand), skip);
    Tape tape;
    const Tensors y = s.apply(leaves);
    backward_from(y, random_upstream(y));
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (skip[i]) continue;
      const std::string which = when + "the gradient of input " + to_text(i);
      if (!same_bits(by_hand[i], leaves[i].grad())) {
        fail_with(r, which + " differs between the tape and the calls by hand");
      } else if (pass && !doubles(by_hand[i], before[i], dtype)) {
        fail_with(r, which + " is not added to the one that was given: = stands where += belongs");
      }
    }
  }
}

std::string bits_differ(const SampleRun& a, const SampleRun& b) {
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    if (!same_bits(a.outputs[i], b.outputs[i])) return "output " + to_text(i);
  }
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    if (!same_bits(a.gradients[i], b.gradients[i])) return "the gradient of input " + to_text(i);
  }
  return "";
}

// What is wrong when input `i` needs a gradient that the op cannot give; nothing if it says so.
std::string not_refused(const Sample& s, size_t i) {
  Tensors leaves = make_inputs(s, DType::f64, kReference);
  leaves[i].requires_grad_();
  Tape tape;
  try {
    s.apply(leaves);
  } catch (const Error& e) {
    const std::string said = e.what();
    if (said.rfind(s.op, 0) == 0 && said.find("has no backward") != said.npos) return "";
    return "the refusal of input " + to_text(i) + " does not name the op: '" + said + "'";
  }
  return "input " + to_text(i) + " needs a gradient, is taken, and gets none";
}

// What the ledger and the memory counters see of one run.
struct Trace {
  std::string ledger, shapes;
  size_t peak = 0, allocations = 0;
};

Trace trace(const Sample& s, Device device, DType dtype, bool taped) {
  Tensors inputs = make_inputs(s, dtype, device);
  Backend& b = backend(device);
  const size_t before = b.memory().live;
  b.reset_peak();
  Trace t;
  Ledger ledger;
  SampleRun run;
  if (taped) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (s.inputs[i].differentiable) inputs[i].requires_grad_();
    }
    Tape tape;
    run.outputs = s.apply(inputs);
    if (s.by_hand) backward_from(run.outputs, random_upstream(run.outputs));
    for (const Tensor& x : inputs) run.gradients.push_back(x.defined() ? x.grad() : Tensor());
  } else {
    run = run_sample(s, inputs);
  }
  t.peak = b.memory().peak - before;
  t.allocations = b.memory().allocations;
  t.ledger = ledger.text();
  for (const Tensors& list : {run.outputs, run.gradients}) {
    for (const Tensor& x : list)
      t.shapes += x.defined() ? to_text(x.shape()) + " " + to_text(x.dtype()) + ", " : "none, ";
  }
  return t;
}

std::string first_difference(const std::string& a, const std::string& b) {
  const size_t at =
      static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  const size_t line = at == 0 ? 0 : a.rfind('\n', at - 1) + 1;
  return "'" + a.substr(line, a.find('\n', at) - line) + "' against '" +
         b.substr(line, b.find('\n', at) - line) + "'";
}

}  // namespace

ProofResult prove_tape(const Sample& s, Device device, DType dtype) {
  ProofResult r = start(s);
  if (skips_narrow(s, dtype, r)) return r;
  r.skipped = !s.by_hand;
  if (r.skipped) {
    r.note = "no backward: refuses inputs that need a gradient";
    return r;
  }
  Sample::Skips skip(s.inputs.size());
  int wanted = 0;
  for (size_t i = 0; i < skip.size(); ++i) {
    skip[i] = !s.inputs[i].differentiable;
    wanted += skip[i] ? 0 : 1;
  }
  if (wanted == 0) return r;
  compare_passes(s, device, dtype, skip, "", r);
  // A module is made of ops, for each of which one gradient alone is asked.
  for (size_t i = 0; !s.module && wanted > 1 && i < skip.size(); ++i) {
    if (skip[i]) continue;
    Sample::Skips others(skip.size(), true);
    others[i] = false;
    compare_passes(s, device, dtype, others, ", input " + to_text(i) + " alone", r);
  }
  return r;
}

ProofResult prove_refusal(const Sample& s) {
  ProofResult r = start(s);
  if (s.by_hand) {
    r.skipped = true;
    r.note = "has a backward";
    return r;
  }
  bool asked = false;
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const SampleInput& in = s.inputs[i];
    if (!in.present || in.type_alone || !is_floating(in.dtype)) continue;
    asked = true;
    const std::string wrong = not_refused(s, i);
    if (!wrong.empty()) fail_with(r, wrong);
  }
  r.skipped = !asked;
  if (!asked) r.note = "no floating tensor enters";
  return r;
}

ProofResult prove_threads(const Sample& s, Device device, DType dtype) {
  ProofResult r = start(s);
  if (skips_narrow(s, dtype, r)) return r;
  const Tensors inputs = make_inputs(s, dtype, device);
  const int before = num_threads();
  set_num_threads(1);
  const SampleRun one = run_sample(s, inputs);
  for (int threads : {2, 3, 7}) {
    set_num_threads(threads);
    const std::string what = bits_differ(one, run_sample(s, inputs));
    if (!what.empty())
      fail_with(r, what + " differs between 1 and " + to_text(threads) + " threads");
  }
  set_num_threads(before);
  return r;
}

ProofResult prove_meta(const Sample& s, Device device, DType dtype) {
  ProofResult r = start(s);
  if (skips_narrow(s, dtype, r)) return r;
  for (bool taped : {false, true}) {
    const Trace real = trace(s, device, dtype, taped), meta = trace(s, kMeta, dtype, taped);
    const std::string how = taped ? "on the tape: " : "by hand: ";
    if (real.shapes != meta.shapes)
      fail_with(r, how + "shapes " + real.shapes + " and on meta " + meta.shapes);
    if (real.ledger != meta.ledger)
      fail_with(r, how + "the ledgers differ: " + first_difference(real.ledger, meta.ledger));
    if (real.peak != meta.peak)
      fail_with(r, how + "peak " + to_text(real.peak) + " B, on meta " + to_text(meta.peak) + " B");
    if (real.allocations != meta.allocations) {
      fail_with(r, how + to_text(real.allocations) + " allocations, on meta " +
                       to_text(meta.allocations));
    }
  }
  return r;
}

}  // namespace tally
