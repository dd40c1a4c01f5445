#include "autograd/checkpoint.h"

#include <algorithm>

namespace tally {

// Hands the gradients that have arrived on the outer tape to the leaves of the inner one, so that
// the segment's backward calls add to them just as they would have without a segment; takes them
// back at the end, after an error too.
class SegmentNode::Lent {
 public:
  Lent(Tape& tape, SegmentNode& node) : tape_(tape), node_(node) {
    // Errors first, while every gradient is in its place.
    for (const SavedTensor& leaf : node.leaves_) leaf.get();
    for (size_t i = 0; i < node.count_; ++i) node.saved_[i].get();
    for (size_t i = 0; i < node.count_; ++i) {
      if (!node.saved_[i].defined()) continue;
      if (node.comes_again(i)) {
        inputs[i] = inputs[node.first_of(i)];
        continue;
      }
      const Tensor& given = node.saved_[i].get();
      inputs[i] = given.requires_grad() ? given : given.detach();  // f may hold a leaf itself, too
      if (node.slots_[i] < 0) continue;
      inputs[i].requires_grad_();
      inputs[i].impl()->grad = tape.take(node.slots_[i]);
    }
    for (size_t i = 0; i < node.leaves_.size(); ++i) {
      if (node.comes_again(node.count_ + i)) continue;
      const int32_t slot = node.slots_[node.count_ + i];
      node.leaves_[i].get().impl()->grad = tape.take(slot);
    }
  }
  ~Lent() {
    for (size_t i = 0; i < node_.slots_.size(); ++i) {
      if (node_.slots_[i] < 0 || node_.comes_again(i)) continue;
      const Tensor& t = i < node_.count_ ? inputs[i] : node_.leaves_[i - node_.count_].unchecked();
      if (t.defined()) tape_.put(node_.slots_[i], std::move(t.impl()->grad));
    }
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  Inputs inputs;

 private:
  Tape& tape_;
  SegmentNode& node_;
};

SegmentNode::~SegmentNode() {
  for (SavedTensor& leaf : leaves_) leaf.~SavedTensor();
}

void SegmentNode::record(Tape& tape, std::span<const Tensor* const> inputs, const Generator* before,
                         const Generator* after) {
  const std::span<const SavedTensor> watched = tape.watched();
  count_ = inputs.size();
  auto* leaves = static_cast<SavedTensor*>(
      tape.allocate_node(std::max<size_t>(watched.size(), 1) * sizeof(SavedTensor)));
  auto* slots =
      static_cast<int32_t*>(tape.allocate_node((count_ + watched.size() + 1) * sizeof(int32_t)));
  slots_ = {slots, count_ + watched.size()};
  for (size_t i = 0; i < count_; ++i) {
    saved_[i] = *inputs[i];
    slots[i] = tape.slot_of(*inputs[i]);
  }
  for (size_t i = 0; i < watched.size(); ++i) {
    new (leaves + i) SavedTensor(watched[i]);
    slots[count_ + i] = tape.slot_of(watched[i]);
    leaves_ = {leaves, i + 1};
  }
  random_ = before != nullptr;
  if (random_) before_ = *before, after_ = *after;
}

bool SegmentNode::wanted() const {
  return std::any_of(slots_.begin(), slots_.end(), [](int32_t slot) { return slot >= 0; });
}

size_t SegmentNode::first_of(size_t i) const {
  return static_cast<size_t>(std::ranges::find(slots_, slots_[i]) - slots_.begin());
}

SegmentNode::Outputs SegmentNode::compute_again(const Inputs& inputs) {
  const PhaseScope phase(Phase::recompute);
  Generator again = before_;
  Outputs y = compute(inputs, random_ ? &again : nullptr);
  check(!random_ || again.position() == after_.position(),
        "checkpoint: a segment must take the same random streams when it runs again; it took ",
        after_.position() - before_.position(), " and then ", again.position() - before_.position(),
        in_module(),
        "; draw from the generator that the segment is given, and depend on nothing that changes");
  return y;
}

void SegmentNode::backward(Tape& tape) {
  Outputs dy;
  for (size_t i = 0; i < dy.size(); ++i) {
    if (slots_out_[i] >= 0) dy[i] = tape.take(slots_out_[i]);
  }
  if (std::ranges::none_of(dy, &Tensor::defined)) return;
  const Lent lent(tape, *this);
  const Tape::Reopen inner(tape);
  std::array<int32_t, kMaxOutputs> slots{-1, -1, -1, -1};
  {
    const Outputs y = compute_again(lent.inputs);
    for (size_t i = 0; i < dy.size(); ++i) {
      if (!dy[i].defined()) continue;
      check(y[i].defined() && y[i].shape() == dy[i].shape() && y[i].dtype() == dy[i].dtype(),
            "checkpoint: a segment must give the same result when it runs again; its gradient is ",
            dy[i].shape(), ", the result now ", y[i].defined() ? y[i].shape() : Shape{},
            in_module());
      slots[i] = inner.tape().slot_of(y[i]);
    }
  }
  const auto wanted = [](int32_t slot) { return slot >= 0; };
  const auto from = static_cast<size_t>(std::ranges::find_if(slots, wanted) - slots.begin());
  if (from == slots.size()) return;
  for (size_t i = from + 1; i < slots.size(); ++i) {
    if (wanted(slots[i])) inner.tape().put(slots[i], std::move(dy[i]));
  }
  inner.tape().backward_from(slots[from], std::move(dy[from]));
}

}  // namespace tally
