#pragma once
#include <algorithm>

#include "autograd/tape.h"
#include "core/random.h"

namespace tally {

/// A segment of a recorded computation that kept its inputs alone. Its backward runs the forward
/// again on a tape of its own and plays that.
class SegmentNode : public Tape::Node {
 public:
  static constexpr size_t kMaxInputs = 5, kMaxOutputs = 4;
  using Inputs = std::array<Tensor, kMaxInputs>;
  using Outputs = std::array<Tensor, kMaxOutputs>;  // undefined where there are fewer

  ~SegmentNode() override;
  const char* name() const override { return "checkpoint"; }
  std::span<const int32_t> inputs() const override { return slots_; }
  void backward(Tape& tape) override;

 protected:
  /// Slots of the inputs and of the leaves that the tape has just watched.
  void record(Tape& tape, std::span<const Tensor* const> inputs, const Generator* before,
              const Generator* after);
  bool wanted() const;
  virtual Outputs compute(const Inputs& inputs, Generator* dropout) = 0;
  static Outputs outputs(const Tensor& y) { return {y}; }
  template <size_t N>
  static Outputs outputs(const std::array<Tensor, N>& y) {
    static_assert(N <= kMaxOutputs, "a segment has at most four outputs");
    Outputs all;
    std::copy(y.begin(), y.end(), all.begin());
    return all;
  }

  std::array<int32_t, kMaxOutputs> slots_out_{-1, -1, -1, -1};

 private:
  class Lent;
  Outputs compute_again(const Inputs& inputs);
  /// Where the tensor of input or leaf i stands first: one tensor may come in several ways.
  size_t first_of(size_t i) const;
  bool comes_again(size_t i) const { return slots_[i] >= 0 && first_of(i) < i; }
  std::array<SavedTensor, kMaxInputs> saved_;
  size_t count_ = 0;               // inputs
  std::span<SavedTensor> leaves_;  // in the memory of the tape
  std::span<int32_t> slots_;       // of the inputs, then of the leaves
  Generator before_, after_;       // where the random streams stood around the first run
  bool random_ = false;
};

/// What a segment returns: a tensor, or several.
template <class F, class... Ts>
using SegmentResult = std::invoke_result_t<const F&, const Ts&..., Generator*>;
template <class F, class... Ts>
SegmentResult<F, Ts...> checkpoint(const F& f, Generator* dropout, const Ts&... inputs);

template <class F, size_t N>
class SegmentOf final : public SegmentNode {
 public:
  explicit SegmentOf(const F& f) : f_(f) {}

 private:
  template <class G, class... Ts>
  friend SegmentResult<G, Ts...> checkpoint(const G& f, Generator* dropout, const Ts&... inputs);
  Outputs compute(const Inputs& inputs, Generator* dropout) override {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return outputs(f_(inputs[I]..., dropout));
    }
    (std::make_index_sequence<N>{});
  }
  F f_;
};

/// y = f(inputs..., dropout), with nothing kept of what f computes: the backward pass runs f again,
/// on the same inputs and from the same position of the random streams, so loss and gradients have
/// the bits that they have without. Saves the memory of f's saved tensors for the price of one more
/// forward pass; the ledger lists the second run in the phase `recompute`.
///
/// f returns a tensor, or up to four as a std::array, of which any may be undefined. It is copied and
/// must give the same result for the same inputs. What it uses of this tape comes
/// in through `inputs` (Error by name otherwise); leaves, as parameters, it may hold itself.
/// `dropout`, null or the source of f's masks, is handed on to f; a position that differs after the
/// second run is an Error.   Chen et al. 2016, "Training deep nets with sublinear memory cost",
/// arXiv:1604.06174.
template <class F, class... Ts>
SegmentResult<F, Ts...> checkpoint(const F& f, Generator* dropout, const Ts&... inputs) {
  constexpr size_t n = sizeof...(Ts);
  static_assert(n <= SegmentNode::kMaxInputs, "a segment has at most five inputs");
  Tape* tape = Tape::open();
  if (!tape || tape->watches()) return f(inputs..., dropout);
  const Generator before = dropout ? *dropout : Generator();
  SegmentResult<F, Ts...> y;
  {
    const Tape::Watch watch(*tape);
    y = f((inputs.defined() ? inputs.detach() : inputs)..., dropout);
  }
  using Segment = SegmentOf<F, n>;
  static_assert(alignof(Segment) <= 16, "the tape's blocks are aligned to 16 bytes");
  auto* node = new (tape->allocate_node(sizeof(Segment))) Segment(f);
  const std::array<const Tensor*, n> list{&inputs...};
  node->record(*tape, list, dropout ? &before : nullptr, dropout);
  if (!node->wanted()) {
    node->~Segment();
    return y;
  }
  const SegmentNode::Outputs made = Segment::outputs(y);
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i].defined()) node->slots_out_[i] = tape->new_slot(made[i]);
  }
  tape->push(node);
  return y;
}

}  // namespace tally
