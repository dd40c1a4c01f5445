#include "autograd/proof/proof_kernels.h"

#include <set>

#include "core/ops/all.h"

namespace tally {
namespace detail {
namespace {

template <class F>
void each_counted(const View& v, F&& f) {
  if (v.dtype == DType::counted) each_element<Counted>(v, f);
  if (v.dtype == DType::counted_half) each_element<CountedHalf>(v, f);
}

}  // namespace

void clear_flags(std::span<const View* const> views) {
  for (const View* v : views) {
    each_counted(*v, [](auto& x) { x.read = x.written = x.charged = false; });
  }
}

Cost collect_flags(std::span<const View* const> views) {
  Cost cost;
  for (const View* v : views) {
    const double size = static_cast<double>(size_of(v->dtype));
    each_counted(*v, [&](auto& x) {
      cost.bytes_read += x.read ? size : 0;
      cost.bytes_written += x.written ? size : 0;
      x.read = x.written = false;  // a tensor given twice is one memory
    });
  }
  const Counts& c = counts();
  const auto distinct = [](const auto& list) {
    return static_cast<double>(std::set(list.begin(), list.end()).size());
  };
  cost.flops = c.flops;
  cost.bytes_read += c.gathered + c.scattered + distinct(c.indices) * 8 + distinct(c.flags);
  cost.bytes_written += c.scattered + distinct(c.written_indices) * 8;
  return cost;
}

}  // namespace detail

void register_proof_kernels() { register_proof_kernels(AllCalls{}); }

}  // namespace tally
