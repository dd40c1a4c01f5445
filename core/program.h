#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "core/dtype.h"
#include "core/memory_source.h"
#include "core/storage.h"

namespace tally {

class Tensor;

/// What differs from one step to the next beside the numbers in tensors.
struct StepValues {
  double lr = 0;         // learning rate of the step
  int64_t step = 1;      // number of the update, 1 for the first: bias corrections follow it
  uint64_t streams = 0;  // position of the generator of random streams at the start
};
/// What a call is told of it before it runs again. A call whose scalars depend on the step has a
/// member `void rebind(const StepChange&)`.
struct StepChange {
  double lr = 0;
  int64_t step = 1;
  uint64_t streams = 0;  // how far the generator went on since the call ran last
};

/// Calls that ran once and can run again without the engine: no checks, no tape, no allocation, no
/// ledger line unless one listens. The numbers come from the same addresses: what the calls use
/// outside of an arena is kept alive here, and what lies in an arena has its planned place, so
/// nothing may live there while the program runs. Inputs that change are written into tensors that
/// existed before the capture; scalars that change reach their calls through rebind().
class Program {
 public:
  Program() = default;
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Records the calls of this thread while in scope (they run as well). `values`: of the step that
  /// is captured. A number that the host reads meanwhile is an Error: it would not be read again.
  class Capture {
   public:
    Capture(Program& program, const StepValues& values);
    ~Capture();
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    /// Ends the capture. `streams`: position of the generator now. Error when a stream was taken by
    /// a call that cannot be told the next one.
    void finish(uint64_t streams);

   private:
    Program& program_;
    Program* outer_;
  };

  /// Runs the calls again for another step.
  void run(const StepValues& values);
  /// Random streams that the program takes.
  uint64_t streams() const { return streams_; }
  size_t size() const { return steps_.size(); }

  /// Makes the number in a one-element tensor readable after each run; while it is alive in the
  /// capture. Returns its place for value().
  size_t output(const Tensor& t);
  double value(size_t output) const;

  /// One recorded call; see core/kernel.h.
  class Step {
   public:
    virtual ~Step() = default;
    virtual void play() = 0;
    virtual void rebind(const StepChange&) {}
    virtual bool rebinds() const { return false; }
    /// True when the call uses a random stream of its own.
    virtual bool draws() const { return false; }
    Phase phase = Phase::forward;
    const char* module = "";
  };

  // What run(), zeros(), full() and from_host() need; not for users.
  void add(std::unique_ptr<Step> step);
  /// A call uses this storage.
  void keep(Storage& storage, bool written);
  /// The host wrote `bytes` bytes into a storage: the same again in each run. No source: zeros.
  void add_bytes(Storage& storage, void* to, const void* from, size_t bytes);

 private:
  struct Output {
    void* data;
    DType dtype;
    Device device;
  };
  std::vector<std::unique_ptr<Step>> steps_;
  std::set<Storage*> kept_, written_;
  std::set<std::shared_ptr<MemorySource>> sources_;
  std::vector<Output> outputs_;
  StepValues last_;
  uint64_t streams_ = 0, draws_ = 0;
};

}  // namespace tally
