#pragma once
#include <string>
#include <vector>

#include "models/config.h"

namespace tally {

/// The same model `d_model` numbers wide: d_ff and the number of heads grow with it, head_dim stays.
/// Error by name where the parts would not be whole.
RunConfig at_width(const RunConfig& config, int64_t d_model);

/// A size of the activations and how it depends on the width.
struct Coordinate {
  std::string name;            // "stream", "branches", "logits", and how far each has moved
  std::vector<double> values;  // by width, root mean square; NaN where the model has diverged
  double exponent = 0;         // e of the least squares fit value ~ width^e; NaN beside a NaN
};

/// The coordinate check of muP (Yang et al. 2022, arXiv:2203.03466, appendix D.1): a model at each
/// width takes `steps` steps at the learning rate `train.lr` on one batch of made-up tokens. What is
/// measured afterwards, and how far it has moved from where it began, should not depend on the width:
/// exponents near 0. The logits of a model that has not learnt shrink as width^(-1/2) under muP.
std::vector<Coordinate> coordinate_check(const RunConfig& config,
                                         const std::vector<int64_t>& widths, int64_t steps);

}  // namespace tally
