#pragma once
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include "core/memory_source.h"

namespace tally {

/// Lists the allocations and releases of a thread while it is in use (UseMemory). On meta this is
/// what a step would need, before a byte of it exists.
class MemoryTrace final : public MemorySource {
 public:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  /// One allocation: alive from moment `born` to moment `died`, counted in allocations and
  /// releases.
  struct Block {
    size_t bytes = 0;
    uint64_t born = 0, died = kNever;
  };

  explicit MemoryTrace(Device device) : device_(device) {}
  Device device() const override { return device_; }
  bool take(size_t bytes, void*& data, uint32_t& ticket) override;
  void give(void* data, size_t bytes, uint32_t ticket) noexcept override;

  /// What comes from here on is a section of its own: a part of a step that may be repeated.
  void begin_section();
  std::span<const Block> blocks() const { return blocks_; }
  /// The first block of each section.
  std::span<const size_t> sections() const { return sections_; }

 private:
  Device device_;
  std::mutex mutex_;
  std::vector<Block> blocks_;
  std::vector<size_t> sections_;
  uint64_t now_ = 0;
};

/// A place in one arena for each allocation of a step, in the order in which they are made.
struct MemoryPlan {
  static constexpr size_t kAlign = 64;
  struct Block {
    size_t offset, bytes;
  };
  std::vector<Block> blocks;
  std::vector<size_t> sections;  // the first block of each
  size_t arena_bytes = 0;        // what the places need together
  size_t live_peak = 0;          // most bytes that are alive at once: no plan can need less
};

/// Places blocks so that no two that are alive at the same moment overlap, in a small arena:
/// greedily, by falling size, by falling size times life and in the order of birth, each into the
/// smallest gap that holds it; the best of the three. (Optimal placement is NP-hard; Pisarchyk &
/// Lee 2020, "Efficient memory management for deep neural net inference", arXiv:2001.03288.)
MemoryPlan plan_memory(std::span<const MemoryTrace::Block> blocks,
                       std::span<const size_t> sections = {});
/// The plan of what `step` allocates on meta.
MemoryPlan plan_memory(const std::function<void(MemoryTrace&)>& step);

}  // namespace tally
