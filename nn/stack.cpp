#include "nn/stack.h"

#include "autograd/checkpoint.h"
#include "autograd/functional.h"

namespace tally::nn {
namespace {

Norm stack_norm(const StackOptions& o, bool present, DType dtype, Device device) {
  return {norm_if(present, o.norm), o.attention.d_model, dtype, device};
}

CrossAttentionOptions over_memory(const StackOptions& o) {
  CrossAttentionOptions a = o.attention;
  a.d_memory = o.d_memory;
  a.causal = false, a.scores = {};
  return a;
}

const PositionOptions& checked_positions(const StackOptions& o) {
  const PositionKind kind = o.positions.kind;
  check(kind == PositionKind::none || kind == PositionKind::learned ||
            kind == PositionKind::sinusoidal || kind == PositionKind::t5_bias,
        "stack: positions of encoders and encoder-decoders are none, learned, sinusoidal or "
        "t5_bias; choose one of these");
  check(kind != PositionKind::t5_bias || o.positions.two_sided != o.attention.causal,
        "stack: buckets of T5's bias are two-sided where tokens see what follows, and one-sided "
        "where attention is causal; set positions.two_sided to the opposite of attention.causal");
  return o.positions;
}

Tensor dropped(const Tensor& x, double p, Generator* dropout, const Tensor& residual = {}) {
  if (dropout && p > 0) return tally::dropout(x, p, *dropout, residual);
  return residual.defined() ? add(residual, x) : x;
}

}  // namespace

Stack::Layer::Layer(const StackOptions& o, DType dtype, Device device)
    : attention_norm(stack_norm(o, true, dtype, device)),
      attention(o.attention, dtype, device),
      cross_norm(stack_norm(o, o.d_memory > 0, dtype, device)),
      mlp_norm(stack_norm(o, true, dtype, device)),
      mlp(o.mlp, dtype, device) {
  if (o.d_memory > 0) cross_attention.emplace(over_memory(o), dtype, device);
}

void Stack::Layer::visit(Visitor& v) {
  v.child("attention_norm", attention_norm);
  v.child("attention", attention);
  v.child("cross_norm", cross_norm);
  if (cross_attention) v.child("cross_attention", *cross_attention);
  v.child("mlp_norm", mlp_norm);
  v.child("mlp", mlp);
}

Stack::Stack(const StackOptions& o, DType dtype, Device device)
    : position(checked_positions(o),
               {o.attention.d_model, o.attention.heads, o.attention.head_dim, o.context}, dtype,
               device),
      embedding_norm(stack_norm(o, o.embedding_norm, dtype, device)),
      final_norm(stack_norm(o, o.final_norm, dtype, device)),
      options_(o),
      dtype_(dtype),
      device_(device) {
  StackOptions layer = o;
  for (size_t i = 0; i < static_cast<size_t>(o.layers); ++i) {
    if (!o.scores.empty()) layer.attention.scores = o.scores[i % o.scores.size()];
    layers.push_back(std::make_unique<Layer>(layer, dtype, device));
  }
}

// A layer whose attention over itself and over the memory are own(stream) and over(stream).
template <class Own, class Over>
Tensor Stack::through(const Layer& layer, Tensor x, const Own& own, const Over& over,
                      Generator* dropout) const {
  const auto branch = [&](const Norm& norm, const char* name, const auto& f) {
    const auto normed = [&](const Tensor& t) {
      const ModuleScope scope(name);
      return norm.forward(t);
    };
    const auto added = [&](const Tensor& seen) {
      return dropped(f(seen), options_.dropout, dropout, x);
    };
    x = options_.post_norm ? normed(added(x)) : added(normed(x));
  };
  branch(layer.attention_norm, "attention_norm", [&](const Tensor& seen) {
    const ModuleScope scope("attention");
    return own(seen);
  });
  if (layer.cross_attention) {
    branch(layer.cross_norm, "cross_norm", [&](const Tensor& seen) {
      const ModuleScope scope("cross_attention");
      return over(seen);
    });
  }
  branch(layer.mlp_norm, "mlp_norm", [&](const Tensor& seen) { return layer.mlp.forward(seen); });
  return x;
}

Tensor Stack::enter(const Tensor& x, int64_t first, Generator* dropout) const {
  check(x.defined() && x.ndim() == 3 && x.size(2) == options_.attention.d_model,
        "stack: x must be (B, T, D) with D = ", options_.attention.d_model, "; got ",
        x.defined() ? x.shape() : Shape{}, in_module());
  check(first + x.size(1) <= options_.context, "stack: the context holds ", options_.context,
        " tokens; got ", first, " before and ", x.size(1), " now", in_module(),
        "; shorten the text, or make the context longer");
  const Tensor placed = position.add_to(x, first);
  return dropped(embedding_norm.forward(placed), options_.embedding_dropout, dropout);
}

Tensor Stack::leave(const Tensor& x) const {
  const ModuleScope scope("final_norm");
  return final_norm.forward(x);
}

Tensor Stack::forward(const Tensor& tokens, const Tensor& mask, const Memory& memory,
                      Generator* dropout, const Tensor& documents) const {
  check(memory.values.defined() == (options_.d_memory > 0), "stack: ",
        options_.d_memory > 0 ? "its layers look at a memory, which is missing"
                              : "its layers look at no memory, and one is given",
        in_module());
  Tensor x = enter(tokens, 0, dropout);
  const Tensor bias = position.pass(0, x.size(1)).global.bias;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& l = *layers[i];
    const ModuleScope scope("layers", static_cast<int>(i));
    const auto run = [this, &l, mask, documents, hidden = memory.mask](
                         const Tensor& in, const Tensor& scores, const Tensor& read,
                         Generator* streams) {
      const auto own = [&](const Tensor& seen) {
        return l.attention.forward(seen, seen, mask, scores, streams, documents);
      };
      const auto over = [&](const Tensor& seen) {
        return l.cross_attention->forward(seen, read, hidden, {}, streams);
      };
      return through(l, in, own, over, streams);
    };
    const bool again = i < recompute.size() && recompute[i];
    x = again ? checkpoint(run, dropout, x, bias, memory.values)
              : run(x, bias, memory.values, dropout);
  }
  return leave(x);
}

