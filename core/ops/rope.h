#pragma once
#include "core/ops/heads.h"

namespace tally::ops {

/// Which elements of a head turn together, R being the number that turn at all.
enum class RotaryPairs : uint8_t {
  half_split,   ///< (i, i + R/2): LLaMA and NeoX checkpoints
  interleaved,  ///< (2i, 2i + 1): the paper, GPT-J
};

// Rotary position embedding. Su et al. 2021, arXiv:2104.09864, eq. 34. Lecture claims L45-L51.
//
//   forward    pair i of token t, at position p, is turned by the angle p f_i:
//              y0 = x0 cos - x1 sin,   y1 = x1 cos + x0 sin
//   backward   a rotation's transpose is its inverse:
//              dx0 = dy0 cos + dy1 sin,   dx1 = dy1 cos - dy0 sin
//
//   x, y, dx, dy (B,T,H,K), any strides; elements R .. K-1 pass unchanged
//   table (P,R): row p is cos(p f_0) .. cos(p f_R/2-1), sin(p f_0) .. sin(p f_R/2-1), made
//     in double by rope_table(...), in the type that x accumulates in
//   positions (B,T) or absent: then token t is at position offset + t (offset: keys in the cache)
//   saved: table, positions
struct Rope {
  static constexpr const char* name = "rope";
  struct Attrs {
    RotaryPairs pairs = RotaryPairs::half_split;
    int64_t offset = 0;
  };
  struct Saved {
    SavedTensor table, positions;
    Attrs attrs;
    Like y;
  };

  // One turn, forward or (the sine negated) back; x and y may be the same memory.
  struct Turn {
    static constexpr Kind kind = Kind::elementwise;
    static constexpr bool any_strides = true;
    In x, table, positions;
    Out y;
    Attrs attrs;
    static constexpr const char* operands = "x, table, positions, y";
    auto views() const { return std::tie(x, table, positions, y); }
    DType dtype() const { return x.dtype; }
    /// Element 0 or 1 of pair i.
    int64_t element(int64_t i, int which) const {
      return attrs.pairs == RotaryPairs::interleaved ? 2 * i + which
                                                     : i + which * (table.cols() / 2);
    }
    Cost cost() const {
      const double tokens = x.shape[0] * x.shape[1], heads = x.shape[2];
      const double rows = positions.defined() ? tokens : (tokens * heads > 0 ? x.shape[1] : 0);
      const double row_bytes = static_cast<double>(table.cols()) * size_of(table.dtype);
      return flops(3 * tokens * heads * table.cols()) + reads(x, positions) +
             Cost{0, rows * row_bytes, 0} + writes(y);
    }
    /// The position of a token: which row of the table it takes.
    template <class T>
    const acc_t<T>* table_row(int64_t b, int64_t t) const {
      using A = acc_t<T>;
      if (!positions.defined()) return table.row<A>(attrs.offset + t);
      return table.gathered<A>(positions.index<T>(b * x.shape[1] + t));
    }
    template <class T>
    void turn(bool back) const {
      for (int64_t b = 0; b < x.shape[0]; ++b) {
        for (int64_t t = 0; t < x.shape[1]; ++t) {
          const acc_t<T>* row = table_row<T>(b, t);
          for (int64_t h = 0; h < x.shape[2]; ++h)
            turn_head<T>(head<T>(x, b, h), head<T>(y, b, h), t, row, back);
        }
      }
    }

   private:
    template <class T>
    void turn_head(Head<const T> from, Head<T> to, int64_t t, const acc_t<T>* row,
                   bool back) const {
      using A = acc_t<T>;
      const int64_t half = table.cols() / 2;
      for (int64_t i = 0; i < half; ++i) {
        const int64_t e0 = element(i, 0), e1 = element(i, 1);
        const A x0(from(t, e0)), x1(from(t, e1)), c = row[i],
                                                  s = back ? -row[half + i] : row[half + i];
        y.put(to(t, e0), x0 * c - x1 * s);
        y.put(to(t, e1), x1 * c + x0 * s);
      }
      for (int64_t d = 2 * half; d < x.shape[3]; ++d) y.put(to(t, d), A(from(t, d)));
    }
  };
  struct Forward : Turn {
    static constexpr const char* name = "rope.forward";
    static constexpr const char* formula = "y0 = x0 cos - x1 sin, y1 = x1 cos + x0 sin";
    template <class T>
    void reference() const {
      this->template turn<T>(false);
    }
  };
  struct Backward : Turn {
    static constexpr const char* name = "rope.backward";
    static constexpr const char* formula = "y0 = x0 cos + x1 sin, y1 = x1 cos - x0 sin";
    template <class T>
    void reference() const {
      this->template turn<T>(true);
    }
  };

