#pragma once
#include <algorithm>
#include <vector>

#include "core/ops/activation_functions.h"
#include "core/ops/larger_first.h"
#include "core/ops/softmax.h"

namespace tally::ops {

/// What a router's numbers become before the largest are chosen.
enum class RouterScore : uint8_t {
  softmax,  ///< over all experts: Switch, Mixtral, Qwen, DeepSeek-V2
  sigmoid   ///< of each expert alone: DeepSeek-V3
};

/// How a router chooses and weighs experts.
struct RouterOptions {
  int64_t k = 2;                             ///< experts a token
  RouterScore score = RouterScore::softmax;  ///< see above
  bool renormalise = true;                   ///< the k weights add up to `scale`
  double scale = 1;                          ///< what all weights are multiplied by
  int64_t groups = 1;                        ///< the experts lie in so many equal groups
  int64_t kept_groups = 1;                   ///< and are chosen from so many of them
  int64_t best_of_group = 1;  ///< a group counts by the sum of its 1 or 2 best scores
};

// Top-k router of a mixture of experts. Shazeer et al. 2017, arXiv:1701.06538; Jiang et al. 2024
// (Mixtral), arXiv:2401.04088, section 2; groups, bias and sigmoid: DeepSeek-AI 2024,
// arXiv:2412.19437, section 2.1.2.
//
//   forward    s[i,e] = softmax_e(x[i,:]) or sigmoid(x[i,e])
//              experts[i,:] = the k largest of s[i,e] + bias[e], from the largest down
//              w[i,r]  = c s[i,j_r] / (renormalise ? sum_q s[i,j_q] : 1),   j_r = experts[i,r]
//   backward   with u = w / c and t = c dw on the chosen, and 0 elsewhere:
//              softmax               dx[i,e] = s[i,e] (t[i,e] - sum_q t[i,q] s[i,q])
//              softmax, renormalised dx[i,j_r] = u[i,r] (t[i,r] - sum_q t[i,q] u[i,q])
//              sigmoid               dx[i,j_r] = t[i,r] s' ,  s' = s (1 - s)
//              sigmoid, renormalised dx[i,j_r] = s' (t[i,r] - sum_q t[i,q] u[i,q]) / sum_q s[i,j_q]
//
//   x (..., E)    bias (E) or absent: it moves the choice alone and has no gradient
//   w (..., k)    experts (..., k) i64    saved: x, experts
//
// Equal scores in the order of the experts; a NaN counts as largest. With `groups`, experts of
// groups that are not among the kept ones are not chosen. Softmax over the chosen logits alone
// (gpt-oss) is softmax renormalised. A sum of sigmoids has 1e-20 added: all may underflow.
struct MoeRouter {
  static constexpr const char* name = "moe_router";
  using Attrs = RouterOptions;
  struct Saved {
    SavedTensor x, experts;
    Attrs attrs;
    Like w;
  };
  static constexpr double kTiny = 1e-20;

