#include "nn/kv_cache.h"

#include <algorithm>

#include "autograd/functional.h"
#include "core/ops/layout.h"

namespace tally::nn {
namespace {

Shape held(const Shape& shape, int64_t window) {
  return {shape[0], window > 0 ? std::min(window, shape[1]) : shape[1], shape[2], shape[3]};
}
void copy(const Tensor& from, const Tensor& to) { run(from.device(), ops::Copy::Call{from, to}); }

}  // namespace

KVCache::Layer::Layer(const Shape& shape, DType dtype, Device device, int64_t window, bool values)
    : k_(empty(held(shape, window), dtype, device)),
      v_(values ? empty(held(shape, window), dtype, device) : Tensor()),
      capacity_(shape[1]) {}

// The last entries that fit go where their number modulo the size of the ring says.
void KVCache::Layer::store(const Tensor& k, const Tensor& v) {
  const int64_t size = k_.size(1), count = k.size(1);
  for (int64_t i = std::max<int64_t>(0, count - size); i < count;) {
    const int64_t slot = (length_ + i) % size, n = std::min(size - slot, count - i);
    copy(k.narrow(1, i, n), k_.narrow(1, slot, n));
    if (v_.defined()) copy(v.narrow(1, i, n), v_.narrow(1, slot, n));
    i += n;
  }
  length_ += count;
}

// In order: what the first of the fresh tokens can see of the past, then these.
Tensor KVCache::Layer::with_past(const Tensor& ring, const Tensor& fresh) const {
  const int64_t size = ring.size(1), past = std::min(length_, size - 1);
  std::vector<Tensor> parts;
  for (int64_t i = length_ - past; i < length_;) {
    const int64_t slot = i % size, n = std::min(size - slot, length_ - i);
    parts.push_back(ring.narrow(1, slot, n));
    i += n;
  }
  parts.push_back(fresh);
  return parts.size() == 1 ? fresh : concat(parts, 1);
}

void KVCache::Layer::check_room(int64_t count) const {
  check(length_ + count <= capacity_, "kv_cache: ", length_, " + ", count,
        " tokens do not fit the capacity of ", capacity_,
        "; make the cache larger, or generate fewer tokens");
}

RecurrentState& KVCache::Layer::advance(int64_t count) {
  check_room(count);
  length_ += count;
  return recurrent_;
}

KVCache::Layer::Seen KVCache::Layer::append(const Tensor& k, const Tensor& v, bool ordered) {
  const int64_t count = k.size(1);
  check_room(count);
  // One token sees all that a ring holds, in whatever order unless positions are told by place.
  const bool round = is_ring() && length_ + count > k_.size(1);
  if (round && (count > 1 || ordered)) {
    Seen seen{with_past(k_, k), v_.defined() ? with_past(v_, v) : Tensor()};
    store(k, v);
    return seen;
  }
  store(k, v);
  const int64_t n = std::min(length_, k_.size(1));
  return {k_.narrow(1, 0, n), v_.defined() ? v_.narrow(1, 0, n) : Tensor()};
}

}  // namespace tally::nn
