#include "core/ops/rope.h"

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

// Tokens are shared out; each turns all its heads by the same row of the table.
template <class Turn>
void rope(const Turn& c, float sign) {
  const Shape &size = c.x.shape, &from = c.x.strides, &to = c.y.strides;
  if (size[3] > 1 && (from[3] != 1 || to[3] != 1)) {  // elements of a head lie apart
    recorder().provider = "reference loops";
    return c.template reference<float>();
  }
  const RopeTurn turn{c.table.cols() / 2, size[3], c.attrs.pairs == ops::RotaryPairs::interleaved,
                      c.y.accumulate, sign};
  const int64_t piece = std::max<int64_t>(1, 8192 / std::max<int64_t>(size[2] * size[3], 1));
  parallel_for(size[0] * size[1], piece, [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n) {
      const int64_t b = n / size[1], t = n % size[1];
      const float* row = c.template table_row<float>(b, t);
      const float* x = c.x.template pointer<float>() + b * from[0] + t * from[1];
      float* y = c.y.template pointer<float>() + b * to[0] + t * to[1];
      for (int64_t h = 0; h < size[2]; ++h)
        isa().rope_turn(turn, x + h * from[2], row, y + h * to[2]);
    }
  });
}

}  // namespace

void register_rope() {
  constexpr size_t f32 = static_cast<size_t>(DType::f32);
  kernels<ops::Rope::Forward>[kCPU.kind][f32] = [](const ops::Rope::Forward& c) { rope(c, 1); };
  kernels<ops::Rope::Backward>[kCPU.kind][f32] = [](const ops::Rope::Backward& c) { rope(c, -1); };
}

}  // namespace tally::cpu
