#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/proof/options.h"
#include "autograd/tape.h"

namespace tally {

/// How an input lies in memory: dense, or a view into memory that holds more, or less, than it.
enum class Layout : uint8_t {
  dense,
  rows_apart,           // columns of a wider tensor: a gap between rows, an offset
  every_second_row,     // of the first axis
  every_second_column,  // of the last axis
  transposed,           // the last two axes change places
  turned,               // the first two axes of three or more change places
  repeated              // the first axis has stride 0: all along it is one row
};
const char* name_of(Layout layout);

/// An input of a sample, as numbers: tests turn it into a tensor of the type they need.
struct SampleInput {
  bool present = true;
  bool differentiable = true;
  DType dtype = DType::f64;  // i64 or u8 stay; a floating input takes the type of the run
  bool accumulator = false;  // takes the type that the type of the run accumulates in
  bool type_alone = false;   // no call gets it: it names a type and a device
  Layout layout = Layout::dense;
  Shape shape;
  std::vector<double> values;
};

/// Standard normal numbers times `scale`; each call within a sample should get its own `seed`.
SampleInput normal(const Shape& shape, uint64_t seed, double scale = 1, double shift = 0);
/// Given numbers.
SampleInput values(const Shape& shape, std::vector<double> numbers);
/// Integers in [0, limit).
SampleInput indices(const Shape& shape, uint64_t seed, int64_t limit);
SampleInput indices(const Shape& shape, std::vector<double> numbers);
/// A mask: u8, 1 = yes.
SampleInput flags(const Shape& shape, std::vector<double> numbers);
/// An optional input that is not given.
SampleInput absent();
/// The same input, without a gradient.
SampleInput constant(SampleInput input);
/// The same input in the type that the run accumulates in: tables, row statistics.
SampleInput accumulating(SampleInput input);

/// What a sample without a floating operand takes its type and device from.
SampleInput type_alone();

/// Whether a shape has the axes that a layout changes.
bool can_lie(const Shape& shape, Layout layout);
/// The same input in another layout; for `repeated` with the numbers of the first of its rows.
SampleInput laid_out(SampleInput input, Layout layout);

/// The tensor of an input in type `dtype` on `device`; undefined for an absent one.
Tensor make_input(const SampleInput& input, DType dtype, Device device);

/// One op on given inputs. The table of samples drives every generic proof and test.
struct Sample {
  using Tensors = std::vector<Tensor>;
  using Function = std::function<Tensors(const Tensors&)>;
  using Skips = std::vector<bool>;
  struct Explicit {
    Tensors outputs;
    std::function<Tensors(const Tensors&, const Tensors&, const Skips&)> backward_of;
    /// Gradients of the inputs from those of the outputs; adds into `into` where given, leaves out
    /// the inputs of `skip`. Once only.
    Tensors backward(const Tensors& dy, const Tensors& into = {}, const Skips& skip = {}) const {
      return backward_of(dy, into, skip);
    }
  };
  std::string op, name;
  std::vector<SampleInput> inputs;
  Function apply;                                   // through the tape
  std::function<Explicit(const Tensors&)> by_hand;  // without one; null: the op has no backward
  Function composition;  // what a fused op must equal, through the tape; null: not fused
  bool smooth = true;    // false at kinks, in saturation, at extremes: proven by the adjoint alone
  bool narrow = true;    // false: the op refuses bf16 and f16
  bool bounded_cost = false;  // work depends on values: declared is a bound, counted may be less
  bool module = false;        // made of ops on the tape: autograd/proof/taped_sample.h
  std::vector<std::string> options;  // of the op's Attrs: autograd/proof/options.h
  bool derived = false;  // from a product of shapes, layouts, numbers: autograd/samples/grid.h

  Sample&& not_smooth() && {
    smooth = false;
    return std::move(*this);
  }
  Sample&& bounded() && {
    bounded_cost = true;
    return std::move(*this);
  }
  Sample&& equals(Function f) && {
    composition = std::move(f);
    return std::move(*this);
  }
};

namespace detail {
template <size_t>
using TensorFor = Tensor;  // one for each number of a pack
inline std::vector<Tensor> as_list(Tensor t) { return {std::move(t)}; }
template <size_t M>
std::vector<Tensor> as_list(const std::array<Tensor, M>& t) {
  return {t.begin(), t.end()};
}
// The outputs of op O that have a gradient: all, unless it says how many come before its
// statistics.
template <class O, class Y>
std::vector<Tensor> outputs(const Y& y) {
  std::vector<Tensor> list = as_list(y);
  while (!list.empty() && !list.back().defined()) list.pop_back();  // parts that are not there
  if constexpr (requires { O::differentiable_outputs; }) list.resize(O::differentiable_outputs);
  return list;
}
template <class O, size_t... I>
Sample make_sample(std::string name, const typename O::Attrs& attrs,
                   std::vector<SampleInput> inputs, std::index_sequence<I...>) {
  using Tensors = Sample::Tensors;
  Sample s;
  s.op = O::name;
  s.name = std::move(name);
  s.inputs = std::move(inputs);
  s.options = options_of(attrs);
  s.apply = [attrs](const Tensors& in) { return outputs<O>(tally::apply<O>(attrs, in[I]...)); };
  if constexpr (HasBackward<O, TensorFor<I>...>) {
    s.by_hand = [attrs](const Tensors& in) {
      auto saved = std::make_shared<typename O::Saved>();
      Sample::Explicit e;
      const auto y = O::forward(in[I]..., attrs, saved.get());
      e.outputs = outputs<O>(y);
      e.backward_of = [saved](const Tensors& dy, const Tensors& targets,
                              const Sample::Skips& skip) {
        Into<sizeof...(I)> into;
        for (size_t i = 0; i < targets.size(); ++i) into.target[i] = targets[i];
        for (size_t i = 0; i < skip.size(); ++i) into.skip[i] = skip[i];
        if constexpr (std::is_same_v<std::decay_t<decltype(y)>, Tensor>) {
          return as_list(O::backward(dy[0], std::move(*saved), into));
        } else {
          std::decay_t<decltype(y)> d;
          for (size_t i = 0; i < dy.size(); ++i) d[i] = dy[i];
          return as_list(O::backward(d, std::move(*saved), into));
        }
      };
      return e;
    };
  }
  return s;
}
}  // namespace detail

/// A sample of op O with N inputs, absent ones included.
template <class O, size_t N>
Sample sample(std::string name, const typename O::Attrs& attrs, const SampleInput (&inputs)[N]) {
  return detail::make_sample<O>(std::move(name), attrs, {inputs, inputs + N},
                                std::make_index_sequence<N>{});
}

/// Every sample of core's ops, in the order of core/ops/all.h.
std::vector<Sample> core_samples();

}  // namespace tally
