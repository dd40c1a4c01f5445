#pragma once
#include <string>
#include <vector>

namespace tally::cpu {

/// Floating point operations a second that f32 multiply-adds reach in registers, all threads of the
/// pool together, with the selected instruction set. Best of about 0.2 seconds of short samples,
/// so that a busy neighbour does not lower it.
double measure_fma_peak();
/// The same of the fastest products of bf16 that kernels use: pairs where the CPU multiplies them, else
/// multiply-adds in f32.
double measure_bf16_peak();

/// Bytes a second from and to main memory, all threads together.
struct Bandwidth {
  double read = 0;  ///< reading
  double copy = 0;  ///< reading + writing past the caches
};
/// Takes about 0.3 seconds and 256 MiB while it runs.
Bandwidth measure_bandwidth();

/// A level of memory: how fast data that lies there is read, all threads together.
struct MemoryLevel {
  std::string name;  ///< "L2", "L3", "memory"
  double bytes = 0;  ///< of data that was read, all threads together
  double read = 0;   ///< bytes a second
};
/// The caches that the system names, then memory. Takes about 0.3 seconds.
std::vector<MemoryLevel> measure_memory_levels();

}  // namespace tally::cpu
