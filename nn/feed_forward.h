#pragma once
#include "core/ops/activation.h"
#include "core/ops/elementwise.h"
#include "core/ops/gate.h"
#include "core/ops/linear.h"
#include "nn/matrix.h"
#include "nn/module.h"

namespace tally::nn {

// Feed-forward layer, plain or gated, as an op made of ops.
//
//   plain    y = act(x Wu^T + bu) Wd^T + bd                       Vaswani et al. 2017, section 3.3
//   gated    y = (act(x Wg^T + bg) * (x Wu^T + bu)) Wd^T + bd     Shazeer 2020, arXiv:2002.05202
//            with Wg absent, Wu holds both as rows [gate | up]: one product instead of two
//
//   x, y (..., D)    Wg, Wu (F, D), or Wu (2F, D)    Wd (D, F)    biases (F) or (2F), (D), or
//   absent    shifts: () in front of act, () in front of Wd, or absent (nn/block.h)
struct FeedForwardLayer {
  static constexpr const char* name = "feed_forward";
  struct Attrs {
    ops::ActivationKind activation = ops::ActivationKind::silu;
    bool gated = true;
    double parameter = 1;          // of the activation
    double limit = 0, offset = 0;  // of the gate, as ops::Gate
  };
  struct Saved {
    ops::Linear::Saved gate, up, down;
    ops::Activation::Saved activation;
    ops::Gate::Saved gating;
    ops::Add::Saved before_activation, before_down;
    bool gated = true, fused = false, shifted = false, down_shifted = false;
  };

  static Tensor forward(const Tensor& x, const Tensor& w_gate, const Tensor& b_gate,
                        const Tensor& w_up, const Tensor& b_up, const Tensor& w_down,
                        const Tensor& b_down, const Tensor& activation_shift,
                        const Tensor& down_shift, const Attrs& a, Saved* s) {
    const bool fused = a.gated && !w_gate.defined();
    Tensor up = ops::Linear::forward(x, w_up, b_up, {}, s ? &s->up : nullptr);
    Tensor h;
    if (!a.gated) {
      up = shifted(up, activation_shift, s ? &s->before_activation : nullptr);
      h = ops::Activation::forward(up, {a.activation, a.parameter}, s ? &s->activation : nullptr);
    } else {
      Tensor gate =
          fused ? up : ops::Linear::forward(x, w_gate, b_gate, {}, s ? &s->gate : nullptr);
      const bool apart = fused && activation_shift.defined();
      const int64_t f = up.size(-1) / 2;
      if (apart) gate = up.narrow(-1, 0, f), up = up.narrow(-1, f, f);
      gate = shifted(gate, activation_shift, s ? &s->before_activation : nullptr);
      h = ops::Gate::forward(gate, fused && !apart ? Tensor() : up,
                             {a.activation, a.parameter, a.limit, a.offset},
                             s ? &s->gating : nullptr);
    }
    up = Tensor();
    h = shifted(h, down_shift, s ? &s->before_down : nullptr);
    if (s) {
      s->gated = a.gated, s->fused = fused;
      s->shifted = activation_shift.defined(), s->down_shifted = down_shift.defined();
    }
    return ops::Linear::forward(h, w_down, b_down, {}, s ? &s->down : nullptr);
  }

