#pragma once
#include "models/algebra.h"

namespace tally {

/// The lines about parameters, by component.
std::vector<Formula> parameter_formulas(const Report& report);

/// The lines of layers with a recurrence: their parameters, and what generation keeps of a sequence.
/// P and U key and value heads of widths K and M, W taps of a convolution; C channels of N numbers
/// of state, R the rank of the step. None for a model without such layers.
std::vector<Formula> recurrence_parameters(const Report& report);
std::vector<Formula> recurrence_state(const Report& report);

}  // namespace tally
