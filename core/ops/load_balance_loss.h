#pragma once
#include <vector>

#include "core/ops/gather.h"
#include "core/ops/softmax.h"

namespace tally::ops {

// Load-balance loss of a mixture of experts. Fedus et al. 2021 (Switch), arXiv:2101.03961, eq. 4-6;
// for k experts a token as Mixtral trains it.
//
//   forward    loss    = E sum_e f[e] P[e]
//              f[e]    = (tokens that chose e) / N,  P[e] = mean_i p[i,e],  p = softmax(x)
//   backward   dx[i,e] = dloss (E / N) p[i,e] (f[e] - sum_q f[q] p[i,q])
//
//   x, dx (..., E): N rows of a router's logits    experts (..., k) i64: what they chose
//   loss: one number in the accumulator's type    saved: x, experts
//
// It is k where every expert gets its share, and grows towards E where a few get all. The counts
// f have no gradient: the probabilities alone are pulled apart. 0 where there are no tokens.
struct LoadBalanceLoss {
  static constexpr const char* name = "load_balance_loss";
  struct Attrs {};
  struct Saved {
    SavedTensor x, experts;
    Like loss;
  };

  // How often each expert was chosen.
  template <class T>
  static std::vector<acc_t<T>> counts_of(const In& experts, int64_t size) {
    std::vector<int64_t> whole(static_cast<size_t>(size), 0);
    for (int64_t n = 0; n < experts.numel(); ++n) ++whole[static_cast<size_t>(experts.index<T>(n))];
    std::vector<acc_t<T>> counts;
    for (int64_t c : whole) counts.push_back(acc_t<T>(static_cast<double>(c)));
    return counts;
  }
  /// E / N^2: what counts times probabilities are multiplied by.
  static double factor(const View& x) {
    const double n = static_cast<double>(x.rows());
    return n > 0 ? static_cast<double>(x.cols()) / (n * n) : 0;
  }

  struct Forward {
    static constexpr const char* name = "load_balance_loss.forward";
    static constexpr Kind kind = Kind::normalization;
    In x, experts;
    Out loss;
    static constexpr const char* formula = "loss = E sum(f mean(softmax(x)))";
    static constexpr const char* operands = "x, experts, loss";
    auto views() const { return std::tie(x, experts, loss); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      const double n = x.rows(), e = x.cols();
      return flops(5 * n * e + 2 * e + 1) + reads(x, experts) + writes(loss);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const auto count = counts_of<T>(experts, x.cols());
      std::vector<A> p(count.size()), mean(count.size(), A(0));
      for (int64_t i = 0; i < x.rows(); ++i) {
        softmax_of(x.row<T>(i), p);
        for (size_t e = 0; e < p.size(); ++e) mean[e] += p[e];
      }
      A sum(0);
      for (size_t e = 0; e < p.size(); ++e) sum += count[e] * mean[e];
      loss.at<A>(0) = sum * A(factor(x));
    }
  };

  struct Backward {
    static constexpr const char* name = "load_balance_loss.backward";
    static constexpr Kind kind = Kind::normalization;
    In dloss, x, experts;
    Out dx;
    static constexpr const char* formula = "dx = dloss (E / N) p (f - sum(f p))";
    static constexpr const char* operands = "dloss, x, experts, dx";
    auto views() const { return std::tie(dloss, x, experts, dx); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      const double n = x.rows(), e = x.cols();
      return flops(9 * n * e + 1) + reads(dloss, x, experts) + writes(dx);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const auto count = counts_of<T>(experts, x.cols());
      std::vector<A> p(count.size());
      const A g = dloss.at<A>(0) * A(factor(x));
      for (int64_t i = 0; i < x.rows(); ++i) {
        softmax_of(x.row<T>(i), p);
        A dot(0);
        for (size_t e = 0; e < p.size(); ++e) dot += count[e] * p[e];
        for (size_t e = 0; e < p.size(); ++e) dx.put(dx.row<T>(i)[e], g * p[e] * (count[e] - dot));
      }
    }
  };

  static Tensor forward(const Tensor& x, const Tensor& experts, const Attrs&, Saved* saved) {
    check_defined(name, "logits", x);
    check_same_dtype(name, x);
    check(x.ndim() >= 1 && x.size(-1) > 0,
          "load_balance_loss: logits need an axis of experts; got ", x.shape(), in_module());
    check_indices(name, experts, x.size(-1));
    check_device(name, experts, x.device());
    check(experts.ndim() == x.ndim() && experts.shape().drop_last() == x.shape().drop_last(),
          "load_balance_loss: experts must be (..., k) with a row for each row of logits; logits "
          "are ",
          x.shape(), ", experts ", experts.shape(), in_module());
    check(experts.is_contiguous(), "load_balance_loss: experts must be dense", in_module(),
          "; call contiguous(experts) first");
    Tensor loss = empty({}, acc_dtype(x.dtype()), x.device());
    run(x.device(), Forward{x, experts, loss});
    if (saved) *saved = {x, experts, loss};
    return loss;
  }
  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    if (!into.wants(0)) return {};
    check_upstream(name, dy, s.loss);
    const GradTensor dx = into.at(0, s.x);
    run(dy.device(), Backward{dy, s.x, s.experts, dx});
    return {dx, Tensor()};
  }
};

}  // namespace tally::ops
