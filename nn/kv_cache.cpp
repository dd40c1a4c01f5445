#include "nn/kv_cache.h"

#include "core/ops/layout.h"

namespace tally::nn {

void KVCache::Layer::append(const Tensor& k, const Tensor& v) {
  const int64_t count = k.size(1), capacity = k_.size(1);
  check(length_ + count <= capacity, "kv_cache: ", length_, " + ", count,
        " tokens do not fit the capacity of ", capacity,
        "; make the cache larger, or generate fewer tokens");
  run(k.device(), ops::Copy::Call{k, k_.narrow(1, length_, count)});
  run(v.device(), ops::Copy::Call{v, v_.narrow(1, length_, count)});
  length_ += count;
}

}  // namespace tally::nn