StackCache Stack::make_cache(const Memory& memory, int64_t batch, int64_t capacity) const {
  check(options_.attention.causal, "stack: only causal attention can be continued from a cache");
  const CrossAttentionOptions& a = options_.attention;
  StackCache cache{
      {options_.layers, batch, capacity, a.kv_heads, a.head_dim, dtype_, device_}, {}, memory.mask};
  for (const auto& layer : layers) {
    if (layer->cross_attention)
      cache.memory.push_back(layer->cross_attention->remember(memory.values));
  }
  return cache;
}

Tensor Stack::forward_cached(const Tensor& tokens, StackCache& cache) const {
  const PauseTape values_only;
  const int64_t first = cache.tokens.length();
  Tensor x = enter(tokens, first, nullptr);
  const Tensor bias = position.pass(first, x.size(1)).global.bias;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& l = *layers[i];
    const ModuleScope scope("layers", static_cast<int>(i));
    const auto own = [&](const Tensor& seen) {
      return l.attention.forward_cached(seen, bias, cache.tokens.layer(static_cast<int64_t>(i)));
    };
    const auto over = [&](const Tensor& seen) {
      return l.cross_attention->recall(seen, cache.memory[i], cache.memory_mask, {});
    };
    x = through(l, x, own, over, nullptr);
  }
  return leave(x);
}

void Stack::visit(Visitor& v) {
  v.child("position", position);
  v.child("embedding_norm", embedding_norm);
  for (size_t i = 0; i < layers.size(); ++i) v.child("layers." + std::to_string(i), *layers[i]);
  v.child("final_norm", final_norm);
}

}  // namespace tally::nn
