#include "core/recorder.h"

#include <map>
#include <unordered_set>

namespace tally {

std::string to_text(Phase phase) {
  return phase == Phase::forward ? "forward" : phase == Phase::backward ? "backward" : "optimizer";
}

const char* intern(const std::string& text) {
  thread_local std::unordered_set<std::string> texts;
  return texts.insert(text).first->c_str();
}

// The path is built once for every (outer path, name, index): afterwards a scope is one map look-up.
ModuleScope::ModuleScope(const char* name, int index) : outer_(recorder().module) {
  thread_local std::map<std::pair<const void*, std::pair<const void*, int>>, const char*> paths;
  const char*& path = paths[{outer_, {name, index}}];
  if (!path) {
    std::string text = *outer_ ? std::string(outer_) + "." + name : name;
    if (index >= 0) text += "[" + std::to_string(index) + "]";
    path = intern(text);
  }
  recorder().module = path;
}

std::string in_module() {
  const char* path = recorder().module;
  return *path ? std::string(" in ") + path : std::string();
}

}  // namespace tally
