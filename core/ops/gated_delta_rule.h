#pragma once
#include <algorithm>
#include <vector>

#include "core/ops/scan.h"

namespace tally::ops {

// Gated delta rule: linear attention whose state forgets by a gate and overwrites what it holds
// under a key. Yang et al. 2024, arXiv:2412.06464, eq. 10; the delta rule: Schlag et al. 2021,
// arXiv:2102.11174.
//
//   forward    for each head, S (K, M) from `state` or 0, over the tokens t:
//              S' = exp(g[t]) S,   e = v[t] - S'^T k[t],   u = beta[t] e
//              S  = S' + k[t] u^T,   y[t] = c S^T q[t]
//   backward   from the last token, dS from `dstate` or 0:
//              dS += c q dy^T,   dq = c S dy,   du = dS^T k,   de = beta du
//              dbeta = <du, e>,   dv = de,   dk = dS u - S' de
//              dS' = dS - k de^T,   dg = <dS', S'>,   dS = exp(g) dS' for the token before
//
//   q, k (B, T, H, K)    v, y (B, T, H, M)    g, beta (B, T, H)    any strides
//   state, the second output and their gradients (B, H, K, M) in the accumulator's type
//   documents (B, S) i64, of the last S tokens, or absent: S fades to 0 where one begins
//   saved: inputs, states before every kScanChunk tokens
//
// k is l2-normalised by the caller, g = log of the gate (<= 0), beta in 0..1; c: 1/sqrt(K) unless
// given. The state is kept in the accumulator: the second output goes on where a sequence ended.
struct GatedDeltaRule {
  static constexpr const char* name = "gated_delta_rule";
  struct Attrs {
    double scale = 0;  // c; 0: 1/sqrt(K)
  };
  struct Saved {
    SavedTensor q, k, v, g, beta, state, documents, states;
    double scale = 1;
    Like y, last;
  };

  // One token of one head.
  template <class A>
  struct Step {
    std::vector<A> decayed, after, e, u;  // S', S, e, u
    A decay = A(0);
  };
  struct Views {
    In k, v, g, beta, documents;
    int64_t keys() const { return k.shape[3]; }
    int64_t values() const { return v.shape[3]; }
    template <class T>
    void run(const std::vector<acc_t<T>>& before, int64_t b, int64_t t, int64_t h,
             Step<acc_t<T>>& s) const {
      using A = acc_t<T>;
      const int64_t n = keys(), m = values();
      const A rate(element<T>(beta, b, t, h));
      const A decay = exp(A(element<T>(g, b, t, h)));
      s.decay = begins_document(documents, b, t, g.shape[1]) ? A(0) : decay;
      s.decayed.resize(before.size());
      for (size_t i = 0; i < before.size(); ++i) s.decayed[i] = s.decay * before[i];
      s.after = s.decayed;
      s.e.assign(static_cast<size_t>(m), A(0));
      s.u.resize(static_cast<size_t>(m));
      for (int64_t i = 0; i < n; ++i) {  // what is held under the key
        const A key(element<T>(k, b, t, h, i));
        const A* row = s.decayed.data() + i * m;
        for (int64_t j = 0; j < m; ++j) s.e[static_cast<size_t>(j)] += row[j] * key;
      }
      for (int64_t j = 0; j < m; ++j) {
        const auto at = static_cast<size_t>(j);
        s.e[at] = A(element<T>(v, b, t, h, j)) - s.e[at];
        s.u[at] = rate * s.e[at];
      }
      for (int64_t i = 0; i < n; ++i) {
        const A key(element<T>(k, b, t, h, i));
        A* row = s.after.data() + i * m;
        for (int64_t j = 0; j < m; ++j) row[j] += key * s.u[static_cast<size_t>(j)];
      }
    }
    double flops_per_token() const {
      return 5 * static_cast<double>(keys() * values()) + 2 * static_cast<double>(values()) + 1;
    }
    double tokens() const { return static_cast<double>(g.numel()); }
  };

