#include "optim/muon.h"

#include <algorithm>
#include <cmath>

#include "core/ops/direction.h"
#include "core/ops/matmul.h"

namespace tally::optim {
namespace {

constexpr std::string_view kScalings[] = {"original", "match_rms"};

Tensor product(const Tensor& a, const Tensor& b, bool trans_a = false, bool trans_b = false) {
  return ops::MatMul::forward(a, b, {trans_a, trans_b}, nullptr);
}

double ratio_of(const Tensor& w, MuonScaling scaling) {
  const auto rows = static_cast<double>(w.size(-2)), columns = static_cast<double>(w.size(-1));
  return scaling == MuonScaling::original ? std::sqrt(std::max(1.0, rows / columns))
                                          : 0.2 * std::sqrt(std::max(rows, columns));
}

}  // namespace

std::span<const std::string_view> enum_names(MuonScaling) { return kScalings; }

Muon::Muon(std::vector<ParameterGroup> groups, const Options& options)
    : Parameterwise(std::move(groups)), options_(options) {
  check(options.iterations >= 1, "muon: needs at least 1 iteration; got ", options.iterations);
  keep([](const std::string& parameter, const Tensor& w) {
    check(w.ndim() >= 2, "muon: takes matrices; ", parameter, " is ", w.shape(),
          "; put it into a group of AdamW");
    return Kept{{"momentum_buffer", zeros_like(w)}};
  });
}

Tensor Muon::orthogonal(const Tensor& u, int64_t iterations, bool eps_added) {
  const bool tall = u.size(0) > u.size(1);  // A is the smaller of the two products
  const Tensor squares = zeros({1}, ops::wide_dtype(u.dtype()), u.device());
  ops::SquareSum::into(squares, u);
  Tensor x = ops::UnitNorm::of(u, squares, {1e-7, eps_added});
  for (int64_t i = 0; i < iterations; ++i) {
    const Tensor a = tall ? product(x, x, true, false) : product(x, x, false, true);
    const Tensor polynomial = product(a, a);
    ops::Blend::into(polynomial, 2.0315, a, -4.7750);
    const Tensor next = tall ? product(x, polynomial) : product(polynomial, x);
    ops::Blend::into(next, 1, x, 3.4445);
    x = next;
  }
  return x;
}

void Muon::update(const Update& p) {
  const Tensor u = ops::MomentumDirection::of(p.state(0), p.gradient, p.scale,
                                              {options_.momentum, options_.nesterov});
  const Shape one{p.w.size(-2), p.w.size(-1)}, all{-1, one[0], one[1]};
  const Tensor directions = u.reshape(all), weights = p.w.reshape(all);
  for (int64_t i = 0; i < weights.size(0); ++i) {
    const Tensor x = orthogonal(directions.narrow(0, i, 1).reshape(one), options_.iterations,
                                options_.eps_added);
    ops::DirectedUpdate::into(weights.narrow(0, i, 1).reshape(one), x,
                              {p.attrs, ratio_of(p.w, options_.scaling)});
  }
}

}  // namespace tally::optim
