#pragma once
#include "core/ops/layout.h"

namespace tally::ops {

// Another element type.
//
//   forward    y[i]  = x[i] rounded to the type (to nearest, ties to even; float64 reaches bfloat16
//                      and float16 by way of float32)
//   backward   dx[i] = dy[i] in the type of x
//
//   x, y, dx, dy (...), any strides    saved: nothing
//
// Floating-point numbers do not become integers: how to round is the caller's choice.
struct Cast {
  static constexpr const char* name = "cast";
  struct Attrs {
    DType dtype = DType::f32;
  };
  struct Saved {
    Like x, y;
  };

  struct Call {
    static constexpr const char* name = "cast";
    static constexpr Kind kind = Kind::movement;
    static constexpr bool any_strides = true;
    static constexpr bool moves_any_type = true;
    In x;
    Out y;
    static constexpr const char* formula = "y = x in the type of y";
    static constexpr const char* operands = "x, y";
    auto views() const { return std::tie(x, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const { return reads(x) + writes(y); }
    template <class T>
    void reference() const {
      if constexpr (dtype_of<T> >= DType::dual) {
        convert<T, T>();  // a proof type stands for all
      } else {
        switch (y.dtype) {
          case DType::f32:
            return convert<T, float>();
          case DType::f64:
            return convert<T, double>();
          case DType::bf16:
            return convert<T, bf16>();
          case DType::f16:
            return convert<T, f16>();
          case DType::i64:
            return convert<T, int64_t>();
          case DType::u8:
            return convert<T, uint8_t>();
          default:
            return;  // refused by forward
        }
      }
    }
    template <class T, class U>
    void convert() const {
      walk(y.shape, std::array{x.strides, y.strides}, [&](const auto& at) {
        const acc_t<T> value(x.pointer<T>()[at[0]]);
        y.put(y.pointer<U>()[at[1]], static_cast<acc_t<U>>(value));
      });
    }
  };

  static Tensor forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    check(a.dtype < DType::dual, "cast: ", a.dtype, " belongs to the proofs", in_module());
    check(is_floating(a.dtype) || !is_floating(x.dtype()), "cast: ", x.dtype(),
          " does not become the integer type ", a.dtype, in_module(),
          "; build integers where they are made, from whole numbers");
    const bool proof = x.dtype() >= DType::dual;
    Tensor y = empty(x.shape(), proof ? x.dtype() : a.dtype, x.device());
    run(x.device(), Call{x, y});
    if (saved) *saved = {x, y};
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    if (!into.wants(0)) return {};
    check_upstream(name, dy, s.y);
    check(is_floating(s.x.dtype) || s.x.dtype >= DType::dual, "cast: x held ", s.x.dtype,
          ", and whole numbers have no gradient", in_module());
    const GradTensor dx = into.at(0, s.x.shape, s.x.dtype, s.x.device);
    run(dy.device(), Call{dy, dx});
    return {dx};
  }
};

// Another device. The copy is one line of the ledger, listed on the device it goes to.
//
//   forward    y[i]  = x[i]
//   backward   dx[i] = dy[i], on the device of x      x, y, dx, dy (...), dense    saved: nothing
struct ToDevice {
  static constexpr const char* name = "to_device";
  struct Attrs {
    Device device;
  };
  struct Saved {
    Device from;
    Like y;
  };

  static Tensor forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    Tensor y = moved(x, a.device);
    if (saved) *saved = {x.device(), y};
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    check_upstream(name, dy, s.y);
    return {hand_on(moved(dy, s.from), into, 0)};
  }

 private:
  static Tensor moved(const Tensor& x, Device to) {
    check(x.is_contiguous(), "to_device: x must be dense; it has shape ", x.shape(),
          " and strides ", x.strides(), in_module(), "; call contiguous(x) first");
    check(!recorder().program, "to_device: a step is being captured, and copies between devices ",
          "are not captured", in_module(), "; move tensors before the step");
    Tensor y = empty(x.shape(), x.dtype(), to);
    Backend &source = backend(x.device()), &target = backend(to);
    if (Ledger* ledger = recorder().ledger) list(*ledger, y);
    if (target.is_meta() || x.nbytes() == 0) return y;
    check(!source.is_meta(), "to_device: a tensor on meta has a shape and no values", in_module());
    if (source.host_memory()) {
      target.copy_from_host(y.data(), x.data(), x.nbytes());
    } else if (target.host_memory()) {
      source.copy_to_host(y.data(), x.data(), x.nbytes());
    } else if (x.device() == to) {
      source.copy(y.data(), x.data(), x.nbytes());
    } else {  // two devices that know nothing of each other: by way of the host
      const Tensor host = empty(x.shape(), x.dtype(), kReference);
      source.copy_to_host(host.data(), x.data(), x.nbytes());
      target.copy_from_host(y.data(), host.data(), x.nbytes());
    }
    return y;
  }
  static void list(Ledger& ledger, const Tensor& y) {
    const double bytes = static_cast<double>(y.nbytes());
    Entry e{};
    e.op = name;
    e.kind = Kind::movement;
    e.phase = recorder().phase;
    e.device = y.device();
    e.dtype = y.dtype();
    e.cost = {0, bytes, bytes};
    e.module = recorder().module;
    e.live = static_cast<double>(backend(y.device()).memory().live);
    e.provider = "";
    e.shapes = {y.shape()};
    ledger.add(std::move(e));
  }
};

}  // namespace tally::ops
