// Kernels of the cpu backend against the loops that define them, both called through run() in
// interleaved rounds: the median of the paired ratios.
//   against_loops [rounds]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/features.h"
#include "backends/register_all.h"
#include "core/ops/layout.h"
#include "core/ops/matmul.h"
#include "core/ops/reductions.h"
#include "core/ops/softmax.h"
#include "core/parallel.h"

using namespace tally;

namespace {

using Call = std::function<void(Device, const std::vector<Tensor>&)>;

double seconds(const Call& call, Device device, const std::vector<Tensor>& in) {
  const auto start = std::chrono::steady_clock::now();
  call(device, in);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

std::vector<Tensor> tensors(const std::vector<Shape>& shapes, Device device) {
  std::vector<Tensor> list;
  for (const Shape& s : shapes) {
    std::vector<float> v(static_cast<size_t>(s.numel()));
    for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>((i * 7919) % 1021) / 1021;
    list.push_back(from_host<float>(v, s, device));
  }
  return list;
}

void measure(const char* name, int rounds, const std::vector<Shape>& shapes, const Call& call) {
  const auto ours = tensors(shapes, kCPU), loops = tensors(shapes, kReference);
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
  std::printf("%-32s %9.3f %9.3f %7.0fx (%.0f to %.0f)\n", name, 1e3 * median(fast),
              1e3 * median(slow), median(ratios), *least, *most);
  std::fflush(stdout);
}

template <class Op>
void measure_reduction(const char* name, int rounds, const Shape& axes) {
  measure(name, rounds, {{4096, 512}},
          [axes](Device, const auto& in) { Op::forward(in[0], {axes}, nullptr); });
}

void measure_all(int rounds) {
  using namespace tally::ops;
  measure("matmul 64 x (128 x 64 x 128)", rounds, {{64, 128, 64}, {64, 64, 128}},
          [](Device, const auto& in) { MatMul::forward(in[0], in[1], {}, nullptr); });
  measure("its backward", rounds, {{64, 128, 64}, {64, 64, 128}, {64, 128, 128}},
          [](Device, const auto& in) {
            MatMul::backward(in[2], {in[0], in[1], {}});
          });
  measure("softmax 4096 x 512", rounds, {{4096, 512}},
          [](Device, const auto& in) { Softmax::forward(in[0], {}, {}, nullptr); });
  measure("its backward", rounds, {{4096, 512}, {4096, 512}}, [](Device, const auto& in) {
    Softmax::backward(in[0], {in[1], 1});
  });
  measure_reduction<Sum>("sum over the first of 4096 x 512", rounds, {0});
  measure_reduction<Sum>("sum over the last", rounds, {1});
  measure_reduction<Var>("var over the last", rounds, {1});
  measure_reduction<LogSumExp>("logsumexp over the last", rounds, {1});
  measure_reduction<AMax>("amax over all", rounds, {});
  measure("transposed copy", rounds, {{4096, 512}}, [](Device device, const auto& in) {
    const Tensor x = in[0].transpose(0, 1), y = empty(x.shape(), DType::f32, device);
    run(device, Copy::Call{x, y});
  });
}

}  // namespace

int main(int count, char** values) {
  register_all();
  const int rounds = std::max(count > 1 ? std::atoi(values[1]) : 7, 1);
  const std::string isa(cpu::name(cpu::selected_isa()));
  std::printf("%s, %s, %d threads\n%-32s %9s %9s %8s\n", cpu::cpu_name().c_str(), isa.c_str(),
              num_threads(), "call", "cpu ms", "loops ms", "ratio");
  measure_all(rounds);
  return 0;
}
