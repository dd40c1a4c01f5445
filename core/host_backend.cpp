#include "core/host_backend.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "core/recycle.h"

namespace tally {
namespace {

constexpr size_t kAlign = 64, kHugePage = size_t{2} << 20;

// Eight classes to a power of two: at most an eighth of a block is unused.
size_t class_of(size_t bytes) {
  const size_t units = (bytes + kAlign - 1) / kAlign;
  if (units <= 16) return units;
  const size_t shift = static_cast<size_t>(std::bit_width(units - 1)) - 4;
  return 16 + (shift - 1) * 8 + ((units - 1) >> shift) - 7;
}
size_t class_bytes(size_t c) {
  if (c <= 16) return c * kAlign;
  const size_t shift = (c - 17) / 8 + 1, step = (c - 17) % 8 + 9;
  return (step << shift) * kAlign;
}

}  // namespace

HostBackend::HostBackend(std::string name) : name_(std::move(name)), free_(512) {}

HostBackend::~HostBackend() { trim(); }

void HostBackend::trim() {
  const std::lock_guard lock(mutex_);
  for (auto& list : free_) {
    for (void* p : list) std::free(p);
    list.clear();
  }
  system_.bytes -= cached_;
  cached_ = 0;
}

size_t HostBackend::cached_bytes() const {
  const std::lock_guard lock(mutex_);
  return cached_;
}

HostBackend::System HostBackend::system() const {
  const std::lock_guard lock(mutex_);
  return system_;
}

void* HostBackend::reuse(size_t size_class) {
  const std::lock_guard lock(mutex_);
  auto& list = free_[size_class];
  if (list.empty()) return nullptr;
  void* p = list.back();
  list.pop_back();
  cached_ -= class_bytes(size_class);
  return p;
}

void* HostBackend::fresh(size_t block) {
  const bool huge = block >= 2 * kHugePage;
  void* p = nullptr;
  if (posix_memalign(&p, huge ? kHugePage : kAlign, block) != 0) return nullptr;
  if (huge) madvise(p, block, MADV_HUGEPAGE);
  const std::lock_guard lock(mutex_);
  ++system_.allocations;
  system_.bytes += block;
  return p;
}

void* HostBackend::allocate(size_t bytes) {
  // An address for nothing: kernels may hand it on (memset of no bytes wants one that is not null).
  alignas(kAlign) static std::byte nothing[kAlign];
  if (bytes == 0) return nothing;
  const size_t size_class = class_of(bytes);
  void* p = kRecycle ? reuse(size_class) : nullptr;
  if (!p) {
    // Without recycling a block ends where the tensor ends: the sanitizer sees a step too far.
    const size_t block = kRecycle ? class_bytes(size_class) : bytes;
    p = fresh(block);
    if (!p) {
      trim();
      p = fresh(block);
    }
    check(
        p != nullptr, name_, ": out of memory asking for ", bytes,
        " bytes; use a smaller batch, context or model (tally account shows what needs how much)");
  }
#ifndef NDEBUG
  // NaN: what reads memory it never wrote shows at once. Large blocks keep their untouched pages.
  if (bytes < 8 * kHugePage) std::memset(p, 0xff, bytes);
#endif
  return p;
}

void HostBackend::release(void* data, size_t bytes) noexcept {
  if (bytes == 0) return;
  const size_t size_class = class_of(bytes);
  const std::lock_guard lock(mutex_);
  if (!kRecycle) {
    system_.bytes -= bytes;
    return std::free(data);
  }
  free_[size_class].push_back(data);
  cached_ += class_bytes(size_class);
}

void HostBackend::copy_from_host(void* to, const void* from, size_t bytes) {
  copy(to, from, bytes);
}
void HostBackend::copy_to_host(void* to, const void* from, size_t bytes) { copy(to, from, bytes); }
void HostBackend::copy(void* to, const void* from, size_t bytes) {
  if (bytes) std::memmove(to, from, bytes);
}
void HostBackend::zero(void* data, size_t bytes) {
  if (bytes) std::memset(data, 0, bytes);
}

}  // namespace tally
