// Layers with every option beside every other, and around the sizes that break loops.
#include "autograd/samples/grid.h"
#include "nn/compositions.h"
#include "nn/cross_attention.h"
#include "nn/samples.h"

namespace tally::nn {
namespace {

using samples::add_numbers;
using samples::add_views;
using samples::Numbers;
using samples::row_layouts;

enum class MlpForm : uint8_t { plain, separate, fused };
constexpr const char* kMlpForms[] = {"plain", "gated", "gated by one matrix"};

// x (.., D) through F hidden numbers.
Sample feed_forward_of(const std::string& name, const FeedForwardLayer::Attrs& a, MlpForm form,
                       bool bias, const Shape& x, int64_t f) {
  const int64_t d = x[-1], rows = form == MlpForm::fused ? 2 * f : f;
  const auto row = [&](int64_t n, uint64_t seed) { return bias ? normal({n}, seed) : absent(); };
  const bool gate = form == MlpForm::separate;
  Sample s = sample<FeedForwardLayer>(
      name, a,
      {normal(x, 1), gate ? normal({f, d}, 2) : absent(), gate ? row(f, 3) : absent(),
       normal({rows, d}, 4), row(rows, 5), normal({d, f}, 6), row(d, 7), absent(), absent()});
  s.derived = true;
  return s;
}

void add_feed_forward_grid(std::vector<Sample>& all) {
  for (int k = 0; k < ops::kActivations; ++k) {
    for (int f = 0; f < 3; ++f) {
      for (const bool bias : {false, true}) {
        const auto kind = static_cast<ops::ActivationKind>(k);
        const auto form = static_cast<MlpForm>(f);
        const FeedForwardLayer::Attrs a{kind, form != MlpForm::plain};
        const std::string name =
            std::string(ops::kActivationNames[k]) + ", " + kMlpForms[f] + (bias ? ", biases" : "");
        Sample s = feed_forward_of(name, a, form, bias, {2, 3, 4}, 5);
        s.composition = form == MlpForm::plain      ? plain_composition(kind)
                        : form == MlpForm::separate ? gated_composition(kind)
                                                    : fused_composition(kind, 5);
        all.push_back(std::move(s));
      }
    }
  }
  for (int f = 0; f < 3; ++f) {
    const auto form = static_cast<MlpForm>(f);
    const FeedForwardLayer::Attrs a{ops::ActivationKind::swish, form != MlpForm::plain, 1.7, 0, 0};
    for (const Shape& x : {Shape{1, 1}, {0, 3}, {2, 0, 3}, {9, 2}, {1, 17}, {2, 1, 9}})
      all.push_back(
          feed_forward_of(std::string(kMlpForms[f]) + " of " + to_text(x), a, form, true, x, 3));
    const Sample base =
        feed_forward_of(std::string(kMlpForms[f]) + " 3 x 5", a, form, true, {3, 5}, 9);
    add_views(all, base, row_layouts(), {0});
    add_numbers(all, base, {Numbers::zeros, Numbers::tiny, Numbers::large, Numbers::steps});
  }
  const FeedForwardLayer::Attrs limited{ops::ActivationKind::swish, true, 1.7, 0.8, 1};
  all.push_back(feed_forward_of("limits and an offset", limited, MlpForm::fused, true, {3, 5}, 4));
  all.push_back(
      feed_forward_of("limits, two matrices", limited, MlpForm::separate, true, {3, 5}, 4));
}

struct AttentionForm {
  bool fused = true, bias = false, turned = false, gated = false, sink = false;
  const char* norm = "";  // of queries and keys
};

// The layer on x (B,T,D) with what a form has.
Sample attention_layer_of(const std::string& name, AttentionLayer::Attrs a, const AttentionForm& f,
                          const Shape& x) {
  const int64_t d = x[-1], q = a.heads * a.head_dim, g = a.kv_heads * a.head_dim;
  const auto row = [&](int64_t n, uint64_t seed) { return f.bias ? normal({n}, seed) : absent(); };
  const auto own = [&](int64_t n, uint64_t seed) {
    return f.fused ? absent() : normal({n, d}, seed);
  };
  const std::string norm = f.norm;
  const bool head = norm == "head", full = norm == "full";
  if (head) a.qk_norm = {QKNorm::Width::head, {NormKind::rms_norm, 0.1}};
  if (full) a.qk_norm = {QKNorm::Width::full, {NormKind::layer_norm, 0.1, true}};
  const auto gain = [&](int64_t n, bool there, uint64_t seed) {
    return there ? normal({head ? a.head_dim : n}, seed, 0.3, 1) : absent();
  };
  const int64_t rows = f.fused ? q + 2 * g : q;
  Sample s = sample<AttentionLayer>(
      name, a,
      {normal(x, 1), normal({rows, d}, 2), row(rows, 3), own(g, 4), f.fused ? absent() : row(g, 5),
       own(g, 6), f.fused ? absent() : row(g, 7), normal({d, q}, 8), row(d, 9),
       f.turned ? angles(x[1] + 1, a.head_dim) : absent(), absent(), gain(q, head || full, 10),
       gain(q, full, 11), gain(g, head || full, 12), gain(g, full, 13),
       f.sink ? normal({a.heads}, 14) : absent(), f.gated ? normal({q, d}, 15) : absent(), absent(),
       absent()});
  s.composition = attention_composition(a);
  s.derived = true;
  return s;
}

void add_attention_grid(std::vector<Sample>& all) {
  for (int options = 0; options < 32; ++options) {
    for (const char* norm : {"", "head", "full"}) {
      AttentionForm f{(options & 1) != 0, (options & 2) != 0,  (options & 4) != 0,
                      (options & 8) != 0, (options & 16) != 0, norm};
      // Without positions a shift of all keys cancels in the softmax: its gradient is 0.
      f.turned = f.turned || (f.bias && !f.fused) || f.norm == std::string("full");
      const auto a = attention_attrs(4, options & 1 ? 2 : 4, 2);
      Sample s = attention_layer_of("options " + to_text(options) + " " + norm, a, f, {1, 3, 4});
      all.push_back(std::move(s));
    }
  }
  const AttentionForm turned{true, false, true};
  auto window = attention_attrs(2, 1, 4), capped = window, full = window, alibi = window,
       dropped = window, scaled = window, later = window, pairs = window;
  window.attention.window = 2;
  capped.attention.soft_cap = 1.5;
  full.attention.causal = false;
  alibi.attention.alibi = 1;
  dropped.attention.dropout = {0.3, 5, 6};
  scaled.attention.scale = 0.3;
  later.rope.offset = 1;
  pairs.rope.pairs = ops::RotaryPairs::interleaved;
  for (const auto& [name, a] : {std::pair{"window", window},
                                {"soft cap", capped},
                                {"all keys", full},
                                {"ALiBi", alibi},
                                {"dropout", dropped},
                                {"scale", scaled},
                                {"later positions", later},
                                {"interleaved pairs", pairs}}) {
    all.push_back(attention_layer_of(name, a, turned, {2, 4, 5}));
    all.push_back(
        attention_layer_of(std::string(name) + ", separate", a, {false, false, true}, {1, 3, 4}));
  }
  for (const Shape& x : {Shape{1, 1, 1}, {2, 0, 3}, {0, 2, 3}, {1, 9, 2}, {1, 2, 17}, {3, 1, 9}})
    all.push_back(attention_layer_of("x " + to_text(x), attention_attrs(2, 1, 2), turned, x));
  const Sample base = attention_layer_of("3 tokens", attention_attrs(2, 1, 4), turned, {1, 3, 5});
  add_views(all, base, row_layouts(), {0});
  add_numbers(all, base, {Numbers::zeros, Numbers::tiny, Numbers::steps});
}

// x (B,T,D) over a memory (B,S,E).
Sample cross_attention_of(const std::string& name, const CrossAttentionLayer::Attrs& a, bool fused,
                          bool bias, const Shape& x, const Shape& memory) {
  const int64_t d = x[-1], e = memory[-1], q = a.heads * a.head_dim, g = a.kv_heads * a.head_dim;
  const int64_t keys = fused ? 2 * g : g;
  const auto row = [&](int64_t n, uint64_t seed) { return bias ? normal({n}, seed) : absent(); };
  Sample s = sample<CrossAttentionLayer>(
      name, a,
      {normal(x, 1), normal(memory, 2), normal({q, d}, 3, 0.5), row(q, 4),
       normal({keys, e}, 5, 0.5), fused ? row(keys, 6) : absent(),
       fused ? absent() : normal({g, e}, 7), fused ? absent() : row(g, 8), normal({d, q}, 9),
       row(d, 10), absent(), absent(), absent()});
  s.derived = true;
  return s;
}

void add_cross_attention_grid(std::vector<Sample>& all) {
  CrossAttentionLayer::Attrs grouped, window, scaled;
  grouped.heads = 4, grouped.kv_heads = 2, grouped.head_dim = 2;
  grouped.attention.causal = false;
  window = scaled = grouped;
  window.attention.causal = true, window.attention.window = 2;
  scaled.attention.scale = 0.7, scaled.attention.soft_cap = 2;
  for (const auto& [name, a] :
       {std::pair{"grouped", grouped}, {"window", window}, {"scale and cap", scaled}}) {
    for (const bool fused : {false, true}) {
      for (const bool bias : {false, true}) {
        const std::string what = std::string(name) + (fused ? ", one matrix" : ", two matrices") +
                                 (bias ? ", biases" : "");
        all.push_back(cross_attention_of(what, a, fused, bias, {2, 3, 4}, {2, 4, 3}));
      }
    }
  }
  for (const auto& [x, memory] : {std::pair{Shape{1, 1, 1}, Shape{1, 1, 1}},
                                  {{0, 2, 3}, {0, 3, 2}},
                                  {{1, 0, 3}, {1, 3, 2}},
                                  {{1, 2, 17}, {1, 9, 3}},
                                  {{1, 9, 3}, {1, 2, 17}}}) {
    all.push_back(cross_attention_of("x " + to_text(x) + " over " + to_text(memory), grouped, true,
                                     true, x, memory));
  }
  const Sample base = cross_attention_of("3 over 4", grouped, true, false, {1, 3, 5}, {1, 4, 3});
  add_views(all, base, row_layouts(), {0, 1});
  add_numbers(all, base, {Numbers::zeros, Numbers::tiny, Numbers::steps});
}

Sample parallel_of(const std::string& name, const ParallelLayer::Attrs& a, bool bias, bool turned,
                   const Shape& x) {
  const int64_t d = x[-1], q = a.attention.heads * a.attention.head_dim;
  const auto row = [&](int64_t n, uint64_t seed) { return bias ? normal({n}, seed) : absent(); };
  Sample s = sample<ParallelLayer>(
      name, a,
      {normal(x, 1), normal({a.rows(), d}, 2), row(a.rows(), 3), normal({d, q}, 4), row(d, 5),
       normal({d, a.d_ff}, 6), row(d, 7), turned ? angles(x[1], a.attention.head_dim) : absent(),
       absent(), absent(), absent(), absent(), absent(), absent()});
  s.composition = parallel_composition(a);
  s.derived = true;
  return s;
}

void add_parallel_grid(std::vector<Sample>& all) {
  for (int options = 0; options < 16; ++options) {
    ParallelLayer::Attrs a;
    a.attention = attention_attrs(2, options & 1 ? 1 : 2, 2);
    a.d_ff = 3;
    a.mlp.gated = (options & 2) != 0;
    a.mlp.activation = options & 2 ? ops::ActivationKind::silu : ops::ActivationKind::gelu;
    const bool bias = (options & 4) != 0, turned = (options & 8) != 0;
    Sample s = parallel_of("options " + to_text(options), a, bias, turned, {2, 3, 4});
    all.push_back(std::move(s));
  }
  ParallelLayer::Attrs a;
  a.attention = attention_attrs(2, 1, 2), a.d_ff = 5;
  ParallelLayer::Attrs window = a;
  window.attention.attention.window = 2, window.attention.attention.soft_cap = 2;
  window.mlp.activation = ops::ActivationKind::swish, window.mlp.parameter = 1.7;
  Sample s = parallel_of("window, cap, swish", window, false, true, {2, 4, 3});
  s.composition = nullptr;  // the plain one has no parameter
  all.push_back(std::move(s));
  for (const Shape& x : {Shape{1, 1, 1}, {2, 0, 3}, {0, 2, 3}, {1, 9, 2}, {1, 2, 17}})
    all.push_back(parallel_of("x " + to_text(x), a, false, true, x));
  const Sample base = parallel_of("3 tokens", a, false, true, {1, 3, 5});
  add_views(all, base, row_layouts(), {0});
  add_numbers(all, base, {Numbers::zeros, Numbers::tiny, Numbers::steps});
}

}  // namespace

void add_layer_grid(std::vector<Sample>& all) {
  add_feed_forward_grid(all);
  add_attention_grid(all);
  add_cross_attention_grid(all);
  add_parallel_grid(all);
}

}  // namespace tally::nn
