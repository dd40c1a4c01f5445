#pragma once
#include "backends/register_all.h"

namespace tally::test {

/// Registers the backends before the first test of a program.
inline const struct Registered {
  Registered() { register_all(); }
} registered;

}  // namespace tally::test
