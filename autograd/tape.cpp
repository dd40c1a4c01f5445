#include "autograd/tape.h"

#include <cstdlib>
#include <exception>
#include <new>
#include <ostream>

#include "core/ops/accumulate.h"

namespace tally {
namespace {

// Marks the gradients that a tape handed out, in place of a tape's number.
constexpr uint32_t kGradient = ~uint32_t{0};

uint32_t next_tape_number() {
  static std::atomic<uint32_t> last{0};
  uint32_t number = ++last;
  while (number == 0 || number == kGradient) number = ++last;
  return number;
}

}  // namespace

Tape::Tape() : TapeNumber{next_tape_number()}, outer_(recorder().tape) { recorder().tape = this; }

Tape::Tape(Closed) : TapeNumber{next_tape_number()}, outer_(nullptr) {}

Tape::~Tape() {
  clear();
  // Tapes close in reverse order, but one in a smart pointer may not: leave the chain whole.
  TapeNumber** link = &recorder().tape;
  while (*link && *link != this) link = &static_cast<Tape*>(*link)->outer_;
  if (*link) *link = outer_;
  for (char* b : blocks_) std::free(b);
}

int32_t Tape::slot_of(const Tensor& t) {
  if (!t.defined()) return -1;
  const Tensor::Impl& i = *t.impl();
  if (i.tape == number) return i.slot;
  if (i.requires_grad) return add_leaf(t);
  check(
      i.tape != kGradient, "tape: a gradient ", t.shape(), " is an input of a recorded op",
      in_module(),
      ", and gradients of gradients are out of scope; use x.grad().detach() for its values alone");
  for (const TapeNumber* outer = outer_; outer; outer = static_cast<const Tape*>(outer)->outer_) {
    check(i.tape != outer->number, "tape: an input ", t.shape(), " was recorded by an outer tape",
          in_module(),
          ", and its gradient would be lost on the inner one; use x.detach() for its values alone");
  }
  return -1;
}

void Tape::watch(const Tensor& t) {
  if (!t.defined()) return;
  const Tensor::Impl& i = *t.impl();
  check(i.requires_grad || i.tape != number || i.slot < 0, "checkpoint: a segment uses a tensor ",
        t.shape(), " that was recorded outside of it", in_module(),
        ", and its gradient would be lost; pass it as an input of the segment");
  if (!i.requires_grad) return;
  for (const SavedTensor& seen : watched_) {
    if (seen.get().is(t)) return;
  }
  watched_.emplace_back(t);
}

Tape& Tape::inner() {
  if (!inner_) inner_.reset(new Tape(Closed{}));
  return *inner_;
}

int32_t Tape::add_leaf(const Tensor& t) {
  const int32_t slot = new_slot(t);
  leaves_.push_back({t, slot});
  return slot;
}

int32_t Tape::new_slot(const Tensor& t) {
  const int32_t slot = static_cast<int32_t>(gradients_.size());
  gradients_.emplace_back();
  if (t.defined() && is_floating(t.dtype())) {  // indices carry no gradient: strangers to the tape
    t.impl()->tape = number;
    t.impl()->slot = slot;
  }
  return slot;
}

void* Tape::allocate_node(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  check(bytes <= kBlock, "tape: a node of ", bytes,
        " bytes is larger than a block; keep large things in a vector of Saved");
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

void Tape::arrive(int32_t slot, Tensor gradient, const Tensor& target) {
  if (!gradient.defined()) return;
  if (target.defined() && &gradient.storage() == &target.storage()) return;  // added in place
  Tensor& sum = gradients_[static_cast<size_t>(slot)];
  if (!sum.defined())
    sum = std::move(gradient);
  else if (sum.exclusively_owned() && sum.is_contiguous())
    ops::Accumulate::into(sum, gradient);
  else
    sum = ops::Accumulate::sum(sum, gradient);  // others still look at the first
}

void Tape::check_loss(const Tensor& loss, const Tensor& seed) const {
  check(loss.defined(), "backward: the loss is an undefined tensor");
  check(
      loss.impl()->tape == number && loss.impl()->slot >= 0,
      "backward: this loss was not recorded on the open tape, or does not depend on a tensor that "
      "requires a gradient, "
      "or was played before; compute it after `Tape tape;` from parameters with requires_grad_()");
  check(seed.defined() || loss.numel() == 1,
        "backward: the loss must have one element; it has shape ", loss.shape(),
        "; reduce it with mean(x) or sum(x), or give a seed gradient");
  if (!seed.defined()) return;
  check(seed.shape() == loss.shape(), "backward: the seed must have the loss's shape ",
        loss.shape(), "; got ", seed.shape());
  check(seed.dtype() == loss.dtype() && seed.device() == loss.device(),
        "backward: the seed must be ", loss.dtype(), " on ", loss.device(), " as the loss is; got ",
        seed.dtype(), " on ", seed.device());
}

void Tape::play(int32_t slot, Tensor seed) {
  const PauseTape pause;  // nothing records the backward pass
  const PhaseScope phase(Phase::backward);
  struct RestoreModule {
    const char* module = recorder().module;
    ~RestoreModule() { recorder().module = module; }
  } const restore;
  arrive(slot, std::move(seed), {});
  while (!nodes_.empty()) {
    Node* node = nodes_.back();
    recorder().module = node->module;
    node->backward(*this);
    node->~Node();  // what it saved goes as soon as it was used
    nodes_.pop_back();
  }
}

// A leaf may stand on the tape twice, when an inner tape used it in between: the parts add up.
void Tape::settle(Leaf& leaf, Tensor gradient) {
  if (!gradient.defined()) return;
  if (leaf.tensor.grad().defined()) gradient = ops::Accumulate::sum(leaf.tensor.grad(), gradient);
  leaf.tensor.set_grad(gradient);
  gradient.impl()->tape = kGradient;
  gradient.impl()->slot = -1;
}

void Tape::backward(const Tensor& loss, const Tensor& seed) {
  check_loss(loss, seed);
  backward_from(loss.impl()->slot,
                seed.defined() ? seed : full(loss.shape(), 1, loss.dtype(), loss.device()));
}

void Tape::backward_from(int32_t slot, Tensor seed) {
  for (Leaf& leaf : leaves_) {  // moved here, so that backward calls add straight into them
    gradients_[static_cast<size_t>(leaf.slot)] = std::move(leaf.tensor.impl()->grad);
  }
  std::exception_ptr error;
  try {
    play(slot, std::move(seed));
  } catch (...) {
    error = std::current_exception();
  }
  for (Leaf& leaf : leaves_) {
    try {
      settle(leaf, std::move(gradients_[static_cast<size_t>(leaf.slot)]));
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  clear();
  if (error) std::rethrow_exception(error);
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
  watched_.clear();
  block_ = used_ = 0;
  number = next_tape_number();  // tensors recorded before are strangers from here on
}

void backward(const Tensor& loss, const Tensor& seed) {
  Tape* tape = Tape::open();
  check(tape != nullptr,
        "backward: no tape is open on this thread, so nothing was recorded; put `tally::Tape "
        "tape;` before the forward pass");
  tape->backward(loss, seed);
}

}  // namespace tally
