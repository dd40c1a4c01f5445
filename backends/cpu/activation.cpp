#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/gate.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

/// The vector code of a function, where there is some.
bool unit_of(ops::ActivationKind kind, Unit& unit) {
  switch (kind) {
    case ops::ActivationKind::identity:
      unit = Unit::identity;
      return true;
    case ops::ActivationKind::relu:
      unit = Unit::relu;
      return true;
    case ops::ActivationKind::squared_relu:
      unit = Unit::squared_relu;
      return true;
    case ops::ActivationKind::gelu:
      unit = Unit::gelu;
      return true;
    case ops::ActivationKind::gelu_tanh:
      unit = Unit::gelu_tanh;
      return true;
    case ops::ActivationKind::silu:
      unit = Unit::silu;
      return true;
    case ops::ActivationKind::sigmoid:
      unit = Unit::sigmoid;
      return true;
    default:
      return false;
  }
}

// Rows in pieces of about 8192 elements; f gets a row's number.
template <class F>
void each_row(const View& v, F f) {
  const int64_t piece = std::max<int64_t>(1, 8192 / std::max<int64_t>(v.cols(), 1));
  parallel_for(v.rows(), piece, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) f(i);
  });
}

void activation_forward(const ops::Activation::Forward& c) {
  Unit unit;
  if (!unit_of(c.attrs.function, unit)) return plain_loops<float>(c);
  each_row(c.x, [&](int64_t i) {
    isa().activation_forward(unit, c.x.cols(), c.x.row<float>(i), c.y.row<float>(i),
                             c.y.accumulate);
  });
}

void activation_backward(const ops::Activation::Backward& c) {
  Unit unit;
  if (!unit_of(c.attrs.function, unit)) return plain_loops<float>(c);
  each_row(c.x, [&](int64_t i) {
    isa().activation_backward(unit, c.x.cols(), c.dy.row<float>(i), c.x.row<float>(i),
                              c.dx.row<float>(i), c.dx.accumulate);
  });
}

bool has_limits(const ops::Gate::Attrs& a) { return a.limit > 0 || a.offset != 0; }

void gate_forward(const ops::Gate::Forward& c) {
  Unit unit;
  if (!unit_of(c.attrs.function, unit) || has_limits(c.attrs)) return plain_loops<float>(c);
  each_row(c.y, [&](int64_t i) {
    isa().gate_forward(unit, c.y.cols(), c.a.row<float>(i), c.b.row<float>(i), c.y.row<float>(i),
                       c.y.accumulate);
  });
}

void gate_backward(const ops::Gate::Backward& c) {
  Unit unit;
  if (!unit_of(c.attrs.function, unit) || has_limits(c.attrs)) return plain_loops<float>(c);
  each_row(c.dy, [&](int64_t i) {
    isa().gate_backward(unit, c.dy.cols(), c.dy.row<float>(i), c.a.row<float>(i), c.b.row<float>(i),
                        c.da.defined() ? c.da.row<float>(i) : nullptr,
                        c.db.defined() ? c.db.row<float>(i) : nullptr, c.da.accumulate,
                        c.db.accumulate);
  });
}

}  // namespace

void register_activations() {
  constexpr size_t f32 = static_cast<size_t>(DType::f32);
  kernels<ops::Activation::Forward>[kCPU.kind][f32] = activation_forward;
  kernels<ops::Activation::Backward>[kCPU.kind][f32] = activation_backward;
  kernels<ops::Gate::Forward>[kCPU.kind][f32] = gate_forward;
  kernels<ops::Gate::Backward>[kCPU.kind][f32] = gate_backward;
}

}  // namespace tally::cpu
