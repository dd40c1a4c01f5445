#pragma once
#include <functional>
#include <memory>

#include "autograd/proof/taped_sample.h"
#include "nn/module.h"

namespace tally::nn {

/// How a module M is made and what is asked of it: `run` gets the module and the inputs of the
/// sample, of which the given ones come first.
template <class M>
struct ModuleUse {
  std::function<std::unique_ptr<M>(DType, Device)> make;
  std::function<std::vector<Tensor>(M&, const std::vector<Tensor>&)> run;
};

/// A sample of a module: the inputs are those given and then each of its parameters in the order of
/// visit(), with normal numbers.
template <class M>
Sample module_sample(const char* op, std::string name, const ModuleUse<M>& use,
                     std::vector<SampleInput> given) {
  const size_t count = given.size();
  const auto model = use.make(DType::f32, kReference);
  uint64_t seed = 500;
  for (const auto& [parameter, value] : model->named_parameters())
    given.push_back(normal(value.shape(), ++seed, 0.6));
  return taped_sample(
      op, std::move(name), std::move(given), [use, count](const std::vector<Tensor>& in) {
        // The parameters have the type of the run; a table among the given ones has
        // the type that it accumulates in.
        const Tensor& like = in[count < in.size() ? count : 0];
        const auto module = use.make(like.dtype(), like.device());
        size_t next = count;
        module->for_each_parameter([&](const std::string&, Tensor& slot) { slot = in[next++]; });
        return use.run(*module, in);
      });
}

}  // namespace tally::nn
