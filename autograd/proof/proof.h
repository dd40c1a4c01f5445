#pragma once
#include "autograd/proof/proof_kernels.h"
#include "autograd/proof/run_sample.h"

namespace tally {

/// What one proof found. The proof holds when `error` is at most `bound`.
struct ProofResult {
  std::string op, sample;
  bool skipped = false;  // the proof does not apply: `note` says why
  double error = 0, bound = 0;
  std::string note;     // where the worst error is
  std::string mistake;  // of gradient proofs that failed: the likely mistake
  double ulp = 0;       // of backend proofs: the largest difference, in units in the last place of
                        // the largest number of its tensor
  // The worst element of gradient proofs.
  int input = -1;
  int64_t element = -1;
  double analytic = 0, numeric = 0;
  bool ok() const { return skipped || error <= bound; }
};

/// Marks the result as skipped when the op refuses the element type.
inline bool skips_narrow(const Sample& sample, DType dtype, ProofResult& r) {
  r.skipped = !sample.narrow && dtype == DType::bf16;
  if (r.skipped) r.note = "the op refuses " + to_text(dtype);
  return r.skipped;
}

/// <dy, J t> == <J^T dy, t> for random dy and t: the forward loops run on dual numbers, the
/// backward by hand in float64. `error` is relative to the sum of the absolute terms, bound 1e-12.
/// On failure every derivative is taken by dual numbers to find the worst one.
ProofResult prove_adjoint(const Sample& sample);

/// Central differences in float64, every element of every input: |a - n| <= 1e-7 max(|a|, |n|,
/// scale of the tensor). Skipped for samples that are not smooth.
ProofResult prove_by_differences(const Sample& sample);

/// Every call of forward and backward, on both counting types: declared == counted, FLOPs and bytes
/// (counted <= declared where the work depends on values); with all gradients fresh, all added to
/// given ones, and, on `counted` and but for modules, each one alone. `error` is the largest difference.
ProofResult prove_cost(const Sample& sample);

/// The tape's gradients and those of the calls by hand have the same bits: fresh, accumulated, and
/// with one input alone that wants a gradient.
ProofResult prove_tape(const Sample& sample, Device device, DType dtype);

/// Of an op without a backward: each floating input, when it needs a gradient and a tape is open,
/// is refused by an error that begins with the op's name and says that there is no backward.
/// Skipped for ops that have one, and where no floating tensor enters.
ProofResult prove_refusal(const Sample& sample);

/// Outputs and gradients on `device` equal the reference's within what rounding can do:
/// |a - b| <= 2 E + the smallest normal number, E the bound that rounded.h gathers along the
/// reference loops. The reference itself must lie within E of the value in float64. `error` is the
/// largest quotient of difference and limit, bound 1.
/// `arrange`, when given, lays out what runs on `device`: it gets each input and then each upstream
/// gradient with its place among them, and returns the same numbers in another layout.
using Arrange = std::function<Tensor(const Tensor&, int)>;
ProofResult prove_backend(const Sample& sample, Device device, DType dtype,
                          const Arrange& arrange = {});

/// The same bits of outputs and gradients for 1, 2, 3 and 7 threads.
ProofResult prove_threads(const Sample& sample, Device device, DType dtype);

/// A run on meta and one on `device` have the same ledger, line for line, the same shapes, and the
/// same peak of live bytes, to the byte.
ProofResult prove_meta(const Sample& sample, Device device, DType dtype);

}  // namespace tally
