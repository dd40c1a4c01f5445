#include "nn/positions.h"

#include <algorithm>
#include <numeric>

#include "autograd/functional.h"

namespace tally::nn {
namespace {

int64_t turning(int64_t rotary_dim, int64_t head_dim) { return rotary_dim ? rotary_dim : head_dim; }

}  // namespace

PositionScheme::PositionScheme(const PositionOptions& o, const Sizes& sizes, DType dtype,
                               Device device)
    : options_(o), sizes_(sizes), dtype_(dtype), device_(device) {
  const int64_t context = sizes.context;
  const DType exact = acc_dtype(dtype);
  if (o.kind == PositionKind::learned)
    weight = empty({o.offset + context, sizes.d_model}, dtype, device);
  if (o.kind == PositionKind::t5_bias) weight = empty({o.buckets, sizes.heads}, dtype, device);
  const bool by_distance = o.kind == PositionKind::xl_relative;
  if (o.kind == PositionKind::sinusoidal || by_distance) {
    const Sinusoid order = by_distance ? Sinusoid::halves : o.sinusoid;
    sinusoids_ = to(sinusoidal_table(context, sizes.d_model, order, exact, device), dtype);
  }
  if (o.kind != PositionKind::rope) return;
  const auto table = [&](double base, int64_t dim, const RopeScaling& scaling) {
    return rope_table(RopeRows{0, context, o.arithmetic},
                      rope_turns(turning(dim, sizes.head_dim), base, scaling, 0, o.arithmetic),
                      exact, device);
  };
  const auto has = [&](LayerPositions kind) {
    return std::find(o.layers.begin(), o.layers.end(), kind) != o.layers.end();
  };
  if (!follows_length(o.scaling.kind)) table_ = table(o.base, o.rotary_dim, o.scaling);
  if (has(LayerPositions::local)) local_ = table(o.local_base, o.local_rotary_dim, {});
}

Tensor PositionScheme::add_to(const Tensor& x, int64_t first) const {
  const int64_t count = x.size(1);
  if (options_.kind == PositionKind::sinusoidal) return add(x, sinusoids_.narrow(0, first, count));
  if (options_.kind != PositionKind::learned) return x;
  std::vector<int64_t> places(static_cast<size_t>(count));
  std::iota(places.begin(), places.end(), options_.offset + first);
  return add(x, embedding(from_host<int64_t>(places, {count}, device_), weight));
}

PositionScheme::Pass PositionScheme::pass(int64_t first, int64_t count) const {
  Pass p;
  if (options_.kind == PositionKind::t5_bias) {
    const ModuleScope scope("position");
    p.global.bias =
        relative_bias(weight, count, first + count, options_.two_sided, options_.max_distance);
  }
  if (options_.kind == PositionKind::xl_relative)
    p.global.distances = sinusoids_.narrow(0, 0, first + count);
  if (options_.kind != PositionKind::rope) return p;
  p.local = {local_, first, {}, {}};
  if (!follows_length(options_.scaling.kind)) {
    p.global = {table_, first, {}, {}};
    return p;
  }
  const RopeTurns turns = rope_turns(turning(options_.rotary_dim, sizes_.head_dim), options_.base,
                                     options_.scaling, first + count, options_.arithmetic);
  p.global.table =
      rope_table(RopeRows{first, count, options_.arithmetic}, turns, acc_dtype(dtype_), device_);
  return p;
}

const Positions& PositionScheme::of_layer(const Pass& pass, int64_t i) const {
  switch (options_.of_layer(i)) {
    case LayerPositions::global:
      return pass.global;
    case LayerPositions::local:
      return pass.local;
    case LayerPositions::none:
      break;
  }
  return pass.none;
}

bool PositionScheme::may_outdate_cache() const {
  return options_.kind == PositionKind::rope && options_.scaling.kind == RopeScalingKind::longrope;
}
bool PositionScheme::outdates_cache(int64_t cached, int64_t count) const {
  const int64_t original = options_.scaling.original_context;
  return may_outdate_cache() && cached > 0 && cached <= original && cached + count > original;
}

}  // namespace tally::nn
