#pragma once
#include <vector>

#include "core/ops/gather.h"
#include "core/ops/no_gradient.h"

namespace tally::ops {

// Balance of experts without a loss: a bias moves what a router chooses, never what it weighs, and
// each step moves the bias against the load. Wang et al. 2024, arXiv:2408.15664, algorithm 1;
// DeepSeek-AI 2024 (V3), arXiv:2412.19437, section 2.1.2, whose rate is 0.001.
//
//   count     load[e] = load[e] + (tokens that chose e)
//   update    bias[e] = bias[e] + rate sign(mean(load) - load[e]),   then load = 0
//
//   chosen (..., k) i64   bias (E)   load (E) in the type that bias accumulates in: both in place
//
// Loads add up over the micro-batches of a step; a pass that is computed again counts twice for all
// experts alike, which changes no sign. Neither has a gradient.
struct SelectionBias {
  static constexpr const char* name = "selection_bias";

  struct Count {
    static constexpr const char* name = "selection_bias.count";
    static constexpr Kind kind = Kind::movement;
    In chosen;
    InOut load;
    DType element;
    static constexpr const char* formula = "load = load + choices of each expert";
    static constexpr const char* operands = "chosen, load";
    auto views() const { return std::tie(chosen, load); }
    DType dtype() const { return element; }
    Cost cost() const {
      return flops(static_cast<double>(load.numel())) + reads(chosen) + updates(load);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      std::vector<int64_t> counts(static_cast<size_t>(load.numel()), 0);
      for (int64_t n = 0; n < chosen.numel(); ++n)
        ++counts[static_cast<size_t>(chosen.index<T>(n))];
      for (int64_t e = 0; e < load.numel(); ++e)
        load.at<A>(e) += A(static_cast<double>(counts[static_cast<size_t>(e)]));
    }
  };

  struct Update {
    static constexpr const char* name = "selection_bias.update";
    static constexpr Kind kind = Kind::elementwise;
    InOut bias, load;
    double rate;
    static constexpr const char* formula = "bias = bias + rate sign(mean(load) - load), load = 0";
    static constexpr const char* operands = "bias, load";
    auto views() const { return std::tie(bias, load); }
    DType dtype() const { return bias.dtype; }
    Cost cost() const {
      return flops(2 * static_cast<double>(bias.numel()) + 1) + updates(bias, load);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      A sum(0);
      for (int64_t e = 0; e < load.numel(); ++e) sum += load.at<A>(e);
      const A mean = sum / A(static_cast<double>(std::max<int64_t>(load.numel(), 1)));
      for (int64_t e = 0; e < load.numel(); ++e) {
        const A own = load.at<A>(e);
        const double step = own < mean ? rate : own > mean ? -rate : 0;
        bias.at<T>(e) = T(A(bias.at<T>(e)) + A(step));
        load.at<A>(e) = A(0);
      }
    }
  };

  /// Adds what tokens chose to the load of their experts.
  static void count(const Tensor& chosen, const Tensor& load, DType element) {
    check_defined(name, "the load", load);
    check_no_gradient(name, "the load", load);
    check(load.ndim() == 1 && load.dtype() == acc_dtype(element), name,
          ": the load must be (E) numbers in ", acc_dtype(element), "; got ", load.shape(), " in ",
          load.dtype(), in_module());
    check_indices(name, chosen, load.size(0));
    check_device(name, chosen, load.device());
    check(chosen.is_contiguous(), name, ": chosen must be dense", in_module(),
          "; call contiguous(chosen) first");
    run(load.device(), Count{chosen, load, element});
  }
  /// Moves the bias by `rate` against the load, and forgets the load.
  static void update(const Tensor& bias, const Tensor& load, double rate) {
    check_defined(name, "the bias", bias);
    check_defined(name, "the load", load);
    check_no_gradient(name, "the bias", bias);
    check_no_gradient(name, "the load", load);
    check_same_dtype(name, bias);
    check(
        bias.ndim() == 1 && load.shape() == bias.shape() && load.dtype() == acc_dtype(bias.dtype()),
        name, ": bias and load must be (E), the load in ", acc_dtype(bias.dtype()), "; got ",
        bias.shape(), " and ", load.shape(), " in ", load.dtype(), in_module());
    check_device(name, load, bias.device());
    check(std::isfinite(rate) && rate >= 0, name, ": rate must be a finite number, 0 or more; got ",
          rate, in_module());
    run(bias.device(), Update{bias, load, rate});
  }
};

}  // namespace tally::ops
