#pragma once
#include "core/ops/linear.h"

namespace tally::ops {

/// Error unless `offsets` is dense, i64, (experts + 1), begins with 0, never falls and ends with
/// `rows`. Values are looked at in host memory only.
inline void check_offsets(const char* op, const Tensor& offsets, int64_t experts, int64_t rows) {
  check_defined(op, "offsets", offsets);
  check(offsets.dtype() == DType::i64, op, ": offsets must be i64; got ", offsets.dtype(),
        in_module());
  check(offsets.shape() == Shape{experts + 1}, op, ": offsets must be (E + 1) with E = ", experts,
        "; got ", offsets.shape(), in_module(), "; they are the third output of expert_gather");
  check(offsets.is_contiguous(), op, ": offsets must be dense", in_module(),
        "; call contiguous(offsets) first");
  if (!backend(offsets.device()).host_memory()) return;
  int64_t before = 0;
  for (int64_t offset : offsets.host<int64_t>()) {
    check(offset >= before && offset <= rows, op, ": offsets must rise from 0 to the ", rows,
          " rows; got ", offset, " after ", before, in_module());
    before = offset;
  }
  const auto all = offsets.host<int64_t>();
  check(all.front() == 0 && all.back() == rows, op, ": offsets must begin with 0 and end with the ",
        rows, " rows; got ", all.front(), " and ", all.back(), in_module());
}

// A linear layer for each expert, over its own rows: one product an expert. Lepikhin et al. 2020
// (GShard), arXiv:2006.16668, algorithm 1, with sorted rows in place of a dispatch tensor (Gale et
// al. 2022, arXiv:2211.15841).
//
//   forward    y[n,o]    = sum_i x[n,i] w[e,o,i] (+ b[e,o])    for n in offsets[e]..offsets[e+1]-1
//   backward   dx[n,i]   = sum_o dy[n,o] w[e,o,i]
//              dw[e,o,i] = sum_n dy[n,o] x[n,i],  db[e,o] = sum_n dy[n,o],  n the rows of e
//
//   x, dx (M, I): rows sorted by expert    w, dw (E, O, I)    b, db (E, O) or absent    y, dy (M, O)
//   offsets (E + 1) i64, of expert_gather    saved: x, w, offsets
//
// The gradient of an expert without rows is 0, and its weights are not read. Which these are, values
// decide: declared bytes count the weights of min(E, M) experts, the most that M rows can have. For
// one token, whose k rows are of k experts, that is exact: what decoding reads is what it uses.
struct ExpertLinear {
  static constexpr const char* name = "expert_linear";
  struct Attrs {};
  struct Saved {
    SavedTensor x, w, offsets;
    bool bias = false;
  };

  // Rows `begin`.. of a view of rows, `count` of them.
  template <class T, class V>
  static V part(const V& all, int64_t begin, int64_t count) {
    V v = all;
    if (!all.defined()) return v;
    v.data = all.template pointer<T>() + begin * all.row_stride;
    v.shape = {count, all.cols()};
    v.strides = {all.row_stride, 1};
    return v;
  }
  // Row e of a dense view, as a list.
  template <class T, class V>
  static V list(const V& all, int64_t e) {
    V v = part<T>(all, e, 1);
    if (!all.defined()) return v;
    v.shape = {all.cols()};
    v.strides = {1};
    v.row_stride = all.cols();
    return v;
  }

  // Reads of weights and biases (E, ...) by `rows` rows.
  template <class... V>
  static Cost reads_used(int64_t experts, int64_t rows, const V&... of_experts) {
    const auto all = static_cast<double>(experts),
               used = static_cast<double>(std::min(experts, rows));
    return {0, reads(of_experts...).bytes_read / all * used, 0};
  }

  // Calls f with each expert e, its first row and the number of its rows.
  template <class T, class F>
  static void each_expert(const In& offsets, F&& f) {
    int64_t begin = offsets.index<T>(0);
    for (int64_t e = 0; e + 1 < offsets.numel(); ++e) {
      const int64_t end = offsets.index<T>(e + 1);
      f(e, begin, end - begin);
      begin = end;
    }
  }

