// Operations of one tensor and of two, element by element: the rules of core/ops are the code of the
// innermost loop, shared out here and walked in the order in which the elements lie.
#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "backends/cpu/reduce.h"
#include "core/ops/elementwise.h"
#include "core/ops/functions.h"

namespace tally::cpu {
namespace {

constexpr int64_t kPiece = 1 << 15;  // elements: 128 kB of each operand

/// An operand along the innermost axis, its step known where it is 0 or 1.
template <class T, int kStep>
struct Along {
  const T* p;
  T first;
  Along(const T* from, int64_t) : p(from), first(*from) {}
  T operator[](int64_t i) const { return kStep == 0 ? first : p[i]; }
};
template <class T>
struct Along<T, -1> {
  const T* p;
  int64_t step;
  Along(const T* from, int64_t by) : p(from), step(by) {}
  T operator[](int64_t i) const { return p[i * step]; }
};

/// Calls f(x, z) with both operands, or one of them and nothing.
template <class T, class F>
void along(const T* a, int64_t a_step, const T* b, int64_t b_step, F&& f) {
  if (a_step == 1 && b_step == 1) return f(Along<T, 1>(a, 1), Along<T, 1>(b, 1));
  if (a_step == 1 && b_step == 0) return f(Along<T, 1>(a, 1), Along<T, 0>(b, 0));
  if (a_step == 0 && b_step == 1) return f(Along<T, 0>(a, 0), Along<T, 1>(b, 1));
  f(Along<T, -1>(a, a_step), Along<T, -1>(b, b_step));
}

/// Calls f(offsets, n, steps) for stretches of the innermost axis; the first view is written.
template <size_t N, class F>
void each_stretch(const Shape& sizes, const std::array<Shape, N>& strides, F&& f) {
  if (sizes.numel() == 0) return;
  constexpr int64_t kStretch = 1 << 13;
  LoopAxes<N> axes(sizes, strides);
  const LoopAxis<N> inner = axes.count() > 0 ? axes.take(-1) : LoopAxis<N>{};
  const int64_t pieces = (inner.size + kStretch - 1) / kStretch;
  parallel_for(axes.numel() * pieces, rows_of_piece(std::min(inner.size, kStretch)),
               [&](int64_t i, int64_t end) {
                 for (; i < end; ++i) {
                   auto at = axes.offsets(i / pieces);
                   const int64_t first = i % pieces * kStretch;
                   for (size_t k = 0; k < N; ++k) at[k] += first * inner.step[k];
                   f(at, std::min(kStretch, inner.size - first), inner.step);
                 }
               });
}

/// y[i] = or += value(i) for i < n.
template <class T, class F>
void fill(const Out& y, T* to, int64_t step, int64_t n, F&& value) {
  if (step != 1) {
    for (int64_t i = 0; i < n; ++i) y.put(to[i * step], value(i));
  } else if (y.accumulate) {
    for (int64_t i = 0; i < n; ++i) to[i] += value(i);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = value(i);
  }
}

template <class Rule, class T>
void binary_forward(const typename ops::Binary<Rule>::Forward& c) {
  const Shape& s = c.y.shape;
  each_stretch<3>(s, {c.y.strides, ops::broadcast_strides(c.a, s), ops::broadcast_strides(c.b, s)},
                  [&](const auto& at, int64_t n, const auto& step) {
                    along(c.a.template pointer<T>() + at[1], step[1],
                          c.b.template pointer<T>() + at[2], step[2],
                          [&](const auto& a, const auto& b) {
                            fill(c.y, c.y.template pointer<T>() + at[0], step[0], n,
                                 [&](int64_t i) { return Rule::value(a[i], b[i]); });
                          });
                  });
}

// True when b repeats over leading axes of y only: its shape is the end of y's.
bool is_suffix(const View& b, const View& y) {
  if (!b.is_dense()) return false;
  int skip = 0;
  while (skip < b.shape.ndim() && b.shape[skip] == 1) ++skip;
  const int n = b.shape.ndim() - skip;
  if (n > y.shape.ndim()) return false;
  for (int i = 1; i <= n; ++i) {
    if (b.shape[-i] != y.shape[-i]) return false;
  }
  return true;
}

void add_forward(const ops::Add::Forward& c) {
  const int64_t n = c.y.numel(), period = c.b.numel();
  if (!c.y.is_dense() || !c.a.is_dense() || c.a.numel() != n || !is_suffix(c.b, c.y))
    return binary_forward<ops::AddRule, float>(c);
  if (n == 0 || period == 0) return;
  const float *a = c.a.pointer<float>(), *b = c.b.pointer<float>();
  float* y = c.y.pointer<float>();
  if (period == n) {
    return parallel_for(n, kPiece, [&](int64_t i, int64_t end) {
      isa().add(end - i, a + i, b + i, y + i, c.y.accumulate);
    });
  }
  parallel_for(n / period, std::max<int64_t>(1, kPiece / period), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r)
      isa().add(period, a + r * period, b, y + r * period, c.y.accumulate);
  });
}

