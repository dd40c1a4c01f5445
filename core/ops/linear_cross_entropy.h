#pragma once
#include <memory>
#include <vector>

#include "core/ops/loss_row.h"

namespace tally::ops {

// The head of a language model and its loss in one: cross_entropy(linear(h, w), targets) without
// the (N,V) logits, which would be the largest tensor of all. Rows are taken in blocks; a block's
// logits become its gradient in place, and give at once its rows of dh and its share of dw, for an
// upstream gradient of 1. The backward pass only multiplies both by the true one. So nothing is
// computed twice (recomputing the logits would cost a third more) and what is kept is as large as
// the gradients. Lecture claims L62, L71, L74. Blocks: Hsu et al. 2024 (Liger), arXiv:2410.10989,
// sec. 3.2.
//
//   forward    x[n,v]  = sum_d h[n,d] w[v,d],  loss as cross_entropy's (mean or sum)
//              e[n,v]  = d loss / d x[n,v]
//              gh[n,d] = sum_v e[n,v] w[v,d],  gw[v,d] = sum_n e[n,v] h[n,d]
//   backward   dh = dy gh,  dw = dy gw
//
//   h, dh (..., D)   w, dw (V,D)   targets (...) i64   loss, dy: one number   stats (4): LossStats
//   saved: gh, gw, in the type that h accumulates in
struct LinearCrossEntropy {
  static constexpr const char* name = "linear_cross_entropy";
  static constexpr size_t differentiable_outputs = 1;
  using Attrs = LossOptions;
  struct Saved {
    SavedTensor gh, gw;
    DType dtype = DType::f32;
  };

  /// Rows whose logits exist at once: about 16 MB in f32, but enough rows to make a product
  /// worthwhile.
  static int64_t block_rows(int64_t rows, int64_t classes) {
    const int64_t fit = (int64_t{1} << 22) / std::max<int64_t>(classes, 1);
    return std::min(rows, std::max<int64_t>(fit, 256));
  }

  struct Forward {
    static constexpr const char* name = "linear_cross_entropy.forward";
    static constexpr Kind kind = Kind::contraction;
    In h, w, targets;
    Out loss, stats, gh, gw;
    LossRow rule;
    Reduction reduction;
    double normalizer;  // 0: the number of targets that count
    std::byte* scratch = nullptr;
    static constexpr const char* formula =
        "x = h w^T, loss = mean(log Z - x[target] + z log^2 Z + b max(x)^2), e = dloss/dx, gh = e "
        "w, gw = e^T h";
    static constexpr const char* operands = "h, w, targets, loss, stats, gh, gw";
    auto views() const { return std::tie(h, w, targets, loss, stats, gh, gw); }
    DType dtype() const { return h.dtype; }
    int64_t rows() const { return targets.numel(); }
    int64_t block() const { return block_rows(rows(), w.rows()); }
    bool divides() const { return reduction == Reduction::mean && rows() > 0; }
    size_t workspace() const {
      return static_cast<size_t>(block() * w.rows()) * size_of(acc_dtype(h.dtype));
    }
    double products() const {
      return 2.0 * rows() * w.rows() * w.cols() *
             (1 + (gh.defined() ? 1 : 0) + (gw.defined() ? 1 : 0));
    }
    ModelFlops model_flops() const { return {products(), products()}; }
    Cost cost() const {
      const bool grad = gh.defined();
      const double a_row = rule.value_flops(w.rows()) + LossTotals<double>::kFlopsPerRow + 1 +
                           (grad ? rule.gradient_flops(w.rows()) : 0);
      return flops(products() + rows() * a_row + (divides() ? 1 + (grad ? 1 : 0) : 0)) +
             reads(h, targets) + reads_if(rows() > 0, w) + writes(loss, stats, gh, gw);
    }
    template <class T>
    int64_t target(int64_t n) const {
      return targets.index<T>(n / targets.cols() * targets.row_stride + n % targets.cols());
    }
    template <class T>
    void reference() const;

   private:
    template <class A>
    struct Sums {
      LossTotals<A> totals;
      std::vector<A> gw;
      A g = A(1);  // d loss / d loss_n
    };
    template <class T>
    void row(int64_t n, acc_t<T>* logits, Sums<acc_t<T>>& sums) const;
  };

  struct Backward {
    static constexpr const char* name = "linear_cross_entropy.backward";
    static constexpr Kind kind = Kind::elementwise;
    In dy, gh, gw;
    Out dh, dw;  // may be the same memory as gh and gw
    DType element;
    static constexpr const char* formula = "dh = dy gh, dw = dy gw";
    static constexpr const char* operands = "dy, gh, gw, dh, dw";
    auto views() const { return std::tie(dy, gh, gw, dh, dw); }
    DType dtype() const { return element; }
    Cost cost() const {
      return flops(dh.numel() + dw.numel()) + reads(dy) + reads_if(dh.defined(), gh) +
             reads_if(dw.defined(), gw) + writes(dh, dw);
    }
    template <class T>
    void reference() const {
      const acc_t<T> g = dy.at<acc_t<T>>(0);
      scale<T>(gh, dh, g);
      scale<T>(gw, dw, g);
    }

