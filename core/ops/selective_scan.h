#pragma once
#include <algorithm>
#include <vector>

#include "core/ops/scan.h"

namespace tally::ops {

// Selective scan: the state-space layer of Mamba-1, N numbers of state a channel. Gu & Dao 2023,
// arXiv:2312.00752, section 3.2, with the first-order discretisation of B that its code uses.
//
//   forward    h[c,n] = exp(dt[t,c] A[c,n]) h[c,n] + dt[t,c] Bm[t,n] x[t,c]
//              y[t,c] = sum_n Cm[t,n] h[c,n] (+ D[c] x[t,c])
//   backward   from the last token, dh from `dstate` or 0; h' is the state before the token:
//              dCm[t,n] = sum_c dy h,   dh += dy Cm,   dD += dy x
//              w = dh h' exp(dt A),   dA += w dt,   dBm[t,n] = sum_c dh dt x,   s = sum_n dh Bm
//              dx = s dt + dy D,   ddt = s x + sum_n w A,   dh = dh exp(dt A) for the one before
//
//   x, dt, y (B, T, C)    A (C, N), negative    Bm, Cm (B, T, N)    D (C) or absent    any strides
//   state, the second output and their gradients (B, C, N) in the accumulator's type
//   documents (B, S) i64, of the last S tokens, or absent: h fades to 0 where one begins
//   saved: inputs, states before every kScanChunk tokens
//
// dt is what enters, after softplus. The second output goes on where a sequence ended.
struct SelectiveScan {
  static constexpr const char* name = "selective_scan";
  struct Attrs {};
  struct Saved {
    SavedTensor x, dt, a, bm, cm, d, state, documents, states;
    Like y, last;
  };

  // What both directions read of a sequence, and one token's update of h (C, N).
  struct Views {
    In x, dt, a, bm, documents;
    int64_t channels() const { return a.shape[0]; }
    int64_t size() const { return a.shape[1]; }
    template <class T>
    void update(std::vector<acc_t<T>>& h, int64_t b, int64_t t) const {
      using A = acc_t<T>;
      const int64_t n = size();
      const bool fresh = begins_document(documents, b, t, x.shape[1]);
      for (int64_t c = 0; c < channels(); ++c) {
        const A step(element<T>(dt, b, t, c)), in = step * A(element<T>(x, b, t, c));
        for (int64_t i = 0; i < n; ++i) {
          A& v = h[static_cast<size_t>(c * n + i)];
          const A decay = exp(step * A(element<T>(a, c, i)));
          v = (fresh ? A(0) : decay) * v + in * A(element<T>(bm, b, t, i));
        }
      }
    }
    double flops_per_element() const { return 1 + 5 * static_cast<double>(size()); }
  };