/// The gradient of one operand: dy's elements, each with those of a and b, are summed over the axes
/// along which the operand was repeated.
template <class T, class Slope>
struct Gradient {
  const In &dy, &a, &b;
  const Out& d;
  Slope slope;
  ReduceLayout<4> all;
  using At = std::array<int64_t, 4>;

  static Shape strides_of(const View& v, const In& dy) {
    return ops::broadcast_strides(v.defined() ? v : dy, dy.shape);
  }
  Gradient(const In& up, const In& x, const In& z, const Out& to, Slope s)
      : dy(up),
        a(x),
        b(z),
        d(to),
        slope(s),
        all(dy.shape,
            {dy.strides, strides_of(a, dy), strides_of(b, dy), ops::broadcast_strides(d, dy.shape)},
            ops::own_axes(d, dy.shape), 1) {}

  void run() const {
    if (all.lie == Lie::rows)
      all.each_row([&](const At& at) { row(at); });
    else
      all.each_piece([&](const At& at, int64_t width) { lines(at, width); });
  }

 private:
  /// Calls f(term), term(i) being what element i from `at` on gives.
  template <class F>
  void with_terms(const At& at, const At& step, F&& f) const {
    const T* up = dy.pointer<T>() + at[0];
    const T *x = a.defined() ? a.pointer<T>() + at[1] : up,
            *z = b.defined() ? b.pointer<T>() + at[2] : up;
    along(x, step[1], z, step[2], [&](const auto& xs, const auto& zs) {
      f([&, up](int64_t i) {
        return slope(
            up[i], [&] { return xs[i]; }, [&] { return zs[i]; });
      });
    });
  }
  At moved(At at, int64_t i) const {
    for (size_t k = 0; k < at.size(); ++k) at[k] += i * all.group.step[k];
    return at;
  }
  void row(const At& at) const {
    const Cut cut(all.group.size, 16384);
    std::array<T, kFoldParts> parts{};
    parallel_for(all.group.size, cut.piece, [&](int64_t i, int64_t end) {
      with_terms(moved(at, i), all.group.step, [&](auto term) {
        parts[static_cast<size_t>(i / cut.piece)] = sum_of<T>(end - i, term);
      });
    });
    d.put(d.pointer<T>()[at[3]],
          sum_of<T>(cut.count, [&](int64_t k) { return parts[static_cast<size_t>(k)]; }));
  }
  void lines(const At& at, int64_t width) const {
    T* to = d.pointer<T>() + at[3];
    const int64_t step = all.line.step[3];
    if (all.group.size == 1)
      return with_terms(at, all.line.step, [&](auto term) { fill(d, to, step, width, term); });
    const Cut cut(all.group.size, std::max<int64_t>(16, 8192 / width));
    T* parts = reinterpret_cast<T*>(thread_scratch().data());
    parallel_for(all.group.size, cut.piece, [&](int64_t i, int64_t end) {
      T* part = parts + i / cut.piece * width;
      std::fill(part, part + width, T(0));
      for (; i < end; ++i) {
        with_terms(moved(at, i), all.line.step, [&](auto term) {
          for (int64_t j = 0; j < width; ++j) part[j] += term(j);
        });
      }
    });
    for (int64_t k = 1; k < cut.count; ++k)
      for (int64_t j = 0; j < width; ++j) parts[j] += parts[k * width + j];
    fill(d, to, step, width, [&](int64_t j) { return parts[j]; });
  }
};

