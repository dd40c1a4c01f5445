#include "autograd/tape.h"

#include <cstdlib>
#include <new>
#include <ostream>

#include "core/ops/accumulate.h"

namespace tally {
namespace {

uint32_t next_tape_number() {
  static std::atomic<uint32_t> last{0};
  return ++last;
}

}  // namespace

Tape::Tape() : outer_(recorder().tape), outer_number_(recorder().tape_number), number_(next_tape_number()) {
  recorder().tape = this;
  recorder().tape_number = number_;
}

Tape::~Tape() {
  clear();
  recorder().tape = outer_;
  recorder().tape_number = outer_number_;
  for (char* b : blocks_) std::free(b);
}

int32_t Tape::slot_of(const Tensor& t) {
  if (!t.defined()) return -1;
  const Tensor::Impl& i = *t.impl();
  if (i.tape == number_) return i.slot;
  if (!i.requires_grad) return -1;
  leaves_.push_back(t);
  return new_slot(t);
}

int32_t Tape::new_slot(const Tensor& t) {
  const int32_t slot = static_cast<int32_t>(gradients_.size());
  gradients_.emplace_back();
  if (t.defined()) {
    t.impl()->tape = number_;
    t.impl()->slot = slot;
  }
  return slot;
}

void* Tape::allocate_node(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  check(bytes <= kBlock, "tape: a node of ", bytes, " bytes is larger than a block");
  if (used_ + bytes > kBlock) {
    ++block_;
    used_ = 0;
  }
  if (block_ >= blocks_.size()) {
    char* fresh = static_cast<char*>(std::malloc(kBlock));
    check(fresh != nullptr, "tape: out of memory");
    blocks_.push_back(fresh);
  }
  void* place = blocks_[block_] + used_;
  used_ += bytes;
  return place;
}

void Tape::push(Node* node) {
  node->module = recorder().module;
  nodes_.push_back(node);
}

Tensor Tape::target(int32_t slot) const {
  const Tensor& g = gradients_[static_cast<size_t>(slot)];
  return g.exclusively_owned() && g.is_contiguous() ? g : Tensor();
}

void Tape::arrive(int32_t slot, Tensor gradient, bool was_target) {
  if (was_target || !gradient.defined()) return;
  Tensor& sum = gradients_[static_cast<size_t>(slot)];
  if (!sum.defined()) {
    sum = std::move(gradient);
    return;
  }
  if (!target(slot).defined()) {  // others still look at it: add in a tensor of our own
    Tensor own = zeros(sum.shape(), sum.dtype(), sum.device());
    ops::Accumulate::into(own, sum);
    sum = std::move(own);
  }
  ops::Accumulate::into(sum, gradient);
}

void Tape::run_nodes() {
  const PhaseScope phase(Phase::backward);
  while (!nodes_.empty()) {
    Node* node = nodes_.back();
    recorder().module = node->module;
    node->backward(*this);
    node->~Node();  // what it saved goes as soon as it was used
    nodes_.pop_back();
  }
}

void Tape::collect_leaves() {
  for (Tensor& leaf : leaves_) leaf.set_grad(std::move(gradients_[static_cast<size_t>(leaf.impl()->slot)]));
}

void Tape::backward(const Tensor& loss, const Tensor& seed) {
  check(loss.defined(), "backward: the loss is an undefined tensor");
  check(loss.impl()->tape == number_ && loss.impl()->slot >= 0,
        "backward: this loss was not recorded on the open tape, or does not depend on a tensor that requires a gradient; "
        "compute it after `Tape tape;` from parameters with requires_grad_()");
  check(seed.defined() || loss.numel() == 1, "backward: the loss must have one element; it has shape ", loss.shape(),
        "; reduce it with mean(x) or sum(x), or give a seed gradient");
  check(!seed.defined() || seed.shape() == loss.shape(), "backward: the seed must have the loss's shape ", loss.shape(),
        "; got ", seed.defined() ? seed.shape() : Shape{});
  const PauseTape pause;  // gradients of gradients are out of scope: nothing records the backward pass
  const char* module = recorder().module;
  for (Tensor& leaf : leaves_) {  // moved here, so that backward calls add straight into them
    gradients_[static_cast<size_t>(leaf.impl()->slot)] = std::move(leaf.impl()->grad);
  }
  try {
    gradients_[static_cast<size_t>(loss.impl()->slot)] =
        seed.defined() ? seed : full(loss.shape(), 1, loss.dtype(), loss.device());
    run_nodes();
  } catch (...) {
    recorder().module = module;
    collect_leaves();
    clear();
    throw;
  }
  recorder().module = module;
  collect_leaves();
  clear();
}

void Tape::print(std::ostream& out) const {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    out << i << "  " << nodes_[i]->name() << "  inputs";
    for (int32_t slot : nodes_[i]->inputs()) out << ' ' << slot;
    out << "  " << nodes_[i]->module << '\n';
  }
}

void Tape::clear() {
  while (!nodes_.empty()) {
    nodes_.back()->~Node();
    nodes_.pop_back();
  }
  gradients_.clear();
  leaves_.clear();
  block_ = used_ = 0;
  number_ = next_tape_number();  // tensors recorded before are strangers from here on
  if (recorder().tape == this) recorder().tape_number = number_;
}

void backward(const Tensor& loss, const Tensor& seed) {
  check(recorder().tape != nullptr,
        "backward: no tape is open on this thread, so nothing was recorded; put `tally::Tape tape;` before the forward pass");
  recorder().tape->backward(loss, seed);
}

}  // namespace tally
