#pragma once
#include <array>
#include <chrono>
#include <concepts>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <typeinfo>

#include "core/backend.h"
#include "core/ledger.h"
#include "core/program.h"
#include "core/view.h"
#include "core/watch.h"

namespace tally {

/// A call is data: the views it reads and writes, its scalars, and what it costs.
///   name, kind      for the ledger
///   views()         std::tie of its views, in the order of its members
///   dtype()         element type of its loops: the second index of the kernel table
///   cost()          from shapes, types and scalars alone
/// and, where it has them,
///   reference<T>()  the loops that define it
///   model_flops()   products only (contractions)
///   workspace()     bytes of scratch; the call then has a member `std::byte* scratch`
///   any_strides     true when its kernels take all strides instead of rows
///   rebind(change)  sets the scalars that change from step to step (core/program.h): a learning
///                   rate, a random stream
///   draws()         true when it uses a random stream; it then has rebind()
///   formula         one line of maths, for people who look at a step
///   operands        the names of its views, "x, w, y"
template <class C>
concept KernelCall = std::is_trivially_copyable_v<C> && requires(const C& c) {
  { C::name } -> std::convertible_to<const char*>;
  { C::kind } -> std::convertible_to<Kind>;
  { c.cost() } -> std::same_as<Cost>;
  { c.dtype() } -> std::same_as<DType>;
  c.views();
};

template <KernelCall C>
using Kernel = void (*)(const C&);

/// The kernel table: the type of the call is the key, then device kind and element type.
template <KernelCall C>
inline std::array<std::array<Kernel<C>, kDTypes>, kMaxDeviceKinds> kernels{};

/// The views of a call as an array, in order.
template <KernelCall C>
auto view_list(const C& call) {
  return std::apply(
      [](const auto&... v) {
        return std::array<const View*, sizeof...(v)>{static_cast<const View*>(&v)...};
      },
      call.views());
}

namespace detail {
/// Every view on `device`, and rows unless the call takes any strides; Error by name otherwise.
void check_views(const char* call, Device device, std::span<const View* const> views,
                 bool any_strides);
[[noreturn]] void no_kernel(const char* call, Device device, DType dtype);
/// Error when two elements of an output share memory: what would be left is a matter of order.
void check_no_overlap(const char* call, const View& out);

/// What a watcher is shown of a call.
template <KernelCall C>
WatchedCall watched(const C& call) {
  WatchedCall w{C::name, "", typeid(C), &call, {}};
  const char* names = "";
  if constexpr (requires { C::formula; }) w.formula = C::formula;
  if constexpr (requires { C::operands; }) names = C::operands;
  const auto one = [&](const auto& view) {
    using V = std::decay_t<decltype(view)>;
    constexpr bool out = std::is_base_of_v<Out, V>;
    bool added_to = std::is_base_of_v<InOut, V>;
    if constexpr (out) added_to = added_to || view.accumulate;
    add_watched(w, names, view, out, added_to);
  };
  std::apply([&](const auto&... v) { (one(v), ...); }, call.views());
  return w;
}

/// The storages of the outputs are about to change.
template <KernelCall C>
void note_writes(const C& call) {
  const auto one = [](const auto& view) {
    if constexpr (std::is_base_of_v<Out, std::decay_t<decltype(view)>>) {
      if (!view.storage) return;
      if (view.row_stride != view.cols()) [[unlikely]]
        check_no_overlap(C::name, view);
      view.storage->note_write(C::name);
    }
  };
  std::apply([&](const auto&... v) { (one(v), ...); }, call.views());
  recorder().last_call = C::name;
}

/// Lists the call in the ledger and shows it to the watcher, whichever of them is there.
template <KernelCall C>
void run_listed(Device device, const C& call, Kernel<C> kernel, bool fallback) {
  Recorder& r = recorder();
  std::optional<WatchedCall> shown;
  if (r.watcher) r.watcher->before(shown.emplace(watched(call)));
  r.provider = nullptr;
  const auto from = std::chrono::steady_clock::now();
  if (kernel) kernel(call);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - from,
                                      start = from - (r.ledger ? r.ledger->began() : from);
  Entry e{C::name,
          C::kind,
          r.phase,
          device,
          call.dtype(),
          call.cost(),
          {},
          r.module,
          kernel ? seconds.count() : 0,
          kernel ? start.count() : 0,
          static_cast<double>(backend(device).memory().live),
          r.provider ? r.provider : "",
          fallback,
          {}};
  if constexpr (requires { call.model_flops(); }) {
    // Utilisation counts what the model needs: what is computed again is in `cost` alone.
    if (r.phase != Phase::recompute) e.model = call.model_flops();
  }
  for (const View* v : view_list(call)) {
    if (v->defined()) e.shapes.push_back(v->shape);
  }
  if (r.watcher && shown) r.watcher->after(*shown, e);
  if (r.ledger) r.ledger->add(std::move(e));
}

/// A call that a program plays again.
template <KernelCall C>
class RecordedCall final : public Program::Step {
 public:
  RecordedCall(Device device, const C& call, Kernel<C> kernel, bool fallback)
      : call_(call), kernel_(kernel), device_(device), fallback_(fallback) {}
  void play() override {
    Recorder& r = recorder();
    if (r.listened()) [[unlikely]] {
      r.phase = phase;
      r.module = module;
      run_listed(device_, call_, kernel_, fallback_);
    } else if (kernel_) {
      kernel_(call_);
    }
  }
  bool rebinds() const override { return kRebinds; }
  bool draws() const override {
    if constexpr (requires { call_.draws(); }) return call_.draws();
    return false;
  }
  void rebind([[maybe_unused]] const StepChange& change) override {
    if constexpr (kRebinds) call_.rebind(change);
  }

