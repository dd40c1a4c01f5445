#include "optim/soap.h"

#include <cmath>

#include "core/ops/basis.h"
#include "core/ops/direction.h"
#include "optim/sides.h"

namespace tally::optim {
namespace {

bool turns(const Tensor& w, int side, int64_t longest) {
  return w.ndim() >= 2 && as_matrix(w).size(side) <= longest;
}
// Calls f(side, statistics, basis) for each side that has them.
template <class P, class F>
void each_side(const P& p, int64_t longest, F&& f) {
  size_t at = 2;
  for (int side = 0; side < 2; ++side) {
    if (!turns(p.w, side, longest)) continue;
    f(side, p.state(at), p.state(at + 1));
    at += 2;
  }
}

}  // namespace

SOAP::SOAP(std::vector<ParameterGroup> groups, const Options& options)
    : Parameterwise(std::move(groups)), options_(options) {
  ops::check_share("soap", "beta1", options.beta1);
  ops::check_share("soap", "beta2", options.beta2);
  ops::check_number("soap", "eps", options.eps);
  check(options.every >= 1 && options.longest >= 1,
        "soap: every and longest must be at least 1; got ", options.every, " and ",
        options.longest);
  keep([&](const std::string&, const Tensor& w) {
    Kept kept{{"exp_avg", zeros_like(w)}, {"exp_avg_sq", zeros_like(w)}};
    for (int side = 0; side < 2; ++side) {
      if (!turns(w, side, options.longest)) continue;
      const int64_t n = as_matrix(w).size(side);
      kept.emplace_back("statistics_" + to_text(side), diagonal(n, 0, w));
      kept.emplace_back("basis_" + to_text(side), diagonal(n, 1, w));
    }
    return kept;
  });
}

// The statistics of the first gradient, and their eigenvectors.
void SOAP::begin(const Update& p, const Tensor& g) const {
  each_side(p, options_.longest, [&](int side, const Tensor& statistics, const Tensor& basis) {
    ops::Blend::into(statistics, 0, side_product(g, side), 1 - options_.beta2);
    ops::Blend::into(basis, 0, ops::EigenBasis::of(statistics).q, 1);
  });
}

// The bases follow the statistics by one step of the power method.
void SOAP::turn(const Update& p) const {
  each_side(p, options_.longest, [&](int side, const Tensor& statistics, const Tensor& basis) {
    const Tensor carried = matrix_product(statistics, basis);
    const Tensor order = ops::BasisOrder::of(carried, basis);
    ops::Reordered::into(as_matrix(p.state(1)), order, side);
    ops::OrthonormalColumns::into(basis, carried, order);
  });
}

void SOAP::update(const Update& p) {
  const Tensor g = as_matrix(ops::ScaledGradient::of(p.w, p.gradient, p.scale));
  if (p.attrs.step == 1) return begin(p, g);
  const auto t = static_cast<double>(p.attrs.step - 1);
  const Tensor m = as_matrix(p.state(0)), v = as_matrix(p.state(1));
  ops::Blend::into(m, options_.beta1, g, 1 - options_.beta1);
  Tensor turned_g = g, turned_m = m;
  each_side(p, options_.longest, [&](int side, const Tensor&, const Tensor& basis) {
    turned_g = on_side(turned_g, basis, side, side == 0);
    turned_m = on_side(turned_m, basis, side, side == 0);
  });
  Tensor u = ops::AdamQuotient::of(v, turned_g, turned_m, {options_.beta2, options_.eps});
  each_side(p, options_.longest, [&](int side, const Tensor&, const Tensor& basis) {
    u = on_side(u, basis, side, side == 1);
  });
  const double factor =
      std::sqrt(1 - std::pow(options_.beta2, t)) / (1 - std::pow(options_.beta1, t));
  ops::DirectedUpdate::into(p.w, u.reshape(p.w.shape()), {p.attrs, factor, true});
  each_side(p, options_.longest, [&](int side, const Tensor& statistics, const Tensor&) {
    ops::Blend::into(statistics, options_.beta2, side_product(g, side), 1 - options_.beta2);
  });
  if ((p.attrs.step - 1) % options_.every == 0) turn(p);
}

}  // namespace tally::optim
