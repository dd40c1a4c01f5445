#pragma once
#include <string>

#include "models/config.h"

namespace tally {

// muP: Yang et al. 2022, arXiv:2203.03466, table 8, relative to a narrow model. With m = d_model /
// mup_base_width and an optimizer of Adam's kind
//
//                          standard             muP
//   hidden matrices        N(0, s^2)            N(0, s^2 / m), learning rate lr / m
//   embedding, vectors     N(0, s^2)            as they are
//   head                   N(0, s^2)            as it is; the logits are divided by m
//   scores of attention    1 / sqrt(head_dim)   sqrt(mup_base_head_dim) / head_dim
//
// so that every activation moves by the same amount in a step whatever the width (`tally
// coordinates`), and the learning rate of the narrow model serves the wide one (lecture claim L85).
// A decoupled decay is multiplied by m where its learning rate is divided: what fades in a step stays.

/// m; 1 without muP.
double mup_width(const ModelConfig& c);
/// The factor of attention's scores where muP changes it; 0: 1 / sqrt(head_dim).
double mup_attention_scale(const ModelConfig& c);

/// Error by name where muP is asked of a model that the table does not cover.
void check_mup(const ModelConfig& c, const std::string& where);
/// Error by name for an optimizer whose steps grow with the gradient.
void check_mup(const ModelConfig& c, const TrainConfig& t, const std::string& where);

}  // namespace tally
