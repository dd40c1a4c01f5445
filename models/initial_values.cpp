#include <cmath>
#include <limits>

#include "models/mup.h"
#include "models/parameters.h"

namespace tally {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// As the authors' code begins: Gu and Dao 2023, arXiv:2312.00752, section 3.6 (a fades by 1, 2, ...
// N, the step lies between 1e-3 and 0.1); Yang et al. 2024, arXiv:2412.06464 (a up to 16); a
// convolution as PyTorch's.
InitialValues initial_of_recurrence(const ParameterSpec& p) {
  InitialValues v{0, 0, kNever};
  switch (p.role) {
    case Role::convolution:
      v.std = 1 / std::sqrt(3 * double(p.shape.back()));
      break;
    case Role::decay:
      v.draw = p.shape.size() == 2 ? Draw::log_of_place : Draw::log_of_uniform;
      v.low = 0, v.high = 16;
      break;
    case Role::step_bias:
      v.draw = Draw::step, v.low = 1e-3, v.high = 0.1;
      break;
    default:
      v.mean = 1;
  }
  return v;
}

}  // namespace

InitialValues initial_values(const ModelConfig& c, const ParameterSpec& p) {
  // beta 1: SiLU; both curvatures 0.8, as Huang and Schlag 2024, arXiv:2411.13010, begin.
  if (p.role == Role::curve)
    return {p.name.ends_with("beta")      ? 1
            : p.name.ends_with("alpha_p") ? std::log(std::expm1(0.8))
                                          : std::log(std::expm1(0.8 - 0.5)),
            0, kNever};
  if (p.role == Role::norm) return {c.norm_gain == NormGain::one_plus_gamma ? 0.0 : 1.0, 0, kNever};
  if (p.role == Role::gain) return {c.residual_gain_init, 0, kNever};
  if (p.role == Role::bias) return {0, 0, kNever};
  if (p.role >= Role::convolution) return initial_of_recurrence(p);
  const bool table = p.role == Role::embedding || p.role == Role::position;
  const bool residual = p.role == Role::residual_projection;
  const double width = residual || p.role == Role::projection ? std::sqrt(mup_width(c)) : 1;
  // Experts are matrices (out, in) on top of each other.
  const size_t last = p.shape.size() - 1;
  const double out = double(p.shape.at(last - 1)), in = double(p.shape.at(last));
  switch (c.init) {
    case Init::normal:
      // LLaMA as trained and published: every matrix N(0, init_std).
      return {0, c.init_std / width, kNever};
    case Init::gpt2:
      // Radford et al. 2019, section 2.3: what writes into the residual stream is scaled by
      // 1 / sqrt(number of residual layers), of which a block has two.
      return {0, c.init_std / width / (residual ? std::sqrt(2 * double(c.layers)) : 1), kNever};
    case Init::trunc_normal:
      // OLMo 2 (arXiv:2501.00656): N(0, 0.02) at every depth, cut at three deviations.
      return {0, c.init_std / width, 3 * c.init_std / width};
    case Init::xavier: {
      // Glorot and Bengio 2010, eq. 16, as a normal cut at three deviations; tables N(0, 1).
      const double std = table ? 1 : std::sqrt(2 / (in + out));
      return {0, std, 3 * std};
    }
    case Init::mitchell: {
      // The scheme of that name in OLMo's code, after Zhang et al. 2019, arXiv:1908.11365:
      // 1 / sqrt(fan in); what writes into the stream shrinks with depth, 1 / sqrt(2 fan_in
      // (layer + 1)); cut at three deviations.
      const double fan_in = table ? double(c.d_model) : in;
      const double std = 1 / std::sqrt(fan_in * (residual ? 2 * double(p.layer + 1) : 1));
      return {0, std, 3 * std};
    }
    case Init::fixup: {
      // Zhang et al. 2019, arXiv:1901.09321, section 3: the head and the last matrix of every branch
      // begin at 0; the others at 1 / sqrt(fan in), times L^(-1 / (2 m - 2)) for L branches of m = 2
      // matrices on the way.
      if (residual || p.role == Role::head) return {0, 0, kNever};
      if (table) return {0, 1 / std::sqrt(double(c.d_model)), kNever};
      return {0, 1 / std::sqrt(in) / std::sqrt(2 * double(c.layers)), kNever};
    }
  }
  return {};
}

}  // namespace tally
