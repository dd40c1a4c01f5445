#pragma once
#include "optim/parameterwise.h"

namespace tally::optim {

/// SOAP: Adam in the eigenbases of Shampoo's sums of products.
///   first step     L = (1 - beta2) g g^T, R likewise, Q their eigenvectors; no weight moves
///   then, t = 1, 2, ...
///   m = m + (1 - beta1) (g - m);   v = beta2 v + (1 - beta2) (QL^T g QR)^2
///   w = w - lr sqrt(1 - beta2^t) / (1 - beta1^t) QL ((QL^T m QR) / (sqrt(v) + eps)) QR^T
///   w = (1 - lr decay) w;   L = beta2 L + (1 - beta2) g g^T, R likewise
///   every `every` steps    columns of Q in the order of diag(Q^T L Q), v with them; Q = qr(L Q)
/// A side longer than `longest` keeps its own basis; a vector gets Adam, which waits one step too. Of
/// more than two axes the first are taken as one. Vyas et al. 2024, arXiv:2409.11321; lecture claim
/// L88.
class SOAP final : public Parameterwise {
 public:
  struct Options {
    double beta1 = 0.95, beta2 = 0.95, eps = 1e-8;
    int64_t every = 10, longest = 8192;
  };
  SOAP(std::vector<ParameterGroup> groups, const Options& options);
  /// The first step and every `every`-th are unlike the others.
  bool replayable() const override { return false; }

 private:
  void update(const Update& p) override;
  const char* name() const override { return "soap"; }
  void begin(const Update& p, const Tensor& g) const;
  void turn(const Update& p) const;
  Options options_;
};

}  // namespace tally::optim
