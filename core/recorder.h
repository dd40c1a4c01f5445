#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tally {

class Ledger;
class MemorySource;
class Program;
class Watcher;

/// What core sees of a tape (autograd/tape.h). A tensor carries the number of the tape that
/// recorded it; numbers are never used again.
struct TapeNumber {
  uint32_t number = 0;
};

/// What a step is doing. `recompute`: a forward pass that runs again in the backward pass, because
/// its first run kept nothing (autograd/checkpoint.h).
enum class Phase : unsigned char { forward, backward, optimizer, recompute };
std::string to_text(Phase phase);

/// What listens on this thread: the only thread-local state of the library.
struct Recorder {
  TapeNumber* tape = nullptr;  // records calls of apply<Op>; null while an op runs its parts
  Ledger* ledger = nullptr;    // lists every call
  Watcher* watcher = nullptr;  // sees every call and its values (core/watch.h)
  Phase phase = Phase::forward;
  const char* module = "";  // path of the layer at work, interned
  const char* last_call = "nothing";
  const char* provider = nullptr;  // set by a kernel that has several implementations
  MemorySource* memory = nullptr;  // gives storages their bytes, instead of the backend
  Program* program = nullptr;      // records calls that shall run again

  bool listened() const { return ledger || watcher; }
};
inline Recorder& recorder() {
  thread_local constinit Recorder r;
  return r;
}

/// Names the layer at work while in scope: `decoder.blocks[3].attention`. Free when nothing
/// listens.
class ModuleScope {
 public:
  explicit ModuleScope(const char* name, int index = -1);
  ~ModuleScope() { recorder().module = outer_; }
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  const char* outer_;
};
/// The layer at work as a part of an error text: " in decoder.blocks[3]" or nothing. Costs nothing
/// until the text is built.
struct InModule {
  const char* path;
};
inline InModule in_module() { return {recorder().module}; }
std::string to_text(InModule layer);
/// A text kept for the life of the program: equal texts give equal pointers, on every thread.
const char* intern(std::string_view text);

/// Sets the phase while in scope.
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase) : outer_(recorder().phase) { recorder().phase = phase; }
  ~PhaseScope() { recorder().phase = outer_; }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Phase outer_;
};

/// Keeps the tape from recording while in scope: an op's inside is its own business.
class PauseTape {
 public:
  PauseTape() : outer_(recorder().tape) { recorder().tape = nullptr; }
  ~PauseTape() { recorder().tape = outer_; }
  PauseTape(const PauseTape&) = delete;
  PauseTape& operator=(const PauseTape&) = delete;

 private:
  TapeNumber* outer_;
};

}  // namespace tally
