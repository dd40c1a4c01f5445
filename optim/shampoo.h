#pragma once
#include "optim/parameterwise.h"

namespace tally::optim {

/// Shampoo: the gradient between the inverse roots of its sums of products on each side.
///   L = L + g g^T,  R = R + g^T g   (both begin as eps I)
///   w = (1 - lr decay) w - lr L^(-1/4) g R^(-1/4);   a vector: L^(-1/2) g
/// With k sides the power is -1/(2k). A side longer than `longest` is left out. The roots, from
/// eigenvalues, are computed in each of the first `every` steps and then in every `every`-th. Of more
/// than two axes the first are taken as one. Gupta, Koren & Singer 2018, arXiv:1802.09568; lecture
/// claim L88.
class Shampoo final : public Parameterwise {
 public:
  struct Options {
    double eps = 1e-4;
    int64_t every = 1, longest = 8192;
    bool decoupled = true;  // false: decay is a term of the gradient (L2)
  };
  /// Error for a parameter both of whose sides are longer than `longest`.
  Shampoo(std::vector<ParameterGroup> groups, const Options& options);
  /// Some steps compute roots, others don't.
  bool replayable() const override { return options_.every == 1; }

 private:
  void update(const Update& p) override;
  const char* name() const override { return "shampoo"; }
  bool decoupled() const override { return options_.decoupled; }
  Options options_;
};

}  // namespace tally::optim
