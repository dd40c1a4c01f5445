#pragma once
#include "autograd/functional.h"
#include "nn/module.h"

namespace tally::nn {

enum class NormKind : uint8_t {
  layer_norm,
  rms_norm,
  scale_norm,  ///< g x / |x| with one learned g. Nguyen and Salazar 2019, arXiv:1910.05895
  none         ///< x itself, without parameters: where a placement has no norm
};
/// What a normalized row is multiplied by.
enum class NormGain : uint8_t {
  gamma,           ///< a learned row that begins at 1
  one_plus_gamma,  ///< 1 + a learned row that begins at 0: Gemma, Nemotron
  none             ///< nothing: OLMo 1, nanochat
};

struct NormOptions {
  NormKind kind = NormKind::rms_norm;
  double eps = 1e-5;
  bool bias = false;  // of layer_norm
  NormGain gain = NormGain::gamma;
  /// rms_norm: rounded to the element type before the gain multiplies it, as LLaMA does in bf16.
  bool round_before_gain = false;
};

/// LayerNorm, RMSNorm or ScaleNorm over the last axis, or nothing.
///   x, y (..., D)   weight (D), of scale_norm () in units of sqrt(D): g = sqrt(D) weight   bias (D)
class Norm : public Module {
 public:
  Norm(const NormOptions& o, int64_t d_model, DType dtype, Device device) : options_(o) {
    check(o.kind == NormKind::layer_norm || !o.bias,
          "norm: only LayerNorm has a bias; set norm_bias to false or norm to layer_norm");
    check(o.gain != NormGain::none || !o.bias,
          "norm: a bias needs a gain; set norm_bias to false or norm_gain to gamma");
    check(o.kind != NormKind::scale_norm || o.gain == NormGain::gamma,
          "norm: ScaleNorm's one number is its gain; set norm_gain to gamma");
    if (o.kind == NormKind::none) return;
    if (o.kind == NormKind::scale_norm)
      weight = empty({}, dtype, device);
    else if (o.gain != NormGain::none)
      weight = empty({d_model}, dtype, device);
    if (o.bias) bias = empty({d_model}, dtype, device);
  }
  Tensor forward(const Tensor& x) const {
    const bool plus_one = options_.gain == NormGain::one_plus_gamma;
    switch (options_.kind) {
      case NormKind::layer_norm:
        return layer_norm(x, weight, bias, options_.eps, plus_one);
      case NormKind::rms_norm:
        return rms_norm(x, weight, options_.eps, plus_one, options_.round_before_gain);
      case NormKind::scale_norm:
        return mul(rms_norm(x, {}, options_.eps), weight);
      case NormKind::none:
        break;
    }
    return x;
  }
  void visit(Visitor& v) override {
    v.parameter("weight", weight);
    v.parameter("bias", bias);
  }
  bool present() const { return options_.kind != NormKind::none; }
  Tensor weight, bias;

 private:
  NormOptions options_;
};

/// The norm where `present`, else none.
inline NormOptions norm_if(bool present, NormOptions o) {
  if (!present) o = {NormKind::none};
  return o;
}

}  // namespace tally::nn
