// The updates of optimizers beside AdamW's own kernel, in one pass over the numbers of a parameter,
// cut into pieces that the threads share. Plain loops with the operations of the definition in its
// order, so the bits are the reference's; the compiler makes vectors of them (-O3, no errno), which
// memory keeps waiting. They are in no header: an instance of the same template elsewhere, compiled
// for less, could take their place.
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/adamw_update.h"
#include "core/ops/adaptive_update.h"
#include "core/ops/lion_update.h"
#include "core/ops/sgd_update.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

/// A parameter, its gradient and what is kept of it; a, b, c: moments, absent ones null.
struct Numbers {
  const float* dw = nullptr;
  float *w = nullptr, *a = nullptr, *b = nullptr, *c = nullptr;
  float scale = 1, keep = 1, l2 = 0;
  bool coupled = false;

  template <class Call>
  Numbers(const Call& call, const View& first, const View& second = {}, const View& third = {})
      : dw(call.dw.template pointer<float>()),
        w(call.w.template pointer<float>()),
        a(first.pointer<float>()),
        b(second.pointer<float>()),
        c(third.pointer<float>()) {
    if (call.scale.defined()) scale = call.scale.template at<float>(0);
  }
  Numbers& decay(const ops::WeightDecay& d) {
    keep = narrow(d.keep), l2 = narrow(d.l2), coupled = !d.decoupled;
    return *this;
  }
};

/// Calls step(element of g, w, a, b, c) for all: g = scale dw (+ l2 w), w is decayed already. What is
/// absent is a number that nobody keeps. The clip factor 1 and keep 1 change no bit.
template <bool kCoupled, bool kA, bool kB, bool kC, class Step>
void update_piece(int64_t n, const float* __restrict dw, float* __restrict w, float* __restrict a,
                  float* __restrict b, float* __restrict c, float scale, float keep, float l2,
                  Step step) {
  for (int64_t i = 0; i < n; ++i) {
    const float raw = dw[i] * scale, weight = w[i];
    const float g = kCoupled ? raw + l2 * weight : raw;
    float ai = kA ? a[i] : 0, bi = kB ? b[i] : 0, ci = kC ? c[i] : 0;
    const float move = step(g, ai, bi, ci);
    w[i] = (kCoupled ? weight : weight * keep) - move;
    if (kA) a[i] = ai;
    if (kB) b[i] = bi;
    if (kC) c[i] = ci;
  }
}

template <bool kA, bool kB, bool kC, class Step>
void update_all(int64_t n, const Numbers& x, Step step) {
  parallel_for(n, 1 << 15, [&](int64_t i, int64_t end) {
    float *a = kA ? x.a + i : nullptr, *b = kB ? x.b + i : nullptr, *c = kC ? x.c + i : nullptr;
    if (x.coupled)
      update_piece<true, kA, kB, kC>(end - i, x.dw + i, x.w + i, a, b, c, x.scale, x.keep, x.l2,
                                     step);
    else
      update_piece<false, kA, kB, kC>(end - i, x.dw + i, x.w + i, a, b, c, x.scale, x.keep, x.l2,
                                      step);
  });
}

void sgd(const ops::SgdUpdate::Call& call) {
  if (!all_dense(call)) return plain_loops<float>(call);
  const Numbers x = Numbers(call, call.m).decay(call.decay);
  const float momentum = narrow(call.attrs.momentum), rate = narrow(call.rate),
              lr = narrow(call.attrs.rate());
  const int64_t n = call.w.numel();
  if (!call.m.defined())
    update_all<false, false, false>(n, x, [=](float g, float&, float&, float&) { return lr * g; });
  else if (call.attrs.nesterov)
    update_all<true, false, false>(n, x, [=](float g, float& m, float&, float&) {
      m = m * momentum + rate * g;
      return lr * (g + momentum * m);
    });
  else
    update_all<true, false, false>(n, x, [=](float g, float& m, float&, float&) {
      m = m * momentum + rate * g;
      return lr * m;
    });
}

void lion(const ops::LionUpdate::Call& call) {
  if (!all_dense(call)) return plain_loops<float>(call);
  const float beta1 = narrow(call.attrs.beta1), rate1 = narrow(1 - call.attrs.beta1),
              beta2 = narrow(call.attrs.beta2), rate2 = narrow(1 - call.attrs.beta2),
              lr = narrow(call.attrs.rate());
  update_all<true, false, false>(call.w.numel(), Numbers(call, call.m).decay(call.decay),
                                 [=](float g, float& m, float&, float&) {
                                   const float mixed = m * beta1 + rate1 * g;
                                   m = m * beta2 + rate2 * g;
                                   return lr * (mixed > 0 ? 1.0f : mixed < 0 ? -1.0f : mixed);
                                 });
}

