#pragma once
#include "core/ops/clip.h"
#include "core/ops/update.h"

namespace tally::ops {

// The pieces of optimizers that turn the gradient of a matrix into a direction of their own: Muon,
// Shampoo, SOAP. What remains are products (matmul.h) and the bases of basis.h.

// g = s dw + l2 w: the gradient as these optimizers see it.     dw, w, g (...)    s (1) or absent
struct ScaledGradient {
  static constexpr const char* name = "scaled_gradient";
  struct Call {
    static constexpr const char* name = "scaled_gradient";
    static constexpr Kind kind = Kind::elementwise;
    In dw, scale, w;
    Out g;
    double l2;
    static constexpr const char* formula = "g = scale dw + l2 w";
    static constexpr const char* operands = "dw, scale, w, g";
    auto views() const { return std::tie(dw, scale, w, g); }
    DType dtype() const { return dw.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(dw.numel());
      return flops(n * ((scale.defined() ? 1 : 0) + (w.defined() ? 2 : 0))) + reads(dw, w) +
             reads_if(n > 0, scale) + writes(g);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      each_element(dw, [&](int64_t i, int64_t d) {
        A value = A(dw.row<T>(i)[d]);
        if (scale.defined()) value = value * scale.at<A>(0);
        if (w.defined()) value = value + A(l2) * A(w.row<T>(i)[d]);
        g.put(g.row<T>(i)[d], value);
      });
    }
  };
  /// The gradient itself where there is nothing to do.
  static Tensor of(const Tensor& w, const Tensor& dw, const Tensor& scale, double l2 = 0) {
    check_update(name, w, dw, scale);
    check_number(name, "l2", l2);
    if (!scale.defined() && l2 == 0) return dw;
    const Tensor g = empty(dw.shape(), dw.dtype(), dw.device());
    run(w.device(), Call{dw, scale, l2 > 0 ? w : Tensor(), g, l2});
    return g;
  }
};

// m = m + (1 - momentum) (g - m);   u = m, or g + momentum (m - g) (Nesterov).
//   g = s dw      dw, m, u (...), one shape; m in place     s (1) or absent
struct MomentumDirection {
  static constexpr const char* name = "momentum_direction";
  struct Attrs {
    double momentum = 0.95;
    bool nesterov = true;
  };
  struct Call {
    static constexpr const char* name = "momentum_direction";
    static constexpr Kind kind = Kind::elementwise;
    In dw, scale;
    InOut m;
    Out u;
    Attrs attrs;
    static constexpr const char* formula =
        "m += (1 - momentum) (scale dw - m), u = m (nesterov: mixed once more)";
    static constexpr const char* operands = "dw, scale, m, u";
    auto views() const { return std::tie(dw, scale, m, u); }
    DType dtype() const { return dw.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(dw.numel());
      return flops(n * ((scale.defined() ? 4 : 3) + (attrs.nesterov ? 3 : 0))) + reads(dw) +
             reads_if(n > 0, scale) + updates(m) + writes(u);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      each_element(dw, [&](int64_t i, int64_t d) {
        A& mi = m.row<A>(i)[d];
        const A raw = A(dw.row<T>(i)[d]), g = scale.defined() ? raw * scale.at<A>(0) : raw;
        const A mixed = A(mi) + A(1 - attrs.momentum) * (g - A(mi));
        mi = mixed;
        u.put(u.row<T>(i)[d], attrs.nesterov ? g + A(attrs.momentum) * (mixed - g) : mixed);
      });
    }
  };
  static Tensor of(const Tensor& m, const Tensor& dw, const Tensor& scale, const Attrs& a) {
    check_update(name, dw, dw, scale);
    check_kept(name, "the momentum", dw, m);
    check_share(name, "momentum", a.momentum);
    const Tensor u = empty(dw.shape(), dw.dtype(), dw.device());
    run(dw.device(), Call{dw, scale, m, u, a});
    return u;
  }
};

// x = u / max(|u|, eps), or u / (|u| + eps): a matrix of Frobenius norm 1.
//   u, x (...)    sum (1): of the squares of u, in wide_dtype
struct UnitNorm {
  static constexpr const char* name = "unit_norm";
  struct Attrs {
    double eps = 1e-7;
    bool added = false;
  };
  struct Call {
    static constexpr const char* name = "unit_norm";
    static constexpr Kind kind = Kind::elementwise;
    In u, sum;
    Out x;
    Attrs attrs;
    static constexpr const char* formula = "x = u / max(sqrt(sum), eps)";
    static constexpr const char* operands = "u, sum, x";
    auto views() const { return std::tie(u, sum, x); }
    DType dtype() const { return u.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(u.numel());
      return flops(n + (attrs.added ? 2 : 1)) + reads(u, sum) + writes(x);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      using W = wide_t<T>;
      const W norm = sqrt(sum.at<W>(0)), eps(attrs.eps);
      const A size = A(attrs.added ? norm + eps : larger(eps, norm));
      each_element(u,
                   [&](int64_t i, int64_t d) { x.put(x.row<T>(i)[d], A(u.row<T>(i)[d]) / size); });
    }
  };
  static Tensor of(const Tensor& u, const Tensor& sum, const Attrs& a) {
    check_update(name, u, u, {});
    check_defined(name, "the sum of squares", sum);
    check(sum.numel() == 1 && sum.dtype() == wide_dtype(u.dtype()),
          "unit_norm: the sum must be one number in ", wide_dtype(u.dtype()), "; got ", sum.shape(),
          " in ", sum.dtype(), in_module());
    check(std::isfinite(a.eps) && a.eps > 0, "unit_norm: eps must be above 0; got ", a.eps);
    const Tensor x = empty(u.shape(), u.dtype(), u.device());
    run(u.device(), Call{u, sum, x, a});
    return x;
  }
};

// y = a y + b x, in place: polynomials of matrices, running means of products.    x, y (...)
struct Blend {
  static constexpr const char* name = "blend";
  struct Call {
    static constexpr const char* name = "blend";
    static constexpr Kind kind = Kind::elementwise;
    In x;
    InOut y;
    double a, b;
    static constexpr const char* formula = "y = a y + b x";
    static constexpr const char* operands = "x, y";
    auto views() const { return std::tie(x, y); }
    DType dtype() const { return y.dtype; }
    Cost cost() const {
      return flops(3.0 * static_cast<double>(y.numel())) + reads(x) + updates(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      each_element(y, [&](int64_t i, int64_t d) {
        T& yi = y.row<T>(i)[d];
        yi = T(A(yi) * A(a) + A(b) * A(x.row<T>(i)[d]));
      });
    }
  };
  static void into(const Tensor& y, double a, const Tensor& x, double b) {
    check_update(name, y, x, {});
    check(std::isfinite(a) && std::isfinite(b), "blend: a and b must be finite; got ", a, " and ",
          b);
    run(y.device(), Call{x, y, a, b});
  }
};

// w = keep w - lr factor u, keep = 1 - lr decay: the step along a direction.    w, u (...)
struct DirectedUpdate {
  static constexpr const char* name = "directed_update";
  struct Attrs : UpdateAttrs {
    double factor = 1;
    bool decay_after = false;  // w = keep (w - lr factor u), SOAP's order
  };
  struct Call {
    static constexpr const char* name = "directed_update";
    static constexpr Kind kind = Kind::elementwise;
    In u;
    InOut w;
    Attrs attrs;
    double keep = 1, size = 0;
    Call(const In& direction, const InOut& weight, const Attrs& a)
        : u(direction), w(weight), attrs(a) {
      derive();
    }
    void rebind(const StepChange& change) {
      attrs.lr = change.lr;
      attrs.step = change.step;
      derive();
    }
    void derive() {
      keep = WeightDecay(attrs).keep;
      size = attrs.rate() * attrs.factor * (attrs.decay_after ? keep : 1);
    }
    static constexpr const char* formula = "w = (1 - lr decay) w - lr factor u";
    static constexpr const char* operands = "u, w";
    auto views() const { return std::tie(u, w); }
    DType dtype() const { return w.dtype; }
    Cost cost() const {
      return flops(3.0 * static_cast<double>(w.numel())) + reads(u) + updates(w);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      each_element(w, [&](int64_t i, int64_t d) {
        T& wi = w.row<T>(i)[d];
        wi = T(A(wi) * A(keep) - A(size) * A(u.row<T>(i)[d]));
      });
    }
  };
  static void into(const Tensor& w, const Tensor& u, const Attrs& a) {
    check_update(name, w, u, {});
    check_attrs(name, a);
    check_number(name, "factor", a.factor);
    run(w.device(), Call(u, w, a));
  }
};

// v = beta v + (1 - beta) g^2,   n = m / (sqrt(v) + eps): Adam's quotient, in whatever basis g and m
// are given.     g, m, v, n (...); v in place
struct AdamQuotient {
  static constexpr const char* name = "adam_quotient";
  struct Attrs {
    double beta = 0.95, eps = 1e-8;
  };
  struct Call {
    static constexpr const char* name = "adam_quotient";
    static constexpr Kind kind = Kind::elementwise;
    In g, m;
    InOut v;
    Out n;
    Attrs attrs;
    static constexpr const char* formula = "v = beta v + (1 - beta) g^2, n = m / (sqrt(v) + eps)";
    static constexpr const char* operands = "g, m, v, n";
    auto views() const { return std::tie(g, m, v, n); }
    DType dtype() const { return g.dtype; }
    Cost cost() const {
      return flops(7.0 * static_cast<double>(g.numel())) + reads(g, m) + updates(v) + writes(n);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      each_element(g, [&](int64_t i, int64_t d) {
        A& vi = v.row<A>(i)[d];
        const A now = A(g.row<T>(i)[d]);
        const A second = A(vi) * A(attrs.beta) + A(1 - attrs.beta) * now * now;
        vi = second;
        n.put(n.row<T>(i)[d], A(m.row<T>(i)[d]) / (sqrt(second) + A(attrs.eps)));
      });
    }
  };
  static Tensor of(const Tensor& v, const Tensor& g, const Tensor& m, const Attrs& a) {
    check_update(name, g, g, {});
    check_update(name, g, m, {});
    check_no_gradient(name, "the gradient", g);
    check_kept(name, "the second moment", g, v);
    check_share(name, "beta", a.beta);
    check_number(name, "eps", a.eps);
    const Tensor n = empty(g.shape(), g.dtype(), g.device());
    run(g.device(), Call{g, m, v, n, a});
    return n;
  }
};

}  // namespace tally::ops
