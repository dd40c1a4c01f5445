#pragma once
#include <algorithm>

#include "core/view.h"

namespace tally::cpu {

/// What the vector kernels do not serve runs the loops of the definition; the ledger says so.
template <class T, class Call>
void plain_loops(const Call& call) {
  recorder().provider = "plain loops";
  call.template reference<T>();
}

/// Rows to a piece of work, enough that handing it out costs nothing: about 32 kB.
inline int64_t rows_of_piece(int64_t cols) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(cols, 1));
}

/// Whether a matrix product can read or write a view: rows that do not overlap (expanded ones do).
inline bool fits_gemm(const View& v) {
  return v.numel() == 0 || v.rows() <= 1 || v.row_stride >= v.cols();
}
/// The leading dimension of such a view.
inline int64_t leading(const View& v) {
  return v.numel() == 0 || v.rows() <= 1 ? (v.cols() > 0 ? v.cols() : 1) : v.row_stride;
}

}  // namespace tally::cpu