void adagrad(const ops::AdagradUpdate::Call& call) {
  if (!all_dense(call)) return plain_loops<float>(call);
  const float size = narrow(call.size), eps = narrow(call.attrs.eps);
  update_all<true, false, false>(call.w.numel(), Numbers(call, call.v).decay(call.decay),
                                 [=](float g, float& v, float&, float&) {
                                   v = v + g * g;
                                   return size * (g / (std::sqrt(v) + eps));
                                 });
}

void rmsprop(const ops::RmspropUpdate::Call& call) {
  if (!all_dense(call)) return plain_loops<float>(call);
  const Numbers x = Numbers(call, call.v, call.m).decay(call.decay);
  const float alpha = narrow(call.attrs.alpha), rate = narrow(1 - call.attrs.alpha),
              momentum = narrow(call.attrs.momentum), eps = narrow(call.attrs.eps),
              lr = narrow(call.attrs.rate());
  const auto quotient = [=](float g, float& v) {
    v = v * alpha + rate * g * g;
    return g / (std::sqrt(v) + eps);
  };
  if (!call.m.defined())
    update_all<true, false, false>(
        call.w.numel(), x, [=](float g, float& v, float&, float&) { return lr * quotient(g, v); });
  else
    update_all<true, true, false>(call.w.numel(), x, [=](float g, float& v, float& m, float&) {
      m = m * momentum + quotient(g, v);
      return lr * m;
    });
}

void nadam(const ops::NadamUpdate::Call& call) {
  if (!all_dense(call)) return plain_loops<float>(call);
  const float rate1 = narrow(1 - call.attrs.beta1), beta2 = narrow(call.attrs.beta2),
              rate2 = narrow(1 - call.attrs.beta2), root = narrow(call.root_correction),
              eps = narrow(call.attrs.eps), by_gradient = narrow(call.by_gradient),
              by_moment = narrow(call.by_moment);
  update_all<true, true, false>(call.w.numel(), Numbers(call, call.m, call.v).decay(call.decay),
                                [=](float g, float& m, float& v, float&) {
                                  m = m + rate1 * (g - m);
                                  v = v * beta2 + rate2 * g * g;
                                  return (by_gradient * g + by_moment * m) /
                                         (std::sqrt(v) / root + eps);
                                });
}

}  // namespace

// AdamW's update with L2 or AMSGrad; without them isa().adamw does it (optimizer.cpp).
void adamw_options(const ops::AdamWUpdate::Call& call) {
  if (!all_dense(call)) return plain_loops<float>(call);
  Numbers x(call, call.m, call.v, call.largest);
  x.keep = narrow(call.keep), x.l2 = narrow(call.l2), x.coupled = !call.attrs.decoupled;
  const float rate1 = narrow(call.rate1), beta2 = narrow(call.beta2), rate2 = narrow(call.rate2),
              step = narrow(call.step_size), root = narrow(call.root_correction),
              eps = narrow(call.eps);
  const auto moments = [=](float g, float& m, float& v) {
    m = m + rate1 * (g - m);
    v = v * beta2 + rate2 * g * g;
  };
  if (!call.largest.defined())
    update_all<true, true, false>(call.w.numel(), x, [=](float g, float& m, float& v, float&) {
      moments(g, m, v);
      return step * (m / (std::sqrt(v) / root + eps));
    });
  else
    update_all<true, true, true>(call.w.numel(), x, [=](float g, float& m, float& v, float& most) {
      moments(g, m, v);
      most = most < v || std::isnan(v) ? v : most;
      return step * (m / (std::sqrt(most) / root + eps));
    });
}

void register_updates() {
  constexpr auto f32 = static_cast<size_t>(DType::f32);
  kernels<ops::SgdUpdate::Call>[kCPU.kind][f32] = sgd;
  kernels<ops::LionUpdate::Call>[kCPU.kind][f32] = lion;
  kernels<ops::AdagradUpdate::Call>[kCPU.kind][f32] = adagrad;
  kernels<ops::RmspropUpdate::Call>[kCPU.kind][f32] = rmsprop;
  kernels<ops::NadamUpdate::Call>[kCPU.kind][f32] = nadam;
}

}  // namespace tally::cpu