   private:
    template <class T>
    static void scale(const In& from, const Out& to, const acc_t<T>& g) {
      for (int64_t i = 0; i < (to.defined() ? to.rows() : 0); ++i) {
        for (int64_t d = 0; d < to.cols(); ++d)
          to.put(to.row<T>(i)[d], g * from.row<acc_t<T>>(i)[d]);
      }
    }
  };

  /// The loss and its stats.
  static std::array<Tensor, 2> forward(const Tensor& h, const Tensor& w, const Tensor& targets,
                                       const Attrs& a, Saved* saved) {
    check_defined(name, "h", h);
    check_defined(name, "weight", w);
    check_same_dtype(name, h, w);
    check(w.ndim() == 2 && h.ndim() >= 1 && h.size(-1) == w.size(1),
          "linear_cross_entropy: weight must be (V, D) with D the last axis of h; h is ", h.shape(),
          ", weight is ", w.shape(), in_module());
    check(a.reduction != Reduction::none, "linear_cross_entropy: reduces to the mean or the sum",
          in_module(), "; for a loss a row use cross_entropy(linear(h, weight), targets)");
    check_options(name, a);
    check_targets(name, targets, h.shape().drop_last(), w.size(0), a.ignore_index);
    const DType type = acc_dtype(h.dtype());
    Tensor loss = empty(Shape{}, type, h.device()),
           stats = empty({LossStats::kSize}, type, h.device()), gh, gw;
    if (saved) gh = empty(h.shape(), type, h.device()), gw = empty(w.shape(), type, h.device());
    run(h.device(), Forward{h, w, targets, loss, stats, gh, gw, LossRow(a), a.reduction,
                            a.normalizer.value_or(0)});
    if (saved) *saved = {gh, gw, h.dtype()};
    return {loss, stats};
  }
  static std::array<Tensor, 3> backward(const std::array<Tensor, 2>& dy, Saved&& s,
                                        const Into<3>& into = {}) {
    if (!dy[0].defined()) return {};
    check_upstream(name, dy[0], Shape{}, acc_dtype(s.dtype));
    const GradTensor dh = result(s.gh, s.dtype, into, 0), dw = result(s.gw, s.dtype, into, 1);
    if (dh.wanted() || dw.wanted())
      run(dy[0].device(), Backward{dy[0], s.gh, s.gw, dh, dw, s.dtype});
    s = {};
    return {dh, dw, Tensor()};
  }

 private:
  // The gradient to add to, else the piece itself where it has the right type.
  static GradTensor result(const Tensor& piece, DType dtype, const Into<3>& into, int i) {
    if (!into.wants(i)) return {};
    if (into.target[static_cast<size_t>(i)].defined())
      return into.at(i, piece.shape(), dtype, piece.device());
    return {piece.dtype() == dtype ? piece : empty(piece.shape(), dtype, piece.device()), false};
  }
};

template <class T>
void LinearCrossEntropy::Forward::reference() const {
  using A = acc_t<T>;
  Sums<A> sums;
  int64_t count = 0;
  for (int64_t n = 0; n < rows(); ++n) count += target<T>(n) != rule.ignored;
  const double divisor = normalizer > 0 ? normalizer : static_cast<double>(count);
  if (gh.defined() && divides() && count > 0) sums.g = A(1) / A(divisor);
  sums.gw.assign(gw.defined() ? static_cast<size_t>(gw.numel()) : 0, A(0));
  A* logits = reinterpret_cast<A*>(scratch);
  std::uninitialized_fill_n(logits, block() * w.rows(), A(0));
  for (int64_t first = 0; first < rows(); first += block()) {
    const int64_t last = std::min(rows(), first + block());
    for (int64_t n = first; n < last; ++n) row<T>(n, logits + (n - first) * w.rows(), sums);
  }
  for (int64_t i = 0; i < gw.numel(); ++i) gw.at<A>(i) = sums.gw[static_cast<size_t>(i)];
  sums.totals.put(stats);
  if (divides() && count > 0) sums.totals.loss = sums.totals.loss / A(divisor);
  loss.at<A>(0) = sums.totals.loss;
}

template <class T>
void LinearCrossEntropy::Forward::row(int64_t n, acc_t<T>* logits, Sums<acc_t<T>>& sums) const {
  using A = acc_t<T>;
  const int64_t y = target<T>(n), classes = w.rows(), width = w.cols();
  const T* hn = h.row<T>(n);
  for (int64_t v = 0; v < (y == rule.ignored ? 0 : classes); ++v) {
    A sum(0);
    for (int64_t d = 0; d < width; ++d) sum += A(hn[d]) * A(w.row<T>(v)[d]);
    logits[v] = sum;
  }
  if (y != rule.ignored) {
    const LossRow::Value<A> value = rule.value<A>(logits, classes, y);
    sums.totals.add(value);
    sums.totals.loss += value.loss;
    if (!gh.defined()) return;
    rule.gradient(logits, classes, y, value.log_z, sums.g,
                  [&](int64_t j, const A& e) { logits[j] = e; });
  }
  for (int64_t d = 0; d < (gh.defined() ? width : 0); ++d) {
    A sum(0);
    for (int64_t v = 0; v < (y == rule.ignored ? 0 : classes); ++v) {
      sum += logits[v] * A(w.row<T>(v)[d]);
      sums.gw[static_cast<size_t>(v * width + d)] += logits[v] * A(hn[d]);
    }
    gh.row<A>(n)[d] = sum;
  }
}

}  // namespace tally::ops
