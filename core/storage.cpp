#include "core/storage.h"

#include <new>
#include <vector>

namespace tally {
namespace {

// Headers are recycled: an op allocates two or three of them and should not meet malloc.
struct HeaderPool {
  std::vector<void*> free;
  ~HeaderPool() {
    for (void* p : free) ::operator delete(p);
  }
};
HeaderPool& header_pool() {
  thread_local HeaderPool pool;
  return pool;
}

}  // namespace

Storage::Storage(Device device, size_t bytes) : bytes_(bytes), device_(device) {
  Backend& b = backend(device);
  data_ = b.allocate(bytes);
  b.count(bytes);
}

Storage* Storage::create(Device device, size_t bytes) {
  auto& free = header_pool().free;
  if (free.empty()) return new Storage(device, bytes);
  void* place = free.back();
  Storage* s = new (place) Storage(device, bytes);
  free.pop_back();
  return s;
}

void Storage::destroy() {
  Backend& b = backend(device_);
  b.release(data_, bytes_);
  b.uncount(bytes_);
  this->~Storage();
  auto& free = header_pool().free;
  if (free.size() < 256) free.push_back(this);
  else ::operator delete(this);
}

}  // namespace tally