  struct Forward {
    static constexpr const char* name = "moe_router.forward";
    static constexpr Kind kind = Kind::normalization;
    In x, bias;
    Out w, experts;
    Attrs a;
    static constexpr const char* formula = "s = softmax(x), w, experts = the k largest of s";
    static constexpr const char* operands = "x, bias, w, experts";
    auto views() const { return std::tie(x, bias, w, experts); }
    DType dtype() const { return x.dtype; }
    double row_flops() const {
      const double e = static_cast<double>(x.cols()), k = static_cast<double>(a.k);
      const double sum = a.renormalise ? 2 * k : 0;
      return (a.score == RouterScore::softmax ? 4 : 3) * e + (bias.defined() ? e : 0) +
             (a.best_of_group == 2 ? static_cast<double>(a.groups) : 0) + sum +
             (a.scale == 1 ? 0 : k);
    }
    Cost cost() const {
      return flops(static_cast<double>(x.rows()) * row_flops()) + reads(x) +
             reads_if(x.rows() > 0, bias) + writes(w, experts);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      std::vector<A> s(static_cast<size_t>(x.cols())), rank(s);
      std::vector<int64_t> order(s.size());
      for (int64_t i = 0; i < x.rows(); ++i) {
        scores(x.row<T>(i), s);
        for (size_t e = 0; e < s.size(); ++e)
          rank[e] = bias.defined() ? s[e] + A(bias.at<T>(static_cast<int64_t>(e))) : s[e];
        choose(rank, order);
        A total(a.score == RouterScore::sigmoid ? kTiny : 0.0);
        for (int64_t r = 0; a.renormalise && r < a.k; ++r) total += s[chosen(order, r)];
        for (int64_t r = 0; r < a.k; ++r) {
          A v = s[chosen(order, r)];
          if (a.renormalise) v = v / total;
          w.put(w.row<T>(i)[r], a.scale == 1 ? v : v * A(a.scale));
          experts.put_index<T>(i * a.k + r, order[static_cast<size_t>(r)]);
        }
      }
    }
    static size_t chosen(const std::vector<int64_t>& order, int64_t r) {
      return static_cast<size_t>(order[static_cast<size_t>(r)]);
    }
    template <class A, class T>
    void scores(const T* row, std::vector<A>& s) const {
      if (a.score == RouterScore::softmax) return softmax_of(row, s);
      for (size_t e = 0; e < s.size(); ++e) s[e] = Sigmoid{}.value(A(row[e]));
    }
    // The k experts of the largest rank, in `order`: those of groups not kept count for nothing.
    template <class A>
    void choose(const std::vector<A>& rank, std::vector<int64_t>& order) const {
      for (size_t e = 0; e < order.size(); ++e) order[e] = static_cast<int64_t>(e);
      const auto last = order.begin() + a.k;
      if (a.groups == 1 && a.best_of_group == 1) {
        std::partial_sort(order.begin(), last, order.end(), LargerFirst<A>{rank});
        return;
      }
      const std::vector<bool> kept = kept_groups(rank);
      const int64_t size = static_cast<int64_t>(rank.size()) / a.groups;
      const auto out = std::stable_partition(order.begin(), order.end(), [&](int64_t e) {
        return kept[static_cast<size_t>(e / size)];
      });
      std::partial_sort(order.begin(), last, out, LargerFirst<A>{rank});
    }
    template <class A>
    std::vector<bool> kept_groups(const std::vector<A>& rank) const {
      const size_t groups = static_cast<size_t>(a.groups), size = rank.size() / groups;
      std::vector<A> value(groups);
      std::vector<int64_t> order(groups), member(size);
      for (size_t g = 0; g < groups; ++g) {
        for (size_t m = 0; m < size; ++m) member[m] = static_cast<int64_t>(g * size + m);
        std::partial_sort(member.begin(), member.begin() + a.best_of_group, member.end(),
                          LargerFirst<A>{rank});
        value[g] = rank[static_cast<size_t>(member[0])];
        if (a.best_of_group == 2) value[g] = value[g] + rank[static_cast<size_t>(member[1])];
        order[g] = static_cast<int64_t>(g);
      }
      std::partial_sort(order.begin(), order.begin() + a.kept_groups, order.end(),
                        LargerFirst<A>{value});
      std::vector<bool> kept(groups, false);
      for (int64_t g = 0; g < a.kept_groups; ++g) kept[chosen(order, g)] = true;
      return kept;
    }
  };

