#pragma once
#include <string>
#include <typeinfo>
#include <vector>

#include "core/ledger.h"
#include "core/view.h"

namespace tally {

/// One operand of a call that is watched.
struct WatchedView {
  std::string name;  // as the op's file has it: "x", "dw"; "operand 2" for an op that says nothing
  const View* view;
  bool output;   // the call writes it
  bool updated;  // and reads it: a sum that is added to, a parameter in its update
};

/// A call as a watcher sees it: its operands with their values, and the call itself.
struct WatchedCall {
  const char* op;
  const char* formula;  // one line of maths, "" where the op has none
  const std::type_info& type;
  const void* call;
  std::vector<WatchedView> views;  // absent ones left out

  /// The call, with its scalars, when it is a C; else null.
  template <class C>
  const C* as() const {
    return type == typeid(C) ? static_cast<const C*>(call) : nullptr;
  }
  /// The operand of that name; null when it is absent.
  const View* find(std::string_view name) const;
};

/// Looks at the values of every call of its thread while in scope; the innermost watcher does. It
/// must not change them. An Error that it throws ends the step as one of an op does.
class Watcher {
 public:
  Watcher() : outer_(recorder().watcher) { recorder().watcher = this; }
  virtual ~Watcher() { recorder().watcher = outer_; }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// The call is about to run: what it updates still has its old values.
  virtual void before(const WatchedCall&) {}
  /// The call ran; `entry` is what a ledger notes of it.
  virtual void after(const WatchedCall&, const Entry& /*entry*/) {}
  /// The op whose call ran last keeps this tensor for its backward pass.
  virtual void saved(const Tensor&) {}

 private:
  Watcher* outer_;
};

/// What the elements of a tensor are like. Means are over the finite ones.
struct ValueSummary {
  int64_t count = 0, nans = 0, infinities = 0;
  int64_t negative_infinities = 0;             // of the infinities
  double min = 0, max = 0, mean = 0, rms = 0;  // 0 where nothing is finite
  std::vector<double> first;                   // in the order of the axes

  bool finite() const { return nans == 0 && infinities == 0; }
};
/// Reads every element of a view in host memory, strides and all; nothing on meta.
ValueSummary summarize(const View& view, int64_t first = 0);
/// "min -0.2, max 3, 2 NaN, 1 infinite".
std::string to_text(const ValueSummary& summary);

namespace detail {
/// Appends an operand, taking its name off the front of `names`.
void add_watched(WatchedCall& call, const char*& names, const View& view, bool output,
                 bool updated);
}  // namespace detail

}  // namespace tally
