#pragma once
#include "autograd/proof/sample.h"

namespace tally {

/// Plays the tape that is on, with a given gradient for each output; undefined: none.
void backward_from(const std::vector<Tensor>& outputs, std::vector<Tensor>&& upstream);

/// A sample of what is made of ops on the tape and has no backward of its own, a module: its
/// explicit backward runs `function` again on a tape of its own.
Sample taped_sample(std::string op, std::string name, std::vector<SampleInput> inputs,
                    Sample::Function function);

}  // namespace tally
