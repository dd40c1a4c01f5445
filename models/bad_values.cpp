#include "models/bad_values.h"

#include "core/watch.h"

namespace tally {
namespace {

/// Ends the work at the first bad output.
class BadValueWatcher : public Watcher {
 public:
  void before(const WatchedCall& call) override {
    inputs_.clear();
    if (!found_.empty()) return;  // what runs while the error passes through
    for (const WatchedView& v : call.views) {
      if (v.output && !v.updated) continue;
      inputs_ += (inputs_.empty() ? "" : "; ") + v.name + " " + to_text(v.view->shape) + " " +
                 to_text(summarize(*v.view));
    }
  }
  void after(const WatchedCall& call, const Entry& entry) override {
    if (!found_.empty()) return;
    for (const WatchedView& v : call.views) {
      if (!v.output) continue;
      const ValueSummary s = summarize(*v.view);
      if (s.finite() || is_empty_row(v, s)) continue;
      found_ = describe(call, entry, v, s);
      fail(found_);
    }
  }
  const std::string& found() const { return found_; }

 private:
  // The log-sum-exp of a row that sees nothing is minus infinity, and rightly so.
  static bool is_empty_row(const WatchedView& v, const ValueSummary& s) {
    return v.name == "l" && s.nans == 0 && s.infinities == s.negative_infinities;
  }
  std::string describe(const WatchedCall& call, const Entry& entry, const WatchedView& output,
                       const ValueSummary& s) const {
    return std::string("the first value that is not finite is in ") + output.name + " " +
           to_text(output.view->shape) + " of " + call.op +
           (*entry.module ? std::string(" in ") + entry.module : "") + ", " + to_text(entry.phase) +
           " (" + to_text(s) + "); its inputs: " + (inputs_.empty() ? "none" : inputs_);
  }
  std::string inputs_, found_;
};

}  // namespace

std::string first_bad_call(const std::function<void()>& work) {
  BadValueWatcher watcher;
  try {
    work();
  } catch (const Error&) {
    if (watcher.found().empty()) throw;
  }
  return watcher.found();
}

}  // namespace tally
