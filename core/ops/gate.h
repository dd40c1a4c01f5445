#pragma once
#include "core/ops/activation.h"

namespace tally::ops {

// The gated linear units. Shazeer 2020, arXiv:2002.05202; Dauphin et al. 2016, arXiv:1612.08083.
//
//   forward    y[i,f]  = act(a[i,f]) b[i,f]
//   backward   da[i,f] = dy[i,f] b[i,f] act'(a[i,f])
//              db[i,f] = dy[i,f] act(a[i,f])
//
//   with a limit l and an offset o: act(min(a, l)) (max(-l, min(b, l)) + o), and no gradient to what
//   was cut. act(x) = x s(1.702 x), o = 1: Phi-3-small (l = 20), gpt-oss (l = 7)
//
//   act: sigmoid GLU, identity bilinear, relu ReGLU, gelu or gelu_tanh GeGLU, silu SwiGLU
//   a, b, y and their gradients (..., F); or a (..., 2F) = [gate | up] and no b, then da (..., 2F)
//   saved: a, b
//
// The fused form is what one projection to 2F gives: its halves are read through row strides and
// its gradient is written into one tensor, nothing is cut apart or put together.
struct Gate {
  static constexpr const char* name = "gate";
  struct Attrs {
    ActivationKind function = ActivationKind::silu;
    double parameter = 1;  // as of Activation
    double limit = 0;      // of both branches, the gate's from above alone; 0: none
    double offset = 0;     // added to the linear branch
    double shift_flops() const { return offset != 0 ? 1 : 0; }
    template <class A>
    A gate(const A& a) const {
      return limit > 0 ? select(a > A(limit), A(limit), a) : a;
    }
    template <class A>
    A up(const A& b) const {
      const A inside = limit > 0 ? clamped(b, -limit, limit) : b;
      return offset != 0 ? inside + A(offset) : inside;
    }
    /// `slope` where nothing was cut, else 0.
    template <class A>
    A if_gate(const A& a, const A& slope) const {
      return limit > 0 ? select(a > A(limit), A(0), slope) : slope;
    }
    template <class A>
    A if_up(const A& b, const A& slope) const {
      return limit > 0 ? select(b > A(limit) || b < A(-limit), A(0), slope) : slope;
    }
  };
  struct Saved {
    SavedTensor a, b;
    Attrs attrs;
  };

  struct Forward {
    static constexpr const char* name = "gate.forward";
    static constexpr Kind kind = Kind::elementwise;
    In a, b;
    Out y;
    Attrs attrs;
    static constexpr const char* formula = "y = act(a) b";
    static constexpr const char* operands = "a, b, y";
    auto views() const { return std::tie(a, b, y); }
    DType dtype() const { return a.dtype; }
    Cost cost() const {
      return flops((value_flops(attrs.function) + 1 + attrs.shift_flops()) *
                   static_cast<double>(y.numel())) +
             reads(a, b) + writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      with_activation(attrs.function, attrs.parameter, [&](auto f) {
        for (int64_t i = 0; i < y.rows(); ++i) {
          const T *ai = a.row<T>(i), *bi = b.row<T>(i);
          for (int64_t d = 0; d < y.cols(); ++d)
            y.put(y.row<T>(i)[d], f.value(attrs.gate(A(ai[d]))) * attrs.up(A(bi[d])));
        }
      });
    }
  };

  struct Backward {
    static constexpr const char* name = "gate.backward";
    static constexpr Kind kind = Kind::elementwise;
    In dy, a, b;
    Out da, db;
    Attrs attrs;
    static constexpr const char* formula = "da = dy b act'(a), db = dy act(a)";
    static constexpr const char* operands = "dy, a, b, da, db";
    auto views() const { return std::tie(dy, a, b, da, db); }
    DType dtype() const { return a.dtype; }
    Cost cost() const {
      const double for_da = da.defined() ? pair_flops(attrs.function) + 2 + attrs.shift_flops() : 0;
      const double for_db = db.defined() ? (da.defined() ? 1 : value_flops(attrs.function) + 1) : 0;
      return flops((for_da + for_db) * static_cast<double>(dy.numel())) + reads(dy, a) +
             reads_if(da.defined() || attrs.limit > 0, b) + writes(da, db);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      with_activation(attrs.function, attrs.parameter, [&](auto f) {
        for (int64_t i = 0; i < dy.rows(); ++i) {
          for (int64_t d = 0; d < dy.cols(); ++d) {
            const A g = A(dy.row<T>(i)[d]), x = A(a.row<T>(i)[d]), kept = attrs.gate(x);
            const T* up = b.row<T>(i) + d;
            const auto to_b = [&](const A& value) {
              if (!db.defined()) return;
              db.put(db.row<T>(i)[d], attrs.limit > 0 ? attrs.if_up(A(*up), g * value) : g * value);
            };
            if (!da.defined()) {
              to_b(f.value(kept));
              continue;
            }
            const auto [value, slope] = f.pair(kept);
            da.put(da.row<T>(i)[d], attrs.if_gate(x, g * attrs.up(A(*up)) * slope));
            to_b(value);
          }
        }
      });
    }
  };

  static Tensor forward(const Tensor& a, const Tensor& b, const Attrs& attrs, Saved* saved) {
    check_defined(name, "the gate", a);
    check_same_dtype(name, a, b);
    Activation::check_attrs(name, {attrs.function, attrs.parameter});
    check(attrs.limit >= 0 && std::isfinite(attrs.limit) && std::isfinite(attrs.offset),
          "gate: limit must be a finite number, 0 or more, and offset finite; got ", attrs.limit,
          " and ", attrs.offset, in_module());
    check(!b.defined() || a.shape() == b.shape(), "gate: gate and up must have one shape; got ",
          a.shape(), " and ", b.defined() ? b.shape() : Shape{}, in_module());
    check(b.defined() || (a.ndim() >= 1 && a.size(-1) % 2 == 0),
          "gate: the last axis of a fused [gate | up] must be even; got ", a.shape(), in_module());
    const Shape s = b.defined() ? a.shape() : a.shape().with_last(a.size(-1) / 2);
    Tensor y = empty(s, a.dtype(), a.device());
    run(a.device(), Forward{half(a, b, 0), half(a, b, 1), y, attrs});
    if (saved) *saved = {a, b, attrs};
    return y;
  }
  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    const Tensor &a = s.a, &b = s.b;
    const Shape y = b.defined() ? a.shape() : a.shape().with_last(a.size(-1) / 2);
    check_upstream(name, dy, y, a.dtype());
    const GradTensor da = into.at(0, s.a), db = into.at(1, s.b);
    if (b.defined()) {
      run(dy.device(), Backward{dy, a, b, da, db, s.attrs});
    } else if (da.wanted()) {
      const GradTensor d_gate(half(da, b, 0), da.accumulates()),
          d_up(half(da, b, 1), da.accumulates());
      run(dy.device(), Backward{dy, half(a, b, 0), half(a, b, 1), d_gate, d_up, s.attrs});
    }
    return {da, db};
  }

 private:
  // Gate (0) or up (1): the tensors themselves, or the halves of a fused one.
  static Tensor half(const Tensor& a, const Tensor& b, int64_t which) {
    if (b.defined()) return which ? b : a;
    const int64_t width = a.size(-1) / 2;
    return a.detach().narrow(-1, which * width, width);
  }
};

}  // namespace tally::ops
