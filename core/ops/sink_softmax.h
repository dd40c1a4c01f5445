#pragma once
#include <vector>

#include "core/ops/softmax.h"

namespace tally::ops {

// Softmax with one more logit in the denominator that is dropped from the output: a row may give
// its attention to nothing. Learned a head in gpt-oss (OpenAI 2025, arXiv:2508.10925); 0 is
// softmax-off-by-one (Miller 2023, "Attention is off by one").
//
//   forward    y[i,j] = exp(c x[i,j]) / (exp(sink[i]) + sum_k exp(c x[i,k]))
//              rest[i] = exp(sink[i]) / (the same)
//   backward   dx[i,j] = c y[i,j] (dy[i,j] - sum_k dy[i,k] y[i,k])
//              dsink   = -rest[i] sum_k dy[i,k] y[i,k], summed over the rows that share it
//
//   x, y, dx, dy (..., C)    sink: broadcasts to (...), or absent: 0    saved: y, rest
//   mask (u8, 1 = allowed) broadcasts to x
//
// The larger of the row's maximum and the sink is taken out of all exponents. What the mask forbids
// has y = 0, a row without anything allowed is all zeros.
struct SinkSoftmax {
  static constexpr const char* name = "sink_softmax";
  using Attrs = SoftmaxAttrs;
  struct Saved {
    SavedTensor y, rest, sink;
    double scale = 1;
  };
  /// Place of each row's sink in a dense one, as strides over the rows.
  static Shape sink_strides(const View& sink, const Shape& rows) {
    View dense = sink;
    dense.strides = contiguous_strides(sink.shape);
    return broadcast_strides(dense, rows);
  }
  template <class F>
  static void each_sink(const View& sink, const Shape& rows, F&& f) {
    int64_t i = 0;
    walk(rows, std::array{sink_strides(sink, rows)}, [&](const auto& at) { f(i++, at[0]); });
  }
  static Shape rows_of(const View& x) { return x.shape.drop_last(); }

  struct Forward {
    static constexpr const char* name = "sink_softmax.forward";
    static constexpr Kind kind = Kind::normalization;
    In x, mask, sink;
    Out y, rest;
    double scale;
    static constexpr const char* formula = "y = exp(x) / (exp(sink) + sum exp(x))";
    static constexpr const char* operands = "x, mask, sink, y, rest";
    auto views() const { return std::tie(x, mask, sink, y, rest); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(x.numel());
      return flops((scale == 1 ? 4 : 5) * n + 4 * static_cast<double>(rest.numel())) + reads(x) +
             reads_if(n > 0, mask) + reads_if(rest.numel() > 0, sink) + writes(y, rest);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      std::vector<A> sinks(static_cast<size_t>(rest.numel()), A(0)),
          row(static_cast<size_t>(x.cols()));
      if (sink.defined()) {
        each_sink(sink, rows_of(x), [&](int64_t i, int64_t at) {
          sinks[static_cast<size_t>(i)] = A(sink.row<T>(at / sink.cols())[at % sink.cols()]);
        });
      }
      SoftmaxRows::each<T>(x, mask, [&](int64_t i, auto&& allowed) {
        A largest = sinks[static_cast<size_t>(i)], sum(0);
        const bool any = SoftmaxRows::scaled(x.row<T>(i), scale, allowed, row, largest);
        const A shift = any ? largest : A(0), own = any ? sinks[static_cast<size_t>(i)] : A(0);
        for (int64_t j = 0; j < x.cols(); ++j) {
          A& v = row[static_cast<size_t>(j)];
          v = exp(v - shift);
          if (!allowed(j)) v = A(0);
          sum += v;
        }
        const A nothing = exp(own - shift), total = sum + nothing;
        for (int64_t j = 0; j < x.cols(); ++j)
          y.put(y.row<T>(i)[j], row[static_cast<size_t>(j)] / total);
        rest.at<A>(i) = nothing / total;
      });
    }
  };

  struct Backward {
    static constexpr const char* name = "sink_softmax.backward";
    static constexpr Kind kind = Kind::normalization;
    In dy, y, rest;
    Out dx, dsink;
    double scale;
    static constexpr const char* formula = "dx = y (dy - sum(dy y)), dsink = -rest sum(dy y)";
    static constexpr const char* operands = "dy, y, rest, dx, dsink";
    auto views() const { return std::tie(dy, y, rest, dx, dsink); }
    DType dtype() const { return dy.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(dy.numel()), rows = static_cast<double>(rest.numel());
      const double for_dx = dx.defined() ? (scale == 1 ? 2 : 3) * n : 0;
      return flops(2 * n + for_dx + (dsink.defined() ? 2 * rows : 0)) + reads(dy, y) +
             reads_if(dsink.defined(), rest) + writes(dx, dsink);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      std::vector<A> dots, sums(static_cast<size_t>(dsink.numel()), A(0));
      for (int64_t i = 0; i < rest.numel(); ++i) {
        A dot(0);
        for (int64_t j = 0; j < dy.cols(); ++j) dot += A(dy.row<T>(i)[j]) * A(y.row<T>(i)[j]);
        dots.push_back(dot);
        for (int64_t j = 0; dx.defined() && j < dy.cols(); ++j) {
          const A d = A(y.row<T>(i)[j]) * (A(dy.row<T>(i)[j]) - dot);
          dx.put(dx.row<T>(i)[j], scale == 1 ? d : d * A(scale));
        }
      }
      if (!dsink.defined()) return;
      each_sink(dsink, rows_of(dy), [&](int64_t i, int64_t at) {
        sums[static_cast<size_t>(at)] -= rest.at<A>(i) * dots[static_cast<size_t>(i)];
      });
      for (int64_t k = 0; k < dsink.numel(); ++k) {
        dsink.put(dsink.row<T>(k / dsink.cols())[k % dsink.cols()], sums[static_cast<size_t>(k)]);
      }
    }
  };

  static Tensor forward(const Tensor& x, const Tensor& mask, const Tensor& sink, const Attrs& a,
                        Saved* saved) {
    SoftmaxRows::check_inputs(name, x, mask);
    check_same_dtype(name, x, sink);
    const Shape rows = x.shape().drop_last();
    if (sink.defined()) {
      check(sink.ndim() <= rows.ndim() && broadcast_shapes(name, rows, sink.shape()) == rows,
            "sink_softmax: the sink must broadcast to the rows of x ", rows, "; got ", sink.shape(),
            in_module());
    }
    Tensor y = empty_like(x), rest = empty(rows, acc_dtype(x.dtype()), x.device());
    run(x.device(), Forward{x, mask, sink, y, rest, a.scale});
    if (saved) *saved = {y, rest, sink, a.scale};
    return y;
  }
  static std::array<Tensor, 3> backward(const Tensor& dy, Saved&& s, const Into<3>& into = {}) {
    check_upstream(name, dy, s.y);
    const Tensor& sink = s.sink.unchecked();  // its shape alone
    const GradTensor dx = into.at(0, s.y), dsink = into.at(2, sink);
    if (dx.wanted() || dsink.wanted())
      run(dy.device(), Backward{dy, s.y, s.rest, dx, dsink, s.scale});
    return {dx, Tensor(), dsink};
  }
};

}  // namespace tally::ops
