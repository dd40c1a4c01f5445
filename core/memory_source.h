#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device.h"
#include "core/recorder.h"

namespace tally {

/// Where the storages of a thread get their bytes while a UseMemory is in scope, instead of asking
/// the backend each time: a trace that lists them (core/memory_plan.h) or an arena that has a place
/// for each (core/arena.h). A storage keeps its source alive.
class MemorySource : public std::enable_shared_from_this<MemorySource> {
 public:
  virtual ~MemorySource() = default;
  MemorySource() = default;
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;

  virtual Device device() const = 0;
  /// Bytes for a new storage, at least one. False: not from here, ask the backend. `ticket` comes
  /// back in give().
  virtual bool take(size_t bytes, void*& data, uint32_t& ticket) = 0;
  virtual void give(void* data, size_t bytes, uint32_t ticket) noexcept = 0;
  /// True where a place belongs to one allocation of a step and is nobody else's after it.
  virtual bool stays() const { return false; }
  /// Error while tensors hold places here.
  virtual void check_empty() const {}
};

/// Storages of the source's device come from it while in scope, on this thread.
class UseMemory {
 public:
  explicit UseMemory(MemorySource& source) : outer_(recorder().memory) {
    recorder().memory = &source;
  }
  ~UseMemory() { recorder().memory = outer_; }
  UseMemory(const UseMemory&) = delete;
  UseMemory& operator=(const UseMemory&) = delete;

 private:
  MemorySource* outer_;
};

}  // namespace tally
