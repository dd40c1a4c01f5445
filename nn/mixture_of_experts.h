#pragma once
#include <optional>

#include "autograd/functional.h"
#include "nn/feed_forward.h"

namespace tally::nn {

struct MixtureOptions {
  int64_t d_model = 0, d_ff = 0, experts = 0;
  ops::RouterOptions router;  // k and how it chooses
  ops::ActivationKind activation = ops::ActivationKind::silu;
  bool gated = true, bias = false;
  double parameter = 1;          // of the activation
  double limit = 0, offset = 0;  // of the gate, as ops::Gate
  bool router_bias = false;      // added to the logits, and trained
  bool selection_bias = false;   // moves the choice alone (DeepSeek-V3), and is not trained
  double bias_rate = 0;          // how far a step moves it against the load; 0: it stays
  int64_t shared_ff = 0;         // width of an expert that every token passes; 0: none
  bool shared_gate = false;      // its output is multiplied by sigmoid(x Ws^T) (Qwen)
  // The router sees its input through an RMSNorm of its own, times a learned row (Gemma 4).
  bool router_norm = false;
  double norm_eps = 1e-6;
  bool expert_scale = false;  // a token's weight times a learned number of the expert (Gemma 4)
};

/// What the layer computed and what the router did.
struct MixtureOutput {
  Tensor y;       // (..., D)
  Tensor logits;  // (..., E), of the router
  Tensor chosen;  // (..., k) i64, the experts of each token
  /// What keeps the load even: load_balance_loss of this layer, to be added to the loss.
  Tensor balance_loss() const { return load_balance_loss(logits, chosen); }
};

/// A mixture of feed-forward experts: each token passes the k that a router chooses for it, and
/// those that are shared. Shazeer et al. 2017, arXiv:1701.06538; Dai et al. 2024 (shared experts),
/// arXiv:2401.06066.
///
///   y = sum_r w_r expert_{j_r}(x) + [sigmoid(x Ws^T)] shared(x),   w, j = moe_router(x Wr^T + br)
///   expert(x) = act(x Wg^T + bg) * (x Wu^T + bu) Wd^T + bd, or act(x Wu^T + bu) Wd^T + bd
///
///   x, y (..., D)   router (E, D)   up (E, 2F, D), rows [gate | up], or (E, F, D)   down (E, D, F)
///
/// Gemma 4's router sees D^-0.5 g * x / rms(x), g (D), in place of x, and w_r is multiplied by the
/// number of its expert; it may be given another input than the experts.
///
/// The rows of tokens are sorted by expert and each expert takes its own: work and memory grow with
/// k, not with E. No token is dropped.
class MixtureOfExperts : public Module {
 public:
  MixtureOfExperts(const MixtureOptions& o, DType dtype, Device device);
  Tensor forward(const Tensor& x) const { return route(x).y; }
  /// The same with what the router did. `counts`: in training, what the bias is moved by.
  /// `seen`: what the router sees in place of x.
  MixtureOutput route(const Tensor& x, bool counts = false, const Tensor& seen = {}) const;
  /// Moves the bias of the choice against the load of the passes that counted, at the end of a
  /// step: core/ops/selection_bias.h. Nothing where there is no rate.
  void update_selection_bias() const;
  /// Forgets what was counted, where a step is not taken.
  void forget_load() const;
  void visit(Visitor& v) override;

  Matrix router, up, down;
  Tensor router_scale;    // (D), absent without router_norm
  Tensor expert_scale;    // (E), absent without
  Tensor selection_bias;  // (E), a buffer
  Tensor load;            // (E), tokens of each expert in this step; undefined without a rate
  std::optional<FeedForward> shared;
  Tensor shared_gate;  // (1, D)

 private:
  Tensor scores(const Tensor& seen) const;
  Tensor scaled(const Tensor& weights, const Tensor& chosen) const;
  MixtureOptions options_;
};

}  // namespace tally::nn
