#pragma once
#include <vector>

#include "core/tensor.h"

namespace tally::nn {

/// Keys and values of past tokens, one pair of tensors a layer, filled from the front.
///   k, v (B, capacity, G, K)
class KVCache {
 public:
  class Layer {
   public:
    Layer(const Shape& shape, DType dtype, Device device)
        : k_(empty(shape, dtype, device)), v_(empty(shape, dtype, device)) {}
    /// Copies keys and values of the next tokens, (B, T, G, K), behind those that are there. Error
    /// when the cache is full.
    void append(const Tensor& k, const Tensor& v);
    /// What has been appended, (B, S, G, K): views into the cache.
    Tensor keys() const { return k_.narrow(1, 0, length_); }
    Tensor values() const { return v_.narrow(1, 0, length_); }
    int64_t length() const { return length_; }
    void clear() { length_ = 0; }

   private:
    Tensor k_, v_;
    int64_t length_ = 0;
  };

  KVCache(int64_t layers, int64_t batch, int64_t capacity, int64_t kv_heads, int64_t head_dim,
          DType dtype, Device device) {
    for (int64_t i = 0; i < layers; ++i)
      layers_.emplace_back(Shape{batch, capacity, kv_heads, head_dim}, dtype, device);
  }
  Layer& layer(int64_t i) { return layers_[static_cast<size_t>(i)]; }
  /// Tokens seen so far.
  int64_t length() const { return layers_.empty() ? 0 : layers_[0].length(); }
  /// Forgets them; the memory stays.
  void clear() {
    for (Layer& layer : layers_) layer.clear();
  }
  /// Their ids (B, length), where a model has to compute them again at some length; else undefined.
  Tensor tokens;

 private:
  std::vector<Layer> layers_;
};

}  // namespace tally::nn
