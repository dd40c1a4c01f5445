// Kernels of the cpu backend against the loops that define them, both called through run() in
// interleaved rounds: the median of the paired ratios.
//   against_loops [rounds]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/features.h"
#include "backends/register_all.h"
#include "core/ops/all.h"
#include "core/parallel.h"

using namespace tally;
using namespace tally::ops;

namespace {

using Tensors = std::vector<Tensor>;
using Call = std::function<void(Device, const Tensors&)>;

double seconds(const Call& call, Device device, const Tensors& in) {
  const auto start = std::chrono::steady_clock::now();
  call(device, in);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

/// A tensor of numbers in 0..1, or of whole numbers below `range`.
struct Input {
  Shape shape;
  int64_t range = 0;
  Tensor on(Device device) const {
    const auto n = static_cast<size_t>(shape.numel());
    std::vector<float> v(n);
    std::vector<int64_t> ids(n);
    for (size_t i = 0; i < n; ++i) {
      v[i] = static_cast<float>((i * 7919) % 1021) / 1021;
      if (range > 0) ids[i] = static_cast<int64_t>(i * 7919 % 1021) % range;
    }
    return range > 0 ? from_host<int64_t>(ids, shape, device) : from_host<float>(v, shape, device);
  }
};

struct Bench {
  int rounds;

  void operator()(const char* name, const std::vector<Input>& inputs, const Call& call) const {
    Tensors ours, loops;
    for (const Input& i : inputs) {
      ours.push_back(i.on(kCPU));
      loops.push_back(i.on(kReference));
    }
    std::vector<double> fast, slow, ratios;
    seconds(call, kCPU, ours);
    for (int round = 0; round < rounds; ++round) {
      slow.push_back(seconds(call, kReference, loops));
      std::vector<double> several;
      for (int i = 0; i < 5; ++i) several.push_back(seconds(call, kCPU, ours));
      fast.push_back(median(several));
      ratios.push_back(slow.back() / fast.back());
    }
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    std::printf("%-34s %9.3f %9.3f %7.1fx (%.1f to %.1f)\n", name, 1e3 * median(fast),
                1e3 * median(slow), median(ratios), *least, *most);
    std::fflush(stdout);
  }
};

void products_and_reductions(const Bench& bench) {
  bench("matmul 64 x (128 x 64 x 128)", {{{64, 128, 64}}, {{64, 64, 128}}},
        [](Device, const auto& in) { MatMul::forward(in[0], in[1], {}, nullptr); });
  bench("its backward", {{{64, 128, 64}}, {{64, 64, 128}}, {{64, 128, 128}}},
        [](Device, const auto& in) {
          MatMul::backward(in[2], {in[0], in[1], {}});
        });
  bench("softmax 4096 x 512", {{{4096, 512}}},
        [](Device, const auto& in) { Softmax::forward(in[0], {}, {}, nullptr); });
  bench("its backward", {{{4096, 512}}, {{4096, 512}}}, [](Device, const auto& in) {
    Softmax::backward(in[0], {in[1], 1});
  });
  const auto reduction = [&]<class Op>(std::type_identity<Op>, const char* name,
                                       const Shape& axes) {
    bench(name, {{{4096, 512}}},
          [axes](Device, const auto& in) { Op::forward(in[0], {axes}, nullptr); });
  };
  reduction(std::type_identity<Sum>{}, "sum over the first of 4096 x 512", {0});
  reduction(std::type_identity<Sum>{}, "sum over the last", {1});
  reduction(std::type_identity<Var>{}, "var over the last", {1});
  reduction(std::type_identity<LogSumExp>{}, "logsumexp over the last", {1});
  reduction(std::type_identity<AMax>{}, "amax over all", {});
  bench("transposed copy", {{{4096, 512}}}, [](Device device, const auto& in) {
    const Tensor x = in[0].transpose(0, 1), y = empty(x.shape(), DType::f32, device);
    run(device, Copy::Call{x, y});
  });
}

const Input kRows{{2048, 384}}, kHidden{{2048, 1024}};

void elements(const Bench& bench) {
  bench("dropout 2048 x 384", {kRows}, [](Device, const auto& in) {
    Dropout::forward(in[0], {}, {0.1, 1, 2}, nullptr);
  });
  bench("dropout added to a residual", {kRows, kRows}, [](Device, const auto& in) {
    Dropout::forward(in[0], in[1], {0.1, 1, 2}, nullptr);
  });
  const auto pair = [&]<class Op>(std::type_identity<Op>, const char* name, const Shape& other) {
    bench(name, {kRows, {other}},
          [](Device, const auto& in) { Op::forward(in[0], in[1], {}, nullptr); });
    bench("its backward", {kRows, {other}}, [](Device, const auto& in) {
      Op::backward(in[0], {in[0], in[1], in[0].shape(), in[1].shape(), in[0]});
    });
  };
  pair(std::type_identity<Mul>{}, "mul 2048 x 384, equal shapes", {2048, 384});
  pair(std::type_identity<Mul>{}, "mul by a row", {384});
  pair(std::type_identity<Mul>{}, "mul by a column", {2048, 1});
  pair(std::type_identity<Sub>{}, "sub", {2048, 384});
  pair(std::type_identity<Div>{}, "div by a column", {2048, 1});
  bench("scale", {kRows}, [](Device, const auto& in) { Scale::forward(in[0], {0.5}, nullptr); });
  bench("clip_factor", {}, [](Device device, const auto&) {
    ClipFactor::of(zeros({1}, DType::f64, device), 1, DType::f32);
  });
}

void activations(const Bench& bench) {
  bench("soft_cap 2048 x 1024", {kHidden},
        [](Device, const auto& in) { SoftCap::forward(in[0], {30}, nullptr); });
  bench("its backward", {kHidden, kHidden}, [](Device, const auto& in) {
    SoftCap::backward(in[0], {in[1], 30});
  });
  bench("learned_swish", {kHidden, {{1024}}},
        [](Device, const auto& in) { LearnedSwish::forward(in[0], in[1], {}, nullptr); });
  bench("its backward", {kHidden, {{1024}}}, [](Device, const auto& in) {
    LearnedSwish::backward(in[0], {in[0], in[1]});
  });
  bench("xielu", {kHidden, {{}}},
        [](Device, const auto& in) { Xielu::forward(in[0], in[1], in[1], {}, nullptr); });
  bench("its backward", {kHidden, {{}}}, [](Device, const auto& in) {
    Xielu::backward(in[0], {in[0], in[1], in[1], {}});
  });
  Gate::Attrs limited;
  limited.function = ActivationKind::swish;
  limited.parameter = 1.702, limited.limit = 7, limited.offset = 1;
  bench("gate, limited swish", {kHidden, kHidden},
        [limited](Device, const auto& in) { Gate::forward(in[0], in[1], limited, nullptr); });
  bench("its backward", {kHidden, kHidden}, [limited](Device, const auto& in) {
    Gate::backward(in[0], {in[0], in[1], limited});
  });
  bench("sink_softmax 4096 x 512", {{{2, 2048, 512}}, {{2, 1}}},
        [](Device, const auto& in) { SinkSoftmax::forward(in[0], {}, in[1], {}, nullptr); });
  bench("its backward", {{{2, 2048, 512}}, {{2, 1}}, {{2, 2048}}}, [](Device, const auto& in) {
    SinkSoftmax::backward(in[0], {in[0], in[2], in[1], 1});
  });
}

void mixtures(const Bench& bench) {
  const Input logits{{2048, 32}}, chosen{{2048, 2}, 32}, weights{{2048, 2}},
      places{{2048, 2}, 4096}, twice{{4096, 384}};
  bench("moe_router 2 of 32, 2048 tokens", {logits},
        [](Device, const auto& in) { MoeRouter::forward(in[0], {}, {}, nullptr); });
  bench("its backward", {weights, logits, chosen}, [](Device, const auto& in) {
    MoeRouter::backward({in[0], Tensor()}, {in[1], in[2], {}, in[0]});
  });
  bench("load_balance_loss", {logits, chosen},
        [](Device, const auto& in) { LoadBalanceLoss::forward(in[0], in[1], {}, nullptr); });
  bench("its backward", {{{}}, logits, chosen}, [](Device, const auto& in) {
    LoadBalanceLoss::backward(in[0], {in[1], in[2], in[0]});
  });
  bench("expert_gather of rows of 384", {kRows, chosen},
        [](Device, const auto& in) { ExpertGather::forward(in[0], in[1], {32}, nullptr); });
  bench("its backward", {twice, places}, [](Device, const auto& in) {
    ExpertGather::backward({in[0], Tensor(), Tensor()}, {in[1], Shape{2048, 384}, in[0]});
  });
  bench("expert_combine", {twice, weights, places},
        [](Device, const auto& in) { ExpertCombine::forward(in[0], in[1], in[2], {}, nullptr); });
  bench("its backward", {kRows, twice, weights, places}, [](Device, const auto& in) {
    ExpertCombine::backward(in[0], {in[1], in[2], in[3], in[0]});
  });
}

void scans(const Bench& bench) {
  const std::vector<Input> in{
      {{8, 256, 64}}, {{8, 256, 64}}, {{64, 16}}, {{8, 256, 16}}, {{8, 256, 16}}};
  const auto forward = [](const auto& x, SelectiveScan::Saved* saved) {
    const Tensor decay = Neg::forward(x[2], {}, nullptr);
    return SelectiveScan::forward(x[0], x[1], decay, x[3], x[4], {}, {}, {}, {}, saved)[0];
  };
  bench("selective_scan 8 x 256 x 64 x 16", in,
        [&](Device, const auto& x) { forward(x, nullptr); });
  bench("both ways", in, [&](Device, const auto& x) {
    SelectiveScan::Saved saved;
    const Tensor y = forward(x, &saved);
    SelectiveScan::backward({y, Tensor()}, std::move(saved));
  });
}

// Tokens of 8 heads of 64 x 64 numbers of state; a gate below 1 keeps it finite.
void delta_rules(const Bench& bench) {
  const auto forward = [](const auto& x, const Tensor& state, GatedDeltaRule::Saved* saved) {
    const Tensor gate = Neg::forward(x[3], {}, nullptr), k = Scale::forward(x[1], {0.2}, nullptr);
    return GatedDeltaRule::forward(x[0], k, x[2], gate, x[3], state, {}, {}, saved)[0];
  };
  const auto inputs = [](int64_t b, int64_t t) {
    const Input wide{{b, t, 8, 64}}, one{{b, t, 8}};
    return std::vector<Input>{wide, wide, wide, one, {{b, 8, 64, 64}}};
  };
  bench("gated_delta_rule 4 x 64 x 8 x 64", inputs(4, 64),
        [&](Device, const auto& x) { forward(x, {}, nullptr); });
  bench("both ways", inputs(4, 64), [&](Device, const auto& x) {
    GatedDeltaRule::Saved saved;
    const Tensor y = forward(x, {}, &saved);
    GatedDeltaRule::backward({y, Tensor()}, std::move(saved));
  });
  bench("one token behind a state", inputs(1, 1),
        [&](Device, const auto& x) { forward(x, x[4], nullptr); });
}

void recurrent_decoding(const Bench& bench) {
  const std::vector<Input> conv{{{8, 256, 384}}, {{384, 4}}};
  bench("causal_conv1d 8 x 256 x 384, 4 taps", conv,
        [](Device, const auto& x) { CausalConv1d::forward(x[0], x[1], {}, {}, {}, nullptr); });
  bench("both ways", conv, [](Device, const auto& x) {
    CausalConv1d::Saved saved;
    const Tensor y = CausalConv1d::forward(x[0], x[1], {}, {}, {}, &saved);
    CausalConv1d::backward(y, std::move(saved));
  });
  bench("one token behind three", {{{1, 4, 384}}, {{384, 4}}},
        [](Device, const auto& x) { CausalConv1d::forward(x[0], x[1], {}, {}, {}, nullptr); });
  const Input token{{1, 1, 384}}, state{{1, 1, 16}};
  bench("selective_scan, one token of 384", {token, token, {{384, 16}}, state, {{1, 384, 16}}},
        [](Device, const auto& x) {
          const Tensor decay = Neg::forward(x[2], {}, nullptr);
          SelectiveScan::forward(x[0], x[1], decay, x[3], x[3], {}, x[4], {}, {}, nullptr);
        });
}

// What no step of a model in f32 takes.
void seldom(const Bench& bench) {
  bench("index_select of 2048 rows of 384", {kRows, {{2048}, 2048}},
        [](Device, const auto& x) { IndexSelect::forward(x[0], x[1], {}, nullptr); });
  bench("top_k, 40 of 32000", {{{1, 32000}}},
        [](Device, const auto& x) { TopK::forward(x[0], {40}, nullptr); });
  bench("cast of 2048 x 384 to bf16", {kRows},
        [](Device, const auto& x) { Cast::forward(x[0], {DType::bf16}, nullptr); });
}

}  // namespace

int main(int count, char** values) {
  register_all();
  const Bench bench{std::max(count > 1 ? std::atoi(values[1]) : 7, 1)};
  const std::string isa(cpu::name(cpu::selected_isa()));
  std::printf("%s, %s, %d threads\n%-34s %9s %9s %8s\n", cpu::cpu_name().c_str(), isa.c_str(),
              num_threads(), "call", "cpu ms", "loops ms", "ratio");
  for (auto* part : {products_and_reductions, elements, activations, mixtures, scans, delta_rules,
                     recurrent_decoding, seldom})
    part(bench);
  return 0;
}
