#pragma once
// The sample table for the tests that are generic over it.
#include <catch2/catch.hpp>

#include "autograd/proof/proof.h"
#include "backends/register_all.h"
#include "nn/samples.h"

namespace tally {

/// Backends and proof kernels are in their tables once this returns.
inline void set_up_proofs() {
  register_all();
  register_proof_kernels();
}

/// Every sample of an op and of a layer.
inline const std::vector<Sample>& all_samples() {
  static const std::vector<Sample> all = [] {
    set_up_proofs();
    std::vector<Sample> list = core_samples();
    for (const Sample& s : nn::layer_samples()) list.push_back(s);
    return list;
  }();
  return all;
}

/// Checks the result of one proof for each sample.
template <class Prove>
void prove_all(Prove prove) {
  for (const Sample& s : all_samples()) {
    const ProofResult r = prove(s);
    INFO(r.op << " '" << r.sample << "': error " << r.error << ", bound " << r.bound << "; "
              << r.note);
    CHECK(r.ok());
  }
}

}  // namespace tally
