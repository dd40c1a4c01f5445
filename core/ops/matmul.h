#pragma once
#include "core/ops/strided.h"

namespace tally::ops {

// Product of two matrices, or of two batches of them.
//
//   forward    y[b,m,n]  = sum_k a'[b,m,k] b'[b,k,n],    a' is a or, if trans_a, its transpose
//   backward   da'[b,m,k] = sum_n dy[b,m,n] b'[b,k,n]    each also summed over the batches along
//              db'[b,k,n] = sum_m a'[b,m,k] dy[b,m,n]    which the operand was repeated
//
//   a (..., M, K), b (..., K, N), y (..., M, N); the axes in front broadcast by NumPy's rule. An
//   operand with one axis is a row (a) or a column (b) and that axis of y goes.    saved: a, b
//
// Each matrix needs a dense row or a dense column (a leading dimension describes it), so a
// transpose, a slice of heads or a repeated batch is read where it lies.
struct MatMul {
  static constexpr const char* name = "matmul";
  struct Attrs {
    bool trans_a = false, trans_b = false;
  };
  struct Saved {
    SavedTensor a, b;
    Attrs attrs;
  };

  // Forward and backward are one call: where y repeats along a batch axis, it is the sum over it.
  struct Call {
    static constexpr const char* name = "matmul";
    static constexpr Kind kind = Kind::contraction;
    static constexpr bool any_strides = true;
    In a, b;  // (..., M, K) and (..., K, N), or transposed if the flag is set
    Out y;    // (..., M, N)
    bool trans_a, trans_b;
    static constexpr const char* formula = "y = a b";
    static constexpr const char* operands = "a, b, y";
    auto views() const { return std::tie(a, b, y); }
    DType dtype() const { return a.dtype; }
    int64_t m() const { return y.shape[-2]; }
    int64_t n() const { return y.shape[-1]; }
    int64_t k() const { return a.shape[trans_a ? -2 : -1]; }
    /// The batch axes that a, b and y broadcast to.
    Shape batch() const {
      const Shape inputs = broadcast_shapes(name, leading(a), leading(b));
      return broadcast_shapes(name, inputs, leading(y));
    }
    static Shape leading(const View& v) { return v.shape.drop_last().drop_last(); }
    /// Strides of a batch of matrices over `batch`.
    static Shape batch_strides(const View& v, const Shape& batch) {
      View outer;
      outer.shape = leading(v);
      outer.strides = v.strides.drop_last().drop_last();
      return broadcast_strides(outer, batch);
    }
    double products() const { return 2.0 * batch().numel() * m() * n() * k(); }
    ModelFlops model_flops() const { return {products(), products()}; }
    Cost cost() const { return flops(products()) + reads_if(products() > 0, a, b) + writes(y); }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const Shape all = batch();
      View outer;
      outer.shape = leading(y);
      outer.is_scalar = true;
      const Shape own = own_axes(outer, all), summed = repeated_axes(outer, all);
      const Shape as = batch_strides(a, all), bs = batch_strides(b, all);
      const auto [am, ak] = steps(a, trans_a);
      const auto [bk, bn] = steps(b, trans_b);
      walk(own, std::array{batch_strides(y, all), as, bs},
           [&, am = am, ak = ak, bk = bk, bn = bn](const auto& at) {
             for (int64_t i = 0; i < m(); ++i) {
               for (int64_t j = 0; j < n(); ++j) {
                 A sum(0);
                 walk(summed, std::array{as, bs}, [&](const auto& in) {
                   const T* row = a.pointer<T>() + at[1] + in[0] + i * am;
                   const T* column = b.pointer<T>() + at[2] + in[1] + j * bn;
                   for (int64_t c = 0; c < k(); ++c) sum += A(row[c * ak]) * A(column[c * bk]);
                 });
                 y.put(y.pointer<T>()[at[0] + i * y.strides[-2] + j * y.strides[-1]], sum);
               }
             }
           });
    }
    /// Distances of the rows and of the columns of a matrix as the product sees it.
    static std::array<int64_t, 2> steps(const View& v, bool transposed) {
      return transposed ? std::array{v.strides[-1], v.strides[-2]}
                        : std::array{v.strides[-2], v.strides[-1]};
    }
  };

