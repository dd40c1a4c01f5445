#include "core/ops/attention/attention.h"

#include <array>

#include "backends/cpu/attention_args.h"
#include "backends/cpu/attention_parts.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/narrow.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

template <class T = float>
HeadInOf<T> head_in(const In& view, int64_t b, int64_t h) {
  const auto head = ops::head<T>(view, b, h);
  return {head.data, head.row, head.column};
}
template <class T = float>
HeadOutOf<T> head_out(const Out& view, int64_t b, int64_t h) {
  if (!view.defined()) return {};
  const auto head = ops::head<T>(view, b, h);
  return {head.data, head.row, head.column, view.accumulate};
}
float number(const In& view, int64_t i) {
  return view.dtype == DType::bf16 ? static_cast<float>(view.pointer<bf16>()[i])
                                   : view.pointer<float>()[i];
}
template <class Head>
Head from_row(Head head, int64_t t) {
  if (head.data) head.data += t * head.row;
  return head;
}

// The rule for queries [t, t + n) of head h.
AttentionRule rule_of(const ops::AttentionScores& c, int64_t b, int64_t h, int64_t t, int64_t n) {
  AttentionRule r{};
  r.visible = c.visible;
  r.first = t;
  r.queries = n;
  r.keys = c.keys();
  r.head_size = c.head_size();
  r.value_size = c.value_size();
  if (c.mask.defined()) {
    const Shape& s = c.mask.strides;
    r.mask = c.mask.pointer<const uint8_t>() + b * s[0] + h * s[1] + t * s[2];
    r.mask_row = s[2];
    r.mask_column = s[3];
  }
  if (c.documents.defined()) {
    r.documents = c.documents.pointer<const int64_t>() + b * c.documents.strides[0];
    r.document_step = c.documents.strides[1];
  }
  if (c.bias.defined()) {
    const Shape& s = c.bias.strides;
    r.bias = c.bias.pointer<const float>() + b * s[0] + h * s[1] + t * s[2];
    r.bias_row = s[2];
    r.bias_column = s[3];
  }
  if (c.alibi != 0) r.slope = static_cast<float>(-c.alibi * alibi_slope(h, c.heads()));
  r.sink = c.sink.defined() ? number(c.sink, h * c.sink.strides[0]) : -INFINITY;
  r.scale = static_cast<float>(c.scale);
  r.cap = static_cast<float>(c.cap);
  r.dropout = static_cast<float>(c.dropout.p);
  r.seed = c.dropout.seed;
  r.stream = c.dropout.stream;
  r.place = static_cast<uint64_t>(c.place(b, h, t) * c.keys());
  r.place_row = c.keys();
  return r;
}

float* scratch() { return reinterpret_cast<float*>(thread_scratch().data()); }
// Whether the kernels can take it; if not, the reference loops stand in and the ledger says so.
bool fits(const ops::AttentionScores& c) {
  const int64_t k = c.head_size(), m = c.value_size();
  if (std::min(k, m) >= 1 && std::max(k, m) <= kMaxHeadSize) return true;
  recorder().provider = "reference loops";
  return false;
}

// Strides of dbias along (b,h,t,j): 0 where it broadcasts.
std::array<int64_t, 4> bias_strides(const Out& dbias) {
  std::array<int64_t, 4> strides{};
  for (int i = 1; i <= dbias.shape.ndim(); ++i)
    if (dbias.shape[-i] != 1) strides[static_cast<size_t>(4 - i)] = dbias.strides[-i];
  return strides;
}
// Not served backwards: a cap below a bias (the cap's slope is read off from the score), and sums
// of dbias over heads, queries or keys.
bool fits_backward(const ops::AttentionBackward& c) {
  const auto step = bias_strides(c.dbias);
  const bool sums =
      c.dbias.defined() && ((step[1] == 0 && c.heads() > 1) || (step[2] == 0 && c.tokens() > 1) ||
                            (step[3] == 0 && c.keys() > 1));
  const bool capped = c.cap > 0 && (c.bias.defined() || c.alibi != 0);
  if (!sums && !capped) return fits(c);
  recorder().provider = "reference loops";
  return false;
}

// The rule for queries [t, t + n) of a part.
AttentionRule part_rule(AttentionRule r, const AttentionPart& part, int64_t t, int64_t n) {
  r.visible = {};
  r.visible.causal = part.causal;
  r.visible.queries = part.queries;
  r.visible.keys = r.keys = part.keys;
  r.first = t;
  r.queries = n;
  if (part.resume) r.sink = -INFINITY;  // it counted before
  return r;
}
template <class Head>
Head every(Head head, int64_t first, int64_t stride) {
  if (head.data) head.data += first * head.row;
  head.row *= stride;
  return head;
}
// Calls f(t, n) for pieces of queries that one call of a kernel takes.
template <class F>
void each_chunk(int64_t queries, F&& f) {
  for (int64_t t = 0; t < queries; t += kAttentionQueries)
    f(t, std::min(kAttentionQueries, queries - t));
}

