#pragma once
#include "core/op.h"

namespace tally::ops {

// How the tape adds gradients that meet in one tensor.
//
//   into    sum[i] += x[i], when nobody else holds the first one
//   sum     sum[i] = x[i] + y[i] in a tensor of its own, when somebody does
//
//   x, y, sum (...), equal shapes
struct Accumulate {
  struct Call {
    static constexpr const char* name = "accumulate";
    static constexpr Kind kind = Kind::elementwise;
    In x;
    InOut sum;
    static constexpr const char* formula = "sum = sum + x";
    static constexpr const char* operands = "x, sum";
    auto views() const { return std::tie(x, sum); }
    DType dtype() const { return x.dtype; }
    Cost cost() const { return flops(x.numel()) + reads(x) + updates(sum); }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d)
          sum.row<T>(i)[d] = T(A(sum.row<T>(i)[d]) + A(x.row<T>(i)[d]));
      }
    }
  };
  struct Sum {
    static constexpr const char* name = "accumulate.sum";
    static constexpr Kind kind = Kind::elementwise;
    In x, y;
    Out sum;
    static constexpr const char* formula = "sum = x + y";
    static constexpr const char* operands = "x, y, sum";
    auto views() const { return std::tie(x, y, sum); }
    DType dtype() const { return x.dtype; }
    Cost cost() const { return flops(x.numel()) + reads(x, y) + writes(sum); }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d)
          sum.put(sum.row<T>(i)[d], A(x.row<T>(i)[d]) + A(y.row<T>(i)[d]));
      }
    }
  };

  static void into(const Tensor& sum, const Tensor& x) {
    check_pair(sum, x);
    run(sum.device(), Call{x, sum});
  }
  static Tensor sum(const Tensor& x, const Tensor& y) {
    check_pair(x, y);
    Tensor total = empty_like(x);
    run(x.device(), Sum{x, y, total});
    return total;
  }

 private:
  static void check_pair(const Tensor& a, const Tensor& b) {
    check(a.shape() == b.shape(), "accumulate: shapes must be equal; got ", a.shape(), " and ",
          b.shape(), in_module());
    check_same_dtype("accumulate", a, b);
  }
};

}  // namespace tally::ops
