#pragma once
#include "core/ops/attention/backward.h"
#include "core/ops/attention/forward.h"

namespace tally::ops {

// Scaled dot-product attention with grouped key/value heads.
// Vaswani et al. 2017, arXiv:1706.03762, eq. 1; Ainslie et al. 2023, arXiv:2305.13245 (grouped
// heads); without a T x S matrix: Rabe & Staats 2021, arXiv:2112.05682, and Dao et al. 2022,
// arXiv:2205.14135. Lecture claims L69-L74, L91-L97.
//
//   score[t,j] = cap(scale q[t].k[j]) + bias[t,j] - alibi slope |position of t - j|
//                                            for the keys j that t sees: visible.h, mask, documents
//   p = softmax over j and the sink,   y[t] = sum_j p[t,j] v[j]       backward: see backward.h
//
//   q, dq (B,T,H,K)   k, dk (B,S,G,K)   v, dv (B,S,G,M)   y, dy (B,T,H,M): any strides
//   H a multiple of G    mask (u8, 1 = sees) and bias, dbias broadcast to (B,H,T,S), or absent
//   documents (B,S) i64: a token sees its own document only    sink, dsink (H), or absent
//   saved: q, k, v, mask, bias, documents, sink, y, l (B,H,T)
struct Attention {
  static constexpr const char* name = "attention";
  using Attrs = AttentionOptions;
  using Forward = AttentionForward;
  using Backward = AttentionBackward;
  struct Saved {
    SavedTensor q, k, v, mask, bias, documents, sink, y, l;
    Attrs attrs;
  };

  static Tensor forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                        const Tensor& bias, const Tensor& documents, const Tensor& sink,
                        const Attrs& a, Saved* saved) {
    check_inputs(q, k, v, a);
    check_extras(q, k, documents, sink);
    Tensor y = empty(q.shape().with_last(v.size(3)), q.dtype(), q.device());
    Tensor l = empty({q.size(0), q.size(2), q.size(1)}, acc_dtype(q.dtype()), q.device());
    run(q.device(), Forward{scores(q, k, v, mask, bias, documents, sink, a), y, l});
    if (saved) *saved = {q, k, v, mask, bias, documents, sink, y, l, a};
    return y;
  }
  static std::array<Tensor, 7> backward(const Tensor& dy, Saved&& s, const Into<7>& into = {}) {
    const GradTensor dq = into.at(0, s.q), dk = into.at(1, s.k), dv = into.at(2, s.v),
                     dbias = into.at(4, s.bias), dsink = into.at(6, s.sink);
    backward_to(dy, std::move(s), dq, dk, dv, dbias, dsink);
    return {dq, dk, dv, Tensor(), dbias, Tensor(), dsink};
  }
  /// The backward into gradients of the caller's, which may be slices of one fused tensor;
  /// undefined ones are not wanted.
  static void backward_to(const Tensor& dy, Saved&& s, const GradTensor& dq, const GradTensor& dk,
                          const GradTensor& dv, const GradTensor& dbias = {},
                          const GradTensor& dsink = {}) {
    if (!dq.wanted() && !dk.wanted() && !dv.wanted() && !dbias.wanted() && !dsink.wanted()) return;
    check_upstream(name, dy, s.y);
    check_gradient("dq", s.q, dq);
    check_gradient("dk", s.k, dk);
    check_gradient("dv", s.v, dv);
    check_gradient("dbias", s.bias, dbias);
    check_gradient("dsink", s.sink, dsink);
    run(dy.device(), Backward{scores(s.q, s.k, s.v, s.mask, s.bias, s.documents, s.sink, s.attrs),
                              dy, s.y, s.l, dq, dk, dv, dbias, dsink});
    s = {};
  }

