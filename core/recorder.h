#pragma once
#include <cstdint>
#include <string>

namespace tally {

class Ledger;
class Storage;
class Tape;

enum class Phase : unsigned char { forward, backward, optimizer };
std::string to_text(Phase phase);

/// What listens on this thread: the only thread-local state of the library.
struct Recorder {
  Tape* tape = nullptr;        // records calls of apply<Op>; null while an op runs its parts
  uint32_t tape_number = 0;    // of `tape`: tensors know the tape that recorded them by it
  Ledger* ledger = nullptr;    // lists every call
  Phase phase = Phase::forward;
  const char* module = "";     // path of the layer at work, interned
  const char* last_call = "nothing";
  const char* provider = nullptr;  // set by a kernel that has several implementations
  int pending = 0;             // storages about to be written by the call that is being put together
  Storage* written[16] = {};
};
inline Recorder& recorder() {
  thread_local constinit Recorder r;
  return r;
}

/// Names the layer at work while in scope: `decoder.blocks[3].attention`. Free when nothing listens.
class ModuleScope {
 public:
  explicit ModuleScope(const char* name, int index = -1);
  ~ModuleScope() { recorder().module = outer_; }
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  const char* outer_;
};
/// The layer at work for an error text: " in decoder.blocks[3]" or nothing.
std::string in_module();
/// A text kept for the life of the thread: equal texts give equal pointers.
const char* intern(const std::string& text);

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
  Tape* outer_;
};

}  // namespace tally
