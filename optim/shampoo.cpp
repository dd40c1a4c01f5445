#include "optim/shampoo.h"

#include "core/ops/basis.h"
#include "core/ops/direction.h"
#include "optim/sides.h"

namespace tally::optim {
namespace {

bool treated(const Tensor& w, int side, int64_t longest) {
  const Tensor m = as_matrix(w);
  return m.size(side) <= longest && !(side == 1 && w.ndim() < 2);
}
std::string on(const char* what, int side) { return std::string(what) + "_" + to_text(side); }

}  // namespace

Shampoo::Shampoo(std::vector<ParameterGroup> groups, const Options& options)
    : Parameterwise(std::move(groups)), options_(options) {
  check(options.eps > 0, "shampoo: eps must be above 0; got ", options.eps);
  check(options.every >= 1 && options.longest >= 1,
        "shampoo: every and longest must be at least 1; got ", options.every, " and ",
        options.longest);
  keep([&](const std::string& parameter, const Tensor& w) {
    Kept kept;
    for (int side = 0; side < 2; ++side) {
      if (!treated(w, side, options.longest)) continue;
      const int64_t n = as_matrix(w).size(side);
      kept.emplace_back(on("statistics", side), diagonal(n, options.eps, w));
      kept.emplace_back(on("root", side), diagonal(n, 1, w));
    }
    check(!kept.empty(), "shampoo: both sides of ", parameter, " ", w.shape(), " are longer than ",
          options.longest, "; put it into a group of AdamW");
    return kept;
  });
}

void Shampoo::update(const Update& p) {
  const Tensor g = as_matrix(
      ops::ScaledGradient::of(p.w, p.gradient, p.scale, decoupled() ? 0 : p.attrs.weight_decay));
  const double sides = static_cast<double>(p.kept.size()) / 2;
  // At first the statistics gain a rank a step: what is new to an old root it makes far too long.
  const bool roots = p.attrs.step <= options_.every || p.attrs.step % options_.every == 0;
  Tensor direction = g;
  size_t at = 0;
  for (int side = 0; side < 2; ++side) {
    if (!treated(p.w, side, options_.longest)) continue;
    const Tensor &statistics = p.state(at), &root = p.state(at + 1);
    at += 2;
    ops::Blend::into(statistics, 1, side_product(g, side), 1);
    if (roots) {  // root = s s^T with s = q diag(values^(-1/4k))
      const auto [q, values] = ops::EigenBasis::of(statistics);
      const Tensor s = ops::RootColumns::of(q, values, -1 / (4 * sides), options_.eps);
      ops::Blend::into(root, 0, matrix_product(s, s, false, true), 1);
    }
    direction = on_side(direction, root, side);
  }
  ops::DirectedUpdate::into(p.w, direction.reshape(p.w.shape()), {p.attrs, 1});
}

}  // namespace tally::optim
