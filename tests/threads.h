#pragma once
#include "core/parallel.h"

namespace tally::test {

/// Restores the number of threads at the end of a test.
struct Threads {
  explicit Threads(int n) : former(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(former); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  int former;
};

}  // namespace tally::test
