#pragma once
#include <cstddef>
#include <new>

#include "core/sanitizers.h"

namespace tally {

/// False under AddressSanitizer: there every object has memory of its own, so that its ends and its
/// end of life are seen.
inline constexpr bool kRecycle = !kAddressSanitizer;

/// Memory for headers of one size, kept by a thread for the next ones: an op makes two or three and
/// should not meet malloc. Instances are `thread_local constinit`; they can be used to the very end
/// of the program, by tensors in static objects too.
template <size_t kBytes>
class FreeList {
 public:
  void* take() { return count_ > 0 ? free_[--count_] : ::operator new(kBytes); }
  /// `drain_at_exit` is called once, the first time something is kept: it must see to it that
  /// drain() runs when the thread ends.
  void give(void* place, void (*drain_at_exit)()) {
    if (!kRecycle || closed_ || count_ == kMost) return ::operator delete(place);
    if (!armed_) drain_at_exit();
    armed_ = true;
    free_[count_++] = place;
  }
  void drain() {
    while (count_ > 0) ::operator delete(free_[--count_]);
    closed_ = true;
  }

 private:
  static constexpr int kMost = 512;
  void* free_[kMost] = {};
  int count_ = 0;
  bool armed_ = false, closed_ = false;
};

}  // namespace tally
