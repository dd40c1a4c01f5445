#pragma once
#include "core/op.h"

namespace tally::ops {

// sum[i] += x[i]: how the tape adds a second gradient to a first that nobody else holds.
//   x, sum (...), equal shapes
struct Accumulate {
  struct Call {
    static constexpr const char* name = "accumulate";
    static constexpr Kind kind = Kind::elementwise;
    In x;
    InOut sum;
    auto views() const { return std::tie(x, sum); }
    DType dtype() const { return x.dtype; }
    Cost cost() const { return flops(x.numel()) + reads(x) + updates(sum); }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d) sum.row<T>(i)[d] = T(A(sum.row<T>(i)[d]) + A(x.row<T>(i)[d]));
      }
    }
  };
  static void into(const Tensor& sum, const Tensor& x) {
    check(sum.shape() == x.shape(), "accumulate: shapes must be equal; got ", sum.shape(), " and ", x.shape(), in_module());
    check_same_dtype("accumulate", sum, x);
    run(sum.device(), Call{x, sum});
  }
};

}  // namespace tally::ops
