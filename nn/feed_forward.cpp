#include "nn/feed_forward.h"

namespace tally::nn {

FeedForward::FeedForward(const FeedForwardOptions& o, DType dtype, Device device) : options_(o) {
  const auto make = [&](Matrix& m, int64_t out, int64_t in) {
    m.weight = empty({out, in}, dtype, device);
    if (o.bias) m.bias = empty({out}, dtype, device);
  };
  const bool fused = o.gated && o.fused;
  if (o.gated && !fused) make(gate, o.d_ff, o.d_model);
  make(up, fused ? 2 * o.d_ff : o.d_ff, o.d_model);
  make(down, o.d_model, o.d_ff);
}

void FeedForward::visit(Visitor& v) {
  v.parameter("gate.weight", gate.weight);
  v.parameter("gate.bias", gate.bias);
  const bool fused = options_.gated && options_.fused;
  v.parameter(fused ? "gate_up.weight" : "up.weight", up.weight);
  v.parameter(fused ? "gate_up.bias" : "up.bias", up.bias);
  v.parameter("down.weight", down.weight);
  v.parameter("down.bias", down.bias);
}

}  // namespace tally::nn
