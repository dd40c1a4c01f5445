#pragma once
#include <algorithm>
#include <vector>

#include "core/ops/larger_first.h"
#include "core/ops/layout.h"

namespace tally::ops {

// The k largest of each row, from the largest down. Equal ones come in the order of their places,
// so the result is the same everywhere; a NaN counts as larger than all numbers.
//
//   forward    values[i,r], indices[i,r]: the element of row i with r larger ones, and its place
//   backward   dx = 0, then dx[i,indices[i,r]] = dvalues[i,r]
//
//   x, dx (..., C)    values, indices (i64), dvalues (..., k)    saved: indices
struct TopK {
  static constexpr const char* name = "top_k";
  struct Attrs {
    int64_t k = 1;
  };
  struct Saved {
    SavedTensor indices;
    Shape x;
    Like y;
  };

  struct Forward {
    static constexpr const char* name = "top_k.forward";
    static constexpr Kind kind = Kind::movement;
    In x;
    Out values, indices;
    static constexpr const char* formula = "values, indices = the k largest of each row of x";
    static constexpr const char* operands = "x, values, indices";
    auto views() const { return std::tie(x, values, indices); }
    DType dtype() const { return x.dtype; }
    Cost cost() const { return reads_if(values.numel() > 0, x) + writes(values, indices); }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t k = values.cols();
      if (values.numel() == 0) return;
      std::vector<A> row(static_cast<size_t>(x.cols()));
      std::vector<int64_t> order(row.size());
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t j = 0; j < x.cols(); ++j) {
          row[static_cast<size_t>(j)] = A(x.row<T>(i)[j]);
          order[static_cast<size_t>(j)] = j;
        }
        std::partial_sort(order.begin(), order.begin() + k, order.end(), LargerFirst<A>{row});
        for (int64_t r = 0; r < k; ++r) {
          const int64_t j = order[static_cast<size_t>(r)];
          values.put(values.row<T>(i)[r], row[static_cast<size_t>(j)]);
          indices.put_index<T>(i * k + r, j);
        }
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "top_k.backward";
    static constexpr Kind kind = Kind::movement;
    In dvalues, indices;
    Out dx;
    static constexpr const char* formula = "dx[indices] = dvalues, 0 elsewhere";
    static constexpr const char* operands = "dvalues, indices, dx";
    auto views() const { return std::tie(dvalues, indices, dx); }
    DType dtype() const { return dvalues.dtype; }
    Cost cost() const {
      const Cost read = reads(dvalues, indices);
      if (!dx.accumulate) return read + writes(dx);
      return read + flops(dvalues.numel()) + Cost{0, dvalues.nbytes(), dvalues.nbytes()};
    }
    template <class T>
    void reference() const {
      const int64_t k = dvalues.cols();
      for (int64_t i = 0; i < dx.rows(); ++i) {
        for (int64_t j = 0; j < (dx.accumulate ? 0 : dx.cols()); ++j) dx.row<T>(i)[j] = T(0.0f);
        for (int64_t r = 0; r < k; ++r) {
          dx.put(dx.row<T>(i)[indices.index<T>(i * k + r)], acc_t<T>(dvalues.row<T>(i)[r]));
        }
      }
    }
  };

  static std::array<Tensor, 2> forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    check_same_dtype(name, x);
    check(x.ndim() >= 1, "top_k: x needs an axis to choose from; it is a scalar", in_module());
    check(a.k >= 0 && a.k <= x.size(-1), "top_k: k must be in 0..", x.size(-1),
          ", the size of the last axis of x ", x.shape(), "; got ", a.k, in_module());
    const Tensor values = empty(x.shape().with_last(a.k), x.dtype(), x.device());
    const Tensor indices = empty(values.shape(), DType::i64, x.device());
    run(x.device(), Forward{x, values, indices});
    if (saved) *saved = {indices, x.shape(), values};
    return {values, indices};
  }
  static std::array<Tensor, 1> backward(const std::array<Tensor, 2>& dy, Saved&& s,
                                        const Into<1>& into = {}) {
    if (!into.wants(0) || !dy[0].defined()) return {};
    check_upstream(name, dy[0], s.y);
    const GradTensor dx = gradient_of_shape(into, 0, s.x, dy[0]);
    run(dy[0].device(), Backward{dy[0], s.indices, dx});
    return {dx};
  }
};

}  // namespace tally::ops
