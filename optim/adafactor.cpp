#include "optim/adafactor.h"

#include "core/ops/adafactor_update.h"

namespace tally::optim {
namespace {

ops::AdafactorUpdate::Attrs attrs_of(const ops::UpdateAttrs& a, const Adafactor::Options& o) {
  return {a,      o.beta1,    o.beta2_decay, o.eps,      o.floor,
          o.clip, o.smallest, o.scaled,      o.relative, o.decay_by_size};
}

}  // namespace

Adafactor::Options Adafactor::torch_form() {
  Options o;
  o.eps = 0;
  o.floor = 1.1920928955078125e-07 * 1.1920928955078125e-07;  // f32's machine epsilon, squared
  o.relative = true;
  o.decay_by_size = false;
  return o;
}

Adafactor::Adafactor(std::vector<ParameterGroup> groups, const Options& options)
    : Parameterwise(std::move(groups)), options_(options) {
  ops::AdafactorUpdate::check_attrs(attrs_of({}, options));
  keep([&](const std::string&, const Tensor& w) {
    const DType dtype = acc_dtype(w.dtype());
    Kept kept;
    if (w.ndim() < 2) {
      kept.emplace_back("exp_avg_sq", zeros_like(w));
    } else {
      const Shape rows = w.shape().drop_last();
      kept.emplace_back("exp_avg_sq_row", zeros(rows, dtype, w.device()));
      kept.emplace_back("exp_avg_sq_col",
                        zeros(rows.drop_last().append(w.size(-1)), dtype, w.device()));
    }
    if (options.beta1 > 0) kept.emplace_back("exp_avg", zeros_like(w));
    return kept;
  });
}

void Adafactor::update(const Update& p) {
  const bool matrix = p.w.ndim() >= 2;
  ops::AdafactorUpdate::into(p.w,
                             {p.state(0), matrix ? p.state(1) : Tensor(), p.maybe(matrix ? 2 : 1)},
                             p.gradient, p.scale, attrs_of(p.attrs, options_));
}

}  // namespace tally::optim