  static std::array<Tensor, 9> backward(const Tensor& dy, Saved&& s, const Into<9>& into = {}) {
    auto [dh, dw_down, db_down] = ops::Linear::backward(dy, std::move(s.down), into.pick(-1, 5, 6));
    s.down = {};
    Tensor dgate, dup, dshift, d_down_shift;
    if (s.down_shifted) d_down_shift = into_shift(dh, std::move(s.before_down), into.pick(-1, 8));
    if (!s.gated) {
      dup = ops::Activation::backward(dh, std::move(s.activation))[0];
      if (s.shifted) dshift = into_shift(dup, std::move(s.before_activation), into.pick(-1, 7));
    } else if (s.fused && s.shifted) {  // one buffer [dgate | dup]
      const int64_t f = dh.size(-1);
      dup = empty(dh.shape().with_last(2 * f), dh.dtype(), dh.device());
      Into<2> parts;
      parts.target = {dup.narrow(-1, 0, f), dup.narrow(-1, f, f)}, parts.overwrite = {true, true};
      auto [da, db] = ops::Gate::backward(dh, std::move(s.gating), parts);
      dshift = into_shift(da, std::move(s.before_activation), into.pick(-1, 7));
    } else {
      auto [da, db] = ops::Gate::backward(dh, std::move(s.gating));
      if (s.fused)
        dup = da;
      else
        dgate = da, dup = db;
      if (s.shifted) dshift = into_shift(da, std::move(s.before_activation), into.pick(-1, 7));
    }
    s.activation = {}, s.gating = {}, s.before_activation = {};
    dh = Tensor();
    auto [dx, dw_up, db_up] = ops::Linear::backward(dup, std::move(s.up), into.pick(0, 3, 4));
    Tensor dw_gate, db_gate;
    if (dgate.defined()) {  // x feeds both branches: the second product adds to the first
      Into<3> rest = into.pick(0, 1, 2);
      rest.target[0] = dx;
      rest.overwrite[0] = false;
      auto [dx_sum, dw, db] = ops::Linear::backward(dgate, std::move(s.gate), rest);
      dx = dx_sum, dw_gate = dw, db_gate = db;
    }
    return {dx, dw_gate, db_gate, dw_up, db_up, dw_down, db_down, dshift, d_down_shift};
  }

 private:
  static Tensor shifted(const Tensor& x, const Tensor& shift, ops::Add::Saved* s) {
    if (!shift.defined()) return x;
    check(shift.ndim() == 0, "feed_forward: a shift must be one number (); got ", shift.shape(),
          in_module());
    return ops::Add::forward(x, shift, {}, s);
  }
  /// The gradient of a shift; that of what it was added to is dy itself.
  static Tensor into_shift(const Tensor& dy, ops::Add::Saved&& s, Into<2> into) {
    into.skip[0] = true;
    return ops::Add::backward(dy, std::move(s), into)[1];
  }
};

/// An activation with numbers of its own, which are trained.
enum class LearnedActivation : uint8_t {
  none,
  swish,  ///< x sigmoid(beta x), beta () beginning at 1: Ramachandran et al. 2017, arXiv:1710.05941
  xielu   ///< core/ops/xielu.h with alpha_p = softplus(.), alpha_n = 1/2 + softplus(.): Apertus
};

struct FeedForwardOptions {
  int64_t d_model = 0, d_ff = 0;
  ops::ActivationKind activation = ops::ActivationKind::silu;
  bool gated = true, bias = false;
  bool fused = true;             // one matrix [gate | up] instead of two
  double parameter = 1;          // of the activation
  double limit = 0, offset = 0;  // of the gate, as ops::Gate
  bool shifts = false;           // Fixup's numbers before the activation and before Wd
  bool own_inputs = true;        // false: the rows of gate and up are in a block's input
  LearnedActivation learned = LearnedActivation::none;  // in place of `activation`
  FeedForwardLayer::Attrs attrs() const { return {activation, gated, parameter, limit, offset}; }
};

/// Width of the feed-forward layer of a model of width d: `ratio` d, for a gated one 2/3 of that, so
/// that its three matrices hold what two would (Shazeer 2020, arXiv:2002.05202, section 2; ratio 4
/// gives 8/3), rounded up to a multiple that products are fast at. Lecture claims L34, L35.
int64_t ffn_width(int64_t d_model, double ratio, bool gated, int64_t multiple_of = 1);

/// The layer with its parameters; FeedForwardLayer above says what it computes.
class FeedForward : public Module {
 public:
  FeedForward(const FeedForwardOptions& o, DType dtype, Device device);
  Tensor forward(const Tensor& x) const {
    const ModuleScope scope("mlp");
    if (options_.learned != LearnedActivation::none) return forward_learned(x);
    return apply<FeedForwardLayer>(options_.attrs(), x, gate.weight, gate.bias, up.weight, up.bias,
                                   down.weight, down.bias, activation_shift, shift);
  }
  void visit(Visitor& v) override;

  Matrix gate, up, down;           // gate is absent when plain or fused
  Tensor activation_shift, shift;  // (), or undefined
  Tensor beta, alpha_p, alpha_n;   // () of a learned activation, or undefined

 private:
  // From the ops that it is made of; the tape plays their backward passes.
  Tensor forward_learned(const Tensor& x) const;
  Tensor activated(const Tensor& x) const;
  FeedForwardOptions options_;
};

}  // namespace tally::nn
