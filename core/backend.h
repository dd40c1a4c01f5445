#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <string_view>

#include "core/device.h"

namespace tally {

/// Bytes that live tensors asked for on one backend, and the most there ever were at once.
struct MemoryStats {
  size_t live = 0, peak = 0, allocations = 0;
};

/// Memory and order of a device; its kernels are in the table (core/kernel.h). A backend outside
/// this repository derives from it and calls register_backend.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* data, size_t bytes) noexcept = 0;
  virtual void copy_from_host(void* to, const void* from, size_t bytes) = 0;
  virtual void copy_to_host(void* to, const void* from, size_t bytes) = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  virtual void zero(void* data, size_t bytes) = 0;
  virtual void synchronize() {}
  /// True where the memory is the host's, so that reference loops may stand in for a kernel.
  virtual bool host_memory() const { return false; }
  /// True where nothing is stored and no kernel runs: shapes and costs only.
  virtual bool is_meta() const { return false; }

  MemoryStats memory() const { return {live_.load(), peak_.load(), allocations_.load()}; }
  /// Starts a new measurement: the peak falls to what is live now, the count of allocations to 0.
  void reset_peak() {
    peak_ = live_.load();
    allocations_ = 0;
  }

 private:
  friend class Storage;
  void count(size_t bytes) {
    const size_t live = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    allocations_.fetch_add(1, std::memory_order_relaxed);
    size_t peak = peak_.load(std::memory_order_relaxed);
    while (live > peak && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
  }
  void uncount(size_t bytes) { live_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::atomic<size_t> live_{0}, peak_{0}, allocations_{0};
};

/// Puts a backend into the registry and returns its device; Error when the kind is taken.
Device register_backend(std::unique_ptr<Backend> backend, uint8_t kind);
/// The same with the next kind that is free for backends from outside.
Device register_backend(std::unique_ptr<Backend> backend);
/// The backend of a device; Error where none is registered.
Backend& backend(Device device);
bool has_backend(Device device);

}  // namespace tally
