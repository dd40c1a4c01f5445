#pragma once
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace tally {

/// The one exception type of the library. Its text is written for learners:
/// `where: what must hold; what was given; what to do`.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline std::string to_text(std::string_view s) { return std::string(s); }
inline std::string to_text(const char* s) { return s; }
inline std::string to_text(const std::string& s) { return s; }
/// Shortest text that reads back as the same number. Declared before the template that calls it.
std::string to_text(double v);
template <class T>
requires std::is_arithmetic_v<T> std::string to_text(T v) {
  if constexpr (std::is_same_v<T, bool>)
    return v ? "true" : "false";
  else if constexpr (std::is_same_v<T, char>)
    return std::string(1, v);
  else if constexpr (std::is_integral_v<T>)
    return std::to_string(v);
  else
    return to_text(static_cast<double>(v));
}

namespace detail {
[[noreturn]] void throw_error(std::initializer_list<std::string> parts);
}

/// Throws Error with the parts put together. Anything with a `to_text` overload is a part.
template <class... Parts>
[[noreturn, gnu::cold]] void fail(const Parts&... parts) {
  detail::throw_error({to_text(parts)...});
}

/// Throws Error unless `ok`; the text is built on failure only.
template <class... Parts>
inline void check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(parts...);
}

}  // namespace tally
