#include "core/arena.h"

#include <algorithm>
#include <cstring>

#include "core/backend.h"
#include "core/error.h"

namespace tally {
namespace {

bool before(const MemoryPlan::Block& a, const MemoryPlan::Block& b) { return a.offset < b.offset; }

}  // namespace

Arena::Arena(MemoryPlan plan, Device device, OnDeparture departure)
    : plan_(std::move(plan)), device_(device), departure_(departure) {
  memory_ = static_cast<std::byte*>(backend(device).allocate(plan_.arena_bytes));
  live_.reserve(plan_.blocks.size());
}

std::shared_ptr<Arena> Arena::create(MemoryPlan plan, Device device, OnDeparture departure) {
  return std::shared_ptr<Arena>(new Arena(std::move(plan), device, departure));
}

Arena::~Arena() { backend(device_).release(memory_, plan_.arena_bytes); }

void Arena::begin_step() {
  const std::lock_guard lock(mutex_);
  next_ = 0;
  const size_t live = stats_.live;
  stats_ = {};
  stats_.live = live;
}

void Arena::begin_section(size_t section) {
  check(section < plan_.sections.size(), "memory plan: has ", plan_.sections.size(),
        " sections; asked for number ", section);
  const std::lock_guard lock(mutex_);
  next_ = plan_.sections[section];
}

Arena::Stats Arena::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Arena::check_empty() const {
  const size_t live = stats().live;
  check(live == 0, "memory plan: ", live,
        " tensors of a step before are still alive in the arena, and the step would write over "
        "them; let go of them, or keep copies");
}

// Enters a block among the live ones; false when one of them holds a part of its place.
bool Arena::occupy(size_t block) {
  const MemoryPlan::Block& b = plan_.blocks[block];
  const auto after = std::lower_bound(live_.begin(), live_.end(), b, before);
  if (after != live_.end() && after->offset < b.offset + b.bytes) return false;
  if (after != live_.begin() && std::prev(after)->offset + std::prev(after)->bytes > b.offset)
    return false;
  live_.insert(after, b);
  return true;
}

bool Arena::depart(size_t bytes) {
  check(departure_ == OnDeparture::allocate, "memory plan: the step departs from its plan",
        in_module(), "; allocation ", next_, " of ", plan_.blocks.size(), " asks for ", bytes,
        " bytes, planned are ", next_ < plan_.blocks.size() ? plan_.blocks[next_].bytes : 0,
        "; plan again for these shapes, and keep no tensor of the step before");
  ++stats_.unplanned;
  stats_.unplanned_bytes += bytes;
  return false;
}

bool Arena::take(size_t bytes, void*& data, uint32_t& ticket) {
  const std::lock_guard lock(mutex_);
  if (next_ >= plan_.blocks.size() || plan_.blocks[next_].bytes != bytes) return depart(bytes);
  if (!occupy(next_)) {
    ++next_;
    return depart(bytes);
  }
  ticket = static_cast<uint32_t>(next_);
  data = memory_ ? memory_ + plan_.blocks[next_].offset : nullptr;
#ifndef NDEBUG
  // NaN: what reads memory that it never wrote shows at once.
  if (memory_ && backend(device_).host_memory()) std::memset(data, 0xff, bytes);
#endif
  ++next_;
  ++stats_.planned;
  ++stats_.live;
  return true;
}

void Arena::give(void*, size_t, uint32_t ticket) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = std::lower_bound(live_.begin(), live_.end(), plan_.blocks[ticket], before);
  live_.erase(at);
  --stats_.live;
}

}  // namespace tally