  struct Forward {
    static constexpr const char* name = "gated_delta_rule.forward";
    static constexpr Kind kind = Kind::contraction;
    static constexpr bool any_strides = true;
    In q, k, v, g, beta, state, documents;
    Out y, last, states;
    double scale;
    static constexpr const char* formula =
        "S = exp(g) S + beta k (v - exp(g) S^T k)^T, y = scale S^T q";
    static constexpr const char* operands = "q, k, v, g, beta, state, documents, y, last, states";
    auto views() const { return std::tie(q, k, v, g, beta, state, documents, y, last, states); }
    DType dtype() const { return q.dtype; }
    Cost cost() const {
      const Views w{k, v, g, beta, documents};
      const double n = static_cast<double>(w.keys()), m = static_cast<double>(w.values());
      return flops(w.tokens() * (w.flops_per_token() + n + 2 * n * m)) +
             reads(q, k, v, g, beta, state, documents) + writes(y, last, states);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t heads = q.shape[2], n = k.shape[3], m = v.shape[3];
      Step<A> step;
      for (int64_t r = 0; r < q.shape[0] * heads; ++r) {
        const int64_t b = r / heads, h = r % heads;
        std::vector<A> s(static_cast<size_t>(n * m), A(0));
        for (int64_t x = 0; state.defined() && x < n * m; ++x)
          s[static_cast<size_t>(x)] = element<A>(state, b, h, x / m, x % m);
        for (int64_t t = 0; t < q.shape[1]; ++t) {
          for (int64_t x = 0; states.defined() && t % kScanChunk == 0 && x < n * m; ++x)
            element<A>(states, b, h, t / kScanChunk, x / m, x % m) = s[static_cast<size_t>(x)];
          Views{k, v, g, beta, documents}.run<T>(s, b, t, h, step);
          s = step.after;
          read_out<T>(s, b, t, h);
        }
        for (int64_t x = 0; x < n * m; ++x)
          element<A>(last, b, h, x / m, x % m) = s[static_cast<size_t>(x)];
      }
    }
    template <class T>
    void read_out(const std::vector<acc_t<T>>& s, int64_t b, int64_t t, int64_t h) const {
      using A = acc_t<T>;
      const int64_t n = k.shape[3], m = v.shape[3];
      std::vector<A> out(static_cast<size_t>(m), A(0));
      for (int64_t i = 0; i < n; ++i) {
        const A scaled = A(element<T>(q, b, t, h, i)) * A(scale);
        for (int64_t j = 0; j < m; ++j)
          out[static_cast<size_t>(j)] += s[static_cast<size_t>(i * m + j)] * scaled;
      }
      for (int64_t j = 0; j < m; ++j) y.put(element<T>(y, b, t, h, j), out[static_cast<size_t>(j)]);
    }
  };

