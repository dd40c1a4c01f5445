#pragma once
// What the programs that prove mutants share: one line for the first proof that fails.
#include <cstdio>

#include "autograd/proof/proof.h"

namespace tally {

inline bool report(const char* proof, const ProofResult& r) {
  if (r.ok()) return true;
  std::printf("%s of %s '%s': %s\n", proof, r.op.c_str(), r.sample.c_str(), r.note.c_str());
  return false;
}

/// Exit status of such a program: what f returns, 1 where it throws.
template <class F>
int status_of(const F& f) {
  try {
    return f();
  } catch (const Error& e) {
    std::puts(e.what());
    return 1;
  }
}

}  // namespace tally
