#include "core/program.h"

#include <cmath>
#include <cstring>

#include "core/tensor.h"

namespace tally {
namespace {

// Constants that the host wrote: a fill, a list of positions.
class Bytes final : public Program::Step {
 public:
  Bytes(Device device, void* to, const void* from, size_t bytes)
      : device_(device), to_(to), bytes_(bytes) {
    if (!from) return;
    const auto* first = static_cast<const std::byte*>(from);
    image_.assign(first, first + bytes);
  }
  void play() override {
    Backend& b = backend(device_);
    if (image_.empty())
      b.zero(to_, bytes_);
    else
      b.copy_from_host(to_, image_.data(), bytes_);
  }

 private:
  Device device_;
  void* to_;
  size_t bytes_;
  std::vector<std::byte> image_;
};

struct RestoreRecorder {
  Recorder before = recorder();
  ~RestoreRecorder() { recorder() = before; }
};

}  // namespace

Program::~Program() {
  for (Storage* s : kept_) s->release();
}

Program::Capture::Capture(Program& program, const StepValues& values)
    : program_(program), outer_(recorder().program) {
  check(!outer_, "program: another program is being captured on this thread");
  check(program.steps_.empty(), "program: holds a step already; capture into a new one");
  program.last_ = values;
  recorder().program = &program;
}

Program::Capture::~Capture() { recorder().program = outer_; }

void Program::Capture::finish(uint64_t streams) {
  recorder().program = outer_;
  program_.streams_ = streams - program_.last_.streams;
  check(program_.draws_ == program_.streams_, "program: ", program_.streams_,
        " random streams were taken, by ", program_.draws_,
        " calls that can be told the next one; a call that draws needs rebind(const StepChange&)");
}

void Program::add(std::unique_ptr<Step> step) {
  step->phase = recorder().phase;
  step->module = recorder().module;
  if (step->draws() && step->phase == Phase::forward) ++draws_;
  steps_.push_back(std::move(step));
}

void Program::keep(Storage& storage, bool written) {
  if (const auto source = storage.source(); source && source->stays()) {
    sources_.insert(source);
    return;
  }
  if (kept_.insert(&storage).second) storage.retain();
  if (written) written_.insert(&storage);
}

void Program::add_bytes(Storage& storage, void* to, const void* from, size_t bytes) {
  keep(storage, true);
  if (bytes == 0 || backend(storage.device()).is_meta()) return;
  add(std::make_unique<Bytes>(storage.device(), to, from, bytes));
}

void Program::run(const StepValues& v) {
  check(std::isfinite(v.lr) && v.lr >= 0 && v.step >= 1,
        "program: the learning rate must be finite and not negative, and the step 1 or more; got ",
        v.lr, " and ", v.step);
  check(!recorder().program, "program: cannot run while one is captured");
  for (const auto& source : sources_) source->check_empty();
  const StepChange change{v.lr, v.step, v.streams - last_.streams};
  last_ = v;
  const RestoreRecorder restore;
  for (const auto& step : steps_) {
    if (step->rebinds()) step->rebind(change);
    step->play();
  }
  for (Storage* s : written_) s->note_write("a replayed step");
}

size_t Program::output(const Tensor& t) {
  check(t.defined() && t.numel() == 1, "program: an output must have one element; it has shape ",
        t.defined() ? t.shape() : Shape{0});
  check(t.dtype() == DType::f32 || t.dtype() == DType::f64,
        "program: an output must be f32 or f64; got ", t.dtype());
  keep(t.storage(), false);
  outputs_.push_back({t.data(), t.dtype(), t.device()});
  return outputs_.size() - 1;
}

double Program::value(size_t output) const {
  check(output < outputs_.size(), "program: has ", outputs_.size(), " outputs; asked for number ",
        output);
  const Output& o = outputs_[output];
  if (o.dtype == DType::f64) {
    double number = 0;
    backend(o.device).copy_to_host(&number, o.data, sizeof(number));
    return number;
  }
  float number = 0;
  backend(o.device).copy_to_host(&number, o.data, sizeof(number));
  return static_cast<double>(number);
}

}  // namespace tally
