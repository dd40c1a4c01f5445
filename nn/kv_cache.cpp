#include "nn/kv_cache.h"

#include "core/ops/layout.h"

namespace tally::nn {

void KVCache::Layer::append(const Tensor& k, const Tensor& v) {
  const int64_t count = k.size(1), capacity = k_.size(1);
  check(length_ + count <= capacity, "kv_cache: ", length_, " + ", count, " tokens do not fit the capacity of ", capacity,
        "; make the cache larger, or generate fewer tokens");
  ops::Copy::into(k_.narrow(1, length_, count), k);
  ops::Copy::into(v_.narrow(1, length_, count), v);
  length_ += count;
}

}  // namespace tally::nn