  struct Backward {
    static constexpr const char* name = "gated_delta_rule.backward";
    static constexpr Kind kind = Kind::contraction;
    static constexpr bool any_strides = true;
    In dy, dlast, q, k, v, g, beta, documents, states;
    Out dq, dk, dv, dg, dbeta, dstate;
    double scale;
    static constexpr const char* formula =
        "dS += scale q dy^T, du = dS^T k, dk = dS u - S' beta du, dS' = dS - beta k du^T";
    static constexpr const char* operands =
        "dy, dlast, q, k, v, g, beta, documents, states, dq, dk, dv, dg, dbeta, dstate";
    auto views() const {
      return std::tie(dy, dlast, q, k, v, g, beta, documents, states, dq, dk, dv, dg, dbeta,
                      dstate);
    }
    DType dtype() const { return q.dtype; }
    Cost cost() const {
      const Views w{k, v, g, beta, documents};
      const double n = static_cast<double>(w.keys()), m = static_cast<double>(w.values());
      const double through_y = dy.defined() ? 4 * n * m + 2 * n : 0;
      return flops(w.tokens() * (w.flops_per_token() + through_y + 11 * n * m + 3 * m)) +
             reads(dy, dlast, k, v, g, beta, documents, states) + reads_if(dy.defined(), q) +
             writes(dq, dk, dv, dg, dbeta, dstate);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t heads = q.shape[2], n = k.shape[3], m = v.shape[3], tokens = q.shape[1];
      for (int64_t r = 0; r < q.shape[0] * heads; ++r) {
        const int64_t b = r / heads, h = r % heads;
        std::vector<A> ds(static_cast<size_t>(n * m), A(0));
        for (int64_t x = 0; dlast.defined() && x < n * m; ++x)
          ds[static_cast<size_t>(x)] = element<A>(dlast, b, h, x / m, x % m);
        for (int64_t c = scan_chunks(tokens) - 1; c >= 0; --c) chunk<T>(ds, b, h, c);
        for (int64_t x = 0; dstate.defined() && x < n * m; ++x)
          dstate.put(element<A>(dstate, b, h, x / m, x % m), ds[static_cast<size_t>(x)]);
      }
    }
    template <class T>
    void chunk(std::vector<acc_t<T>>& ds, int64_t b, int64_t h, int64_t c) const {
      using A = acc_t<T>;
      const int64_t first = c * kScanChunk, m = v.shape[3];
      const int64_t count = std::min(kScanChunk, q.shape[1] - first);
      std::vector<A> s(ds.size());
      for (size_t x = 0; x < s.size(); ++x) {
        const auto at = static_cast<int64_t>(x);
        s[x] = element<A>(states, b, h, c, at / m, at % m);
      }
      std::vector<Step<A>> steps(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) {
        Step<A>& step = steps[static_cast<size_t>(i)];
        Views{k, v, g, beta, documents}.run<T>(i == 0 ? s : steps[static_cast<size_t>(i - 1)].after,
                                               b, first + i, h, step);
      }
      for (int64_t i = count - 1; i >= 0; --i) {
        const Step<A>& step = steps[static_cast<size_t>(i)];
        if (dy.defined()) through_output<T>(step, ds, b, first + i, h);
        through_update<T>(step, ds, b, first + i, h);
      }
    }
    // dS += c q dy^T and dq = c S dy
    template <class T>
    void through_output(const Step<acc_t<T>>& step, std::vector<acc_t<T>>& ds, int64_t b, int64_t t,
                        int64_t h) const {
      using A = acc_t<T>;
      const int64_t n = k.shape[3], m = v.shape[3];
      for (int64_t i = 0; i < n; ++i) {
        const A scaled = A(element<T>(q, b, t, h, i)) * A(scale);
        A sum(0);
        for (int64_t j = 0; j < m; ++j) {
          const auto at = static_cast<size_t>(i * m + j);
          const A d(element<T>(dy, b, t, h, j));
          ds[at] += scaled * d;
          sum += step.after[at] * d;
        }
        const A all = sum * A(scale);
        if (dq.defined()) dq.put(element<T>(dq, b, t, h, i), all);
      }
    }
    // From dS after the token to dS before it.
    template <class T>
    void through_update(const Step<acc_t<T>>& step, std::vector<acc_t<T>>& ds, int64_t b, int64_t t,
                        int64_t h) const {
      using A = acc_t<T>;
      const int64_t n = k.shape[3], m = v.shape[3];
      const A rate(element<T>(beta, b, t, h));
      std::vector<A> de(static_cast<size_t>(m), A(0)), to_k(static_cast<size_t>(n), A(0));
      A to_beta(0), to_g(0);
      for (int64_t i = 0; i < n; ++i) {  // du, then de
        const A key(element<T>(k, b, t, h, i));
        const A* row = ds.data() + i * m;
        for (int64_t j = 0; j < m; ++j) de[static_cast<size_t>(j)] += row[j] * key;
      }
      for (int64_t j = 0; j < m; ++j) {
        const auto at = static_cast<size_t>(j);
        to_beta += de[at] * step.e[at];
        de[at] = rate * de[at];
        if (dv.defined()) dv.put(element<T>(dv, b, t, h, j), de[at]);
      }
      for (int64_t i = 0; i < n; ++i) {
        const A key(element<T>(k, b, t, h, i));
        for (int64_t j = 0; j < m; ++j) {
          const auto at = static_cast<size_t>(i * m + j), col = static_cast<size_t>(j);
          to_k[static_cast<size_t>(i)] += ds[at] * step.u[col] - step.decayed[at] * de[col];
          ds[at] -= key * de[col];
          to_g += ds[at] * step.decayed[at];
          ds[at] = step.decay * ds[at];
        }
        if (dk.defined()) dk.put(element<T>(dk, b, t, h, i), to_k[static_cast<size_t>(i)]);
      }
      if (dbeta.defined()) dbeta.put(element<T>(dbeta, b, t, h), to_beta);
      if (dg.defined()) dg.put(element<T>(dg, b, t, h), to_g);
    }
  };

