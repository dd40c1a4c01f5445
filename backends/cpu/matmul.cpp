#include "core/ops/matmul.h"

#include <optional>

#include "backends/cpu/gemm.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loop_axes.h"
#include "backends/cpu/plain_loops.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

using MatMulCall = ops::MatMul::Call;

/// A matrix as the product sees it: the distances of its rows and of its columns, and of the
/// matrices of the batch.
struct Operand {
  int64_t row, column;
  Shape batch;
};

/// y[b] (+)= sum over s of a[b,s] c[b,s]: b counts the matrices of y, s those that are added up.
struct Products {
  int64_t m, n, k;
  Operand a, b, y;
  Shape own, summed;

  explicit Products(const MatMulCall& c) : m(c.m()), n(c.n()), k(c.k()) {
    const Shape all = c.batch();
    a = operand(c.a, all, c.trans_a);
    b = operand(c.b, all, c.trans_b);
    y = operand(c.y, all, false);
    View outer;
    outer.shape = MatMulCall::leading(c.y);
    outer.is_scalar = true;
    own = ops::own_axes(outer, all);
    summed = ops::repeated_axes(outer, all);
    for (int i = all.ndim() - 1; i >= 0; --i) fold(i);
  }

 private:
  static Operand operand(const View& v, const Shape& all, bool transposed) {
    const auto [row, column] = MatMulCall::steps(v, transposed);
    return {row, column, MatMulCall::batch_strides(v, all)};
  }
  /// A batch axis becomes part of m or of k where the operands go on evenly: one large product
  /// instead of many small ones. Axes are tried from the last, so that several can follow.
  void fold(int axis) {
    const bool next_row = a.batch[axis] == m * a.row && y.batch[axis] == m * y.row;
    if (own[axis] > 1 && next_row && b.batch[axis] == 0) m *= std::exchange(own[axis], 1);
    const bool next_term = a.batch[axis] == k * a.column && b.batch[axis] == k * b.row;
    if (summed[axis] > 1 && next_term) k *= std::exchange(summed[axis], 1);
  }
};

/// How a matrix is stored: by rows, or by columns (transposed), `step` apart.
struct Stored {
  bool transposed;
  int64_t step;
};
std::optional<Stored> stored(const Operand& o, int64_t rows, int64_t columns) {
  const auto step = [](int64_t count, int64_t length, int64_t apart) {
    return count <= 1 ? std::max<int64_t>(length, 1) : apart;
  };
  if ((o.column == 1 || columns <= 1) && (rows <= 1 || o.row >= columns))
    return Stored{false, step(rows, columns, o.row)};
  if ((o.row == 1 || rows <= 1) && (columns <= 1 || o.column >= rows))
    return Stored{true, step(columns, rows, o.column)};
  return std::nullopt;
}

/// The product of the first matrices; nothing where a matrix is neither stored by rows nor by
/// columns.
template <class T>
std::optional<Gemm<T>> first_product(const Products& p) {
  const auto a = stored(p.a, p.m, p.k), b = stored(p.b, p.k, p.n), y = stored(p.y, p.m, p.n);
  if (!a || !b || !y || y->transposed) return std::nullopt;
  return Gemm<T>{.trans_a = a->transposed,
                 .trans_b = b->transposed,
                 .m = p.m,
                 .n = p.n,
                 .k = p.k,
                 .lda = a->step,
                 .ldb = b->step,
                 .ldc = y->step};
}

/// y^T = b^T a^T: for a y that is stored by columns, and for one of a single column.
Products turned(const Products& p) {
  Products q = p;
  std::swap(q.m, q.n);
  q.a = {p.b.column, p.b.row, p.b.batch};
  q.b = {p.a.column, p.a.row, p.a.batch};
  q.y = {p.y.column, p.y.row, p.y.batch};
  return q;
}
bool by_columns(const Products& p) {
  const bool column = p.n == 1 && p.m > 1 && p.y.row == 1;
  return column || (p.y.column != 1 && p.n > 1 && (p.y.row == 1 || p.m == 1));
}

template <class T>
void multiply(const MatMulCall& c, const Products& p, Gemm<T> g, bool is_turned) {
  const View &left = is_turned ? c.b : c.a, &right = is_turned ? c.a : c.b;
  const int64_t own = p.own.numel(), summed = p.summed.numel(), k = g.k;
  const auto one = [&](int64_t i) {
    const int64_t a = offset_of(i, p.own, p.a.batch), b = offset_of(i, p.own, p.b.batch);
    Gemm<T> part = g;
    part.c = c.y.pointer<T>() + offset_of(i, p.own, p.y.batch);
    part.k = summed > 0 ? k : 0;  // of no products at all the sum is zero
    for (int64_t s = 0; s < std::max<int64_t>(summed, 1); ++s) {
      part.a = left.pointer<T>() + a + offset_of(s, p.summed, p.a.batch);
      part.b = right.pointer<T>() + b + offset_of(s, p.summed, p.b.batch);
      part.beta = s > 0 || c.y.accumulate ? T(1) : T(0);
      gemm(part);
    }
  };
  // A product inside parallel_for runs on its thread; its bits are the same either way.
  if (own < 2 * num_threads()) {
    for (int64_t i = 0; i < own; ++i) one(i);
  } else {
    const int64_t work = std::max<int64_t>(g.m * g.n * k, 1);
    parallel_for(own, std::max<int64_t>(1, (int64_t{1} << 17) / work), [&](int64_t i, int64_t end) {
      for (; i < end; ++i) one(i);
    });
  }
}

template <class T>
void matmul(const MatMulCall& c) {
  const Products plain(c);
  const bool turn = by_columns(plain);
  const Products p = turn ? turned(plain) : plain;
  const std::optional<Gemm<T>> g = first_product<T>(p);
  if (!g) return plain_loops<T>(c);
  multiply(c, p, *g, turn);
  recorder().provider = gemm_provider_name();
}

}  // namespace

void register_matmul() {
  kernels<MatMulCall>[kCPU.kind][static_cast<size_t>(DType::f32)] = matmul<float>;
  kernels<MatMulCall>[kCPU.kind][static_cast<size_t>(DType::f64)] = matmul<double>;
}

}  // namespace tally::cpu
