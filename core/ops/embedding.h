#pragma once
#include <algorithm>

#include "core/op.h"

namespace tally::ops {

/// Throws Error unless every id lies in 0..limit-1, naming the first that does not by its position.
/// Looks at host memory only: on meta there are no values.
inline void check_ids(const char* op, const Tensor& ids, int64_t limit) {
  check_defined(op, "ids", ids);
  check(ids.dtype() == DType::i64, op, ": ids must be i64; got ", ids.dtype(), in_module());
  if (!backend(ids.device()).host_memory()) return;
  const In v = ids;
  check(v.is_rows() || v.numel() == 0, op, ": rows of ids must be dense and evenly spaced; got ",
        ids.shape(), " with strides ", ids.strides(), in_module(), "; call contiguous(ids) first");
  for (int64_t r = 0; r < (v.cols() ? v.rows() : 0); ++r) {
    for (int64_t c = 0; c < v.cols(); ++c) {
      const int64_t id = v.row<int64_t>(r)[c];
      check(id >= 0 && id < limit, op, ": ids must be in 0..", limit - 1, "; position ",
            r * v.cols() + c, " of ", ids.shape(), " holds ", id, in_module(),
            "; was the text tokenized with this model's tokenizer?");
    }
  }
}

// Embedding: rows of a table by id. Lecture claim L8 (a look-up, no product).
//
//   forward    y[n,d]  = s w[ids[n],d]
//   backward   dw[v,d] = s sum over n with ids[n] = v of dy[n,d], in the order of n
//
//   ids (...)    w, dw (V, D)    y, dy (..., D)    saved: ids
//   s: a constant, sqrt(D) in some models
//
// The gradient is dense. An id that comes often has its sum in the accumulator and is rounded once:
// added up in bfloat16 it would stop growing at 256. `padding_id` (none: -1) is a row that gets no
// gradient.
struct Embedding {
  static constexpr const char* name = "embedding";
  struct Attrs {
    double scale = 1;
    int64_t padding_id = -1;
  };
  struct Saved {
    SavedTensor ids;
    Shape table;
    DType dtype = DType::f32;
    Attrs attrs;
  };

  struct Forward {
    static constexpr const char* name = "embedding.forward";
    static constexpr Kind kind = Kind::movement;
    In ids, w;
    Out y;
    double scale;
    static constexpr const char* formula = "y = w[ids]";
    static constexpr const char* operands = "ids, w, y";
    auto views() const { return std::tie(ids, w, y); }
    DType dtype() const { return w.dtype; }
    Cost cost() const {
      return flops(scale == 1 ? 0 : y.numel()) + reads(ids) + Cost{0, y.nbytes(), 0} + writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      for (int64_t n = 0; n < ids.numel(); ++n) {
        const T* row = w.gathered<T>(index_at<T>(ids, n));
        for (int64_t d = 0; d < w.cols(); ++d) {
          y.put(y.row<T>(n)[d], scale == 1 ? A(row[d]) : A(row[d]) * A(scale));
        }
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "embedding.backward";
    static constexpr Kind kind = Kind::movement;
    In ids, dy;
    Out dw;
    double scale;
    int64_t padding_id;
    std::byte* scratch = nullptr;
    static constexpr const char* formula = "dw[ids] += dy";
    static constexpr const char* operands = "ids, dy, dw";
    auto views() const { return std::tie(ids, dy, dw); }
    DType dtype() const { return dy.dtype; }
    size_t workspace() const {
      return sizeof(int64_t) * static_cast<size_t>(dw.rows() + ids.numel());
    }
    Cost cost() const {
      const Cost touched =
          dw.accumulate ? Cost{0, dy.nbytes(), dy.nbytes()} : Cost{0, 0, dw.nbytes()};
      return flops(dy.numel() * (scale == 1 ? 1.0 : 2.0)) + reads(ids, dy) + touched;
    }
    // The occurrences of each id as a list in the order of n: the first in `first`, each leads to
    // its `next`. So every row of dw is written once, and rows may be shared out among threads.
    void link(int64_t* first, int64_t* next, auto id_of) const {
      std::fill(first, first + dw.rows(), int64_t{-1});
      for (int64_t n = ids.numel() - 1; n >= 0; --n) {
        const int64_t id = id_of(n);
        if (id == padding_id) continue;
        next[n] = first[id];
        first[id] = n;
      }
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      int64_t* first = reinterpret_cast<int64_t*>(scratch);
      int64_t* next = first + dw.rows();
      link(first, next, [&](int64_t n) { return index_at<T>(ids, n); });
      for (int64_t v = 0; v < dw.rows(); ++v) {
        if (dw.accumulate && first[v] < 0) continue;
        for (int64_t n = dw.accumulate ? first[v] : -1; n >= 0; n = next[n]) dw.scattered<T>(v);
        T* row = dw.row<T>(v);
        for (int64_t d = 0; d < dw.cols(); ++d) {
          A sum = dw.accumulate ? A(row[d]) : A(0);
          for (int64_t n = first[v]; n >= 0; n = next[n]) {
            sum += scale == 1 ? A(dy.row<T>(n)[d]) : A(dy.row<T>(n)[d]) * A(scale);
          }
          row[d] = T(sum);
        }
      }
    }
  };

  static Tensor forward(const Tensor& ids, const Tensor& w, const Attrs& a, Saved* saved) {
    check_defined(name, "weight", w);
    check_defined(name, "ids", ids);
    check(w.ndim() == 2, "embedding: weight must be (V, D); got ", w.shape(), in_module());
    check(is_floating(w.dtype()), "embedding: weight must be floating-point; got ", w.dtype(),
          in_module(), "; the order of arguments is (ids, weight)");
    check_ids(name, ids, w.size(0));
    Tensor y = empty(ids.shape().append(w.size(1)), w.dtype(), w.device());
    run(w.device(), Forward{ids, w, y, a.scale});
    if (saved) *saved = {ids, w.shape(), w.dtype(), a};
    return y;
  }
  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    if (!into.wants(1)) return {};
    check_upstream(name, dy, s.ids.get().shape().append(s.table[1]), s.dtype);
    const GradTensor dw = into.at(1, s.table, s.dtype, dy.device());
    run(dy.device(), Backward{s.ids, dy, dw, s.attrs.scale, s.attrs.padding_id});
    return {Tensor(), dw};
  }

 private:
  template <class T>
  static int64_t index_at(const In& ids,
                          int64_t n) {  // rows of ids may lie apart: a slice of a batch
    return ids.index<T>(n / ids.cols() * ids.row_stride + n % ids.cols());
  }
};

}  // namespace tally::ops
