#pragma once
#include <mutex>
#include <vector>

#include "core/memory_plan.h"

namespace tally {

/// The memory of a planned step: while it is in use (UseMemory), the k-th allocation of the step
/// takes the k-th place of the plan. A step that departs from the plan corrupts nothing: an
/// allocation of another size than planned, or one whose place is still held by a tensor that
/// should be gone, comes from the backend and is counted in `unplanned`, or is an Error when the
/// arena is strict.
class Arena final : public MemorySource {
 public:
  enum class OnDeparture { allocate, fail };
  struct Stats {
    size_t planned = 0, unplanned = 0, unplanned_bytes = 0;  // allocations since begin_step()
    size_t live = 0;                                         // tensors in the arena
  };

  /// Error when the device has not that much memory. Large arenas lie on 2 MiB pages.
  static std::shared_ptr<Arena> create(MemoryPlan plan, Device device,
                                       OnDeparture departure = OnDeparture::allocate);
  ~Arena() override;

  /// The next allocation is the first of the plan; the counts start again.
  void begin_step();
  /// The next allocation is the first of a section.
  void begin_section(size_t section);
  Stats stats() const;
  const MemoryPlan& plan() const { return plan_; }

  Device device() const override { return device_; }
  bool take(size_t bytes, void*& data, uint32_t& ticket) override;
  void give(void* data, size_t bytes, uint32_t ticket) noexcept override;
  bool stays() const override { return true; }
  void check_empty() const override;

 private:
  Arena(MemoryPlan plan, Device device, OnDeparture departure);
  bool occupy(size_t block);
  bool depart(size_t bytes);
  MemoryPlan plan_;
  Device device_;
  OnDeparture departure_;
  std::byte* memory_ = nullptr;
  mutable std::mutex mutex_;
  size_t next_ = 0;
  std::vector<MemoryPlan::Block> live_;  // by offset
  Stats stats_;
};

}  // namespace tally
