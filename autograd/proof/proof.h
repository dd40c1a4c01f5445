#pragma once
#include "autograd/proof/proof_kernels.h"
#include "autograd/proof/sample.h"

namespace tally {

/// What one proof found. `error` is relative; the proof holds when it is at most `bound`.
struct ProofResult {
  std::string op, sample;
  bool skipped = false;  // the proof does not apply: `note` says why
  double error = 0, bound = 0;
  std::string note;  // where the worst error is, and on failure the likely mistake
  bool ok() const { return skipped || error <= bound; }
};

/// <dy, J t> == <J^T dy, t> for random dy and t: the forward loops run on dual numbers, the backward
/// by hand in float64. Bound 1e-12.
ProofResult prove_adjoint(const Sample& sample);

/// Central differences in float64, every element of every input: |a - n| <= 1e-7 max(|a|, |n|, scale of
/// the tensor). Skipped for samples that are not smooth.
ProofResult prove_by_differences(const Sample& sample);

/// Every call of forward and backward, on both counting types: declared == counted, FLOPs and bytes
/// (counted <= declared where the work depends on values). `error` is the largest difference.
ProofResult prove_cost(const Sample& sample);

/// The tape's gradients and those of the calls by hand have the same bits, fresh and accumulated.
ProofResult prove_tape(const Sample& sample, Device device, DType dtype);

/// A random gradient for an output, in the output's type; pure function of the seed.
Tensor random_like(const Tensor& t, uint64_t seed);
/// Elements of a floating-point tensor as float64; strides are followed.
std::vector<double> to_doubles(const Tensor& t);

}  // namespace tally
