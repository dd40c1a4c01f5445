#pragma once
#include <algorithm>
#include <vector>

#include "core/ops/gather.h"

namespace tally::ops {

// The outputs of the experts, weighed and added up for each token.
//
//   forward    y[i,:] = sum_r w[i,r] rows[places[i,r],:]
//   backward   drows[m,:] = sum over (i,r) with places[i,r] = m of w[i,r] dy[i,:]
//              dw[i,r] = sum_d dy[i,d] rows[places[i,r],d]
//
//   rows, drows (M, D)    w, dw (..., k)    places (..., k) i64    y, dy (..., D)
//   saved: rows, w, places
//
// The places of expert_gather name each row once. Others may repeat or leave out rows: sums are in
// the order of the tokens, kept in the accumulator and rounded once, and a row left out gets 0.
struct ExpertCombine {
  static constexpr const char* name = "expert_combine";
  struct Attrs {};
  struct Saved {
    SavedTensor rows, w, places;
    Like y;
  };
  /// Bytes of rows that places name, charged for each.
  static double named_bytes(const View& places, const View& rows) {
    return static_cast<double>(places.numel() * rows.cols()) *
           static_cast<double>(size_of(rows.dtype));
  }

  struct Forward {
    static constexpr const char* name = "expert_combine.forward";
    static constexpr Kind kind = Kind::movement;
    In rows, w, places;
    Out y;
    static constexpr const char* formula = "y = sum of w rows[places] over the choices of a token";
    static constexpr const char* operands = "rows, w, places, y";
    auto views() const { return std::tie(rows, w, places, y); }
    DType dtype() const { return rows.dtype; }
    Cost cost() const {
      return flops(2.0 * static_cast<double>(places.numel() * y.cols())) +
             Cost{0, named_bytes(places, rows), 0} + reads(places) + reads_if(y.cols() > 0, w) +
             writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t k = w.cols(), cols = y.cols();
      std::vector<A> sum(static_cast<size_t>(cols));
      for (int64_t i = 0; i < y.rows(); ++i) {
        std::fill(sum.begin(), sum.end(), A(0));
        for (int64_t r = 0; r < k; ++r) {
          const T* from = rows.gathered<T>(places.index<T>(i * k + r));
          for (int64_t d = 0; d < cols; ++d)
            sum[static_cast<size_t>(d)] += A(w.row<T>(i)[r]) * A(from[d]);
        }
        for (int64_t d = 0; d < cols; ++d) y.put(y.row<T>(i)[d], sum[static_cast<size_t>(d)]);
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "expert_combine.backward";
    static constexpr Kind kind = Kind::movement;
    In dy, rows, w, places;
    Out drows, dw;
    std::byte* scratch = nullptr;
    static constexpr const char* formula = "drows[places] += w dy, dw = sum(dy rows[places])";
    static constexpr const char* operands = "dy, rows, w, places, drows, dw";
    auto views() const { return std::tie(dy, rows, w, places, drows, dw); }
    DType dtype() const { return dy.dtype; }
    size_t workspace() const {
      return sizeof(int64_t) * static_cast<size_t>(drows.rows() + places.numel());
    }
    Cost cost() const {
      const double n = static_cast<double>(places.numel() * dy.cols());
      const bool any = drows.defined() || dw.defined();
      return flops(2 * n * ((drows.defined() ? 1 : 0) + (dw.defined() ? 1 : 0))) +
             Cost{0, dw.defined() ? named_bytes(places, rows) : 0, 0} +
             reads_if(any && w.numel() > 0, dy) + reads_if(drows.defined() && dy.cols() > 0, w) +
             reads_if(any, places) + writes(drows, dw);
    }
    template <class T>
    void reference() const {
      if (dw.defined()) to_weights<T>();
      if (drows.defined()) to_rows<T>();
    }
    template <class T>
    void to_weights() const {
      using A = acc_t<T>;
      const int64_t k = w.cols();
      for (int64_t i = 0; i < dy.rows(); ++i) {
        for (int64_t r = 0; r < k; ++r) {
          const T* row = rows.gathered<T>(places.index<T>(i * k + r));
          A sum(0);
          for (int64_t d = 0; d < dy.cols(); ++d) sum += A(dy.row<T>(i)[d]) * A(row[d]);
          dw.put(dw.row<T>(i)[r], sum);
        }
      }
    }
    template <class T>
    void to_rows() const {
      using A = acc_t<T>;
      const int64_t k = w.cols();
      int64_t* first = reinterpret_cast<int64_t*>(scratch);
      int64_t* next = first + drows.rows();
      link<T>(first, next);
      for (int64_t m = 0; m < drows.rows(); ++m) {
        for (int64_t d = 0; d < drows.cols(); ++d) {
          A sum(0);
          for (int64_t n = first[m]; n >= 0; n = next[n])
            sum += A(w.row<T>(n / k)[n % k]) * A(dy.row<T>(n / k)[d]);
          drows.put(drows.row<T>(m)[d], sum);
        }
      }
    }
    /// The places that name a row, as a list in the order of the tokens that begins with first[row]
    /// and ends with -1: each row is written once, and rows may be shared out among threads.
    template <class T>
    void link(int64_t* first, int64_t* next) const {
      std::fill(first, first + drows.rows(), int64_t{-1});
      for (int64_t n = places.numel() - 1; n >= 0; --n) {
        const int64_t m = places.index<T>(n);
        next[n] = first[m];
        first[m] = n;
      }
    }
  };

  static Tensor forward(const Tensor& rows, const Tensor& w, const Tensor& places, const Attrs&,
                        Saved* saved) {
    check_defined(name, "rows", rows);
    check_defined(name, "weights", w);
    check_same_dtype(name, rows, w);
    check(rows.ndim() == 2, "expert_combine: rows must be (M, D); got ", rows.shape(), in_module());
    check_indices(name, places, rows.size(0));
    check_device(name, places, rows.device());
    check(places.is_contiguous(), "expert_combine: places must be dense", in_module(),
          "; call contiguous(places) first");
    check(w.ndim() >= 1 && w.shape() == places.shape(),
          "expert_combine: needs a weight for each place; weights are ", w.shape(), ", places ",
          places.shape(), in_module());
    Tensor y = empty(w.shape().with_last(rows.size(1)), rows.dtype(), rows.device());
    run(rows.device(), Forward{rows, w, places, y});
    if (saved) *saved = {rows, w, places, y};
    return y;
  }
  static std::array<Tensor, 3> backward(const Tensor& dy, Saved&& s, const Into<3>& into = {}) {
    check_upstream(name, dy, s.y);
    const GradTensor drows = into.at(0, s.rows), dw = into.at(1, s.w);
    run(dy.device(), Backward{dy, s.rows, s.w, s.places, drows, dw});
    return {drows, dw, Tensor()};
  }
};

}  // namespace tally::ops