  static Tensor forward(const Tensor& a, const Tensor& b, const Attrs& attrs, Saved* saved) {
    check_operands(a, b, attrs);
    const Tensor ma = as_matrix(a, 0), mb = as_matrix(b, 1);
    const bool ta = attrs.trans_a, tb = attrs.trans_b;
    const int64_t k = ma.size(ta ? -2 : -1);
    check(k == mb.size(tb ? -1 : -2),
          "matmul: a (..., M, K) and b (..., K, N) must agree in K; a is ", a.shape(),
          ta ? " transposed" : "", ", b is ", b.shape(), tb ? " transposed" : "", in_module());
    const Tensor y = empty(product_shape(ma, mb, attrs), a.dtype(), a.device());
    run(a.device(), Call{ma, mb, y, ta, tb});
    if (saved) *saved = {a, b, attrs};
    return y.reshape(seen_shape(y.shape(), a, b));
  }

  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    const Tensor &a = s.a, &b = s.b;
    const bool ta = s.attrs.trans_a, tb = s.attrs.trans_b;
    const Tensor ma = as_matrix(a, 0), mb = as_matrix(b, 1);
    check_upstream(name, dy, seen_shape(product_shape(ma, mb, s.attrs), a, b), a.dtype());
    const Tensor mdy = gradient_matrix(dy, a, b);
    check_matrix("the gradient of y", mdy);
    const GradTensor da = into.at(0, a), db = into.at(1, b);
    // Each product gives its operand as it lies: a transposed one is the transposed product.
    if (da.wanted() && !ta) product(mdy, mb, da, 0, false, !tb);
    if (da.wanted() && ta) product(mb, mdy, da, 0, tb, true);
    if (db.wanted() && !tb) product(ma, mdy, db, 1, !ta, false);
    if (db.wanted() && tb) product(mdy, ma, db, 1, true, ta);
    return {da, db};
  }

 private:
  static void check_operands(const Tensor& a, const Tensor& b, const Attrs& attrs) {
    check_defined(name, "a", a);
    check_defined(name, "b", b);
    check_same_dtype(name, a, b);
    check(a.ndim() >= 1 && b.ndim() >= 1, "matmul: a and b need at least one axis; a is ",
          a.shape(), ", b is ", b.shape(), in_module(), "; use mul for scalars");
    check((a.ndim() > 1 || !attrs.trans_a) && (b.ndim() > 1 || !attrs.trans_b),
          "matmul: an operand with one axis cannot be transposed; a is ", a.shape(), ", b is ",
          b.shape(), in_module());
    check_matrix("a", a);
    check_matrix("b", b);
  }
  static void check_matrix(const char* what, const Tensor& t) {
    const Shape &n = t.shape(), &s = t.strides();
    if (t.ndim() < 2 || t.numel() == 0) return;
    check(s[-1] == 1 || n[-1] == 1 || s[-2] == 1 || n[-2] == 1, "matmul: each matrix of ", what,
          " must have dense rows or dense columns; its shape is ", n, ", its strides are ", s,
          in_module(), "; call contiguous(x) first");
  }
  static Shape product_shape(const Tensor& ma, const Tensor& mb, const Attrs& attrs) {
    const Shape batch = broadcast_shapes(name, ma.shape().drop_last().drop_last(),
                                         mb.shape().drop_last().drop_last());
    return batch.append(ma.size(attrs.trans_a ? -1 : -2)).append(mb.size(attrs.trans_b ? -2 : -1));
  }
  /// The shape of y without the axes of size 1 that a vector among a and b was given.
  static Shape seen_shape(const Shape& sizes, const Tensor& a, const Tensor& b) {
    Shape seen = sizes.drop_last().drop_last();
    if (a.ndim() > 1) seen = seen.append(sizes[-2]);
    if (b.ndim() > 1) seen = seen.append(sizes[-1]);
    return seen;
  }
  /// A vector with a new axis of size 1 at `axis` (0: a row, 1: a column); others as they are.
  static Tensor as_matrix(const Tensor& t, int axis) {
    if (t.ndim() != 1) return t;
    const int64_t n = t.size(0), step = t.strides()[0];
    return axis == 0 ? make_view(t, {1, n}, {n * step, step}, t.offset())
                     : make_view(t, {n, 1}, {step, 1}, t.offset());
  }
  /// dy with the axes that vectors took away.
  static Tensor gradient_matrix(const Tensor& dy, const Tensor& a, const Tensor& b) {
    Shape n = dy.shape(), s = dy.strides();
    if (b.ndim() == 1) n = n.append(1), s = s.append(1);
    if (a.ndim() == 1) {  // a new axis before the last
      const int64_t size = n[-1], step = s[-1];
      n[-1] = 1;
      s[-1] = size * step;
      n = n.append(size);
      s = s.append(step);
    }
    return make_view(dy, n, s, dy.offset());
  }
  static void product(const Tensor& x, const Tensor& z, const GradTensor& to, int axis, bool tx,
                      bool tz) {
    const GradTensor y(as_matrix(to.tensor(), axis), to.accumulates());
    run(x.device(), Call{x, z, y, tx, tz});
  }
};

}  // namespace tally::ops