  struct Forward {
    static constexpr const char* name = "selective_scan.forward";
    static constexpr Kind kind = Kind::contraction;
    static constexpr bool any_strides = true;
    In x, dt, a, bm, cm, d, state, documents;
    Out y, last, states;
    static constexpr const char* formula = "h = exp(dt A) h + dt B x, y = C h (+ D x)";
    static constexpr const char* operands = "x, dt, A, B, C, D, state, documents, y, last, states";
    auto views() const { return std::tie(x, dt, a, bm, cm, d, state, documents, y, last, states); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      const Views w{x, dt, a, bm, documents};
      const double n = static_cast<double>(w.size()), all = static_cast<double>(x.numel());
      return flops(all * (w.flops_per_element() + 2 * n + (d.defined() ? 2 : 0))) +
             reads(x, dt, bm, cm, state, documents) + reads_if(all > 0, a, d) +
             writes(y, last, states);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t n = a.shape[1], size = a.shape[0] * n;
      for (int64_t b = 0; b < x.shape[0]; ++b) {
        std::vector<A> h(static_cast<size_t>(size), A(0));
        for (int64_t i = 0; state.defined() && i < size; ++i)
          h[static_cast<size_t>(i)] = element<A>(state, b, i / n, i % n);
        for (int64_t t = 0; t < x.shape[1]; ++t) {
          for (int64_t i = 0; states.defined() && t % kScanChunk == 0 && i < size; ++i)
            element<A>(states, b, t / kScanChunk, i / n, i % n) = h[static_cast<size_t>(i)];
          Views{x, dt, a, bm, documents}.update<T>(h, b, t);
          read_out<T>(h, b, t);
        }
        for (int64_t i = 0; i < size; ++i)
          element<A>(last, b, i / n, i % n) = h[static_cast<size_t>(i)];
      }
    }
    template <class T>
    void read_out(const std::vector<acc_t<T>>& h, int64_t b, int64_t t) const {
      using A = acc_t<T>;
      const int64_t n = a.shape[1];
      for (int64_t c = 0; c < a.shape[0]; ++c) {
        A sum(0);
        for (int64_t i = 0; i < n; ++i)
          sum += A(element<T>(cm, b, t, i)) * h[static_cast<size_t>(c * n + i)];
        if (d.defined()) sum += A(element<T>(d, c)) * A(element<T>(x, b, t, c));
        y.put(element<T>(y, b, t, c), sum);
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "selective_scan.backward";
    static constexpr Kind kind = Kind::contraction;
    static constexpr bool any_strides = true;
    In dy, dlast, x, dt, a, bm, cm, d, documents, states;
    Out dx, ddt, da, dbm, dcm, dd, dstate;
    static constexpr const char* formula =
        "dh += dy C, w = dh h exp(dt A), dx = dt dh B + dy D, ddt = x dh B + w A, dA = sum(w dt)";
    static constexpr const char* operands =
        "dy, dlast, x, dt, A, B, C, D, documents, states, dx, ddt, dA, dB, dC, dD, dstate";
    auto views() const {
      return std::tie(dy, dlast, x, dt, a, bm, cm, d, documents, states, dx, ddt, da, dbm, dcm, dd,
                      dstate);
    }
    DType dtype() const { return x.dtype; }
    bool skips() const { return dy.defined() && d.defined(); }  // x reaches y past the state
    Cost cost() const {
      const Views w{x, dt, a, bm, documents};
      const double n = static_cast<double>(w.size()), all = static_cast<double>(x.numel());
      return flops(all * (w.flops_per_element() + 13 * n + 4 + (dy.defined() ? 4 * n : 0) +
                          (skips() ? 4 : 0))) +
             reads(dy, dlast, x, dt, bm, documents, states) + reads_if(dy.defined(), cm) +
             reads_if(all > 0, a) + reads_if(all > 0 && skips(), d) +
             writes(dx, ddt, da, dbm, dcm, dd, dstate);
    }
    // Sums over the tokens of all sequences, and over the channels of one token.
    template <class A>
    struct Sums {
      std::vector<A> a, d, b, c;
      Sums(int64_t channels, int64_t n)
          : a(static_cast<size_t>(channels * n), A(0)),
            d(static_cast<size_t>(channels), A(0)),
            b(static_cast<size_t>(n)),
            c(b) {}
    };
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t channels = a.shape[0], n = a.shape[1], size = channels * n;
      Sums<A> sums(channels, n);
      for (int64_t b = 0; b < x.shape[0]; ++b) {
        std::vector<A> dh(static_cast<size_t>(size), A(0));
        for (int64_t i = 0; dlast.defined() && i < size; ++i)
          dh[static_cast<size_t>(i)] = element<A>(dlast, b, i / n, i % n);
        for (int64_t k = scan_chunks(x.shape[1]) - 1; k >= 0; --k) chunk<T>(dh, sums, b, k);
        for (int64_t i = 0; dstate.defined() && i < size; ++i)
          dstate.put(element<A>(dstate, b, i / n, i % n), dh[static_cast<size_t>(i)]);
      }
      for (int64_t i = 0; da.defined() && i < size; ++i)
        da.put(element<T>(da, i / n, i % n), sums.a[static_cast<size_t>(i)]);
      for (int64_t c = 0; dd.defined() && c < channels; ++c)
        dd.put(element<T>(dd, c), sums.d[static_cast<size_t>(c)]);
    }
    template <class T>
    void chunk(std::vector<acc_t<T>>& dh, Sums<acc_t<T>>& sums, int64_t b, int64_t k) const {
      using A = acc_t<T>;
      const int64_t first = k * kScanChunk, n = a.shape[1];
      const int64_t count = std::min(kScanChunk, x.shape[1] - first);
      std::vector<std::vector<A>> h(static_cast<size_t>(count) + 1, std::vector<A>(dh.size()));
      for (size_t i = 0; i < dh.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        h[0][i] = element<A>(states, b, k, at / n, at % n);
      }
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        h[i + 1] = h[i];
        Views{x, dt, a, bm, documents}.update<T>(h[i + 1], b, first + static_cast<int64_t>(i));
      }
      for (size_t i = static_cast<size_t>(count); i > 0; --i)
        token<T>(h[i - 1], h[i], dh, sums, b, first + static_cast<int64_t>(i) - 1);
    }
    template <class T>
    void token(const std::vector<acc_t<T>>& before, const std::vector<acc_t<T>>& after,
               std::vector<acc_t<T>>& dh, Sums<acc_t<T>>& sums, int64_t b, int64_t t) const {
      using A = acc_t<T>;
      const int64_t channels = a.shape[0], n = a.shape[1];
      const bool fresh = begins_document(documents, b, t, x.shape[1]);
      std::fill(sums.b.begin(), sums.b.end(), A(0));
      std::fill(sums.c.begin(), sums.c.end(), A(0));
      for (int64_t c = 0; c < channels; ++c) {
        const A step(element<T>(dt, b, t, c)), value(element<T>(x, b, t, c)), in = step * value;
        const auto row = static_cast<size_t>(c * n);
        if (dy.defined()) through_output(A(element<T>(dy, b, t, c)), after, dh, sums, b, t, c, T());
        A to_step(0), to_in(0);
        for (int64_t i = 0; i < n; ++i) {
          const auto at = row + static_cast<size_t>(i);
          const A rate(element<T>(a, c, i)), fades = exp(step * rate);
          const A decay = fresh ? A(0) : fades;
          const A w = dh[at] * before[at] * decay;
          to_step += w * rate;
          sums.a[at] += w * step;
          sums.b[static_cast<size_t>(i)] += dh[at] * in;
          to_in += dh[at] * A(element<T>(bm, b, t, i));
          dh[at] = dh[at] * decay;
        }
        A to_x = to_in * step;
        if (skips()) to_x += A(element<T>(dy, b, t, c)) * A(element<T>(d, c));
        if (skips()) sums.d[static_cast<size_t>(c)] += A(element<T>(dy, b, t, c)) * value;
        to_step += to_in * value;
        if (dx.defined()) dx.put(element<T>(dx, b, t, c), to_x);
        if (ddt.defined()) ddt.put(element<T>(ddt, b, t, c), to_step);
      }
      for (int64_t i = 0; dbm.defined() && i < n; ++i)
        dbm.put(element<T>(dbm, b, t, i), sums.b[static_cast<size_t>(i)]);
      for (int64_t i = 0; dcm.defined() && i < n; ++i)
        dcm.put(element<T>(dcm, b, t, i), sums.c[static_cast<size_t>(i)]);
    }
    // dCm += dy h and dh += dy Cm of one channel
    template <class A, class T>
    void through_output(const A& g, const std::vector<A>& after, std::vector<A>& dh, Sums<A>& sums,
                        int64_t b, int64_t t, int64_t c, T) const {
      const int64_t n = a.shape[1];
      for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(c * n + i);
        sums.c[static_cast<size_t>(i)] += g * after[at];
        dh[at] += g * A(element<T>(cm, b, t, i));
      }
    }
  };

