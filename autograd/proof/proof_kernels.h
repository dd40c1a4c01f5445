#pragma once
#include <string>
#include <vector>

#include "autograd/proof/rounded.h"
#include "autograd/proof/scalars.h"

namespace tally {

/// One call run on the counting scalar: what it declared beside what was counted.
struct CountedCall {
  std::string call;
  Cost declared, counted;
};

/// The counted calls of this thread since the list was last cleared.
inline std::vector<CountedCall>& counted_calls() {
  thread_local std::vector<CountedCall> list;
  return list;
}

namespace detail {
// Visits every element of a view, whatever its strides.
template <class T, class F>
void each_element(const View& v, F&& f) {
  if (v.numel() == 0) return;
  std::array<int64_t, Shape::kMaxAxes> at{};
  for (int64_t n = 0; n < v.numel(); ++n) {
    int64_t offset = 0;
    for (int i = 0; i < v.shape.ndim(); ++i) offset += at[static_cast<size_t>(i)] * v.strides[i];
    f(static_cast<T*>(v.data)[offset]);
    for (int i = v.shape.ndim() - 1; i >= 0 && ++at[static_cast<size_t>(i)] == v.shape[i]; --i)
      at[static_cast<size_t>(i)] = 0;
  }
}
void clear_flags(std::span<const View* const> views);
Cost collect_flags(std::span<const View* const> views);

template <KernelCall C, class T>
void run_counted(const C& call) {
  const auto views = view_list(call);
  clear_flags(views);
  counts() = {};
  call.template reference<T>();
  CountedCall result{C::name, call.cost(), collect_flags(views)};
  counted_calls().push_back(result);
}

// What a call leaves in memory is one term to the calls that read it.
template <KernelCall C, class T>
void run_rounded(const C& call) {
  call.template reference<T>();
  for (const View* v : view_list(call)) {
    if (v->dtype == DType::rounded) {
      each_element<Rounded>(*v, [](Rounded& x) { x = Rounded::term(x.v, x.error()); });
    }
  }
}
}  // namespace detail

/// Lets a call run on the proof scalars (the types `dual`, `counted`, `rounded` and their halves),
/// on the reference device. Call it for the calls of an op from outside too.
template <KernelCall C>
void register_proof_kernels() {
  auto& table = kernels<C>[kReference.kind];
  table[static_cast<size_t>(DType::dual)] = [](const C& c) { c.template reference<Dual>(); };
  table[static_cast<size_t>(DType::counted)] = detail::run_counted<C, Counted>;
  table[static_cast<size_t>(DType::counted_half)] = detail::run_counted<C, CountedHalf>;
  table[static_cast<size_t>(DType::rounded)] = detail::run_rounded<C, Rounded>;
  table[static_cast<size_t>(DType::rounded_half)] = detail::run_rounded<C, RoundedHalf>;
}
template <KernelCall... C>
void register_proof_kernels(TypeList<C...>) {
  (register_proof_kernels<C>(), ...);
}
/// The same for every call of core.
void register_proof_kernels();

}  // namespace tally
