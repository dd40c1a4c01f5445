#include "core/host_backend.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/error.h"

namespace tally {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kReuse = false;  // every tensor its own block, so that the sanitizer sees its ends
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kReuse = false;
#else
constexpr bool kReuse = true;
#endif
#else
constexpr bool kReuse = true;
#endif

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

HostBackend::~HostBackend() {
  for (auto& list : free_) {
    for (void* p : list) std::free(p);
  }
}

void* HostBackend::allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  const size_t c = class_of(bytes), block = kReuse ? class_bytes(c) : (bytes + kAlign - 1) / kAlign * kAlign;
  if (kReuse) {
    const std::lock_guard lock(mutex_);
    if (!free_[c].empty()) {
      void* p = free_[c].back();
      free_[c].pop_back();
      cached_ -= block;
      return p;
    }
  }
  const bool huge = block >= 2 * kHugePage;
  const size_t align = huge ? kHugePage : kAlign;
  void* p = std::aligned_alloc(align, (block + align - 1) / align * align);
  check(p != nullptr, name_, ": out of memory asking for ", bytes,
        " bytes; use a smaller batch, context or model (tally account shows what needs how much)");
  if (huge) madvise(p, block, MADV_HUGEPAGE);
#ifndef NDEBUG
  std::memset(p, 0xff, bytes);  // NaN: what reads memory it never wrote shows at once
#endif
  return p;
}

void HostBackend::release(void* data, size_t bytes) noexcept {
  if (!data) return;
  if (!kReuse) return std::free(data);
  const size_t c = class_of(bytes);
  const std::lock_guard lock(mutex_);
  free_[c].push_back(data);
  cached_ += class_bytes(c);
}

void HostBackend::copy_from_host(void* to, const void* from, size_t bytes) { copy(to, from, bytes); }
void HostBackend::copy_to_host(void* to, const void* from, size_t bytes) { copy(to, from, bytes); }
void HostBackend::copy(void* to, const void* from, size_t bytes) {
  if (bytes) std::memmove(to, from, bytes);
}
void HostBackend::zero(void* data, size_t bytes) {
  if (bytes) std::memset(data, 0, bytes);
}

}  // namespace tally
