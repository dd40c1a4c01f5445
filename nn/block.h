#pragma once
#include "nn/attention.h"
#include "nn/delta_net.h"
#include "nn/feed_forward.h"
#include "nn/latent_attention.h"
#include "nn/layer_inputs.h"
#include "nn/mamba.h"
#include "nn/mixture_of_experts.h"
#include "nn/norm.h"
#include "nn/parallel.h"
#include "nn/shared_attention.h"

namespace tally::nn {

/// Where a block normalizes, for a branch F and the residual stream x.
enum class Placement : uint8_t {
  pre,          ///< x + F(N(x)). Xiong et al. 2020, arXiv:2002.04745
  post,         ///< N(x + F(x)). Vaswani et al. 2017, arXiv:1706.03762
  double_norm,  ///< x + N2(F(N1(x))): Gemma 2 and 3, Grok
  output,       ///< x + N(F(x)): OLMo 2
  none          ///< x + F(x)
};
/// Whether both branches of a block read the same stream: y = x + A(N(x)) + M(N'(x)).
enum class Parallel : uint8_t {
  none,         ///< one after the other
  shared_norm,  ///< N' = N: GPT-J, PaLM, Command R
  two_norms     ///< a norm each: GPT-NeoX
};
/// A learned factor of what a branch adds.
enum class ResidualGain : uint8_t {
  none,
  scalar,  ///< one number a branch: ReZero, Fixup
  vector   ///< one a channel: LayerScale
};

/// What carries something from token to token in a block.
enum class Mixer : uint8_t {
  attention,  ///< over heads or a latent
  delta_net,  ///< nn/delta_net.h
  mamba       ///< nn/mamba.h
};

struct ResidualOptions {
  double scale = 1;  // a constant factor
  ResidualGain gain = ResidualGain::none;
  double drop = 0;  // stochastic depth: probability that a sequence leaves a branch out
};

/// A decoder block: two branches that add to the residual stream. In the placement `pre`
///   h = x + dropout(attention(norm1(x)))
///   y = h + dropout(mlp(norm2(h)))            x, h, y (B,T,D)
/// and in the others as listed above. Lecture claims L8, L9, L16, L38.
class Block : public Module {
 public:
  struct Options {
    NormOptions norm;
    Placement placement = Placement::pre;
    Parallel parallel = Parallel::none;
    bool fused_parallel = false;  // the first products of both branches as one: nn/parallel.h
    /// Fixup's scalar biases: a learned number added to what each matrix and each activation of a
    /// branch is given. Zhang et al. 2019, arXiv:1901.09321, section 3.
    bool shifts = false;
    double dropout = 0;  // of what a branch adds
    ResidualOptions residual;
    AttentionOptions attention;
    std::optional<LatentAttentionOptions> latent;  // in place of attention, but for its d_model
    std::optional<SharedAttentionOptions> shared;  // the same
    int64_t layer_input = 0;  // width of an embedding of its own, added last; 0: none
    bool scaled = false;      // all of it times a number that is kept and not trained
    std::optional<DeltaNetOptions> delta_net;  // the same: recurrences in place of attention
    std::optional<MambaOptions> mamba;
    FeedForwardOptions mlp;
    std::optional<MixtureOptions> experts;  // in place of mlp
    /// mlp stands beside the experts, each between norms of its own, and the router sees the stream:
    /// y = h + N(N1(mlp(Np(h))) + N2(experts(Np2(h)))), as Gemma 4 has it. In `double_norm` alone.
    bool dense_branch = false;
    bool balance = false;  // compute what keeps their load even
  };
  Block(const Options& o, DType dtype, Device device);

  Tensor forward(const Tensor& x, const Positions& positions, Generator* dropout) const {
    return run(x, positions, dropout)[0];
  }
  /// The same and, second, where `balance` asks for it, the load-balance loss of the experts.
  std::array<Tensor, 2> run(const Tensor& x, const Positions& positions, Generator* dropout) const;
  Tensor forward_cached(const Tensor& x, const Positions& positions, KVCache::Layer& cache) const;
  /// What it keeps of `capacity` tokens of `batch` sequences.
  KVCache::Layer make_cache(int64_t batch, int64_t capacity, DType dtype, Device device) const;
  /// Tokens that a cache has to keep for its attention; 0: all.
  int64_t window() const {
    return latent ? latent->window() : shared ? shared->window() : attention.window();
  }
  void visit(Visitor& v) override;

  // Those that a placement does not have are of kind none: before a branch (`post`: after the sum),
  // and behind it.
  Norm attention_norm;
  // Fused parallel branches: rows [q | k | v | gate | up], in place of those matrices.
  Matrix input;
  Attention attention;  // without matrices where one of these takes its place
  std::optional<LatentAttention> latent;
  std::optional<SharedAttention> shared;
  std::optional<DeltaNet> delta_net;
  std::optional<Mamba> mamba;
  Norm attention_output_norm;
  Tensor attention_gain;              // () or (D), absent without
  Tensor attention_shift, mlp_shift;  // () before a branch's first matrix, absent without
  Norm mlp_norm;
  std::optional<FeedForward> mlp;  // or experts, or both: dense_branch
  std::optional<MixtureOfExperts> experts;
  Norm dense_output_norm, experts_norm, experts_output_norm;  // N1, Np2 and N2 of a dense branch
  Norm mlp_output_norm;
  Tensor mlp_gain;
  std::optional<LayerInput> layer_input;
  Tensor layer_scale;  // (1), a buffer; absent without

 private:
  bool is_recurrent() const { return delta_net || mamba; }
  Tensor mix(const Tensor& x, const Positions& positions, Generator* dropout) const;
  Tensor mix_cached(const Tensor& x, const Positions& positions, KVCache::Layer& cache) const;
  ParallelLayer::Attrs parallel_attrs() const;
  Tensor fused_cached(const Tensor& seen, const Positions& positions, const ParallelLayer::Attrs& a,
                      KVCache::Layer& cache) const;
  Tensor fused(const Tensor& x, const Positions& positions, Generator* dropout,
               KVCache::Layer* cache) const;
  template <class Attend>
  std::array<Tensor, 2> through(const Tensor& x, const Attend& attend, Generator* dropout) const;
  Tensor feed_forward(const Tensor& x, const Tensor& stream, Tensor& balance, bool training) const;
  Tensor finish(Tensor y, const Positions& positions) const;
  Tensor join(const Tensor& stream, const Tensor& branch, const Tensor& gain,
              Generator* dropout) const;
  Options options_;
};

}  // namespace tally::nn
