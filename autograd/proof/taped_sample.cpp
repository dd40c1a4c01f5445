#include "autograd/proof/taped_sample.h"

namespace tally {
namespace {

using Tensors = std::vector<Tensor>;

// Hands a given gradient to `y` when the tape is played: one seed for each of several outputs.
// `carry` chains them, so that one backward pass starts them all.
struct Deliver {
  static constexpr const char* name = "deliver";
  struct Attrs {
    Tensor dy;
  };
  struct Saved {
    Tensor dy;
  };
  static Tensor forward(const Tensor& y, const Tensor&, const Attrs& a, Saved* saved) {
    if (saved) saved->dy = a.dy;
    return zeros({}, y.dtype(), y.device());
  }
  static std::array<Tensor, 2> backward(const Tensor& d, Saved&& s, const Into<2>&) {
    return {std::move(s.dy), d};
  }
};

// The leaf's alone, so that the tape adds in place as it does in a model.
Tensor copy_of(const Tensor& t) {
  const Tensor copy = empty_like(t);
  if (t.numel() > 0) backend(t.device()).copy(copy.data(), t.data(), t.nbytes());
  return copy;
}

// Gradients of `inputs` by a tape of its own; those of `skip` are not wanted.
Tensors gradients_by_tape(const Sample::Function& function, const Tensors& inputs,
                          const Tensors& dy, const Tensors& targets, const Sample::Skips& skip) {
  Tensors leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    leaves.push_back(inputs[i].defined() ? inputs[i].detach() : Tensor());
    if (!leaves[i].defined() || !is_floating(leaves[i].dtype())) continue;
    if (i < skip.size() && skip[i]) continue;
    leaves[i].requires_grad_();
    if (i < targets.size() && targets[i].defined()) leaves[i].set_grad(copy_of(targets[i]));
  }
  Tape tape;
  const Tensors outputs = function(leaves);
  check(outputs.size() == dy.size(), "taped_sample: ", outputs.size(), " outputs and ", dy.size(),
        " gradients of outputs");
  Tensors upstream;           // a seed that nobody else holds may become a gradient
  for (const Tensor& d : dy)  // views are handed on as they lie
    upstream.push_back(d.defined() && d.is_contiguous() ? copy_of(d) : d);
  backward_from(outputs, std::move(upstream));
  Tensors gradients;
  for (const Tensor& x : leaves) gradients.push_back(x.defined() ? x.grad() : Tensor());
  return gradients;
}

}  // namespace

void backward_from(const std::vector<Tensor>& outputs, std::vector<Tensor>&& upstream) {
  Tensor chain;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!upstream[i].defined()) continue;
    // Moved along: a seed that nobody else holds may become a gradient.
    chain = apply<Deliver>({std::move(upstream[i])}, outputs[i], chain);
  }
  // Deliver asks nothing of what it is given: zeros are there for every type.
  if (chain.defined()) backward(chain, zeros({}, chain.dtype(), chain.device()));
}

Sample taped_sample(std::string op, std::string name, std::vector<SampleInput> inputs,
                    Sample::Function function) {
  Sample s;
  s.op = std::move(op);
  s.name = std::move(name);
  s.inputs = std::move(inputs);
  s.module = true;
  s.apply = function;
  s.by_hand = [function](const Tensors& in) {
    Sample::Explicit e;
    e.outputs = function(in);
    e.backward_of = [function, in](const Tensors& dy, const Tensors& targets,
                                   const Sample::Skips& skip) {
      return gradients_by_tape(function, in, dy, targets, skip);
    };
    return e;
  };
  return s;
}

}  // namespace tally
