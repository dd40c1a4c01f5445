#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

namespace tally {

/// Element types. `f16` and `u8` are storage only (files, masks). The last five belong to the
/// proofs (autograd/proof): `dual` carries a derivative beside each value, `counted` counts what is
/// done with it, `rounded` bounds what rounding may have done to it; the `_half` ones are narrow
/// storage types that accumulate in the other.
enum class DType : uint8_t {
  f32,
  f64,
  bf16,
  i64,
  f16,
  u8,
  dual,
  counted,
  counted_half,
  rounded,
  rounded_half
};
inline constexpr int kDTypes = 11;

/// bfloat16: the upper half of a float, rounded to nearest, ties to even. A storage type: convert
/// to float to compute.
struct bf16 {
  uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float v) {
    const uint32_t u = std::bit_cast<uint32_t>(v);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? static_cast<uint16_t>((u >> 16) | 0x40u)
               : static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

/// IEEE half precision, a storage type.
struct f16 {
  uint16_t bits = 0;
  f16() = default;
  explicit f16(float v);
  explicit operator float() const;
};

struct Dual;
struct Counted;
struct CountedHalf;
struct Rounded;
struct RoundedHalf;

template <class T>
struct ScalarTraits;  // dtype: its tag; acc: what sums of it are kept in
template <DType D, class A>
struct ScalarTraitsOf {
  static constexpr DType dtype = D;
  using acc = A;
};
template <>
struct ScalarTraits<float> : ScalarTraitsOf<DType::f32, float> {};
template <>
struct ScalarTraits<double> : ScalarTraitsOf<DType::f64, double> {};
template <>
struct ScalarTraits<bf16> : ScalarTraitsOf<DType::bf16, float> {};
template <>
struct ScalarTraits<f16> : ScalarTraitsOf<DType::f16, float> {};
template <>
struct ScalarTraits<int64_t> : ScalarTraitsOf<DType::i64, int64_t> {};
template <>
struct ScalarTraits<uint8_t> : ScalarTraitsOf<DType::u8, uint8_t> {};
template <>
struct ScalarTraits<Dual> : ScalarTraitsOf<DType::dual, Dual> {};
template <>
struct ScalarTraits<Counted> : ScalarTraitsOf<DType::counted, Counted> {};
template <>
struct ScalarTraits<CountedHalf> : ScalarTraitsOf<DType::counted_half, Counted> {};
template <>
struct ScalarTraits<Rounded> : ScalarTraitsOf<DType::rounded, Rounded> {};
template <>
struct ScalarTraits<RoundedHalf> : ScalarTraitsOf<DType::rounded_half, Rounded> {};

/// The type that sums over T accumulate in: f32 for bf16 and f32, f64 for f64.
template <class T>
using acc_t = typename ScalarTraits<T>::acc;
template <class T>
inline constexpr DType dtype_of = ScalarTraits<T>::dtype;

constexpr size_t size_of(DType t) {
  constexpr size_t sizes[kDTypes] = {4, 8, 2, 8, 2, 1, 16, 16, 8, 32, 16};
  return sizes[static_cast<int>(t)];
}
/// The element type of acc_t: row statistics are stored in it.
constexpr DType acc_dtype(DType t) {
  if (t == DType::bf16 || t == DType::f16) return DType::f32;
  if (t == DType::rounded_half) return DType::rounded;
  return t == DType::counted_half ? DType::counted : t;
}
constexpr bool is_floating(DType t) { return t != DType::i64 && t != DType::u8; }
constexpr std::string_view name(DType t) {
  constexpr std::string_view names[kDTypes] = {"f32",          "f64",     "bf16",        "i64",
                                               "f16",          "u8",      "dual",        "counted",
                                               "counted_half", "rounded", "rounded_half"};
  return names[static_cast<int>(t)];
}
inline std::string to_text(DType t) { return std::string(name(t)); }

/// Element type by name ("f32", "f64", "bf16", "i64", "f16", "u8"). Throws Error for another name.
DType parse_dtype(std::string_view text);

}  // namespace tally
