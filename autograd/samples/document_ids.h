#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/document_ids.h"

namespace tally::samples {

// The loops count in the type of a model, which no operand has.
inline Sample document_sample(std::string name, SampleInput ids) {
  Sample s;
  s.op = ops::DocumentIds::name;
  s.name = std::move(name);
  s.inputs = {type_alone(), std::move(ids)};
  s.apply = [](const Sample::Tensors& in) -> Sample::Tensors {
    check_defined(ops::DocumentIds::name, "like", in[0]);
    check_defined(ops::DocumentIds::name, "ids", in[1]);
    check_device(ops::DocumentIds::name, in[1], in[0].device());
    return {ops::DocumentIds::forward(in[1], {2, in[0].dtype()}, nullptr)};
  };
  return std::move(s).not_smooth();
}

inline std::vector<Sample> document_ids() {
  return {
      document_sample("2 rows of 5", indices({2, 5}, {0, 2, 1, 2, 2, 2, 0, 1, 0, 1})),
      document_sample("no end", indices({1, 3}, {0, 1, 0})),
      document_sample("no tokens", indices({2, 0}, std::vector<double>{})),
      document_sample("long rows", indices({3, 37}, 2, 4)),
  };
}

}  // namespace tally::samples
