#pragma once
#include <cstdint>
#include <string>

namespace tally {

/// The classes by which time and work are reported (lecture claims L20, L21).
enum class Kind : uint8_t { contraction, normalization, elementwise, movement };
inline constexpr int kKinds = 4;
inline std::string to_text(Kind k) {
  constexpr const char* names[kKinds] = {"contraction", "normalization", "elementwise", "movement"};
  return names[static_cast<int>(k)];
}

/// What a call does, as a function of shapes, types and attributes alone.
///   flops: + - * / sqrt exp log tanh sin cos erf erfc pow are one each; comparisons, negation,
///     conversion and integer work none: what the reference loops execute.
///   bytes: each input element read once and each output element written once, in its storage type;
///     a gather is charged per index.
struct Cost {
  double flops = 0, bytes_read = 0, bytes_written = 0;
  bool operator==(const Cost&) const = default;
};
inline Cost operator+(const Cost& a, const Cost& b) {
  return {a.flops + b.flops, a.bytes_read + b.bytes_read, a.bytes_written + b.bytes_written};
}
inline Cost& operator+=(Cost& a, const Cost& b) { return a = a + b; }

/// The field's convention for utilisation: products only, a multiply-add counts two. `full` charges
/// attention for the whole square, `causal` for what its mask leaves.
struct ModelFlops {
  double full = 0, causal = 0;
};
inline ModelFlops& operator+=(ModelFlops& a, const ModelFlops& b) {
  a.full += b.full;
  a.causal += b.causal;
  return a;
}

}  // namespace tally
