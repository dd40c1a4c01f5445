#pragma once
#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/shape.h"

namespace tally {

namespace detail {
// Stands for a value of any type where only its place counts.
struct AnyField {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): never defined, never called
};
template <class T, class... F>
constexpr size_t field_count() {
  if constexpr (requires { T{F{}..., AnyField{}}; })
    return field_count<T, F..., AnyField>();
  else
    return sizeof...(F);
}

// f(field) for each field of a plain struct.
template <class T, class F>
void each_field(const T& v, F f) {
  constexpr size_t n = field_count<T>();
  static_assert(n <= 11, "each_field: name more fields here");
  const auto all = [&](const auto&... field) { (f(field), ...); };
  // clang-format off
  if constexpr (n == 1) { const auto& [a] = v; all(a); }
  if constexpr (n == 2) { const auto& [a, b] = v; all(a, b); }
  if constexpr (n == 3) { const auto& [a, b, c] = v; all(a, b, c); }
  if constexpr (n == 4) { const auto& [a, b, c, d] = v; all(a, b, c, d); }
  if constexpr (n == 5) { const auto& [a, b, c, d, e] = v; all(a, b, c, d, e); }
  if constexpr (n == 6) { const auto& [a, b, c, d, e, g] = v; all(a, b, c, d, e, g); }
  if constexpr (n == 7) { const auto& [a, b, c, d, e, g, h] = v; all(a, b, c, d, e, g, h); }
  if constexpr (n == 8) { const auto& [a, b, c, d, e, g, h, i] = v; all(a, b, c, d, e, g, h, i); }
  if constexpr (n == 9) {
    const auto& [a, b, c, d, e, g, h, i, j] = v;
    all(a, b, c, d, e, g, h, i, j);
  }
  if constexpr (n == 10) {
    const auto& [a, b, c, d, e, g, h, i, j, k] = v;
    all(a, b, c, d, e, g, h, i, j, k);
  }
  if constexpr (n == 11) {
    const auto& [a, b, c, d, e, g, h, i, j, k, l] = v;
    all(a, b, c, d, e, g, h, i, j, k, l);
  }
  // clang-format on
}

template <class T>
void list_options(const T& v, std::vector<std::string>& out);
template <class T>
void list_options(const std::optional<T>& v, std::vector<std::string>& out) {
  out.push_back(v ? to_text(*v) : "none");
}
template <size_t N>
void list_options(const std::array<int64_t, N>& v, std::vector<std::string>& out) {
  out.emplace_back();
  for (const int64_t n : v) out.back() += to_text(n) + " ";
}
inline void list_options(const Shape& v, std::vector<std::string>& out) {
  out.push_back(to_text(v));
}
template <class T>
void list_options(const T& v, std::vector<std::string>& out) {
  if constexpr (std::is_enum_v<T>)
    out.push_back(to_text(static_cast<int>(v)));
  else if constexpr (std::is_arithmetic_v<T>)
    out.push_back(to_text(v));
  else
    each_field(v, [&](const auto& field) { list_options(field, out); });
}
}  // namespace detail

/// The fields of an op's Attrs, those of structs in it too, each as text: which options a sample
/// has, for the test that every option of every op is taken by some sample.
template <class Attrs>
std::vector<std::string> options_of(const Attrs& attrs) {
  std::vector<std::string> out;
  detail::list_options(attrs, out);
  return out;
}

}  // namespace tally
