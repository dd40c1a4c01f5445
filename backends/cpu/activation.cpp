#include <algorithm>
#include <cmath>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "core/ops/gate.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

Unit unit_of(ops::ActivationKind kind) { return static_cast<Unit>(kind); }
static_assert(static_cast<int>(Unit::softplus) == static_cast<int>(ops::ActivationKind::softplus) &&
              static_cast<int>(Unit::silu) == static_cast<int>(ops::ActivationKind::silu));

// Rows in pieces of about 8192 elements; f gets a row's number.
template <class F>
void each_row(const View& v, F f) {
  const int64_t piece = std::max<int64_t>(1, 8192 / std::max<int64_t>(v.cols(), 1));
  parallel_for(v.rows(), piece, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) f(i);
  });
}

void activation_forward(const ops::Activation::Forward& c) {
  const Unit unit = unit_of(c.attrs.function);
  const double p = c.attrs.parameter;
  each_row(c.x, [&](int64_t i) {
    isa().activation_forward(unit, p, c.x.cols(), c.x.row<float>(i), c.y.row<float>(i),
                             c.y.accumulate);
  });
}

// bf16 in pieces that stay in the first-level cache: f(widened inputs, result) for each.
constexpr int64_t kHalfPiece = 1024;
template <int Inputs, class F>
void each_half(const In* const (&in)[Inputs], const Out& y, F f) {
  each_row(y, [&](int64_t i) {
    float wide[Inputs][kHalfPiece], out[kHalfPiece];
    for (int64_t d = 0; d < y.cols(); d += kHalfPiece) {
      const int64_t n = std::min(kHalfPiece, y.cols() - d);
      for (int k = 0; k < Inputs; ++k)
        isa().widen(n, in[k]->template row<uint16_t>(i) + d, wide[k]);
      f(n, wide, out);
      isa().narrow(n, out, y.row<uint16_t>(i) + d, y.accumulate);
    }
  });
}

void activation_half(const ops::Activation::Forward& c) {
  each_half<1>({&c.x}, c.y, [&](int64_t n, const auto& in, float* out) {
    isa().activation_forward(unit_of(c.attrs.function), c.attrs.parameter, n, in[0], out, false);
  });
}

void activation_backward(const ops::Activation::Backward& c) {
  const Unit unit = unit_of(c.attrs.function);
  const double p = c.attrs.parameter;
  each_row(c.x, [&](int64_t i) {
    isa().activation_backward(unit, p, c.x.cols(), c.dy.row<float>(i), c.x.row<float>(i),
                              c.dx.row<float>(i), c.dx.accumulate);
  });
}

GateShape shape_of(const ops::Gate::Attrs& a) {
  return {unit_of(a.function), a.parameter, a.limit > 0 ? static_cast<float>(a.limit) : INFINITY,
          static_cast<float>(a.offset)};
}

void gate_forward(const ops::Gate::Forward& c) {
  const GateShape shape = shape_of(c.attrs);
  each_row(c.y, [&](int64_t i) {
    isa().gate_forward(shape, c.y.cols(), c.a.row<float>(i), c.b.row<float>(i), c.y.row<float>(i),
                       c.y.accumulate);
  });
}

void gate_half(const ops::Gate::Forward& c) {
  const GateShape shape = shape_of(c.attrs);
  each_half<2>({&c.a, &c.b}, c.y, [&](int64_t n, const auto& in, float* out) {
    isa().gate_forward(shape, n, in[0], in[1], out, false);
  });
}

void gate_backward(const ops::Gate::Backward& c) {
  const GateShape shape = shape_of(c.attrs);
  each_row(c.dy, [&](int64_t i) {
    isa().gate_backward(shape, c.dy.cols(), c.dy.row<float>(i), c.a.row<float>(i),
                        c.b.row<float>(i), c.da.defined() ? c.da.row<float>(i) : nullptr,
                        c.db.defined() ? c.db.row<float>(i) : nullptr, c.da.accumulate,
                        c.db.accumulate);
  });
}

}  // namespace

void register_activations() {
  constexpr size_t f32 = static_cast<size_t>(DType::f32), half = static_cast<size_t>(DType::bf16);
  kernels<ops::Activation::Forward>[kCPU.kind][f32] = activation_forward;
  kernels<ops::Activation::Forward>[kCPU.kind][half] = activation_half;
  kernels<ops::Activation::Backward>[kCPU.kind][f32] = activation_backward;
  kernels<ops::Gate::Forward>[kCPU.kind][f32] = gate_forward;
  kernels<ops::Gate::Forward>[kCPU.kind][half] = gate_half;
  kernels<ops::Gate::Backward>[kCPU.kind][f32] = gate_backward;
}

}  // namespace tally::cpu
