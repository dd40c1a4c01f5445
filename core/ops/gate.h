#pragma once
#include "core/ops/activation.h"

namespace tally::ops {

// The gated linear units. Shazeer 2020, arXiv:2002.05202; Dauphin et al. 2016, arXiv:1612.08083.
//
//   forward    y[i,f]  = act(a[i,f]) b[i,f]
//   backward   da[i,f] = dy[i,f] b[i,f] act'(a[i,f])
//              db[i,f] = dy[i,f] act(a[i,f])
//
//   act: sigmoid GLU, identity bilinear, relu ReGLU, gelu or gelu_tanh GeGLU, silu SwiGLU
//   a, b, y and their gradients (..., F); or a (..., 2F) = [gate | up] and no b, then da (..., 2F)
//   saved: a, b
//
// The fused form is what one projection to 2F gives: its halves are read through row strides and
// its gradient is written into one tensor, nothing is cut apart or put together.
struct Gate {
  static constexpr const char* name = "gate";
  using Attrs = Activation::Attrs;
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
      return flops((value_flops(attrs.function) + 1) * static_cast<double>(y.numel())) +
             reads(a, b) + writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      with_activation(attrs.function, attrs.parameter, [&](auto f) {
        for (int64_t i = 0; i < y.rows(); ++i) {
          const T *ai = a.row<T>(i), *bi = b.row<T>(i);
          for (int64_t d = 0; d < y.cols(); ++d)
            y.put(y.row<T>(i)[d], f.value(A(ai[d])) * A(bi[d]));
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
      const double for_da = da.defined() ? pair_flops(attrs.function) + 2 : 0;
      const double for_db = db.defined() ? (da.defined() ? 1 : value_flops(attrs.function) + 1) : 0;
      return flops((for_da + for_db) * static_cast<double>(dy.numel())) + reads(dy, a) +
             reads_if(da.defined(), b) + writes(da, db);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      with_activation(attrs.function, attrs.parameter, [&](auto f) {
        for (int64_t i = 0; i < dy.rows(); ++i) {
          for (int64_t d = 0; d < dy.cols(); ++d) {
            const A g = A(dy.row<T>(i)[d]), x = A(a.row<T>(i)[d]);
            if (!da.defined()) {
              db.put(db.row<T>(i)[d], g * f.value(x));
              continue;
            }
            const auto [value, slope] = f.pair(x);
            da.put(da.row<T>(i)[d], g * A(b.row<T>(i)[d]) * slope);
            if (db.defined()) db.put(db.row<T>(i)[d], g * value);
          }
        }
      });
    }
  };

  static Tensor forward(const Tensor& a, const Tensor& b, const Attrs& attrs, Saved* saved) {
    check_defined(name, "the gate", a);
    check_same_dtype(name, a, b);
    Activation::check_attrs(name, attrs);
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
