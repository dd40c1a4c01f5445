#pragma once
#include "autograd/proof/sample.h"

namespace tally {

/// The inputs of a sample as tensors.
std::vector<Tensor> make_inputs(const Sample& sample, DType dtype, Device device);

/// A random gradient for an output, in the output's type: a pure function of the seed. Undefined
/// for integers.
Tensor random_like(const Tensor& t, uint64_t seed);
/// The same for each output.
std::vector<Tensor> random_upstream(const std::vector<Tensor>& outputs);

/// Elements of a tensor as float64, whatever its strides and its device.
std::vector<double> to_doubles(const Tensor& t);

/// What a sample computes: its outputs and, where it has a backward, the gradients of its inputs
/// (undefined for those that have none).
struct SampleRun {
  std::vector<Tensor> outputs, upstream, gradients;
};
/// Forward and backward by hand. `upstream`: the outputs' gradients, random ones where empty.
SampleRun run_sample(const Sample& sample, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& upstream = {});

}  // namespace tally