  static Tensor forward(const Tensor& x, const Tensor& table, const Tensor& positions,
                        const Attrs& a, Saved* saved) {
    Tensor y = x.defined() ? empty_like(x) : Tensor();
    turn(x, table, positions, a, y);
    if (saved) *saved = {table, positions, a, y};
    return y;
  }
  static std::array<Tensor, 3> backward(const Tensor& dy, Saved&& s, const Into<3>& into = {}) {
    check_upstream(name, dy, s.y);
    const GradTensor dx = into.at(0, dy);
    if (dx.wanted()) turn_back(dy, s.table, s.positions, s.attrs, dx);
    return {dx, Tensor(), Tensor()};
  }
  /// The forward into a tensor of the caller's: a slice of a fused projection, or x itself (in
  /// place).
  static void turn(const Tensor& x, const Tensor& table, const Tensor& positions, const Attrs& a,
                   const Tensor& y) {
    check_inputs(x, table, positions, a);
    check_destination(x, y);
    run(x.device(), Forward{{x, table, positions, y, a}});
  }
  /// The backward into a gradient of the caller's, which may be dy itself (in place).
  static void turn_back(const Tensor& dy, const Tensor& table, const Tensor& positions,
                        const Attrs& a, const GradTensor& dx) {
    check_inputs(dy, table, positions, a);
    check_destination(dy, dx.tensor());
    run(dy.device(), Backward{{dy, table, positions, dx, a}});
  }

 private:
  static void check_inputs(const Tensor& x, const Tensor& table, const Tensor& positions,
                           const Attrs& a) {
    check_defined(name, "x", x);
    check_defined(name, "table", table);
    check(x.ndim() == 4, "rope: x must be (B,T,H,K); got ", x.shape(), in_module());
    check(is_floating(x.dtype()), "rope: needs floating-point tensors; got ", x.dtype(),
          in_module());
    check(table.ndim() == 2 && table.size(1) % 2 == 0 && table.size(1) <= x.size(3) &&
              table.is_contiguous(),
          "rope: table must be a dense (positions, R) with R even and at most the head size K = ",
          x.size(3), "; got ", table.shape(), in_module(),
          "; make it with rope_table(positions, R, base, ...), or call contiguous(table) first");
    check(table.dtype() == acc_dtype(x.dtype()), "rope: table must hold ", acc_dtype(x.dtype()),
          ", which ", x.dtype(), " accumulates in; got ", table.dtype(), in_module());
    if (positions.defined())
      check_positions(x, table.size(0), positions);
    else
      check(a.offset >= 0 && a.offset + x.size(1) <= table.size(0),
            "rope: positions must lie in the table's 0..", table.size(0) - 1, "; got ", x.size(1),
            " tokens from position ", a.offset, in_module(),
            "; make a longer table, or crop the text");
  }
  static void check_positions(const Tensor& x, int64_t limit, const Tensor& positions) {
    check(positions.dtype() == DType::i64 && positions.shape() == Shape{x.size(0), x.size(1)} &&
              positions.is_contiguous(),
          "rope: positions must be a dense (B,T) = (", x.size(0), ",", x.size(1), ") of i64; got ",
          positions.shape(), " of ", positions.dtype(), in_module(),
          "; call contiguous(positions) first");
    if (!backend(positions.device()).host_memory()) return;
    const int64_t* p = static_cast<const int64_t*>(positions.data());
    for (int64_t i = 0; i < positions.numel(); ++i) {
      if (p[i] < 0 || p[i] >= limit) {
        fail("rope: positions must lie in the table's 0..", limit - 1, "; entry ", i, " of ",
             positions.shape(), " is ", p[i], in_module(),
             "; make a longer table, or crop the text");
      }
    }
  }
  static void check_destination(const Tensor& x, const Tensor& y) {
    check(y.shape() == x.shape() && y.dtype() == x.dtype(), "rope: the result has shape ",
          x.shape(), " and type ", x.dtype(), "; the tensor given for it has ", y.shape(), " and ",
          y.dtype(), in_module());
  }
};

}  // namespace tally::ops