 private:
  static AttentionScores scores(const Tensor& q, const Tensor& k, const Tensor& v,
                                const Tensor& mask, const Tensor& bias, const Tensor& documents,
                                const Tensor& sink, const Attrs& a) {
    const double scale = a.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(3))));
    return {q,
            k,
            v,
            expanded_mask(mask, q, k),
            expanded_bias(bias, q, k),
            documents,
            sink,
            visible_keys(a, q.size(1), k.size(1)),
            scale,
            a.soft_cap.value_or(0),
            a.alibi,
            a.dropout};
  }
  static void check_inputs(const Tensor& q, const Tensor& k, const Tensor& v, const Attrs& a);
  static void check_extras(const Tensor& q, const Tensor& k, const Tensor& documents,
                           const Tensor& sink);
  static Tensor expanded_mask(const Tensor& mask, const Tensor& q, const Tensor& k);
  static Tensor expanded_bias(const Tensor& bias, const Tensor& q, const Tensor& k);
  static Shape full_shape(const Tensor& q, const Tensor& k) {
    return {q.size(0), q.size(2), q.size(1), k.size(1)};
  }
  // Whether t is (B,H,T,S) but for axes that are 1 or left out in front.
  static bool broadcasts(const Tensor& t, const Shape& full) {
    bool fits = t.ndim() <= 4;
    for (int i = 1; fits && i <= t.ndim(); ++i) fits = t.size(-i) == 1 || t.size(-i) == full[-i];
    return fits;
  }
  static void check_gradient(const char* what, const Tensor& like, const GradTensor& g) {
    if (!g.wanted()) return;
    check(like.defined(), "attention: ", what, " is asked for without its input", in_module());
    check(g.tensor().shape() == like.shape() && g.tensor().dtype() == like.dtype(),
          "attention: ", what, " must have the shape ", like.shape(), " and type ", like.dtype(),
          " of its input; got ", g.tensor().shape(), in_module());
  }
};

inline void Attention::check_inputs(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Attrs& a) {
  check_defined(name, "q", q);
  check_defined(name, "k", k);
  check_defined(name, "v", v);
  check_same_dtype(name, q, k, v);
  check(q.ndim() == 4 && k.ndim() == 4 && v.ndim() == 4,
        "attention: q must be (B,T,H,K) and k, v (B,S,G,K); got ", q.shape(), ", ", k.shape(),
        " and ", v.shape(), in_module());
  check(q.size(3) == k.size(3),
        "attention: heads of q and k must have one size; got K = ", q.size(3), " and ", k.size(3),
        in_module());
  check(k.size(1) == v.size(1) && k.size(2) == v.size(2) && q.size(0) == k.size(0) &&
            q.size(0) == v.size(0),
        "attention: k and v must have the batch of q, and equal tokens and heads; q is ", q.shape(),
        ", k is ", k.shape(), ", v is ", v.shape(), in_module());
  const int64_t heads = q.size(2), groups = k.size(2);
  if (groups < 1 || heads % groups != 0) {
    std::string divisors;
    for (int64_t d = 1; d <= heads; ++d)
      divisors += heads % d ? "" : (divisors.empty() ? "" : ", ") + to_text(d);
    fail("attention: query heads must be a multiple of key heads; H = ", heads, ", G = ", groups,
         in_module(), "; set kv_heads to one of ", divisors);
  }
  check_options(a);
  check((!a.causal && !a.window && !a.global) || q.size(1) <= k.size(1),
        "attention: ", a.causal ? "causal queries" : "queries with a window or global tokens",
        " are the last of the keys, so T <= S; got T = ", q.size(1), ", S = ", k.size(1),
        in_module());
}

inline void Attention::check_extras(const Tensor& q, const Tensor& k, const Tensor& documents,
                                    const Tensor& sink) {
  if (documents.defined()) {
    const Shape shape{k.size(0), k.size(1)};
    check(documents.dtype() == DType::i64 && documents.shape() == shape,
          "attention: documents must be i64, a number for each key, (B,S) = ", shape, "; got ",
          documents.shape(), " of ", documents.dtype(), in_module());
    check(q.size(1) <= k.size(1),
          "attention: queries with documents are the last of the keys, so T <= S; got T = ",
          q.size(1), ", S = ", k.size(1), in_module());
  }
  if (!sink.defined()) return;
  check(sink.dtype() == q.dtype() && sink.shape() == Shape{q.size(2)},
        "attention: sink must be a number for each head, (H) = ", Shape{q.size(2)}, " of ",
        q.dtype(), "; got ", sink.shape(), " of ", sink.dtype(), in_module());
}

inline Tensor Attention::expanded_mask(const Tensor& mask, const Tensor& q, const Tensor& k) {
  if (!mask.defined()) return {};
  const Shape full = full_shape(q, k);
  check(mask.dtype() == DType::u8 && broadcasts(mask, full),
        "attention: mask must be u8 (1 = sees) and broadcast to (B,H,T,S) = ", full, "; got ",
        mask.shape(), " of ", mask.dtype(), in_module());
  return mask.expand(full);
}

inline Tensor Attention::expanded_bias(const Tensor& bias, const Tensor& q, const Tensor& k) {
  if (!bias.defined()) return {};
  const Shape full = full_shape(q, k);
  check(bias.dtype() == q.dtype() && broadcasts(bias, full), "attention: bias must be ", q.dtype(),
        " as q and broadcast to (B,H,T,S) = ", full, "; got ", bias.shape(), " of ", bias.dtype(),
        in_module());
  return bias.expand(full);
}

}  // namespace tally::ops
