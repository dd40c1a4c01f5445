#pragma once
#include <mutex>

namespace tally::cpu {

/// Held during every call of OpenBLAS: the serial flavour of Debian 12 takes its work buffers from a
/// table without a lock. Called from two threads at once it returned wrong products (35,000 of 8
/// million, 12 x 12). So one call at a time, on the calling thread.
std::mutex& openblas_mutex();

}  // namespace tally::cpu