  struct Backward {
    static constexpr const char* name = "moe_router.backward";
    static constexpr Kind kind = Kind::normalization;
    In dw, x, experts;
    Out dx;
    Attrs a;
    static constexpr const char* formula =
        "dx = s (t - sum(t s)), t = dw on the chosen, 0 elsewhere";
    static constexpr const char* operands = "dw, x, experts, dx";
    auto views() const { return std::tie(dw, x, experts, dx); }
    DType dtype() const { return x.dtype; }
    bool all_scores() const { return a.score == RouterScore::softmax && !a.renormalise; }
    double row_flops() const {
      const double e = static_cast<double>(x.cols()), k = static_cast<double>(a.k);
      const double scaled = a.scale == 1 ? 0 : k;
      if (all_scores()) return scaled + 6 * e + 2 * k;
      if (a.score == RouterScore::softmax) return scaled + 8 * k;
      return scaled + (a.renormalise ? 12 * k : 6 * k);
    }
    Cost cost() const {
      const double chosen = dw.nbytes();  // of x, where the other logits are not needed
      return flops(static_cast<double>(x.rows()) * row_flops()) + reads(dw, experts) +
             (all_scores() ? reads(x) : Cost{0, chosen, 0}) + writes(dx);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      std::vector<A> t(static_cast<size_t>(a.k)), d(static_cast<size_t>(x.cols())), s;
      std::vector<size_t> j(t.size());
      for (int64_t i = 0; i < x.rows(); ++i) {
        std::fill(d.begin(), d.end(), A(0));
        for (int64_t r = 0; r < a.k; ++r) {
          const auto at = static_cast<size_t>(r);
          j[at] = static_cast<size_t>(experts.index<T>(i * a.k + r));
          t[at] = a.scale == 1 ? A(dw.row<T>(i)[r]) : A(dw.row<T>(i)[r]) * A(a.scale);
        }
        if (a.score == RouterScore::sigmoid)
          through_sigmoid(x.row<T>(i), j, t, d);
        else if (a.renormalise)
          through_chosen(x.row<T>(i), j, t, d);
        else
          through_softmax(x.row<T>(i), j, t, d);
        for (int64_t e = 0; e < x.cols(); ++e) dx.put(dx.row<T>(i)[e], d[static_cast<size_t>(e)]);
      }
    }
    template <class A, class T>
    static void through_softmax(const T* row, const std::vector<size_t>& j, const std::vector<A>& t,
                                std::vector<A>& d) {
      std::vector<A> s(d.size());
      softmax_of(row, s);
      A dot(0);
      for (size_t r = 0; r < j.size(); ++r) {
        d[j[r]] = t[r];
        dot += t[r] * s[j[r]];
      }
      for (size_t e = 0; e < d.size(); ++e) d[e] = s[e] * (d[e] - dot);
    }
    template <class A, class T>
    static void through_chosen(const T* row, const std::vector<size_t>& j, const std::vector<A>& t,
                               std::vector<A>& d) {
      std::vector<A> u, logits;
      for (size_t e : j) logits.push_back(A(row[e]));
      u = logits;
      softmax_of(logits.data(), u);
      A dot(0);
      for (size_t r = 0; r < j.size(); ++r) dot += t[r] * u[r];
      for (size_t r = 0; r < j.size(); ++r) d[j[r]] = u[r] * (t[r] - dot);
    }
    template <class A, class T>
    void through_sigmoid(const T* row, const std::vector<size_t>& j, const std::vector<A>& t,
                         std::vector<A>& d) const {
      std::vector<ValueAndSlope<A>> s;
      for (size_t e : j) s.push_back(Sigmoid{}.pair(A(row[e])));
      if (!a.renormalise) {
        for (size_t r = 0; r < j.size(); ++r) d[j[r]] = t[r] * s[r].slope;
        return;
      }
      A total(kTiny), dot(0);
      for (const auto& one : s) total += one.value;
      for (size_t r = 0; r < j.size(); ++r) dot += t[r] * (s[r].value / total);
      for (size_t r = 0; r < j.size(); ++r) d[j[r]] = (t[r] - dot) / total * s[r].slope;
    }
  };

  static std::array<Tensor, 2> forward(const Tensor& x, const Tensor& bias, const Attrs& a,
                                       Saved* saved) {
    check_defined(name, "logits", x);
    check_same_dtype(name, x, bias);
    check(x.ndim() >= 1, "moe_router: logits need an axis of experts; they are a scalar",
          in_module());
    const int64_t experts = x.size(-1);
    check_options(a, experts);
    check(!bias.defined() || bias.shape() == Shape{experts},
          "moe_router: the bias must be (E) with E = ", experts, "; got ",
          bias.defined() ? bias.shape() : Shape{}, in_module());
    const Tensor w = empty(x.shape().with_last(a.k), x.dtype(), x.device());
    const Tensor chosen = empty(w.shape(), DType::i64, x.device());
    run(x.device(), Forward{x, bias, w, chosen, a});
    if (saved) *saved = {x, chosen, a, w};
    return {w, chosen};
  }
  static std::array<Tensor, 2> backward(const std::array<Tensor, 2>& dy, Saved&& s,
                                        const Into<2>& into = {}) {
    if (!into.wants(0) || !dy[0].defined()) return {};
    check_upstream(name, dy[0], s.w);
    const GradTensor dx = into.at(0, s.x);
    run(dy[0].device(), Backward{dy[0], s.x, s.experts, dx, s.attrs});
    return {dx, Tensor()};
  }

  /// Error by name for a choice that `experts` of them do not allow.
  static void check_options(const Attrs& a, int64_t experts) {
    check(a.k >= 1 && a.k <= experts, name, ": k must be in 1..", experts,
          ", the number of experts; got ", a.k, in_module());
    check(std::isfinite(a.scale), name, ": the scale must be finite; got ", a.scale, in_module());
    check(a.groups >= 1 && experts % a.groups == 0, name,
          ": groups must divide the number of experts; groups = ", a.groups, ", E = ", experts,
          in_module());
    check(a.kept_groups >= 1 && a.kept_groups <= a.groups, name, ": kept_groups must be in 1..",
          a.groups, ", the number of groups; got ", a.kept_groups, in_module());
    const int64_t size = experts / a.groups;
    check(a.k <= a.kept_groups * size, name, ": k = ", a.k, " experts do not fit in ",
          a.kept_groups, " groups of ", size, in_module(), "; keep more groups");
    check(a.best_of_group == 1 || (a.best_of_group == 2 && size >= 2), name,
          ": best_of_group must be 1, or 2 where a group has 2 experts; got ", a.best_of_group,
          " and groups of ", size, in_module());
  }
};

}  // namespace tally::ops
