#pragma once
#include <vector>

#include "core/ops/gather.h"

namespace tally::ops {

// The rows of tokens sorted by the expert that they go to, and back.
//
//   experts (N.., k) i64    what each token chose
//   places  (N.., k) i64    place of (token, choice) among the M = N k sorted rows
//   offsets (E + 1) i64     the rows of expert e are offsets[e] .. offsets[e + 1] - 1
//
// Within an expert rows keep the order of the tokens: the same bits for any number of threads. No
// tokens x experts x width tensor exists, no token is dropped, and no shape depends on a value: the
// plan is in tensors, so a recorded step can be played again with another one.

// Rows of tokens, once for each expert that they chose, sorted by expert.
//
//   forward    rows[places[i,r],:] = x[i,:]
//   backward   dx[i,:] = sum_r drows[places[i,r],:]
//
//   x, dx (..., D)    rows, drows (M, D)    saved: places
struct ExpertGather {
  static constexpr const char* name = "expert_gather";
  struct Attrs {
    int64_t experts = 1;
  };
  struct Saved {
    SavedTensor places;
    Shape x;
    Like rows;
  };

  struct Forward {
    static constexpr const char* name = "expert_gather.forward";
    static constexpr Kind kind = Kind::movement;
    In x, experts;
    Out rows, places, offsets;
    static constexpr const char* formula = "rows = x sorted by expert";
    static constexpr const char* operands = "x, experts, rows, places, offsets";
    auto views() const { return std::tie(x, experts, rows, places, offsets); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      return reads_if(rows.numel() > 0, x) + reads(experts) + writes(rows, places, offsets);
    }
    template <class T>
    void reference() const {
      plan<T>();
      const int64_t k = experts.cols();
      for (int64_t n = 0; n < experts.numel(); ++n) {
        T* row = rows.row<T>(places.pointer<int64_t>()[n]);
        for (int64_t d = 0; d < x.cols(); ++d) rows.put(row[d], acc_t<T>(x.row<T>(n / k)[d]));
      }
    }
    /// Writes offsets and places.
    template <class T>
    void plan() const {
      const int64_t e = offsets.numel() - 1;
      std::vector<int64_t> next(static_cast<size_t>(e) + 1, 0);  // the next free place of each
      for (int64_t n = 0; n < experts.numel(); ++n)
        ++next[static_cast<size_t>(experts.index<T>(n)) + 1];
      for (int64_t i = 0; i <= e; ++i) {
        if (i > 0) next[static_cast<size_t>(i)] += next[static_cast<size_t>(i) - 1];
        offsets.put_index<T>(i, next[static_cast<size_t>(i)]);
      }
      for (int64_t n = 0; n < experts.numel(); ++n)
        places.put_index<T>(n, next[static_cast<size_t>(experts.index<T>(n))]++);
    }
  };

  struct Backward {
    static constexpr const char* name = "expert_gather.backward";
    static constexpr Kind kind = Kind::movement;
    In drows, places;
    Out dx;
    static constexpr const char* formula = "dx = sum of drows over the choices of a token";
    static constexpr const char* operands = "drows, places, dx";
    auto views() const { return std::tie(drows, places, dx); }
    DType dtype() const { return drows.dtype; }
    Cost cost() const {
      return flops(static_cast<double>(drows.numel())) + reads(drows) +
             reads_if(dx.cols() > 0, places) + writes(dx);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t k = places.cols();
      for (int64_t i = 0; i < dx.rows(); ++i) {
        for (int64_t d = 0; d < dx.cols(); ++d) {
          A sum(0);
          for (int64_t r = 0; r < k; ++r) sum += A(drows.row<T>(places.index<T>(i * k + r))[d]);
          dx.put(dx.row<T>(i)[d], sum);
        }
      }
    }
  };

  static std::array<Tensor, 3> forward(const Tensor& x, const Tensor& experts, const Attrs& a,
                                       Saved* saved) {
    check_defined(name, "x", x);
    check_same_dtype(name, x);
    check(a.experts >= 1, "expert_gather: needs 1 expert or more; got ", a.experts, in_module());
    check_indices(name, experts, a.experts);
    check_device(name, experts, x.device());
    check(x.ndim() >= 1 && experts.ndim() == x.ndim() &&
              experts.shape().drop_last() == x.shape().drop_last(),
          "expert_gather: experts must be (..., k) with a row for each row of x; x is ", x.shape(),
          ", experts ", experts.shape(), in_module());
    check(experts.is_contiguous(), "expert_gather: experts must be dense", in_module(),
          "; call contiguous(experts) first");
    const Tensor rows = empty({experts.numel(), x.size(-1)}, x.dtype(), x.device());
    const Tensor places = empty(experts.shape(), DType::i64, x.device());
    const Tensor offsets = empty({a.experts + 1}, DType::i64, x.device());
    run(x.device(), Forward{x, experts, rows, places, offsets});
    if (saved) *saved = {places, x.shape(), rows};
    return {rows, places, offsets};
  }
  static std::array<Tensor, 2> backward(const std::array<Tensor, 3>& dy, Saved&& s,
                                        const Into<2>& into = {}) {
    if (!into.wants(0) || !dy[0].defined()) return {};
    check_upstream(name, dy[0], s.rows);
    const GradTensor dx = into.at(0, s.x, dy[0].dtype(), dy[0].device());
    run(dy[0].device(), Backward{dy[0], s.places, dx});
    return {dx, Tensor()};
  }
};

}  // namespace tally::ops