  struct Forward {
    static constexpr const char* name = "expert_linear.forward";
    static constexpr Kind kind = Kind::contraction;
    In x, w, b, offsets;
    Out y;
    static constexpr const char* formula = "y = x w[e]^T (+ b[e]), e the expert of the row";
    static constexpr const char* operands = "x, w, b, offsets, y";
    auto views() const { return std::tie(x, w, b, offsets, y); }
    DType dtype() const { return x.dtype; }
    double products() const { return 2.0 * y.numel() * w.cols(); }
    ModelFlops model_flops() const { return {products(), products()}; }
    Cost cost() const {
      return flops(products() + (b.defined() ? y.numel() : 0)) + reads(offsets) +
             reads_if(y.numel() > 0, x) + reads_used(w.shape[0], x.rows(), w, b) + writes(y);
    }
    /// Calls f with the linear layer of each expert that has rows.
    template <class T, class F>
    void each(F&& f) const {
      const int64_t out = w.shape[1];
      each_expert<T>(offsets, [&](int64_t e, int64_t begin, int64_t n) {
        if (n > 0) {
          f(Linear::Forward{part<T>(x, begin, n), part<T>(w, e * out, out), list<T>(b, e),
                            part<T>(y, begin, n)});
        }
      });
    }
    template <class T>
    void reference() const {
      each<T>([](const Linear::Forward& one) { one.template reference<T>(); });
    }
  };

  struct Backward {
    static constexpr const char* name = "expert_linear.backward";
    static constexpr Kind kind = Kind::contraction;
    In dy, x, w, offsets;
    Out dx, dw, db;
    static constexpr const char* formula = "dx = dy w[e], dw[e] = dy^T x, db[e] = sum(dy)";
    static constexpr const char* operands = "dy, x, w, offsets, dx, dw, db";
    auto views() const { return std::tie(dy, x, w, offsets, dx, dw, db); }
    DType dtype() const { return dy.dtype; }
    double products() const {
      return 2.0 * dy.numel() * w.cols() * ((dx.defined() ? 1 : 0) + (dw.defined() ? 1 : 0));
    }
    ModelFlops model_flops() const { return {products(), products()}; }
    Cost cost() const {
      const bool some_in = w.cols() > 0, some_out = w.shape[1] > 0;
      return flops(products() + (db.defined() ? dy.numel() : 0)) + reads(offsets) +
             reads_if(db.defined() || (some_in && (dx.defined() || dw.defined())), dy) +
             reads_if(dw.defined() && some_out, x) +
             (dx.defined() ? reads_used(w.shape[0], dy.rows(), w) : Cost{}) + writes(dx, dw, db);
    }
    /// Calls f with the backward pass of each expert, those without rows included: theirs writes 0.
    template <class T, class F>
    void each(F&& f) const {
      const int64_t out = w.shape[1];
      each_expert<T>(offsets, [&](int64_t e, int64_t begin, int64_t n) {
        f(Linear::Backward{part<T>(dy, begin, n), part<T>(x, begin, n), part<T>(w, e * out, out),
                           part<T>(dx, begin, n), part<T>(dw, e * out, out), list<T>(db, e)});
      });
    }
    template <class T>
    void reference() const {
      each<T>([](const Linear::Backward& one) { one.template reference<T>(); });
    }
  };

  static Tensor forward(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& offsets,
                        const Attrs&, Saved* saved) {
    check_defined(name, "x", x);
    check_defined(name, "weight", w);
    check_same_dtype(name, x, w, b);
    check(w.ndim() == 3 && w.size(0) > 0 && x.ndim() == 2 && x.size(1) == w.size(2),
          "expert_linear: weight must be (E, O, I) and x (M, I); x is ", x.shape(), ", weight is ",
          w.shape(), in_module(), "; weights are stored (expert, out, in)");
    check(!b.defined() || (b.shape() == Shape{w.size(0), w.size(1)}),
          "expert_linear: bias must be (E, O) as weight ", w.shape(), "; got ",
          b.defined() ? b.shape() : Shape{}, in_module());
    check_offsets(name, offsets, w.size(0), x.size(0));
    check_device(name, offsets, x.device());
    Tensor y = empty({x.size(0), w.size(1)}, x.dtype(), x.device());
    run(x.device(), Forward{x, w, b, offsets, y});
    if (saved) *saved = {x, w, offsets, b.defined()};
    return y;
  }
  static std::array<Tensor, 4> backward(const Tensor& dy, Saved&& s, const Into<4>& into = {}) {
    const Tensor &x = s.x, &w = s.w;
    check_upstream(name, dy, {x.size(0), w.size(1)}, x.dtype());
    const GradTensor dx = into.at(0, x), dw = into.at(1, w);
    const GradTensor db =
        s.bias ? into.at(2, w.shape().drop_last(), w.dtype(), w.device()) : GradTensor();
    run(dy.device(), Backward{dy, x, w, s.offsets, dx, dw, db});
    return {dx, dw, db, Tensor()};
  }
};

}  // namespace tally::ops
