#pragma once
#include <vector>

#include "core/ops/gather.h"

namespace tally::ops {

/// Error unless `places` is dense, i64 and holds each of 0..rows-1 once. Host memory only.
inline void check_places(const char* op, const Tensor& places, int64_t rows) {
  check_indices(op, places, rows);
  check(places.is_contiguous(), op, ": places must be dense", in_module(),
        "; call contiguous(places) first");
  check(places.numel() == rows, op, ": needs a place for each of ", rows, " rows; got ",
        places.shape(), in_module());
  if (!backend(places.device()).host_memory()) return;
  std::vector<bool> seen(static_cast<size_t>(rows), false);
  for (int64_t place : places.host<int64_t>()) {
    check(!seen[static_cast<size_t>(place)], op, ": places must hold each row once; ", place,
          " comes twice", in_module(), "; they are the second output of expert_gather");
    seen[static_cast<size_t>(place)] = true;
  }
}

// The outputs of the experts, weighed and added up for each token.
//
//   forward    y[i,:] = sum_r w[i,r] rows[places[i,r],:]
//   backward   drows[places[i,r],:] = w[i,r] dy[i,:]
//              dw[i,r] = sum_d dy[i,d] rows[places[i,r],d]
//
//   rows, drows (M, D)    w, dw (..., k)    y, dy (..., D)    saved: rows, w, places
struct ExpertCombine {
  static constexpr const char* name = "expert_combine";
  struct Attrs {};
  struct Saved {
    SavedTensor rows, w, places;
    Like y;
  };

  struct Forward {
    static constexpr const char* name = "expert_combine.forward";
    static constexpr Kind kind = Kind::movement;
    In rows, w, places;
    Out y;
    static constexpr const char* formula = "y = sum of w rows over the choices of a token";
    static constexpr const char* operands = "rows, w, places, y";
    auto views() const { return std::tie(rows, w, places, y); }
    DType dtype() const { return rows.dtype; }
    Cost cost() const {
      return flops(2.0 * static_cast<double>(rows.numel())) + reads(rows) +
             reads_if(y.cols() > 0, w, places) + writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t k = w.cols();
      for (int64_t i = 0; i < y.rows(); ++i) {
        for (int64_t d = 0; d < y.cols(); ++d) {
          A sum(0);
          for (int64_t r = 0; r < k; ++r)
            sum += A(w.row<T>(i)[r]) * A(rows.row<T>(places.index<T>(i * k + r))[d]);
          y.put(y.row<T>(i)[d], sum);
        }
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "expert_combine.backward";
    static constexpr Kind kind = Kind::movement;
    In dy, rows, w, places;
    Out drows, dw;
    static constexpr const char* formula = "drows = w dy, dw = sum(dy rows)";
    static constexpr const char* operands = "dy, rows, w, places, drows, dw";
    auto views() const { return std::tie(dy, rows, w, places, drows, dw); }
    DType dtype() const { return dy.dtype; }
    Cost cost() const {
      const bool some = w.numel() > 0, wide = dy.cols() > 0;
      const double n = static_cast<double>(rows.numel());
      return flops((drows.defined() ? n : 0) + (dw.defined() ? 2 * n : 0)) + reads_if(some, dy) +
             reads_if(dw.defined(), rows) + reads_if(drows.defined() && wide, w) +
             reads_if(dw.defined() || drows.defined(), places) + writes(drows, dw);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t k = w.cols();
      for (int64_t i = 0; i < dy.rows(); ++i) {
        for (int64_t r = 0; r < k; ++r) {
          const int64_t place = places.index<T>(i * k + r);
          A sum(0);
          for (int64_t d = 0; d < dy.cols(); ++d) {
            const A g(dy.row<T>(i)[d]);
            if (dw.defined()) sum += g * A(rows.row<T>(place)[d]);
            if (drows.defined()) drows.put(drows.row<T>(place)[d], A(w.row<T>(i)[r]) * g);
          }
          if (dw.defined()) dw.put(dw.row<T>(i)[r], sum);
        }
      }
    }
  };

  static Tensor forward(const Tensor& rows, const Tensor& w, const Tensor& places, const Attrs&,
                        Saved* saved) {
    check_defined(name, "rows", rows);
    check_defined(name, "weights", w);
    check_same_dtype(name, rows, w);
    check(rows.ndim() == 2, "expert_combine: rows must be (M, D); got ", rows.shape(), in_module());
    check_places(name, places, rows.size(0));
    check_device(name, places, rows.device());
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
