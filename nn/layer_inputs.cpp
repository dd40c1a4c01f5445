#include "nn/layer_inputs.h"

#include <cmath>

#include "autograd/functional.h"

namespace tally::nn {

LayerInputs::LayerInputs(const Sizes& sizes, const NormOptions& options, DType dtype, Device device)
    : embedding(empty({sizes.vocab, sizes.layers * sizes.width}, dtype, device)),
      projection(empty({sizes.layers * sizes.width, sizes.d_model}, dtype, device)),
      norm(options, sizes.width, dtype, device),
      sizes_(sizes) {}

Tensor LayerInputs::forward(const Tensor& ids, const Tensor& x) const {
  const Shape shape{ids.size(0), ids.size(1), sizes_.layers, sizes_.width};
  const double width = static_cast<double>(sizes_.width),
               d_model = static_cast<double>(sizes_.d_model);
  const Tensor token = reshape(tally::embedding(ids, embedding, std::sqrt(width)), shape);
  const Tensor stream = reshape(scale(linear(x, projection), 1 / std::sqrt(d_model)), shape);
  return scale(add(norm.forward(stream), token), std::sqrt(0.5));
}

Tensor LayerInputs::of_layer(const Tensor& all, int64_t layer) {
  return reshape(contiguous(narrow(all, 2, layer, 1)), {all.size(0), all.size(1), all.size(3)});
}

void LayerInputs::visit(Visitor& v) {
  v.parameter("embedding.weight", embedding);
  v.parameter("projection.weight", projection);
  v.child("norm", norm);
}

LayerInput::LayerInput(int64_t width, int64_t d_model, ops::ActivationKind act,
                       const NormOptions& options, DType dtype, Device device)
    : gate(empty({width, d_model}, dtype, device)),
      projection(empty({d_model, width}, dtype, device)),
      norm(options, d_model, dtype, device),
      act_(act) {}

Tensor LayerInput::forward(const Tensor& x, const Tensor& e) const {
  const ModuleScope scope("layer_input");
  const Tensor told = mul(activation(linear(x, gate), act_), e);
  return add(x, norm.forward(linear(told, projection)));
}

void LayerInput::visit(Visitor& v) {
  v.parameter("gate.weight", gate);
  v.parameter("projection.weight", projection);
  v.child("norm", norm);
}

}  // namespace tally::nn
