#pragma once
#include "optim/choices.h"
#include "optim/parameterwise.h"

namespace tally::optim {

/// Muon: momentum whose singular values are all made about 1, for the hidden matrices of a model.
///   m = m + (1 - momentum) (g - m),   u = m, or g + momentum (m - g)
///   X = u / |u|;   five times  A = X X^T,  X = 3.4445 X + (-4.7750 A + 2.0315 A^2) X
///   w = (1 - lr decay) w - lr ratio X
/// With more rows than columns A is X^T X and stands on the right, the same as transposing twice.
/// Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"; lecture claim L86.
class Muon final : public Parameterwise {
 public:
  struct Options {
    double momentum = 0.95;
    bool nesterov = true;
    int64_t iterations = 5;
    MuonScaling scaling = MuonScaling::original;
    bool eps_added = false;  // X = u / (|u| + 1e-7), of the original release; else max(|u|, 1e-7)
  };
  /// Error for a parameter that is no matrix: vectors and embeddings belong to another optimizer
  /// (optim/combined.h). A stack of matrices (experts) is taken one by one.
  Muon(std::vector<ParameterGroup> groups, const Options& options);

  /// The nearest matrix to u with all singular values 1, but for a factor of 0.7 to 1.2 on each.
  static Tensor orthogonal(const Tensor& u, int64_t iterations = 5, bool eps_added = false);

 private:
  void update(const Update& p) override;
  const char* name() const override { return "muon"; }
  Options options_;
};

}  // namespace tally::optim