template <class Rule, class T>
void binary_backward(const typename ops::Binary<Rule>::Backward& c) {
  const auto give = [&](const Out& d, auto slope, const auto& alone) {
    if (!d.defined()) return;
    const Gradient<T, decltype(slope)> gradient(c.dy, c.a, c.b, d, slope);
    if (c.dy.numel() == 0 || gradient.all.lie == Lie::neither) return plain_loops<T>(alone);
    gradient.run();
  };
  auto to_a = c, to_b = c;
  to_a.db = to_b.da = Out();
  give(
      c.da, [](const T& g, auto&& a, auto&& b) { return Rule::slope_a(g, a, b); }, to_a);
  give(
      c.db, [](const T& g, auto&& a, auto&& b) { return Rule::slope_b(g, a, b); }, to_b);
}

template <class Rule, class T>
void unary_forward(const typename ops::Unary<Rule>::Forward& c) {
  each_stretch<2>(c.y.shape, {c.y.strides, c.x.strides},
                  [&](const auto& at, int64_t n, const auto& step) {
                    const T* from = c.x.template pointer<T>() + at[1];
                    along(from, step[1], from, step[1], [&](const auto& x, const auto&) {
                      fill(c.y, c.y.template pointer<T>() + at[0], step[0], n,
                           [&](int64_t i) { return Rule::value(x[i], c.attrs); });
                    });
                  });
}

template <class Rule, class T>
void unary_backward(const typename ops::Unary<Rule>::Backward& c) {
  const In& kept = c.kept.defined() ? c.kept : c.dy;
  each_stretch<3>(
      c.dx.shape, {c.dx.strides, c.dy.strides, kept.strides},
      [&](const auto& at, int64_t n, const auto& step) {
        along(c.dy.template pointer<T>() + at[1], step[1], kept.template pointer<T>() + at[2],
              step[2], [&](const auto& dy, const auto& x) {
                fill(c.dx, c.dx.template pointer<T>() + at[0], step[0], n, [&](int64_t i) {
                  return Rule::slope(
                      dy[i], [&] { return x[i]; }, c.attrs);
                });
              });
      });
}

template <class T, class... Rules>
void register_binary() {
  constexpr auto type = static_cast<size_t>(dtype_of<T>);
  ((kernels<typename ops::Binary<Rules>::Forward>[kCPU.kind][type] = binary_forward<Rules, T>),
   ...);
  ((kernels<typename ops::Binary<Rules>::Backward>[kCPU.kind][type] = binary_backward<Rules, T>),
   ...);
}
template <class T, class... Rules>
void register_unary() {
  constexpr auto type = static_cast<size_t>(dtype_of<T>);
  ((kernels<typename ops::Unary<Rules>::Forward>[kCPU.kind][type] = unary_forward<Rules, T>), ...);
  ((kernels<typename ops::Unary<Rules>::Backward>[kCPU.kind][type] = unary_backward<Rules, T>),
   ...);
}
template <class T>
void register_for() {
  using namespace ops;
  register_binary<T, SubRule, MulRule, DivRule, ChooseRule<true>, ChooseRule<false>>();
  register_unary<T, ScaleRule, AddScalarRule, NegRule, AbsRule, ExpRule, LogRule, SqrtRule,
                 RsqrtRule, ReciprocalRule, SquareRule, PowRule, SinRule, CosRule, ErfRule,
                 ClampRule>();
}

}  // namespace

void register_pairs() {
  register_for<float>();
  kernels<ops::Add::Forward>[kCPU.kind][static_cast<size_t>(DType::f32)] = add_forward;
  register_for<double>();
}

}  // namespace tally::cpu