 private:
  static constexpr bool kRebinds = requires(C & c, const StepChange& s) { c.rebind(s); };
  C call_;
  Kernel<C> kernel_;
  Device device_;
  bool fallback_;
};

template <KernelCall C>
void record_call(Program& program, Device device, const C& call, Kernel<C> kernel, bool fallback,
                 const Tensor& scratch) {
  const auto keep = [&](const auto& view) {
    constexpr bool written = std::is_base_of_v<Out, std::decay_t<decltype(view)>>;
    if (view.storage) program.keep(*view.storage, written);
  };
  std::apply([&](const auto&... v) { (keep(v), ...); }, call.views());
  if (scratch.defined()) program.keep(scratch.storage(), true);
  program.add(std::make_unique<RecordedCall<C>>(device, call, kernel, fallback));
}
}  // namespace detail

/// The only way to compute: checks the views, lists the call if a ledger listens, runs the kernel
/// of the device. Where a host backend has none of its own the reference loops stand in, and the
/// ledger says so.
template <KernelCall C>
void run(Device device, C call) {
  const auto views = view_list(call);
  constexpr bool any_strides = requires { requires C::any_strides; };
  detail::check_views(C::name, device, views, any_strides);
  const Backend& b = backend(device);
  [[maybe_unused]] Tensor scratch;
  if constexpr (requires { call.workspace(); }) {
    scratch = empty({static_cast<int64_t>(call.workspace())}, DType::u8, device);
    call.scratch = static_cast<std::byte*>(scratch.data());
  }
  Kernel<C> kernel = nullptr;
  bool fallback = false;
  if (!b.is_meta()) {
    const auto type = static_cast<size_t>(call.dtype());
    kernel = kernels<C>[device.kind][type];
    if (!kernel && b.host_memory() && device != kReference) {
      kernel = kernels<C>[kReference.kind][type];
      fallback = true;
    }
    if (!kernel) [[unlikely]]
      detail::no_kernel(C::name, device, call.dtype());
  }
  detail::note_writes(call);
  if (recorder().program) [[unlikely]]
    detail::record_call(*recorder().program, device, call, kernel, fallback, scratch);
  if (recorder().listened()) [[unlikely]]
    detail::run_listed(device, call, kernel, fallback);
  else if (kernel)
    kernel(call);
}

template <class... T>
struct TypeList {};

/// Fills the reference table for a call: its own loops, for every element type it computes in.
template <KernelCall C>
void register_reference() {
  const auto set = []<class T>(std::type_identity<T>) {
    kernels<C>[kReference.kind][static_cast<size_t>(dtype_of<T>)] = [](const C& c) {
      c.template reference<T>();
    };
  };
  set(std::type_identity<float>{});
  set(std::type_identity<double>{});
  set(std::type_identity<bf16>{});
  if constexpr (requires { requires C::moves_any_type; }) {
    set(std::type_identity<int64_t>{});
    set(std::type_identity<f16>{});
    set(std::type_identity<uint8_t>{});
  }
}
template <KernelCall... C>
void register_reference(TypeList<C...>) {
  (register_reference<C>(), ...);
}

}  // namespace tally