void forward_of_part(const ops::AttentionForward& c, int64_t b, int64_t h,
                     const AttentionPart& part) {
  const int64_t g = c.group_of(h);
  const AttentionRule rule = rule_of(c, b, h, 0, 0);
  each_chunk(part.queries, [&](int64_t t, int64_t n) {
    const int64_t first = part.first + t * part.step;
    isa().attention_forward(
        {part_rule(rule, part, t, n), every(head_in(c.q, b, h), first, part.step),
         every(head_in(c.k, b, g), part.first_key, part.key_step),
         every(head_in(c.v, b, g), part.first_key, part.key_step),
         every(head_out(c.y, b, h), first, part.step), c.l.pointer<float>() + c.place(b, h, first),
         scratch(), part.step, part.resume});
  });
}

void forward_of_keys(const ops::AttentionForward& c, const ops::AttentionScores& keys) {
  const int64_t chunks = (c.tokens() + kAttentionQueries - 1) / kAttentionQueries;
  parallel_for(c.batch() * c.heads() * chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t t = i % chunks * kAttentionQueries, h = i / chunks % c.heads(),
                    b = i / chunks / c.heads();
      const int64_t n = std::min(kAttentionQueries, c.tokens() - t), g = c.group_of(h);
      isa().attention_forward({rule_of(keys, b, h, t, n), from_row(head_in(c.q, b, h), t),
                               head_in(c.k, b, g), head_in(c.v, b, g),
                               from_row(head_out(c.y, b, h), t),
                               c.l.pointer<float>() + c.place(b, h, t), scratch()});
    }
  });
}

void attention_forward(const ops::AttentionForward& c) {
  if (!fits(c)) return c.reference<float>();
  if (!in_parts(c) || c.y.accumulate) return forward_of_keys(c, c);
  if (c.visible.pattern == ops::KeyPattern::strided) forward_of_keys(c, near_keys(c));
  const int64_t groups = part_groups(c.visible);
  parallel_for(c.batch() * c.heads() * groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t h = i / groups % c.heads(), b = i / groups / c.heads();
      each_part(c.visible, i % groups,
                [&](const AttentionPart& part) { forward_of_part(c, b, h, part); });
    }
  });
}

// bf16: a query at a time, which is what decoding asks for; no bias, which would be bf16 too.
void attention_half(const ops::AttentionForward& c) {
  const auto beside = [](const View& v) { return v.shape[3] <= 1 || v.strides[3] == 1; };
  constexpr int64_t kFewQueries = 8;
  if (c.tokens() > kFewQueries || c.bias.defined() || c.dropout.p > 0 || c.keys() > kMostKeys ||
      !beside(c.q) || !beside(c.k) || !beside(c.v) || !beside(c.y) || !fits(c))
    return through_f32(c);
  const int64_t tokens = c.tokens(), heads = c.heads();
  parallel_for(c.batch() * heads * tokens, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t t = i % tokens, h = i / tokens % heads, b = i / tokens / heads;
      const int64_t g = c.group_of(h);
      isa().attention_half({rule_of(c, b, h, t, 1), from_row(head_in<uint16_t>(c.q, b, h), t),
                            head_in<uint16_t>(c.k, b, g), head_in<uint16_t>(c.v, b, g),
                            from_row(head_out<uint16_t>(c.y, b, h), t),
                            c.l.pointer<float>() + c.place(b, h, t), scratch()});
    }
  });
}

HeadOut bias_head(const Out& dbias, int64_t b, int64_t h) {
  if (!dbias.defined()) return {};
  const auto step = bias_strides(dbias);
  return {dbias.pointer<float>() + b * step[0] + h * step[1], step[2], step[3], true};
}

void backward_of_part(const ops::AttentionBackward& c, int64_t b, int64_t h, const HeadOut& dk,
                      const HeadOut& dv, const AttentionPart& part) {
  const int64_t g = c.group_of(h);
  const AttentionRule rule = rule_of(c, b, h, 0, 0);
  HeadOut dq = head_out(c.dq, b, h);
  dq.add = dq.add || part.resume;
  each_chunk(part.queries, [&](int64_t t, int64_t n) {
    const int64_t first = part.first + t * part.step;
    isa().attention_backward(
        {part_rule(rule, part, t, n), every(head_in(c.q, b, h), first, part.step),
         every(head_in(c.k, b, g), part.first_key, part.key_step),
         every(head_in(c.v, b, g), part.first_key, part.key_step),
         every(head_in(c.y, b, h), first, part.step), every(head_in(c.dy, b, h), first, part.step),
         c.l.pointer<float>() + c.place(b, h, first), every(dq, first, part.step),
         every(dk, part.first_key, part.key_step), every(dv, part.first_key, part.key_step),
         HeadOut{}, scratch(), part.step});
  });
}

