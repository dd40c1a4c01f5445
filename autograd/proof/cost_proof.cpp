// The cost proof: what each call declares against what its loops do.
#include "autograd/proof/proof.h"

namespace tally {
namespace {

using Tensors = std::vector<Tensor>;

std::string as_text(const Cost& c) {
  return to_text(c.flops) + " FLOP, " + to_text(c.bytes_read) + " B read, " +
         to_text(c.bytes_written) + " B written";
}

// Forward and backward with the gradients of `skip` not wanted, added to given ones or fresh.
void run_counted(const Sample& s, DType dtype, const Sample::Skips& skip, bool accumulate) {
  const Tensors inputs = make_inputs(s, dtype, kReference);
  if (!s.by_hand) {
    s.apply(inputs);
    return;
  }
  const Sample::Explicit e = s.by_hand(inputs);
  Tensors targets(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (accumulate && s.inputs[i].differentiable) targets[i] = random_like(inputs[i], 400 + i);
  }
  e.backward(random_upstream(e.outputs), targets, skip);
}

void judge(const Sample& s, const std::string& variant, ProofResult& r) {
  for (const CountedCall& c : counted_calls()) {
    const double differences[] = {c.declared.flops - c.counted.flops,
                                  c.declared.bytes_read - c.counted.bytes_read,
                                  c.declared.bytes_written - c.counted.bytes_written};
    for (double d : differences) {
      const double error = s.bounded_cost ? std::max(-d, 0.0) : std::fabs(d);
      if (error <= r.error) continue;
      r.error = error;
      r.note = c.call + variant + ": declared " + as_text(c.declared) + "; counted " +
               as_text(c.counted);
    }
  }
  counted_calls().clear();
}

}  // namespace

ProofResult prove_cost(const Sample& s) {
  ProofResult r;
  r.op = s.op;
  r.sample = s.name;
  counted_calls().clear();
  for (DType dtype : {DType::counted, DType::counted_half}) {
    Sample::Skips skip(s.inputs.size(), false);
    for (size_t i = 0; i < skip.size(); ++i) skip[i] = !s.inputs[i].differentiable;
    run_counted(s, dtype, skip, false);
    judge(s, "", r);
    if (!s.by_hand) continue;
    run_counted(s, dtype, skip, true);
    judge(s, " (adding to given gradients)", r);
    // Each gradient alone: on one type, since the loops are the same; not of a module, which is made
    // of ops that are asked themselves.
    if (s.module || dtype == DType::counted_half) continue;
    for (size_t i = 0; i < skip.size(); ++i) {
      if (skip[i]) continue;
      Sample::Skips others(skip.size(), true);
      others[i] = false;
      run_counted(s, dtype, others, false);
      judge(s, " (only the gradient of input " + to_text(i) + " wanted)", r);
    }
  }
  return r;
}

}  // namespace tally
