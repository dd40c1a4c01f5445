#include "core/storage.h"

#include "core/recycle.h"

namespace tally {
namespace {

thread_local constinit FreeList<sizeof(Storage)> t_storages;

void drain_storages_at_exit() {
  struct Drain {
    ~Drain() { t_storages.drain(); }
  };
  thread_local const Drain drain;
}

}  // namespace

Storage::Storage(Device device, size_t bytes) : bytes_(bytes), device_(device) {
  Backend& b = backend(device);
  MemorySource* source = recorder().memory;
  if (source && bytes > 0 && source->device() == device && source->take(bytes, data_, ticket_))
    source_ = source->shared_from_this();
  else
    data_ = b.allocate(bytes);
  b.count(bytes);
}

Storage* Storage::create(Device device, size_t bytes) {
  void* place = t_storages.take();
  try {
    return new (place) Storage(device, bytes);
  } catch (...) {
    t_storages.give(place, drain_storages_at_exit);
    throw;
  }
}

void Storage::destroy() {
  Backend& b = backend(device_);
  if (source_)
    source_->give(data_, bytes_, ticket_);
  else
    b.release(data_, bytes_);
  b.uncount(bytes_);
  this->~Storage();
  t_storages.give(this, drain_storages_at_exit);
}

}  // namespace tally
