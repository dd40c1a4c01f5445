#include "models/convert.h"

#include <algorithm>

#include "core/error.h"
#include "models/config_positions.h"

namespace tally {
namespace {

bool has(const std::string& name, std::string_view part) {
  return name.find(part) != std::string::npos;
}

/// The rows of queries, of keys and of values in one parameter, [0, rows) each; 0 where it has none.
struct HeadRows {
  int64_t q = 0, k = 0, v = 0;
  bool any() const { return q + k + v > 0; }
};
HeadRows head_rows(const ModelConfig& c, const std::string& name) {
  const int64_t q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  if (has(name, ".attention.qkv.")) return {q, kv, kv};
  if (has(name, ".attention.q.")) return {q, 0, 0};
  if (has(name, ".attention.k.")) return {0, kv, 0};
  if (has(name, ".attention.v.")) return {0, 0, kv};
  return {};
}

/// Copies rows [from, from + count).
void keep(std::span<const float> before, int64_t from, int64_t count, int64_t columns,
          std::vector<float>& out) {
  const auto rows =
      before.subspan(static_cast<size_t>(from * columns), static_cast<size_t>(count * columns));
  out.insert(out.end(), rows.begin(), rows.end());
}

/// The mean of each `times` heads that follow each other, rows from `from` on.
void pool(std::span<const float> before, int64_t from, int64_t groups, int64_t times,
          int64_t head_dim, int64_t columns, std::vector<float>& out) {
  const int64_t size = head_dim * columns;
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t i = 0; i < size; ++i) {
      double sum = 0;
      for (int64_t h = 0; h < times; ++h)
        sum += static_cast<double>(
            before[static_cast<size_t>(from * columns + (g * times + h) * size + i)]);
      out.push_back(static_cast<float>(sum / static_cast<double>(times)));
    }
  }
}

/// Row of a head in the old order that becomes row `i` in the new one; rows from R on stay.
int64_t source_row(int64_t i, int64_t turning, RopeLayout to) {
  if (i >= turning) return i;
  const int64_t half = turning / 2;
  if (to == RopeLayout::interleaved) return i % 2 == 0 ? i / 2 : half + i / 2;
  return i < half ? 2 * i : 2 * (i - half) + 1;
}

/// Heads of `rows` rows in the new order.
void permute(std::span<const float> before, int64_t from, int64_t rows, int64_t head_dim,
             int64_t columns, int64_t turning, RopeLayout to, std::vector<float>& out) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t head = r / head_dim * head_dim;
    keep(before, from + head + source_row(r % head_dim, turning, to), 1, columns, out);
  }
}

}  // namespace

Conversion with_kv_heads(const ModelConfig& c, int64_t kv_heads) {
  check(c.attention == AttentionKind::heads,
        "convert: only the heads of attention = heads are pooled");
  check(kv_heads >= 1 && c.kv_heads % kv_heads == 0, "convert: kv_heads = ", kv_heads,
        " must divide the ", c.kv_heads, " heads of keys and values that there are");
  check(c.qk_norm == QKNorm::none || c.qk_norm == QKNorm::head,
        "convert: keys with a norm over all heads, or with gains of each head, cannot be pooled; "
        "only qk_norm = none or head can");
  check(!c.fused_parallel && c.position != Position::xl_relative,
        "convert: fused_parallel and xl_relative models cannot be pooled");
  Conversion result{c, nullptr};
  result.config.kv_heads = kv_heads;
  result.parameter = [c, kv_heads](const std::string& name, std::span<const float> before) {
    const HeadRows rows = head_rows(c, name);
    std::vector<float> out;
    if (!rows.any()) return out.assign(before.begin(), before.end()), out;
    const int64_t columns = static_cast<int64_t>(before.size()) / (rows.q + rows.k + rows.v);
    const int64_t times = c.kv_heads / kv_heads;
    keep(before, 0, rows.q, columns, out);
    if (rows.k > 0) pool(before, rows.q, kv_heads, times, c.head_dim, columns, out);
    if (rows.v > 0) pool(before, rows.q + rows.k, kv_heads, times, c.head_dim, columns, out);
    return out;
  };
  return result;
}

Conversion with_rope_layout(const ModelConfig& c, RopeLayout layout) {
  check(c.position == Position::rope,
        "convert: only rotary positions (position = rope) have a layout");
  check(c.attention == AttentionKind::heads,
        "convert: only heads of attention = heads are permuted");
  check(c.rope_layout != layout, "convert: rope_layout is ",
        enum_names(RopeLayout{})[static_cast<size_t>(layout)], " already");
  check(!c.fused_parallel && c.qk_norm != QKNorm::full,
        "convert: fused_parallel and qk_norm = full models cannot be permuted");
  Conversion result{c, nullptr};
  result.config.rope_layout = layout;
  result.parameter = [c, layout](const std::string& name, std::span<const float> before) {
    const int64_t turning = rotary_dim(c);
    HeadRows rows = head_rows(c, name);
    // A gain of a norm of queries or keys goes with its row.
    const bool gain = has(name, ".attention.q_norm.") || has(name, ".attention.k_norm.");
    if (gain) rows = {static_cast<int64_t>(before.size()), 0, 0};
    std::vector<float> out;
    if (!rows.any()) return out.assign(before.begin(), before.end()), out;
    const int64_t columns = static_cast<int64_t>(before.size()) / (rows.q + rows.k + rows.v);
    permute(before, 0, rows.q, c.head_dim, columns, turning, layout, out);
    permute(before, rows.q, rows.k, c.head_dim, columns, turning, layout, out);
    keep(before, rows.q + rows.k, rows.v, columns, out);
    return out;
  };
  return result;
}

}  // namespace tally
