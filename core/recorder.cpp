#include "core/recorder.h"

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

namespace tally {
namespace {

// One layer below another. The name is compared as text: a caller may build it in a buffer.
struct Step {
  const char* outer;
  int index;
  std::string name;
};
struct StepView {
  const char* outer;
  int index;
  std::string_view name;
};
struct StepOrder {
  using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    return std::forward_as_tuple(a.outer, a.index, std::string_view(a.name)) <
           std::forward_as_tuple(b.outer, b.index, std::string_view(b.name));
  }
};

}  // namespace

std::string to_text(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::optimizer:
      return "optimizer";
    case Phase::recompute:
      break;
  }
  return "recompute";
}

// Never destroyed: a ledger may outlive the thread, and static objects, that its paths came from.
const char* intern(std::string_view text) {
  static std::mutex& mutex = *new std::mutex;
  static auto& texts = *new std::set<std::string, std::less<>>;
  const std::lock_guard lock(mutex);
  const auto it = texts.find(text);
  return (it != texts.end() ? it : texts.emplace(text).first)->c_str();
}

// The path is built once for every (outer path, index, name): afterwards a scope is one look-up.
ModuleScope::ModuleScope(const char* name, int index) : outer_(recorder().module) {
  thread_local std::map<Step, const char*, StepOrder> paths;
  const auto it = paths.find(StepView{outer_, index, name});
  if (it != paths.end()) {
    recorder().module = it->second;
    return;
  }
  std::string text = *outer_ ? std::string(outer_) + "." + name : name;
  if (index >= 0) {
    text += '[';
    text += std::to_string(index);
    text += ']';
  }
  recorder().module = paths.emplace(Step{outer_, index, name}, intern(text)).first->second;
}

std::string to_text(InModule layer) {
  return *layer.path ? std::string(" in ") + layer.path : std::string();
}

}  // namespace tally
