#pragma once
#include <span>
#include <vector>

#include "core/ops/position.h"
#include "nn/attention.h"
#include "nn/module.h"

namespace tally::nn {

/// How a model knows where its tokens are. Lecture claims L42 to L52.
enum class PositionKind : uint8_t {
  none,        ///< not at all, but for what a causal mask gives away
  learned,     ///< a learned row for each position, added to the embedding
  rope,        ///< queries and keys turned in every layer
  sinusoidal,  ///< a fixed row for each position, added to the embedding
  alibi,       ///< a penalty for distance on the scores of every layer
  t5_bias,     ///< a learned number for each head and bucket of distances; one table for all layers
  xl_relative,  ///< a product of the query with its distance from the key, in every layer
};
/// Which positions a layer has.
enum class LayerPositions : uint8_t {
  global,  ///< the model's
  local,   ///< rotary ones with a base of their own and without scaling (Gemma 3, OLMo 3)
  none,    ///< NoPE
};

struct PositionOptions {
  PositionKind kind = PositionKind::rope;
  /// Of the layers in turn, from the first again when it ends; empty: all global.
  std::vector<LayerPositions> layers;
  int64_t offset = 0;                            // learned: rows in front (OPT: 2)
  Sinusoid sinusoid = Sinusoid::interleaved;     // sinusoidal
  double base = 10000, local_base = 10000;       // rope
  int64_t rotary_dim = 0, local_rotary_dim = 0;  // elements of a head that turn; 0: all
  RopeScaling scaling;
  RopeArithmetic arithmetic = RopeArithmetic::float64;
  int64_t buckets = 32, max_distance = 128;  // t5_bias
  bool two_sided = false;  // t5_bias: keys ahead have buckets of their own (encoders)

  LayerPositions of_layer(int64_t i) const {
    return layers.empty() ? LayerPositions::global : layers[static_cast<size_t>(i) % layers.size()];
  }
};

/// The positions of a decoder: its tables and, where they are learned, its parameter.
///   weight (offset + context, D) learned, (buckets, H) t5_bias, else undefined
class PositionScheme : public Module {
 public:
  struct Sizes {
    int64_t d_model = 0, heads = 0, head_dim = 0, context = 0;
  };
  PositionScheme(const PositionOptions& o, const Sizes& sizes, DType dtype, Device device);

  /// x (B,T,D) and, where positions are added to the embedding, the rows of tokens first, first +
  /// 1, ...
  Tensor add_to(const Tensor& x, int64_t first) const;
  /// What the layers of one pass need, `count` tokens behind `first` that are in a cache.
  struct Pass {
    Positions global, local, none{};
    /// The documents of all tokens so far (B,S), which every layer keeps apart.
    void set_documents(const Tensor& ids) {
      global.documents = local.documents = none.documents = ids;
    }
  };
  Pass pass(int64_t first, int64_t count) const;
  /// The part of a pass that layer i takes.
  const Positions& of_layer(const Pass& pass, int64_t i) const;
  /// True where keys that are in a cache stand for a shorter text than the one that `count` more
  /// tokens make, and must be computed again: longrope at its original context.
  bool outdates_cache(int64_t cached, int64_t count) const;
  bool may_outdate_cache() const;
  void visit(Visitor& v) override { v.parameter("weight", weight); }

  Tensor weight;

 private:
  PositionOptions options_;
  Sizes sizes_;
  DType dtype_;
  Device device_;
  Tensor sinusoids_;      // sinusoidal, xl_relative: (context, D)
  Tensor table_, local_;  // rope: all positions of the context
};

}  // namespace tally::nn