  static std::array<Tensor, 2> forward(const Tensor& x, const Tensor& dt, const Tensor& a,
                                       const Tensor& bm, const Tensor& cm, const Tensor& d,
                                       const Tensor& state, const Tensor& documents, const Attrs&,
                                       Saved* saved) {
    check_inputs(x, dt, a, bm, cm, d);
    check_documents(name, documents, x);
    const Shape one{x.size(0), a.size(0), a.size(1)};
    check_state(name, state, one, x);
    const DType acc = acc_dtype(x.dtype());
    const Tensor y = empty(x.shape(), x.dtype(), x.device()), last = empty(one, acc, x.device());
    Tensor states;
    if (saved) states = empty({one[0], scan_chunks(x.size(1)), one[1], one[2]}, acc, x.device());
    run(x.device(), Forward{x, dt, a, bm, cm, d, state, documents, y, last, states});
    if (saved) *saved = {x, dt, a, bm, cm, d, state, documents, states, y, last};
    return {y, last};
  }
  static std::array<Tensor, 8> backward(const std::array<Tensor, 2>& dy, Saved&& s,
                                        const Into<8>& into = {}) {
    if (!dy[0].defined() && !dy[1].defined()) return {};
    if (dy[0].defined()) check_upstream(name, dy[0], s.y);
    if (dy[1].defined()) check_upstream(name, dy[1], s.last);
    const Tensor& state = s.state.unchecked();  // its shape alone
    const GradTensor dx = into.at(0, s.x), ddt = into.at(1, s.dt), da = into.at(2, s.a),
                     dbm = into.at(3, s.bm), dcm = into.at(4, s.cm), dd = into.at(5, s.d),
                     dstate = into.at(6, state);
    run(s.y.device, Backward{dy[0], dy[1], s.x, s.dt, s.a, s.bm, s.cm, s.d, s.documents, s.states,
                             dx, ddt, da, dbm, dcm, dd, dstate});
    return {dx, ddt, da, dbm, dcm, dd, dstate, {}};
  }

 private:
  static void check_inputs(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& bm,
                           const Tensor& cm, const Tensor& d) {
    check_defined(name, "x", x);
    check_defined(name, "dt", dt);
    check_defined(name, "A", a);
    check_defined(name, "B", bm);
    check_defined(name, "C", cm);
    check_same_dtype(name, x, dt, a, bm, cm, d);
    check(x.ndim() == 3 && dt.shape() == x.shape(),
          "selective_scan: x and dt must be (B, T, C), equal shapes; got ", x.shape(), " and ",
          dt.shape(), in_module());
    check(a.ndim() == 2 && a.size(0) == x.size(2) && a.size(0) >= 1 && a.size(1) >= 1,
          "selective_scan: A must be (C, N) with C = ", x.size(2), ", both 1 or more; got ",
          a.shape(), in_module());
    check(bm.shape() == x.shape().with_last(a.size(1)) && cm.shape() == bm.shape(),
          "selective_scan: B and C must be (B, T, N) as x ", x.shape(), " and A ", a.shape(),
          "; got ", bm.shape(), " and ", cm.shape(), in_module());
    check(!d.defined() || d.shape() == Shape{x.size(2)},
          "selective_scan: D must be (C) with C = ", x.size(2), "; got ",
          d.defined() ? d.shape() : Shape{}, in_module());
  }
};

}  // namespace tally::ops
