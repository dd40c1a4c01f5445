#pragma once
#include <algorithm>
#include <vector>

#include "core/ops/scan.h"

namespace tally::ops {

// Depthwise causal convolution: each channel is mixed over the last K tokens. The short convolution
// of Mamba (Gu & Dao 2023, arXiv:2312.00752, section 3.4), H3 and gated DeltaNet.
//
//   forward    y[b,t,c]  = sum_j w[c,j] x[b,t-(K-1)+j,c] (+ bias[c]),   x = 0 before the start
//   backward   dx[b,t,c] = sum_j w[c,j] dy[b,t+(K-1)-j,c],   dy = 0 behind the end
//              dw[c,j]   = sum_b,t dy[b,t,c] x[b,t-(K-1)+j,c]
//              db[c]     = sum_b,t dy[b,t,c]
//
//   x, dx, y, dy (B, T, C)    w, dw (C, K)    bias, db (C) or absent    documents (B, T) i64 or absent
//   saved: x, w, documents
//
// What lies before the start is left out of the sums, not multiplied by 0; with documents, what lies
// before the token's own.
struct CausalConv1d {
  static constexpr const char* name = "causal_conv1d";
  struct Attrs {};
  struct Saved {
    SavedTensor x, w, documents;
    bool bias = false;
  };
  /// How far a tap reaches, K - 1 tokens at most.
  struct Reach {
    const View& documents;
    int64_t tokens, width;
    bool joined(int64_t b, int64_t t) const { return !begins_document(documents, b, t, tokens); }
    /// Tokens before the i-th of all that it sees.
    int64_t back(int64_t i) const {
      const int64_t t = i % tokens, most = std::min(t, width - 1);
      if (!documents.defined()) return most;
      int64_t n = 0;
      while (n < most && joined(i / tokens, t - n)) ++n;
      return n;
    }
    /// Tokens behind it that see it.
    int64_t ahead(int64_t i) const {
      const int64_t t = i % tokens, most = std::min(tokens - 1 - t, width - 1);
      if (!documents.defined()) return most;
      int64_t n = 0;
      while (n < most && joined(i / tokens, t + n + 1)) ++n;
      return n;
    }
  };
  /// Pairs (t, j) that a channel of one sequence multiplies.
  static double pairs(int64_t tokens, int64_t width) {
    const double n = static_cast<double>(std::min(tokens, width)), t = static_cast<double>(tokens);
    return n * (n + 1) / 2 + (t - n) * static_cast<double>(width);
  }
  /// Bytes of the taps that reach a token: a short sequence leaves the oldest out.
  static double tap_bytes(const View& w, const View& x) {
    if (x.numel() == 0) return 0;
    return static_cast<double>(w.rows() * std::min(w.cols(), x.shape[1])) *
           static_cast<double>(size_of(w.dtype));
  }
  /// Products of one sum over the pairs, for a whole batch.
  static double products(const View& x, const View& w) {
    return static_cast<double>(x.shape[0] * x.shape[2]) * pairs(x.shape[1], w.shape[1]);
  }

