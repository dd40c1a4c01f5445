#pragma once
#include "core/ops/elementwise.h"
#include "core/ops/layer_norm.h"
#include "core/ops/layout.h"
#include "nn/norm.h"

namespace tally::nn {

/// The norm of queries or keys before they are rotated, of each head by itself (Qwen 3, Gemma 3) or
/// of all heads as one row (OLMo 2). It bounds the scores: with gains of 1 a row of K has the length
/// sqrt(K), so |q.k| <= K. Dehghani et al. 2023 (ViT-22B), arXiv:2302.05442, section 2; lecture claims
/// L72, L73.
///   heads (B,T,H,K)   gain, shift (K) for `head`, (H K) for `full`, or absent;
///   gain (H,K) for `heads`: each by itself with a gain of its own, without a shift (Command R+)
struct QKNorm {
  enum class Width : uint8_t { none, head, full, heads };
  struct Attrs {
    Width width = Width::none;
    NormOptions norm;  // layer_norm or rms_norm
  };
  struct Weight {
    Tensor gain, shift;
  };
  struct Weights {
    Weight q, k;
  };
  struct Saved {
    ops::RMSNorm::Saved rms;
    ops::LayerNorm::Saved layer;
    ops::Mul::Saved gains;  // heads
  };

  static Weights make(const Attrs& a, int64_t heads, int64_t kv_heads, int64_t head_dim,
                      DType dtype, Device device) {
    if (a.width == Width::heads && a.norm.gain != NormGain::none) {
      check(!a.norm.bias, "qk_norm: heads with gains of their own have no bias");
      check(a.norm.gain == NormGain::gamma,
            "qk_norm: gains of heads multiply as they are; set "
            "norm_gain to gamma");
      return {{empty({heads, head_dim}, dtype, device), {}},
              {empty({kv_heads, head_dim}, dtype, device), {}}};
    }
    const Norm q(norm_if(a.width != Width::none, a.norm), width(a, heads, head_dim), dtype, device);
    const Norm k(norm_if(a.width != Width::none, a.norm), width(a, kv_heads, head_dim), dtype,
                 device);
    return {{q.weight, q.bias}, {k.weight, k.bias}};
  }

  /// The normalized heads, a tensor of their own; without a norm `heads` itself.
  static Tensor forward(const Tensor& heads, const Weight& w, const Attrs& a, Saved* s) {
    if (a.width == Width::none) return heads;
    const Tensor x = rows_of(heads, a);
    const bool plus_one = a.norm.gain == NormGain::one_plus_gamma;
    const bool apart = a.width == Width::heads;
    const Tensor gain = apart ? Tensor() : w.gain;
    Tensor y;
    if (a.norm.kind == NormKind::layer_norm)
      y = ops::LayerNorm::forward(x, gain, w.shift, {a.norm.eps, plus_one},
                                  s ? &s->layer : nullptr);
    else
      y = ops::RMSNorm::forward(x, gain, {a.norm.eps, plus_one, !apart && a.norm.round_before_gain},
                                s ? &s->rms : nullptr);
    if (apart && w.gain.defined()) y = ops::Mul::forward(y, w.gain, {}, s ? &s->gains : nullptr);
    return y.reshape(heads.shape());
  }

  /// Writes the gradient of the heads into `to`; returns those of gain and shift.
  static std::array<Tensor, 2> backward(const Tensor& dy, const Tensor& to, Saved&& s,
                                        const Attrs& a, const Into<2>& into) {
    if (a.width == Width::none) return {};
    if (a.width == Width::heads && s.gains.b.defined()) {
      const auto [dn, dgain] = ops::Mul::backward(dy, std::move(s.gains), into.pick(-1, 0));
      return {dgain, norm_backward(dn, to, std::move(s), a, into.pick(-1, 1))[1]};
    }
    return norm_backward(dy, to, std::move(s), a, into);
  }

 private:
  static std::array<Tensor, 2> norm_backward(const Tensor& dy, const Tensor& to, Saved&& s,
                                             const Attrs& a, const Into<2>& into) {
    const Tensor target = flat(to, a);
    const bool direct = View(target).is_rows();
    const Tensor dx = direct ? target : empty(target.shape(), dy.dtype(), dy.device());
    Tensor dgain, dshift;
    if (a.norm.kind == NormKind::layer_norm) {
      const auto g = ops::LayerNorm::backward(flat(dy, a), std::move(s.layer), all(dx, into));
      dgain = g[1], dshift = g[2];
    } else {
      const Into<3> parts = all(dx, into);
      dgain = ops::RMSNorm::backward(flat(dy, a), std::move(s.rms), parts.pick(0, 1))[1];
    }
    if (!direct) run(dy.device(), ops::Copy::Call{dx, target});
    return {dgain, dshift};
  }

  static int64_t width(const Attrs& a, int64_t heads, int64_t head_dim) {
    return a.width == Width::full ? heads * head_dim : head_dim;
  }
  static Tensor flat(const Tensor& heads, const Attrs& a) {
    if (a.width != Width::full) return heads;
    return heads.reshape({heads.size(0), heads.size(1), heads.size(2) * heads.size(3)});
  }
  // Heads that lie between others, in one product with keys and values, are copied out: norms work
  // on rows that are evenly spaced.
  static Tensor rows_of(const Tensor& heads, const Attrs& a) {
    Tensor x = flat(heads, a);
    if (View(x).is_rows()) return x;
    Tensor dense = empty(x.shape(), x.dtype(), x.device());
    run(x.device(), ops::Copy::Call{x, dense});
    return dense;
  }
  static Into<3> all(const Tensor& dx, const Into<2>& of_weights) {
    Into<3> into;
    into.target[0] = dx, into.overwrite[0] = true;
    for (size_t i = 0; i < 2; ++i) {
      into.target[i + 1] = of_weights.target[i], into.skip[i + 1] = of_weights.skip[i];
      into.overwrite[i + 1] = of_weights.overwrite[i];
    }
    return into;
  }
};

}  // namespace tally::nn
