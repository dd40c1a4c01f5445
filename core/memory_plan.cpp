#include "core/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "core/backend.h"

namespace tally {
namespace {

using Block = MemoryTrace::Block;
using Order = std::vector<size_t>;

size_t padded(size_t bytes) {
  return (bytes + MemoryPlan::kAlign - 1) / MemoryPlan::kAlign * MemoryPlan::kAlign;
}

bool meet(const Block& a, const Block& b) { return a.born < b.died && b.born < a.died; }

// Blocks that have a place, by offset.
class Placement {
 public:
  explicit Placement(std::span<const Block> blocks) : blocks_(blocks), offsets_(blocks.size()) {}
  void place(size_t i) {
    const size_t bytes = padded(blocks_[i].bytes);
    size_t top = 0, best = kNone, best_gap = kNone;  // top: end of what is alive so far
    for (const size_t j : placed_) {
      if (!meet(blocks_[i], blocks_[j])) continue;
      const size_t at = offsets_[j];
      if (at > top && at - top >= bytes && at - top < best_gap) best = top, best_gap = at - top;
      top = std::max(top, at + padded(blocks_[j].bytes));
    }
    offsets_[i] = best == kNone ? top : best;
    arena_ = std::max(arena_, offsets_[i] + bytes);
    const auto after =
        std::upper_bound(placed_.begin(), placed_.end(), offsets_[i],
                         [this](size_t offset, size_t other) { return offset < offsets_[other]; });
    placed_.insert(after, i);
  }
  size_t arena() const { return arena_; }
  const std::vector<size_t>& offsets() const { return offsets_; }

 private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();
  std::span<const Block> blocks_;
  std::vector<size_t> offsets_;
  Order placed_;
  size_t arena_ = 0;
};

Order sorted_by(std::span<const Block> blocks, const std::function<double(const Block&)>& weight) {
  Order order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return weight(blocks[a]) > weight(blocks[b]); });
  return order;
}

size_t live_peak(std::span<const Block> blocks) {
  std::vector<std::pair<uint64_t, int64_t>> events;
  for (const Block& b : blocks) {
    const auto bytes = static_cast<int64_t>(b.bytes);
    events.emplace_back(b.born, bytes);
    if (b.died != MemoryTrace::kNever) events.emplace_back(b.died, -bytes);
  }
  std::sort(events.begin(), events.end());  // at one moment releases come first
  int64_t live = 0, peak = 0;
  for (const auto& [when, change] : events) peak = std::max(peak, live += change);
  return static_cast<size_t>(peak);
}

}  // namespace

bool MemoryTrace::take(size_t bytes, void*& data, uint32_t& ticket) {
  data = backend(device_).allocate(bytes);
  const std::lock_guard lock(mutex_);
  ticket = static_cast<uint32_t>(blocks_.size());
  blocks_.push_back({bytes, ++now_, kNever});
  return true;
}

void MemoryTrace::give(void* data, size_t bytes, uint32_t ticket) noexcept {
  backend(device_).release(data, bytes);
  const std::lock_guard lock(mutex_);
  blocks_[ticket].died = ++now_;
}

void MemoryTrace::begin_section() {
  const std::lock_guard lock(mutex_);
  sections_.push_back(blocks_.size());
}

MemoryPlan plan_memory(std::span<const Block> blocks, std::span<const size_t> sections) {
  const auto bytes = [](const Block& b) { return static_cast<double>(b.bytes); };
  const auto area = [&](const Block& b) { return bytes(b) * static_cast<double>(b.died - b.born); };
  const auto early = [](const Block& b) { return -static_cast<double>(b.born); };
  MemoryPlan plan;
  plan.sections.assign(sections.begin(), sections.end());
  plan.live_peak = live_peak(blocks);
  for (const Order& order :
       {sorted_by(blocks, bytes), sorted_by(blocks, area), sorted_by(blocks, early)}) {
    Placement placement(blocks);
    for (const size_t i : order) placement.place(i);
    if (!plan.blocks.empty() && placement.arena() >= plan.arena_bytes) continue;
    plan.arena_bytes = placement.arena();
    plan.blocks.clear();
    for (size_t i = 0; i < blocks.size(); ++i)
      plan.blocks.push_back({placement.offsets()[i], blocks[i].bytes});
  }
  return plan;
}

MemoryPlan plan_memory(const std::function<void(MemoryTrace&)>& step) {
  const auto trace = std::make_shared<MemoryTrace>(kMeta);
  {
    const UseMemory use(*trace);
    step(*trace);
  }
  return plan_memory(trace->blocks(), trace->sections());
}

}  // namespace tally
