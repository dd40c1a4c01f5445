#include <fmt/format.h>
#include <sys/sysinfo.h>

#include <cmath>
#include <cstdio>

#include "autograd/proof/proof.h"
#include "backends/cpu/ceilings.h"
#include "backends/cpu/features.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/isa.h"
#include "cli/common.h"
#include "core/parallel.h"

namespace tally::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct SelfTest {
  int64_t samples = 0;
  std::vector<std::string> failures;
};

double largest_difference(const Tensor& a, const Tensor& b) {
  const auto x = to_doubles(a), y = to_doubles(b);
  double worst = 0, scale = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(y[i])) continue;
    const double d = std::fabs(x[i] - y[i]);
    worst = std::isnan(d) ? INFINITY : std::max(worst, d);
    scale = std::max(scale, std::fabs(y[i]));
  }
  return worst / scale;
}

// Every op on its samples, cpu against reference; as many as two seconds allow.
SelfTest self_test() {
  SelfTest result;
  const auto start = Clock::now();
  for (const Sample& s : core_samples()) {
    if (seconds_since(start) > 2) break;
    std::vector<Tensor> fast, slow;
    for (const SampleInput& in : s.inputs) {
      fast.push_back(make_input(in, DType::f32, kCPU));
      slow.push_back(make_input(in, DType::f32, kReference));
    }
    const auto a = s.apply(fast), b = s.apply(slow);
    ++result.samples;
    for (size_t i = 0; i < a.size(); ++i) {
      const double d = largest_difference(a[i], b[i]);
      if (d > 1e-4)
        result.failures.push_back(
            fmt::format("{} '{}': cpu and reference differ by {:.2g}", s.op, s.name, d));
    }
  }
  return result;
}

std::string isa_list() {
  std::string text;
  for (const cpu::Isa i : {cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512}) {
    if (cpu::supported(i)) text += (text.empty() ? "" : ", ") + std::string(cpu::name(i));
  }
  return text;
}

const char* bf16_products() {
  return cpu::bf16_kernels() == nullptr ? "multiplied in f32" : "multiplied by pairs";
}

}  // namespace

int doctor(const DoctorOptions& o) {
  struct sysinfo memory {};
  sysinfo(&memory);
  const double total = static_cast<double>(memory.totalram) * memory.mem_unit,
               available = static_cast<double>(memory.freeram + memory.bufferram) * memory.mem_unit;
  const double flops = cpu::measure_fma_peak(), half_flops = cpu::measure_bf16_peak();
  const cpu::Bandwidth memory_speed = cpu::measure_bandwidth();
  const SelfTest test = self_test();
  Json json = environment();
  json["isa_supported"] = isa_list();
  json["memory_bytes"] = total;
  json["memory_free_bytes"] = available;
  json["thread_scratch_bytes"] = kThreadScratchBytes;
  json["gpu"] = "none: this build has no CUDA backend";
  json["peak_f32_flops_per_s"] = flops;
  json["peak_bf16_flops_per_s"] = half_flops;
  json["bf16_products"] = bf16_products();
  json["memory_read_bytes_per_s"] = memory_speed.read;
  json["memory_copy_bytes_per_s"] = memory_speed.copy;
  json["self_test_samples"] = test.samples;
  json["self_test_failures"] = test.failures;
  if (o.json) {
    print_json(json);
    return test.failures.empty() ? 0 : 1;
  }
  std::vector<std::vector<std::string>> rows = {
      {"what", "here"},
      {"CPU", cpu::cpu_name()},
      {"instruction sets", isa_list()},
      {"kernels compiled for",
       std::string(cpu::name(cpu::selected_isa())) + " (TALLY_ISA forces another)"},
      {"matrix products", cpu::gemm_provider_name()},
      {"OpenBLAS core", cpu::openblas_core_name()},
      {"threads", to_text(num_threads())},
      {"scratch of a thread",
       bytes_text(static_cast<double>(kThreadScratchBytes)) + " (beside what the ledger counts)"},
      {"memory", bytes_text(total) + ", free " + bytes_text(available)},
      {"GPU", "none: this build has no CUDA backend"},
      {"peak f32", short_number(flops) + "FLOP/s, measured now"},
      {"peak bf16", short_number(half_flops) + "FLOP/s, measured now: " + bf16_products()},
      {"memory read, copy", short_number(memory_speed.read) + "B/s, " +
                                short_number(memory_speed.copy) + "B/s, measured now"},
      {"self-test", test.failures.empty()
                        ? fmt::format("{} samples: cpu equals reference", test.samples)
                        : "FAILED"}};
  std::fputs(table_text(rows).c_str(), stdout);
  for (const std::string& f : test.failures) std::fprintf(stderr, "%s\n", f.c_str());
  return test.failures.empty() ? 0 : 1;
}

}  // namespace tally::cli
