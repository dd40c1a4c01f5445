#include "models/probe_measures.h"

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/parallel.h"
#include "core/watch.h"

namespace tally {
namespace {

constexpr int64_t kChunk = int64_t{1} << 16;

/// Adds f(i) for 0 <= i < n: in fixed chunks, and in eight sums that the compiler keeps in vectors.
template <class F>
double chunked_sum(int64_t n, const F& f) {
  std::vector<double> parts(static_cast<size_t>((n + kChunk - 1) / kChunk), 0);
  parallel_for(n, kChunk, [&](int64_t begin, int64_t end) {
    std::array<double, 8> sums{};
    int64_t i = begin;
    for (; i + 8 <= end; i += 8) {
      for (int64_t k = 0; k < 8; ++k) sums[static_cast<size_t>(k)] += f(i + k);
    }
    for (; i < end; ++i) sums[0] += f(i);
    parts[static_cast<size_t>(begin / kChunk)] = std::accumulate(sums.begin(), sums.end(), 0.0);
  });
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

template <class T>
double squares(const T* x, int64_t n) {
  return chunked_sum(n, [x](int64_t i) {
    const double v = static_cast<double>(x[i]);
    return v * v;
  });
}

template <class T>
std::pair<double, double> change(const T* now, const T* old, int64_t n) {
  const double moved = chunked_sum(n, [=](int64_t i) {
    const double d = static_cast<double>(now[i]) - static_cast<double>(old[i]);
    return d * d;
  });
  return {std::sqrt(moved), std::sqrt(squares(old, n))};
}

/// (sum of squares)^2 / (sum of squares of the Gram matrix of the rows) / rows.
double rank_share_of(const std::vector<double>& a, int64_t rows, int64_t columns) {
  std::vector<double> parts(static_cast<size_t>(rows)), traces(parts);
  parallel_for(rows, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double* x = &a[static_cast<size_t>(i * columns)];
      for (int64_t j = 0; j <= i; ++j) {
        const double* y = &a[static_cast<size_t>(j * columns)];
        std::array<double, 8> sums{};
        for (int64_t k = 0; k < columns; ++k) sums[static_cast<size_t>(k % 8)] += x[k] * y[k];
        const double product = std::accumulate(sums.begin(), sums.end(), 0.0);
        parts[static_cast<size_t>(i)] += (i == j ? 1 : 2) * product * product;
        if (i == j) traces[static_cast<size_t>(i)] = product;
      }
    }
  });
  const double trace = std::accumulate(traces.begin(), traces.end(), 0.0);
  const double fourth = std::accumulate(parts.begin(), parts.end(), 0.0);
  return fourth > 0 ? trace * trace / fourth / static_cast<double>(rows) : NAN;
}

template <class T>
double rank_share(const View& now, const std::byte* before) {
  const int64_t m = now.shape[0], n = now.shape[1];
  const bool tall = m > n;
  const T *w = now.pointer<const T>(), *old = reinterpret_cast<const T*>(before);
  std::vector<double> a(
      static_cast<size_t>(m * n));  // the shorter side's rows, as long as the longer
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = i * n + j;
      a[static_cast<size_t>(tall ? j * m + i : at)] =
          static_cast<double>(w[at]) - (old ? static_cast<double>(old[at]) : 0.0);
    }
  }
  return rank_share_of(a, std::min(m, n), std::max(m, n));
}

/// One row: entropy, largest p and largest |score|.
struct RowMeasure {
  double entropy = 0, top = 0, logit = 0;
};

template <class T>
RowMeasure measure_row(const ops::AttentionForward& a, int64_t place) {
  using A = acc_t<T>;
  const int64_t t = place % a.tokens(), h = place / a.tokens() % a.heads(),
                b = place / a.tokens() / a.heads();
  const auto query = a.template query_of<T>(b, h, t);
  const double l = static_cast<double>(a.l.template at<A>(place));
  std::vector<int64_t> keys;
  a.list_keys(b, h, t, keys);
  RowMeasure m;
  for (int64_t j : keys) {
    const double score = static_cast<double>(a.template score<T>(query, j).value),
                 p = std::exp(score - l);
    m.entropy += p * (l - score);
    m.top = std::max(m.top, p);
    if (!(std::abs(score) <= m.logit)) m.logit = std::abs(score);
  }
  return m;
}

template <class T>
AttentionMeasure measure_rows(const ops::AttentionForward& a) {
  const int64_t all = a.batch() * a.heads() * a.tokens(), n = std::min(all, kAttentionRows);
  std::vector<RowMeasure> rows(static_cast<size_t>(n));
  parallel_for(n, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      // One row from each of n equal stretches; where in it moves by the golden ratio, so that the
      // stretches do not all fall on one query.
      const int64_t first = i * all / n, length = (i + 1) * all / n - first;
      const double turn = static_cast<double>(i) * 0.6180339887498949;
      const auto inside =
          static_cast<int64_t>((turn - std::floor(turn)) * static_cast<double>(length));
      rows[static_cast<size_t>(i)] = measure_row<T>(a, first + inside);
    }
  });
  AttentionMeasure m;
  m.rows = static_cast<double>(n);
  for (const RowMeasure& r : rows) {
    m.entropy += r.entropy;
    m.saturated += r.top > 0.99 ? 1 : 0;
    if (!(r.logit <= m.max_logit)) m.max_logit = r.logit;
  }
  return m;
}

}  // namespace

double square_sum(const View& v) {
  if (v.is_dense() && v.dtype == DType::f32) return squares(v.pointer<const float>(), v.numel());
  if (v.is_dense() && v.dtype == DType::f64) return squares(v.pointer<const double>(), v.numel());
  const ValueSummary s = summarize(v);
  return s.finite() ? s.rms * s.rms * static_cast<double>(s.count) : NAN;
}

std::pair<double, double> change_of(const View& now, const std::byte* old) {
  if (now.dtype == DType::f64)
    return change(now.pointer<const double>(), reinterpret_cast<const double*>(old), now.numel());
  return change(now.pointer<const float>(), reinterpret_cast<const float*>(old), now.numel());
}

double rank_share(const View& now, const std::byte* old) {
  if (now.shape.ndim() != 2 || !now.is_dense() || now.numel() == 0) return NAN;
  const auto m = static_cast<double>(now.shape[0]), n = static_cast<double>(now.shape[1]);
  if (std::min(m, n) * m * n > kMostProducts) return NAN;
  if (now.dtype == DType::f64) return rank_share<double>(now, old);
  return now.dtype == DType::f32 ? rank_share<float>(now, old) : NAN;
}

AttentionMeasure measure_attention(const ops::AttentionForward& a) {
  if (a.dtype() == DType::f64) return measure_rows<double>(a);
  return a.dtype() == DType::bf16 ? measure_rows<bf16>(a) : measure_rows<float>(a);
}

}  // namespace tally
