#pragma once
#include <iosfwd>
#include <memory>
#include <vector>

#include "core/op.h"

namespace tally {

/// Records what apply<Op> runs on this thread from its construction to its destruction, and plays
/// the backward passes in reverse. Without one nothing is recorded: evaluation needs no guard.
/// The innermost open tape records; a tensor that an outer one recorded is refused by it. Gradients
/// have no history: gradients of gradients are out of scope, and a gradient is refused as an input.
class Tape : private TapeNumber {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Adds d loss / d leaf to the `grad` of every leaf that the loss depends on, then forgets all
  /// that was recorded: a tape plays once what it recorded, and may then record again. `loss` must
  /// have one element, unless `seed` gives the gradient it starts from. After an Error on the way
  /// the leaves hold what had arrived by then.
  void backward(const Tensor& loss, const Tensor& seed = {});
  size_t size() const { return nodes_.size(); }
  /// One line a recorded op: its name, where its inputs came from, its layer.
  void print(std::ostream& out) const;

  /// One recorded op.
  class Node {
   public:
    virtual ~Node() = default;
    virtual const char* name() const = 0;
    virtual void backward(Tape& tape) = 0;
    virtual std::span<const int32_t> inputs() const = 0;
    const char* module = "";
  };

  // What apply<Op> needs; not for users.
  /// Slot of an input on this tape; -1 when no gradient is wanted for it.
  int32_t slot_of(const Tensor& t);
  /// A new slot for an output.
  int32_t new_slot(const Tensor& t);
  void* allocate_node(size_t bytes);
  void push(Node* node);
  /// The gradient that has arrived in a slot; leaves the slot empty.
  Tensor take(int32_t slot) { return std::move(gradients_[static_cast<size_t>(slot)]); }
  /// The gradient in a slot, when it may be added to in place.
  Tensor target(int32_t slot) const;
  /// Puts or adds a gradient into a slot. `target` is what the op could add into: nothing is left
  /// to do when it did.
  void arrive(int32_t slot, Tensor gradient, const Tensor& target);
  /// Puts back what take() took, with what was added to it since.
  void put(int32_t slot, Tensor gradient) {
    gradients_[static_cast<size_t>(slot)] = std::move(gradient);
  }

  // What checkpoint() needs; not for users.
  /// While a tape watches, ops keep nothing and are not recorded; the leaves that they read are
  /// noted.
  class Watch;
  bool watches() const { return watches_; }
  /// Notes a leaf. Error for a tensor that this tape recorded: a segment gets it as an input.
  void watch(const Tensor& t);
  /// The leaves noted last, each once.
  std::span<const SavedTensor> watched() const { return watched_; }
  /// A tape of its own for what a node of this one computes again; made once.
  Tape& inner();
  /// Makes the inner tape the one that records while in scope; empty at the end.
  class Reopen;
  /// Plays from an output that has the gradient `seed`; see backward().
  void backward_from(int32_t slot, Tensor seed);

  /// The tape that records on this thread, null when none does.
  static Tape* open() { return static_cast<Tape*>(recorder().tape); }

 private:
  struct Closed {};
  explicit Tape(Closed);
  struct Leaf {
    Tensor tensor;
    int32_t slot;
  };
  int32_t add_leaf(const Tensor& t);
  void check_loss(const Tensor& loss, const Tensor& seed) const;
  void play(int32_t slot, Tensor seed);
  static void settle(Leaf& leaf, Tensor gradient);
  void clear();
  static constexpr size_t kBlock = size_t{1} << 16;
  std::vector<Node*> nodes_;
  std::vector<Tensor> gradients_;  // by slot
  std::vector<Leaf> leaves_;
  std::vector<char*> blocks_;  // nodes live here: no malloc while recording
  size_t block_ = 0, used_ = 0;
  std::vector<SavedTensor> watched_;
  bool watches_ = false;
  std::unique_ptr<Tape> inner_;
  TapeNumber* outer_;
};

class Tape::Watch {
 public:
  explicit Watch(Tape& tape) : tape_(tape) {
    tape.watched_.clear();
    tape.watches_ = true;
  }
  ~Watch() { tape_.watches_ = false; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  Tape& tape_;
};

class Tape::Reopen {
 public:
  explicit Reopen(Tape& outer) : inner_(outer.inner()), before_(recorder().tape) {
    inner_.outer_ = &outer;
    recorder().tape = &inner_;
  }
  ~Reopen() {
    inner_.clear();
    recorder().tape = before_;
  }
  Reopen(const Reopen&) = delete;
  Reopen& operator=(const Reopen&) = delete;
  Tape& tape() const { return inner_; }

