#pragma once
#include "backends/cpu/simd.h"

namespace tally::cpu {
namespace {

/// Rows become columns: v[i] lane j and v[j] lane i change places.
[[gnu::always_inline]] inline void transpose(F32 (&v)[kLanes]) {
#if defined(__AVX512F__)
  F32 t[16];
  for (int i = 0; i < 16; i += 4) {  // 4 x 4 blocks inside each 128-bit quarter
    const F32 a = _mm512_unpacklo_ps(v[i], v[i + 1]), b = _mm512_unpackhi_ps(v[i], v[i + 1]);
    const F32 c = _mm512_unpacklo_ps(v[i + 2], v[i + 3]);
    const F32 d = _mm512_unpackhi_ps(v[i + 2], v[i + 3]);
    t[i] = _mm512_shuffle_ps(a, c, 0x44);
    t[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
    t[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
    t[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
  }
  for (int i = 0; i < 4; ++i) {  // then the quarters themselves
    const F32 a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88);
    const F32 b = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xdd);
    const F32 c = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
    const F32 d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xdd);
    v[i] = _mm512_shuffle_f32x4(a, c, 0x88);
    v[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
    v[i + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
    v[i + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
  }
#elif defined(__AVX2__)
  F32 t[8];
  for (int i = 0; i < 8; i += 4) {
    const F32 a = _mm256_unpacklo_ps(v[i], v[i + 1]), b = _mm256_unpackhi_ps(v[i], v[i + 1]);
    const F32 c = _mm256_unpacklo_ps(v[i + 2], v[i + 3]);
    const F32 d = _mm256_unpackhi_ps(v[i + 2], v[i + 3]);
    t[i] = _mm256_shuffle_ps(a, c, 0x44);
    t[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
    t[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
    t[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
  }
#else
  const F32 a = _mm_unpacklo_ps(v[0], v[1]), b = _mm_unpackhi_ps(v[0], v[1]);
  const F32 c = _mm_unpacklo_ps(v[2], v[3]), d = _mm_unpackhi_ps(v[2], v[3]);
  v[0] = _mm_shuffle_ps(a, c, 0x44);
  v[1] = _mm_shuffle_ps(a, c, 0xee);
  v[2] = _mm_shuffle_ps(b, d, 0x44);
  v[3] = _mm_shuffle_ps(b, d, 0xee);
#endif
}

}  // namespace
}  // namespace tally::cpu
