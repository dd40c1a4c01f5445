#pragma once
#include "core/ops/activation.h"
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
//   absent
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
    bool gated = true, fused = false;
  };

  static Tensor forward(const Tensor& x, const Tensor& w_gate, const Tensor& b_gate,
                        const Tensor& w_up, const Tensor& b_up, const Tensor& w_down,
                        const Tensor& b_down, const Attrs& a, Saved* s) {
    const bool fused = a.gated && !w_gate.defined();
    Tensor up = ops::Linear::forward(x, w_up, b_up, {}, s ? &s->up : nullptr);
    Tensor h;
    if (!a.gated) {
      h = ops::Activation::forward(up, {a.activation, a.parameter}, s ? &s->activation : nullptr);
    } else {
      Tensor gate =
          fused ? up : ops::Linear::forward(x, w_gate, b_gate, {}, s ? &s->gate : nullptr);
      h = ops::Gate::forward(gate, fused ? Tensor() : up,
                             {a.activation, a.parameter, a.limit, a.offset},
                             s ? &s->gating : nullptr);
    }
    up = Tensor();
    if (s) s->gated = a.gated, s->fused = fused;
    return ops::Linear::forward(h, w_down, b_down, {}, s ? &s->down : nullptr);
  }

  static std::array<Tensor, 7> backward(const Tensor& dy, Saved&& s, const Into<7>& into = {}) {
    auto [dh, dw_down, db_down] = ops::Linear::backward(dy, std::move(s.down), into.pick(-1, 5, 6));
    s.down = {};
    Tensor dgate, dup;
    if (!s.gated) {
      dup = ops::Activation::backward(dh, std::move(s.activation))[0];
    } else {
      auto [da, db] = ops::Gate::backward(dh, std::move(s.gating));
      if (s.fused)
        dup = da;
      else
        dgate = da, dup = db;
    }
    s.activation = {};
    s.gating = {};
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
    return {dx, dw_gate, db_gate, dw_up, db_up, dw_down, db_down};
  }
};

struct FeedForwardOptions {
  int64_t d_model = 0, d_ff = 0;
  ops::ActivationKind activation = ops::ActivationKind::silu;
  bool gated = true, bias = false;
  bool fused = true;             // one matrix [gate | up] instead of two
  double parameter = 1;          // of the activation
  double limit = 0, offset = 0;  // of the gate, as ops::Gate
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
    return apply<FeedForwardLayer>(options_.attrs(), x, gate.weight, gate.bias, up.weight, up.bias,
                                   down.weight, down.bias);
  }
  void visit(Visitor& v) override;

  Matrix gate, up, down;  // gate is absent when plain or fused

 private:
  FeedForwardOptions options_;
};

}  // namespace tally::nn
