#pragma once
#include "core/ops/layout.h"

namespace tally::ops {

// A choice between two tensors, element by element.
//
//   forward    y[i] = c[i] ? a[i] : b[i]
//   backward   da = dy where c, else 0, summed over the axes along which a was repeated
//              db = dy where not c, else 0, alike
//
//   c (u8, 1 = a), a, b, da, db: shapes that broadcast to that of y and dy; any strides    saved: c
struct Where {
  static constexpr const char* name = "where";
  struct Attrs {};
  struct Saved {
    SavedTensor c;
    Shape a_shape, b_shape;
    Like y;
  };

  struct Forward {
    static constexpr const char* name = "where.forward";
    static constexpr Kind kind = Kind::elementwise;
    static constexpr bool any_strides = true;
    In c, a, b;
    Out y;
    static constexpr const char* formula = "y = c ? a : b";
    static constexpr const char* operands = "c, a, b, y";
    auto views() const { return std::tie(c, a, b, y); }
    DType dtype() const { return y.dtype; }
    Cost cost() const { return reads_if(y.numel() > 0, c, a, b) + writes(y); }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const Shape& s = y.shape;
      const std::array strides{y.strides, broadcast_strides(c, s), broadcast_strides(a, s),
                               broadcast_strides(b, s)};
      walk(s, strides, [&](const auto& at) {
        const A yes(a.pointer<T>()[at[2]]), no(b.pointer<T>()[at[3]]);
        y.put(y.pointer<T>()[at[0]], c.flag<T>(at[1]) ? yes : no);
      });
    }
  };

  struct Backward {
    static constexpr const char* name = "where.backward";
    static constexpr Kind kind = Kind::elementwise;
    static constexpr bool any_strides = true;
    In dy, c;
    Out da, db;
    static constexpr const char* formula = "da = c ? dy : 0, db = c ? 0 : dy";
    static constexpr const char* operands = "dy, c, da, db";
    auto views() const { return std::tie(dy, c, da, db); }
    DType dtype() const { return dy.dtype; }
    Cost cost() const {
      Cost total = reads(dy) + reads_if(dy.numel() > 0, c) + writes(da, db);
      if (da.defined()) total += flops(repetition_flops(da, dy.shape));
      if (db.defined()) total += flops(repetition_flops(db, dy.shape));
      return total;
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const std::array strides{dy.strides, broadcast_strides(c, dy.shape)};
      const auto part = [&](const Out& d, bool side) {
        if (!d.defined()) return;
        sum_repetitions<T>(d, dy.shape, strides, [&](const auto& at) {
          const A g(dy.pointer<T>()[at[0]]);
          return c.flag<T>(at[1]) == side ? g : A(0);
        });
      };
      part(da, true);
      part(db, false);
    }
  };

  static Tensor forward(const Tensor& c, const Tensor& a, const Tensor& b, const Attrs&,
                        Saved* saved) {
    check_defined(name, "condition", c);
    check_defined(name, "a", a);
    check_defined(name, "b", b);
    check_same_dtype(name, a, b);
    check(c.dtype() == DType::u8, "where: the condition must be u8 (1 = a, 0 = b); got ", c.dtype(),
          in_module(), "; the order of arguments is (condition, a, b)");
    const Shape both = broadcast_shapes(name, a.shape(), b.shape());
    Tensor y = empty(broadcast_shapes(name, both, c.shape()), a.dtype(), a.device());
    run(a.device(), Forward{c, a, b, y});
    if (saved) *saved = {c, a.shape(), b.shape(), y};
    return y;
  }
  static std::array<Tensor, 3> backward(const Tensor& dy, Saved&& s, const Into<3>& into = {}) {
    check_upstream(name, dy, s.y);
    const GradTensor da = gradient_of_shape(into, 1, s.a_shape, dy);
    const GradTensor db = gradient_of_shape(into, 2, s.b_shape, dy);
    if (da.wanted() || db.wanted()) run(dy.device(), Backward{dy, s.c, da, db});
    return {Tensor(), da, db};
  }
};

}  // namespace tally::ops
