#pragma once
#include <vector>

#include "core/ops/rope_scaling.h"
#include "core/tensor.h"

// Tables of positions, made once on the host in double: in single precision the angle of position
// 131071 is off by 7.6e-3, in bfloat16 position 257 becomes 256.
namespace tally {

/// Turns per position of the rotary pairs of `dim` elements: base^(-2i/dim), i = 0..dim/2-1.
/// Su et al. 2021, arXiv:2104.09864, sec. 3.4.2. Error unless dim is even and at least 2 and base is
/// a finite number above 0. For longer texts: rope_turns(...).
std::vector<double> rope_frequencies(int64_t dim, double base);

/// Which rows a table holds, and in which arithmetic their angles are formed.
struct RopeRows {
  int64_t first = 0, count = 0;
  RopeArithmetic arithmetic = RopeArithmetic::float64;
};
/// The table that `rope` reads: (count, 2 n) of f32 or f64 for n pairs, row r holding a cos(p f_i),
/// then a sin(p f_i) for the position p = first + r and the attention factor a.
Tensor rope_table(const RopeRows& rows, const RopeTurns& turns, DType dtype, Device device);
inline Tensor rope_table(int64_t positions, const std::vector<double>& frequencies, DType dtype,
                         Device device) {
  return rope_table(RopeRows{0, positions}, RopeTurns{frequencies, 1}, dtype, device);
}
inline Tensor rope_table(int64_t positions, int64_t dim, double base, DType dtype, Device device) {
  return rope_table(positions, rope_frequencies(dim, base), dtype, device);
}

/// Row r of a projection's weight with half-split pairs is row half_split_rows(R)[r] of the same
/// weight with interleaved pairs, within the R rows of each head that turn.
std::vector<int64_t> half_split_rows(int64_t rotary_dim);

/// Order of sines and cosines in a sinusoidal table of width D, f_i being the frequencies.
enum class Sinusoid : uint8_t {
  interleaved,  ///< sin, cos, sin, cos ...; f_i = 10000^(-2i/D): Vaswani et al. 2017
  halves,       ///< sines, then cosines; the same f_i: Marian
  fairseq,      ///< sines, then cosines; f_i = 10000^(-i/(D/2-1))
};
/// Fixed position embeddings (positions, D). Vaswani et al. 2017, arXiv:1706.03762, sec. 3.5.
/// Error unless D is even and at least 2 (4 for fairseq, whose exponent divides by D/2 - 1).
Tensor sinusoidal_table(int64_t positions, int64_t dim, Sinusoid order, DType dtype, Device device);

/// ALiBi's slope of each head: powers of 2^(-8/n), and for other head counts those of the lower
/// power of two followed by every second one of the next. Press et al. 2021, arXiv:2108.12409,
/// sec. 3.
std::vector<double> alibi_slopes(int64_t heads);
/// The slope of head h of these.
double alibi_slope(int64_t h, int64_t heads);

/// T5's bucket of a key at distance `relative` = key position - query position: half of the buckets
/// one distance each, the others logarithmic up to `max_distance`. `two_sided` gives half of all to
/// keys in the future; otherwise those get bucket 0. Raffel et al. 2019, arXiv:1910.10683,
/// sec. 2.1.
int64_t t5_bucket(int64_t relative, bool two_sided, int64_t buckets, int64_t max_distance);

}  // namespace tally
