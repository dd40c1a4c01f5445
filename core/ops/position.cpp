#include "core/ops/position.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/backend.h"

namespace tally {
namespace {

// A (rows, cols) tensor of at(row, column), computed in double.
template <class F>
Tensor make_table(const char* what, int64_t rows, int64_t cols, DType dtype, Device device,
                  F&& at) {
  check(rows >= 0, what, ": the number of positions must not be negative; got ", rows);
  check(dtype == DType::f32 || dtype == DType::f64, what, ": a table holds f32 or f64; got ",
        dtype);
  if (backend(device).is_meta()) return empty({rows, cols}, dtype, device);
  const auto fill = [&]<class T>(std::type_identity<T>) {
    std::vector<T> values(static_cast<size_t>(rows * cols));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c)
        values[static_cast<size_t>(r * cols + c)] = static_cast<T>(at(r, c));
    }
    return from_host<T>(values, {rows, cols}, device);
  };
  return dtype == DType::f32 ? fill(std::type_identity<float>{})
                             : fill(std::type_identity<double>{});
}

}  // namespace

std::vector<double> rope_frequencies(int64_t dim, double base) {
  check(dim >= 2 && dim % 2 == 0,
        "rope_frequencies: the rotary size must be even and at least 2; got ", dim);
  check(std::isfinite(base) && base > 0,
        "rope_frequencies: the base must be a finite number above 0; got ", base);
  return rope_turns(dim, base).frequencies;
}

Tensor rope_table(const RopeRows& rows, const RopeTurns& turns, DType dtype, Device device) {
  check(rows.first >= 0, "rope_table: positions must not be negative; got ", rows.first);
  const int64_t half = static_cast<int64_t>(turns.frequencies.size());
  const auto in_double = [&](int64_t r, int64_t c) {
    const double angle =
        static_cast<double>(rows.first + r) * turns.frequencies[static_cast<size_t>(c % half)];
    return turns.attention_factor * (c < half ? std::cos(angle) : std::sin(angle));
  };
  const auto in_single = [&](int64_t r, int64_t c) -> double {
    const float angle = static_cast<float>(rows.first + r) *
                        static_cast<float>(turns.frequencies[static_cast<size_t>(c % half)]);
    const double exact = static_cast<double>(angle);
    return static_cast<float>(c < half ? std::cos(exact) : std::sin(exact)) *
           static_cast<float>(turns.attention_factor);
  };
  if (rows.arithmetic == RopeArithmetic::float64)
    return make_table("rope_table", rows.count, 2 * half, dtype, device, in_double);
  return make_table("rope_table", rows.count, 2 * half, dtype, device, in_single);
}

std::vector<int64_t> half_split_rows(int64_t rotary_dim) {
  check(rotary_dim >= 0 && rotary_dim % 2 == 0,
        "half_split_rows: the rotary size must be even; got ", rotary_dim);
  std::vector<int64_t> rows;
  for (int64_t r = 0; r < rotary_dim; r += 2) rows.push_back(r);
  for (int64_t r = 1; r < rotary_dim; r += 2) rows.push_back(r);
  return rows;
}

Tensor sinusoidal_table(int64_t positions, int64_t dim, Sinusoid order, DType dtype,
                        Device device) {
  const int64_t least = order == Sinusoid::fairseq ? 4 : 2;
  check(dim >= least && dim % 2 == 0, "sinusoidal_table: the width must be even and at least ",
        least, "; got ", dim);
  const double half = static_cast<double>(dim / 2);
  const double steps = order == Sinusoid::fairseq ? half - 1 : half;
  return make_table("sinusoidal_table", positions, dim, dtype, device, [&](int64_t p, int64_t c) {
    const bool pairs = order == Sinusoid::interleaved;
    const int64_t i = pairs ? c / 2 : c % (dim / 2);
    const bool sine = pairs ? c % 2 == 0 : c < dim / 2;
    const double angle =
        static_cast<double>(p) * std::pow(10000.0, -static_cast<double>(i) / steps);
    return sine ? std::sin(angle) : std::cos(angle);
  });
}

double alibi_slope(int64_t h, int64_t heads) {
  check(heads >= 1 && h >= 0 && h < heads,
        "alibi_slopes: needs at least one head, and one of these; got head ", h, " of ", heads);
  int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  const auto slope = [](int64_t i, int64_t n) {
    return std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(n));
  };
  return h < power ? slope(h + 1, power) : slope(2 * (h - power) + 1, 2 * power);
}

std::vector<double> alibi_slopes(int64_t heads) {
  check(heads >= 1, "alibi_slopes: needs at least one head; got ", heads);
  std::vector<double> slopes;
  for (int64_t h = 0; h < heads; ++h) slopes.push_back(alibi_slope(h, heads));
  return slopes;
}

int64_t t5_bucket(int64_t relative, bool two_sided, int64_t buckets, int64_t max_distance) {
  const int64_t own = two_sided ? buckets / 2 : buckets;  // for one direction
  const int64_t exact = own / 2;
  check(exact >= 1 && max_distance > exact, "t5_bucket: needs at least ", two_sided ? 4 : 2,
        " buckets and a largest distance above the ", exact, " exact ones; got ", buckets, " and ",
        max_distance);
  const int64_t future = two_sided && relative > 0 ? own : 0;
  const int64_t distance = two_sided ? std::abs(relative) : std::max<int64_t>(-relative, 0);
  if (distance < exact) return future + distance;
  // Bucket exact + i begins where (distance / exact)^(own - exact) reaches (max / exact)^i.
  // Products of logarithms meet whole numbers at powers of two, where rounding must not decide:
  // hence the margin.
  const double x = static_cast<double>(distance) / static_cast<double>(exact);
  const double span = static_cast<double>(max_distance) / static_cast<double>(exact);
  const double step = std::log(x) / std::log(span) * static_cast<double>(own - exact);
  return future + std::min(exact + static_cast<int64_t>(std::floor(step + 1e-9)), own - 1);
}

}  // namespace tally
