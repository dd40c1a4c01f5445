#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/backend.h"
#include "core/memory_source.h"

namespace tally {

/// Bytes on one device, counted live and at their peak, given back when the last tensor lets go.
/// `version` grows with every write, so that a backward pass sees when a tensor it saved was
/// changed.
class Storage {
 public:
  /// One reference, owned by the caller.
  static Storage* create(Device device, size_t bytes);
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    // The only owner need not pay for an atomic subtraction: nobody else can add a reference.
    if (references() == 1 || references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  int32_t references() const { return references_.load(std::memory_order_acquire); }

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

  /// Where the bytes came from; null: from the backend.
  const std::shared_ptr<MemorySource>& source() const { return source_; }

  uint32_t version() const { return version_; }
  /// Name of the call that wrote last, for messages.
  const char* writer() const { return writer_; }
  /// `call` is about to write; the text must live as long as the program.
  void note_write(const char* call) {
    ++version_;
    writer_ = call;
  }

 private:
  Storage(Device device, size_t bytes);
  void destroy();
  void* data_ = nullptr;
  size_t bytes_ = 0;
  const char* writer_ = "nothing";
  std::shared_ptr<MemorySource> source_;
  std::atomic<int32_t> references_{1};
  uint32_t version_ = 0;
  uint32_t ticket_ = 0;
  Device device_;
};

}  // namespace tally