  struct Forward {
    static constexpr const char* name = "causal_conv1d.forward";
    static constexpr Kind kind = Kind::elementwise;
    In x, w, bias, documents;
    Out y;
    static constexpr const char* formula = "y[t] = sum w[j] x[t - (K - 1) + j] (+ bias)";
    static constexpr const char* operands = "x, w, bias, documents, y";
    auto views() const { return std::tie(x, w, bias, documents, y); }
    Reach reach() const { return {documents, x.shape[1], w.shape[1]}; }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      return flops(2 * products(x, w) + (bias.defined() ? static_cast<double>(y.numel()) : 0)) +
             reads(x, documents) + Cost{0, tap_bytes(w, x), 0} + reads_if(x.numel() > 0, bias) +
             writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t tokens = x.shape[1], channels = x.shape[2], width = w.shape[1];
      for (int64_t i = 0; i < x.shape[0] * tokens; ++i) {
        const int64_t first = width - 1 - reach().back(i);
        for (int64_t c = 0; c < channels; ++c) {
          A sum(0);
          for (int64_t j = first; j < width; ++j)
            sum += A(w.row<T>(c)[j]) * A(x.row<T>(i - (width - 1) + j)[c]);
          y.put(y.row<T>(i)[c], bias.defined() ? sum + A(bias.at<T>(c)) : sum);
        }
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "causal_conv1d.backward";
    static constexpr Kind kind = Kind::elementwise;
    In dy, x, w, documents;
    Out dx, dw, db;
    static constexpr const char* formula =
        "dx[t] = sum w[j] dy[t + (K - 1) - j], dw[j] = sum dy[t] x[t - (K - 1) + j], db = sum(dy)";
    static constexpr const char* operands = "dy, x, w, documents, dx, dw, db";
    auto views() const { return std::tie(dy, x, w, documents, dx, dw, db); }
    Reach reach() const { return {documents, x.shape[1], w.shape[1]}; }
    DType dtype() const { return dy.dtype; }
    Cost cost() const {
      const double sums = (dx.defined() ? 1 : 0) + (dw.defined() ? 1 : 0);
      const bool any = dx.defined() || dw.defined() || db.defined();
      return flops(2 * sums * products(x, w) +
                   (db.defined() ? static_cast<double>(dy.numel()) : 0)) +
             reads_if(any, dy) + reads_if(dw.defined(), x) +
             reads_if(dx.defined() || dw.defined(), documents) +
             Cost{0, dx.defined() ? tap_bytes(w, x) : 0, 0} + writes(dx, dw, db);
    }
    template <class T>
    void reference() const {
      if (dx.defined()) to_input<T>();
      if (dw.defined()) to_weight<T>();
      if (db.defined()) to_bias<T>();
    }
    template <class T>
    void to_input() const {
      using A = acc_t<T>;
      const int64_t tokens = x.shape[1], channels = x.shape[2], width = w.shape[1];
      for (int64_t i = 0; i < x.shape[0] * tokens; ++i) {
        const int64_t first = width - 1 - reach().ahead(i);
        for (int64_t c = 0; c < channels; ++c) {
          A sum(0);
          for (int64_t j = width - 1; j >= first; --j)
            sum += A(w.row<T>(c)[j]) * A(dy.row<T>(i + (width - 1) - j)[c]);
          dx.put(dx.row<T>(i)[c], sum);
        }
      }
    }
    template <class T>
    void to_weight() const {
      using A = acc_t<T>;
      const int64_t tokens = x.shape[1], channels = x.shape[2], width = w.shape[1];
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t j = 0; j < width; ++j) {
          const int64_t back = width - 1 - j;
          A sum(0);
          for (int64_t b = 0; b < x.shape[0]; ++b) {
            for (int64_t i = b * tokens + back; i < (b + 1) * tokens; ++i)
              if (reach().back(i) >= back) sum += A(dy.row<T>(i)[c]) * A(x.row<T>(i - back)[c]);
          }
          dw.put(dw.row<T>(c)[j], sum);
        }
      }
    }
    template <class T>
    void to_bias() const {
      using A = acc_t<T>;
      for (int64_t c = 0; c < dy.cols(); ++c) {
        A sum(0);
        for (int64_t i = 0; i < dy.rows(); ++i) sum += A(dy.row<T>(i)[c]);
        db.put(db.at<T>(c), sum);
      }
    }
  };

  static Tensor forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                        const Tensor& documents, const Attrs&, Saved* saved) {
    check_defined(name, "x", x);
    check_defined(name, "weight", w);
    check_same_dtype(name, x, w, bias);
    check(x.ndim() == 3 && w.ndim() == 2 && w.size(0) == x.size(2) && w.size(1) >= 1,
          "causal_conv1d: x must be (B, T, C) and weight (C, K) with K >= 1; x is ", x.shape(),
          ", weight is ", w.shape(), in_module(), "; a stored (C, 1, K) is reshaped to (C, K)");
    check(!bias.defined() || bias.shape() == Shape{x.size(2)},
          "causal_conv1d: bias must be (C) with C = ", x.size(2), "; got ",
          bias.defined() ? bias.shape() : Shape{}, in_module());
    check_documents(name, documents, x);
    check(!documents.defined() || documents.size(1) == x.size(1),
          "causal_conv1d: documents must number the tokens of x alone, (B, T) of ", x.shape(),
          "; got ", documents.defined() ? documents.shape() : Shape{}, in_module());
    Tensor y = empty_like(x);
    run(x.device(), Forward{x, w, bias, documents, y});
    if (saved) *saved = {x, w, documents, bias.defined()};
    return y;
  }
  static std::array<Tensor, 4> backward(const Tensor& dy, Saved&& s, const Into<4>& into = {}) {
    const Tensor &x = s.x, &w = s.w;
    check_upstream(name, dy, x);
    const GradTensor dx = into.at(0, x), dw = into.at(1, w);
    const GradTensor db = s.bias ? into.at(2, {w.size(0)}, w.dtype(), w.device()) : GradTensor();
    run(dy.device(), Backward{dy, x, w, s.documents, dx, dw, db});
    return {dx, dw, db, {}};
  }
};

}  // namespace tally::ops