 private:
  Tape& inner_;
  TapeNumber* before_;
};

/// Plays the tape that is open on this thread; see Tape::backward.
void backward(const Tensor& loss, const Tensor& seed = {});

template <class O, class Outputs>
inline constexpr size_t output_count = 1;
template <class O, size_t M>
inline constexpr size_t output_count<O, std::array<Tensor, M>> = M;

template <class O, class... Ts>
using ForwardResult = decltype(O::forward(std::declval<const Ts&>()...,
                                          std::declval<const typename O::Attrs&>(), nullptr));

/// True when O has a backward for the outputs that its forward returns.
template <class O, class... Ts>
concept HasBackward = requires(typename O::Saved s, const ForwardResult<O, Ts...>& dy) {
  {
    O::backward(dy, std::move(s), Into<sizeof...(Ts)>{})
    } -> std::same_as<std::array<Tensor, sizeof...(Ts)>>;
};

template <class O, size_t N, size_t M>
class NodeOf final : public Tape::Node {
 public:
  NodeOf(typename O::Saved&& saved, const std::array<int32_t, N>& in,
         const std::array<int32_t, M>& out)
      : saved_(std::move(saved)), in_(in), out_(out) {}
  const char* name() const override { return O::name; }
  std::span<const int32_t> inputs() const override { return in_; }
  void backward(Tape& tape) override {
    std::array<Tensor, M> dy;
    bool any = false;
    for (size_t i = 0; i < M; ++i) {
      dy[i] = tape.take(out_[i]);
      any = any || dy[i].defined();
    }
    if (!any) return;
    Into<static_cast<int>(N)> into;
    for (size_t i = 0; i < N; ++i) {
      into.skip[i] = in_[i] < 0;
      bool seen = false;  // an input that comes twice is added to once
      for (size_t j = 0; j < i; ++j) seen = seen || in_[j] == in_[i];
      if (in_[i] >= 0 && !seen) into.target[i] = tape.target(in_[i]);
    }
    std::array<Tensor, N> dx;
    if constexpr (M == 1)
      dx = O::backward(dy[0], std::move(saved_), into);
    else
      dx = O::backward(dy, std::move(saved_), into);
    for (size_t i = 0; i < N; ++i) {
      const Tensor target = std::move(into.target[i]);
      if (in_[i] >= 0) tape.arrive(in_[i], std::move(dx[i]), target);
    }
  }

 private:
  typename O::Saved saved_;
  std::array<int32_t, N> in_;
  std::array<int32_t, M> out_;
};

/// Runs O::forward; when a tape is open and some input wants a gradient, appends what O::backward
/// needs. An op without a backward refuses such an input by name.
template <class O, class... Ts>
ForwardResult<O, Ts...> apply(const typename O::Attrs& attrs, const Ts&... inputs) {
  constexpr size_t n = sizeof...(Ts), m = output_count<O, ForwardResult<O, Ts...>>;
  Tape* tape = Tape::open();
  if (!tape) return O::forward(inputs..., attrs, nullptr);
  if (tape->watches()) {
    (tape->watch(inputs), ...);
    const PauseTape inside;
    return O::forward(inputs..., attrs, nullptr);
  }
  const std::array<int32_t, n> in{tape->slot_of(inputs)...};
  bool wanted = false;
  for (int32_t slot : in) wanted = wanted || slot >= 0;
  const PauseTape inside;
  if (!wanted) return O::forward(inputs..., attrs, nullptr);
  if constexpr (!HasBackward<O, Ts...>) {
    fail(O::name, ": has no backward, and an input needs a gradient", in_module(),
         "; pass x.detach() if none should flow");
  } else {
    typename O::Saved saved;
    auto y = O::forward(inputs..., attrs, &saved);
    std::array<int32_t, m> out;
    if constexpr (m == 1)
      out[0] = tape->new_slot(y);
    else
      for (size_t i = 0; i < m; ++i) out[i] = tape->new_slot(y[i]);
    using Node = NodeOf<O, n, m>;
    static_assert(alignof(Node) <= 16, "the tape's blocks are aligned to 16 bytes");
    tape->push(new (tape->allocate_node(sizeof(Node))) Node(std::move(saved), in, out));
    return y;
  }
}

}  // namespace tally