void backward_of_keys(const ops::AttentionBackward& c, const ops::AttentionScores& keys, int64_t b,
                      int64_t h, const HeadOut& dk, const HeadOut& dv) {
  const int64_t g = c.group_of(h);
  const HeadOut dbias = bias_head(c.dbias, b, h);
  each_chunk(c.tokens(), [&](int64_t t, int64_t n) {
    isa().attention_backward(
        {rule_of(keys, b, h, t, n), from_row(head_in(c.q, b, h), t), head_in(c.k, b, g),
         head_in(c.v, b, g), from_row(head_in(c.y, b, h), t), from_row(head_in(c.dy, b, h), t),
         c.l.pointer<float>() + c.place(b, h, t), from_row(head_out(c.dq, b, h), t), dk, dv,
         from_row(dbias, t), scratch()});
  });
}

void backward_of_head(const ops::AttentionBackward& c, int64_t b, int64_t h, const HeadOut& dk,
                      const HeadOut& dv) {
  if (!in_parts(c)) return backward_of_keys(c, c, b, h, dk, dv);
  if (c.visible.pattern == ops::KeyPattern::strided)
    backward_of_keys(c, near_keys(c), b, h, dk, dv);
  for (int64_t i = 0; i < part_groups(c.visible); ++i)
    each_part(c.visible, i,
              [&](const AttentionPart& part) { backward_of_part(c, b, h, dk, dv, part); });
}

void clear(const HeadOut& to, int64_t rows, int64_t size) {
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t d = 0; d < size; ++d) to.data[t * to.row + d * to.column] = 0;
  }
}
// The query heads that share a key/value head add to its gradients one after the other.
void backward_of_group(const ops::AttentionBackward& c, int64_t b, int64_t g) {
  const int64_t shared = c.heads() / c.groups();
  const HeadOut dk = head_out(c.dk, b, g), dv = head_out(c.dv, b, g);
  if (dk.data && !dk.add) clear(dk, c.keys(), c.head_size());
  if (dv.data && !dv.add) clear(dv, c.keys(), c.value_size());
  for (int64_t h = g * shared; h < (g + 1) * shared; ++h) backward_of_head(c, b, h, dk, dv);
}

void clear_bias(const ops::AttentionBackward& c, bool one_bias) {
  const int64_t tables = one_bias ? 1 : c.batch();
  parallel_for(tables * c.heads(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      clear(bias_head(c.dbias, i / c.heads(), i % c.heads()), c.tokens(), c.keys());
  });
}

// dsink[h] = -sum exp(sink - l) dy.y over batches and queries: one more pass over y and dy.
void sink_gradient(const ops::AttentionBackward& c) {
  parallel_for(c.heads(), 1, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> list;
    for (int64_t h = begin; h < end; ++h) {
      const float sink = c.sink.pointer<const float>()[h * c.sink.strides[0]];
      double sum = 0;
      for (int64_t b = 0; b < c.batch(); ++b) {
        const auto up = ops::head<float>(c.dy, b, h), out = ops::head<float>(c.y, b, h);
        const float* l = c.l.pointer<float>() + c.place(b, h, 0);
        for (int64_t t = 0; t < c.tokens(); ++t) {
          if (l[t] == -INFINITY) continue;  // neither keys nor a sink
          double mean = 0;
          for (int64_t d = 0; d < c.value_size(); ++d) mean += double(up(t, d)) * double(out(t, d));
          if (std::isnan(mean)) {  // of a query that sees no key it is no part of the sum
            c.list_keys(b, h, t, list);
            if (list.empty()) continue;
          }
          sum += std::exp(double(sink) - double(l[t])) * mean;
        }
      }
      c.dsink.put(c.dsink.pointer<float>()[h * c.dsink.strides[0]], -static_cast<float>(sum));
    }
  });
}

// One task a key/value head; where batches share a bias, one for all of them, in turn.
void attention_backward(const ops::AttentionBackward& c) {
  if (!fits_backward(c)) return c.reference<float>();
  if (c.dsink.defined()) sink_gradient(c);
  if (!c.wants_scores() && !c.dv.defined()) return;
  const bool one_bias = c.dbias.defined() && bias_strides(c.dbias)[0] == 0;
  if (c.dbias.defined() && !c.dbias.accumulate) clear_bias(c, one_bias);
  const int64_t turns = one_bias ? c.batch() : 1, tasks = one_bias ? 1 : c.batch();
  parallel_for(tasks * c.groups(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t turn = 0; turn < turns; ++turn)
        backward_of_group(c, i / c.groups() + turn, i % c.groups());
    }
  });
}

}  // namespace

void register_attention() {
  kernels<ops::AttentionForward>[kCPU.kind][static_cast<size_t>(DType::f32)] = attention_forward;
  kernels<ops::AttentionForward>[kCPU.kind][static_cast<size_t>(DType::bf16)] = attention_half;
  kernels<ops::AttentionBackward>[kCPU.kind][static_cast<size_t>(DType::f32)] = attention_backward;
}

}  // namespace tally::cpu
