#include "core/watch.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/backend.h"

namespace tally {
namespace {

template <class T>
double number(const T& x) {
  return static_cast<double>(static_cast<acc_t<T>>(x));
}

/// Calls f(offset) for every element, the last axis fastest.
template <class F>
void each_offset(const View& v, F&& f) {
  const int64_t n = v.numel();
  Shape at = v.shape;
  for (int i = 0; i < at.ndim(); ++i) at[i] = 0;
  int64_t offset = 0;
  for (int64_t k = 0; k < n; ++k) {
    f(offset);
    for (int i = at.ndim() - 1; i >= 0; --i) {
      offset += v.strides[i];
      if (++at[i] < v.shape[i]) break;
      offset -= at[i] * v.strides[i];
      at[i] = 0;
    }
  }
}

/// Sums of a run of elements, in the order of memory.
struct Sums {
  double sum = 0, squares = 0, min = INFINITY, max = -INFINITY;
  int64_t nans = 0, infinities = 0, negative_infinities = 0;

  void add(double x) {
    if (!std::isfinite(x)) {
      ++(std::isnan(x) ? nans : infinities);
      if (x < 0) ++negative_infinities;
      return;
    }
    sum += x;
    squares += x * x;
    min = x < min ? x : min;
    max = x > max ? x : max;
  }
};

template <class T>
ValueSummary summary_of(const View& v, int64_t first) {
  ValueSummary s;
  s.count = v.numel();
  Sums sums;
  const T* p = v.pointer<T>();
  const auto one = [&](int64_t offset) {
    const double x = number(p[offset]);
    if (static_cast<int64_t>(s.first.size()) < first) s.first.push_back(x);
    sums.add(x);
  };
  if (v.is_dense())
    for (int64_t i = 0; i < s.count; ++i) one(i);
  else
    each_offset(v, one);
  s.nans = sums.nans;
  s.infinities = sums.infinities;
  s.negative_infinities = sums.negative_infinities;
  const int64_t finite = s.count - s.nans - s.infinities;
  if (finite == 0) return s;
  s.min = sums.min;
  s.max = sums.max;
  s.mean = sums.sum / static_cast<double>(finite);
  s.rms = std::sqrt(sums.squares / static_cast<double>(finite));
  return s;
}

}  // namespace

const View* WatchedCall::find(std::string_view name) const {
  for (const WatchedView& v : views) {
    if (v.name == name) return v.view;
  }
  return nullptr;
}

ValueSummary summarize(const View& view, int64_t first) {
  ValueSummary nothing;
  nothing.count = view.numel();
  if (view.data == nullptr || !backend(view.device).host_memory()) return nothing;
  switch (view.dtype) {
    case DType::f32:
      return summary_of<float>(view, first);
    case DType::f64:
      return summary_of<double>(view, first);
    case DType::bf16:
      return summary_of<bf16>(view, first);
    case DType::f16:
      return summary_of<f16>(view, first);
    case DType::i64:
      return summary_of<int64_t>(view, first);
    case DType::u8:
      return summary_of<uint8_t>(view, first);
    default:  // the scalars of the proofs
      return nothing;
  }
}

std::string to_text(const ValueSummary& s) {
  std::string text;
  const auto part = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (s.count > s.nans + s.infinities) {
    char range[64];
    std::snprintf(range, sizeof range, "min %.4g, max %.4g", s.min, s.max);
    part(range);
  }
  if (s.nans > 0) part(to_text(s.nans) + " NaN");
  if (s.infinities > 0) part(to_text(s.infinities) + " infinite");
  return text.empty() ? "empty" : text;
}

void detail::add_watched(WatchedCall& call, const char*& names, const View& view, bool output,
                         bool updated) {
  const size_t length = std::strcspn(names, ",");
  std::string name(names, length);
  names += length;
  names += std::strspn(names, ", ");
  if (!view.defined()) return;
  if (name.empty()) name = "operand " + to_text(call.views.size() + 1);
  call.views.push_back({std::move(name), &view, output, updated});
}

}  // namespace tally