  static std::array<Tensor, 2> forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const Tensor& g, const Tensor& beta, const Tensor& state,
                                       const Tensor& documents, const Attrs& a, Saved* saved) {
    const std::pair<const char*, const Tensor*> inputs[] = {
        {"q", &q}, {"k", &k}, {"v", &v}, {"g", &g}, {"beta", &beta}};
    for (const auto& [what, t] : inputs) check_defined(name, what, *t);
    check_same_dtype(name, q, k, v, g, beta);
    check(q.ndim() == 4 && v.ndim() == 4 && q.shape() == k.shape() &&
              q.shape().drop_last() == v.shape().drop_last() && q.size(3) >= 1 && v.size(3) >= 1,
          "gated_delta_rule: q and k must be (B, T, H, K), v (B, T, H, M), K and M 1 or more; got ",
          q.shape(), ", ", k.shape(), " and ", v.shape(), in_module());
    check(g.shape() == q.shape().drop_last() && beta.shape() == g.shape(),
          "gated_delta_rule: g and beta must be (B, T, H) of q ", q.shape(), "; got ", g.shape(),
          " and ", beta.shape(), in_module());
    check(std::isfinite(a.scale), "gated_delta_rule: the scale must be finite; got ", a.scale,
          in_module());
    const Shape one{q.size(0), q.size(2), q.size(3), v.size(3)};
    check_state(name, state, one, q);
    check_documents(name, documents, q);
    const double scale = a.scale == 0 ? 1 / std::sqrt(static_cast<double>(q.size(3))) : a.scale;
    const DType acc = acc_dtype(q.dtype());
    const Tensor y = empty(v.shape(), q.dtype(), q.device()), last = empty(one, acc, q.device());
    Tensor states;
    if (saved)
      states = empty({one[0], one[1], scan_chunks(q.size(1)), one[2], one[3]}, acc, q.device());
    run(q.device(), Forward{q, k, v, g, beta, state, documents, y, last, states, scale});
    if (saved) *saved = {q, k, v, g, beta, state, documents, states, scale, y, last};
    return {y, last};
  }
  static std::array<Tensor, 7> backward(const std::array<Tensor, 2>& dy, Saved&& s,
                                        const Into<7>& into = {}) {
    if (!dy[0].defined() && !dy[1].defined()) return {};
    if (dy[0].defined()) check_upstream(name, dy[0], s.y);
    if (dy[1].defined()) check_upstream(name, dy[1], s.last);
    const Tensor& state = s.state.unchecked();  // its shape alone
    // Without dy nothing reaches q, and its gradient is absent.
    const GradTensor dq = dy[0].defined() ? into.at(0, s.q) : GradTensor();
    const GradTensor dk = into.at(1, s.k), dv = into.at(2, s.v), dg = into.at(3, s.g),
                     dbeta = into.at(4, s.beta), dstate = into.at(5, state);
    run(s.y.device, Backward{dy[0], dy[1], s.q, s.k, s.v, s.g, s.beta, s.documents, s.states, dq,
                             dk, dv, dg, dbeta, dstate, s.scale});
    return {dq, dk, dv, dg, dbeta, dstate, {}};
  }
};

}  // namespace tally::ops
