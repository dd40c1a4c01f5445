#pragma once
#include <array>
#include <memory>
#include <optional>
#include <tuple>

#include "core/kernel.h"

namespace tally::cpu {

/// Memory of one kernel call, from the pool that keeps freed blocks.
class Scratch {
 public:
  explicit Scratch(size_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
  size_t bytes_;
};

/// While alive, the view is a dense f32 copy of the bf16 numbers that it was of; what was written
/// there is rounded to bf16 at the end. Views of other types are left alone.
class Widened {
 public:
  Widened(View& view, bool reads, bool writes);
  ~Widened();
  Widened(const Widened&) = delete;
  Widened& operator=(const Widened&) = delete;

 private:
  View narrow_;
  bool writes_;
  std::optional<Scratch> wide_;
};

/// The bf16 kernel of a call that has one of f32: numbers are widened, which is exact, computed in
/// f32, which is what the reference loops accumulate in, and rounded once. Arithmetic at the speed of
/// f32, at the price of one pass over each operand.
template <KernelCall C>
void through_f32(const C& call) {
  C wide = call;
  const auto widen = []<class V>(const V& view) {
    constexpr bool out = std::is_base_of_v<Out, V>;
    bool reads = !out || std::is_base_of_v<InOut, V>;
    if constexpr (out) reads = reads || view.accumulate;
    return std::make_unique<Widened>(const_cast<V&>(view), reads, out);  // of `wide`, not of `call`
  };
  std::apply(
      [&](const auto&... v) {
        const std::array all{widen(v)...};
        std::optional<Scratch> own;
        if constexpr (requires { wide.workspace(); }) {
          own.emplace(static_cast<size_t>(wide.workspace()));
          wide.scratch = static_cast<std::byte*>(own->data());
        }
        kernels<C>[kCPU.kind][static_cast<size_t>(DType::f32)](wide);
      },
      wide.views());
}

}  // namespace tally::cpu
