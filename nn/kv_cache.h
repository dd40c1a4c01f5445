#pragma once
#include <vector>

#include "nn/recurrent_state.h"

namespace tally::nn {

/// Keys and values of past tokens, one pair of tensors a layer.
///   k, v (B, capacity, G, K)
/// A layer with a window of W tokens keeps W of them, however long the text: a ring, whose newest
/// token takes the place of the oldest. Latent attention keeps rows that are keys and values at once
/// (nn/latent_attention.h): its layers have k alone. A layer with a recurrence keeps its state, of one
/// size however long the text.
class KVCache {
 public:
  class Layer {
   public:
    /// shape (B, capacity, G, K); `window` 0: none; `values` false: k alone.
    Layer(const Shape& shape, DType dtype, Device device, int64_t window = 0, bool values = true);
    /// A layer with a recurrence: its state, and no keys.
    explicit Layer(int64_t capacity) : capacity_(capacity) {}
    struct Seen {
      Tensor keys, values;  // values undefined where there is k alone
    };
    /// Takes keys and values of the next tokens, (B, T, G, K), and returns those that these tokens
    /// can see, (B, S, G, K), theirs among them: views where they lie in one piece, copies where a
    /// ring has gone round and several tokens, or `ordered`, ask for their order. Error when the
    /// cache is full.
    Seen append(const Tensor& k, const Tensor& v, bool ordered = false);
    /// Of a layer with a recurrence: what stands for the past, which its next `count` tokens move
    /// on. Error when they leave the capacity.
    RecurrentState& advance(int64_t count);
    /// Tokens taken so far.
    int64_t length() const { return length_; }
    void clear() { length_ = 0, recurrent_ = {}; }
    /// Bytes of its tensors.
    size_t nbytes() const {
      size_t n = 0;
      for (const Tensor* t : {&k_, &v_, &recurrent_.recent, &recurrent_.state})
        n += t->defined() ? t->nbytes() : 0;
      return n;
    }

   private:
    bool is_ring() const { return k_.size(1) < capacity_; }
    void check_room(int64_t count) const;
    void store(const Tensor& k, const Tensor& v);
    Tensor with_past(const Tensor& ring, const Tensor& fresh) const;

    Tensor k_, v_;
    RecurrentState recurrent_;
    int64_t capacity_, length_ = 0;
  };

  /// Layers that are alike and keep all tokens.
  KVCache(int64_t layers, int64_t batch, int64_t capacity, int64_t kv_heads, int64_t head_dim,
          DType dtype, Device device) {
    for (int64_t i = 0; i < layers; ++i)
      layers_.emplace_back(Shape{batch, capacity, kv_heads, head_dim}, dtype, device);
  }
  /// Layers of any kinds; the first counts the tokens.
  explicit KVCache(std::vector<Layer> layers) : layers_(std::move(layers)) {}
  Layer& layer(int64_t i) { return layers_[static_cast<size_t>(i)]; }
  /// Tokens seen so far.
  int64_t length() const { return layers_.empty() ? 0 : layers_[0].length(); }
  /// Forgets them; the memory stays.
  void clear() {
    for (Layer& layer : layers_) layer.clear();
  }
  size_t nbytes() const {
    size_t n = 0;
    for (const Layer& layer : layers_) n += layer.nbytes();
    return n;
  }
  /// Their ids (B, length), where a model has to compute them again at some length; else undefined.
  Tensor tokens;

 private:
  std::vector<Layer> layers_;
};

}  // namespace tally::nn
