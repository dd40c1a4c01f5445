#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "core/backend.h"

namespace tally {

/// Host memory, 64-byte aligned, in size classes that are kept and reused: in the steady state of a
/// training loop no page is touched for the first time. Serves `reference` and `cpu`.
class HostBackend : public Backend {
 public:
  explicit HostBackend(std::string name);
  ~HostBackend() override;
  std::string_view name() const override { return name_; }
  void* allocate(size_t bytes) override;
  void release(void* data, size_t bytes) noexcept override;
  void copy_from_host(void* to, const void* from, size_t bytes) override;
  void copy_to_host(void* to, const void* from, size_t bytes) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void zero(void* data, size_t bytes) override;
  bool host_memory() const override { return true; }
  /// Bytes kept for reuse, not in any tensor.
  size_t cached_bytes() const;
  /// What was asked of the system: blocks so far (in the steady state of a training loop none
  /// more), and bytes that were not given back.
  struct System {
    size_t allocations = 0, bytes = 0;
  };
  System system() const;
  /// Gives the bytes kept for reuse back to the system.
  void trim();

 private:
  void* reuse(size_t size_class);  // null when there is none
  void* fresh(size_t block);
  std::string name_;
  mutable std::mutex mutex_;
  std::vector<std::vector<void*>> free_;  // by size class
  size_t cached_ = 0;
  System system_;
};

}  // namespace tally
