// The pieces of Muon, Shampoo and SOAP that go over elements, as updates.cpp does the updates.
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/direction.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

constexpr int64_t kPiece = 1 << 15;

/// y = f(x, y) over all elements.
template <class F>
void pairs(int64_t n, const float* x, float* y, F f) {
  parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
    const float* __restrict from = x;
    float* __restrict to = y;
    for (int64_t i = begin; i < end; ++i) to[i] = f(from[i], to[i]);
  });
}

void scaled_gradient(const ops::ScaledGradient::Call& c) {
  if (!all_dense(c)) return plain_loops<float>(c);
  const float* dw = c.dw.pointer<float>();
  const float* w = c.w.pointer<float>();
  const float scale = c.scale.defined() ? c.scale.at<float>(0) : 1.0f, l2 = narrow(c.l2);
  if (!c.w.defined())
    return pairs(c.dw.numel(), dw, c.g.pointer<float>(), [=](float x, float) { return x * scale; });
  parallel_for(c.dw.numel(), kPiece, [&](int64_t begin, int64_t end) {
    float* __restrict g = c.g.pointer<float>();
    for (int64_t i = begin; i < end; ++i) g[i] = dw[i] * scale + l2 * w[i];
  });
}

void momentum_direction(const ops::MomentumDirection::Call& c) {
  if (!all_dense(c)) return plain_loops<float>(c);
  const float momentum = narrow(c.attrs.momentum), rate = narrow(1 - c.attrs.momentum),
              scale = c.scale.defined() ? c.scale.at<float>(0) : 1.0f;
  parallel_for(c.dw.numel(), kPiece, [&](int64_t begin, int64_t end) {
    const float* __restrict dw = c.dw.pointer<float>();
    float* __restrict m = c.m.pointer<float>(), * __restrict u = c.u.pointer<float>();
    const bool nesterov = c.attrs.nesterov;
    for (int64_t i = begin; i < end; ++i) {
      const float g = dw[i] * scale, mixed = m[i] + rate * (g - m[i]);
      m[i] = mixed;
      u[i] = nesterov ? g + momentum * (mixed - g) : mixed;
    }
  });
}

void unit_norm(const ops::UnitNorm::Call& c) {
  if (!all_dense(c)) return plain_loops<float>(c);
  const double norm = std::sqrt(c.sum.at<double>(0)), eps = c.attrs.eps;
  const float size = narrow(c.attrs.added ? norm + eps : larger(eps, norm));
  pairs(c.u.numel(), c.u.pointer<float>(), c.x.pointer<float>(),
        [=](float u, float) { return u / size; });
}

void blend(const ops::Blend::Call& c) {
  if (!all_dense(c)) return plain_loops<float>(c);
  const float a = narrow(c.a), b = narrow(c.b);
  pairs(c.y.numel(), c.x.pointer<float>(), c.y.pointer<float>(),
        [=](float x, float y) { return y * a + b * x; });
}

void directed_update(const ops::DirectedUpdate::Call& c) {
  if (!all_dense(c)) return plain_loops<float>(c);
  const float keep = narrow(c.keep), size = narrow(c.size);
  pairs(c.w.numel(), c.u.pointer<float>(), c.w.pointer<float>(),
        [=](float u, float w) { return w * keep - size * u; });
}

void adam_quotient(const ops::AdamQuotient::Call& c) {
  if (!all_dense(c)) return plain_loops<float>(c);
  const float beta = narrow(c.attrs.beta), rate = narrow(1 - c.attrs.beta),
              eps = narrow(c.attrs.eps);
  parallel_for(c.g.numel(), kPiece, [&](int64_t begin, int64_t end) {
    const float* __restrict g = c.g.pointer<float>(), * __restrict m = c.m.pointer<float>();
    float* __restrict v = c.v.pointer<float>(), * __restrict n = c.n.pointer<float>();
    for (int64_t i = begin; i < end; ++i) {
      const float second = v[i] * beta + rate * g[i] * g[i];
      v[i] = second;
      n[i] = m[i] / (std::sqrt(second) + eps);
    }
  });
}

}  // namespace

void register_directions() {
  constexpr auto f32 = static_cast<size_t>(DType::f32);
  kernels<ops::ScaledGradient::Call>[kCPU.kind][f32] = scaled_gradient;
  kernels<ops::MomentumDirection::Call>[kCPU.kind][f32] = momentum_direction;
  kernels<ops::UnitNorm::Call>[kCPU.kind][f32] = unit_norm;
  kernels<ops::Blend::Call>[kCPU.kind][f32] = blend;
  kernels<ops::DirectedUpdate::Call>[kCPU.kind][f32] = directed_update;
  kernels<ops::AdamQuotient::Call>[kCPU.kind][f32] = adam_quotient;
}

}  // namespace tally::cpu
