#include "backends/cpu/ceilings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "backends/cpu/isa.h"
#include "core/error.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

double seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// The highest rate that `sample` (seconds and work of one sample) shows within `limit` seconds.
template <class Sample>
double best_rate(double limit, const Sample& sample) {
  double best = 0;
  const double end = seconds() + limit;
  do {
    const double start = seconds(), work = sample();
    best = std::max(best, work / (seconds() - start));
  } while (seconds() < end);
  return best;
}

/// Anonymous memory in huge pages where the system grants them, released at the end.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(data_ != MAP_FAILED, "measure_bandwidth: needs ", bytes >> 20, " MiB; none left");
    madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  float* data() const { return static_cast<float*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

/// Floating point operations a second of chains in registers, all threads together.
double chains_peak(int64_t rounds, double (*chains)(int64_t rounds, float* sink)) {
  const int64_t samples = num_threads() * int64_t{4};
  return best_rate(0.2, [&] {
    std::atomic<double> work{0};
    parallel_for(samples, 1, [&](int64_t, int64_t) {
      float sink = 0.5f;
      work += chains(rounds, &sink);
    });
    return work.load();
  });
}

}  // namespace

double measure_fma_peak() { return chains_peak(40000, isa().fma_chains); }

double measure_bf16_peak() {
  const Bf16Kernels* kernels = bf16_kernels();
  return kernels == nullptr ? measure_fma_peak() : chains_peak(40000, kernels->chains);
}

namespace {

// Bytes a second at which every thread reads its own `floats` over and over.
double read_again(const float* data, int64_t floats) {
  const int64_t again = std::max<int64_t>(1, (int64_t{1} << 21) / floats);
  std::atomic<float> sink{0};
  return best_rate(0.06, [&] {
    parallel_for(num_threads(), 1, [&](int64_t thread, int64_t) {
      float sum = 0;
      for (int64_t i = 0; i < again; ++i) sum += isa().read_all(floats, data + thread * floats);
      sink += sum;
    });
    return static_cast<double>(num_threads() * again * floats) * sizeof(float);
  });
}

}  // namespace

std::vector<MemoryLevel> measure_memory_levels() {
  constexpr int64_t kBlock = 1024;  // floats; a multiple of what read_all takes
  const int64_t threads = num_threads();
  std::vector<MemoryLevel> levels;
  const auto add = [&](const char* name, int64_t bytes) {  // of each thread
    if (bytes <= 0) return;
    const int64_t floats = std::max(kBlock, bytes / 4 / kBlock * kBlock);
    const Pages pages(static_cast<size_t>(threads * floats) * sizeof(float));
    std::fill(pages.data(), pages.data() + threads * floats, 1.0f);
    levels.push_back({name, static_cast<double>(threads * floats) * sizeof(float),
                      read_again(pages.data(), floats)});
  };
  const int64_t l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  add("L1", sysconf(_SC_LEVEL1_DCACHE_SIZE) / 2);
  add("L2", l2 / 2);
  // A part of L3 only: on a shared machine neighbours hold the rest.
  if (l3 > threads * l2) add("L3", std::min(l3 / threads / 2, 2 * std::max<int64_t>(l2, 1)));
  levels.push_back({"memory", 256.0 * 1024 * 1024, measure_bandwidth().read});
  return levels;
}

Bandwidth measure_bandwidth() {
  constexpr int64_t kFloats = int64_t{1} << 25, kPiece = int64_t{1} << 18;
  const Pages from(kFloats * sizeof(float)), to(kFloats * sizeof(float));
  // Touch both once: the first write to a page costs more than the page is worth.
  parallel_for(kFloats, kPiece, [&](int64_t begin, int64_t end) {
    std::fill(from.data() + begin, from.data() + end, 1.0f);
    std::fill(to.data() + begin, to.data() + end, 1.0f);
  });
  Bandwidth b;
  std::atomic<float> sink{0};
  b.read = best_rate(0.08, [&] {
    // Both arrays in turn, 256 MiB: more than the caches keep on most machines.
    for (const float* array : {from.data(), to.data()})
      parallel_for(kFloats, kPiece, [&](int64_t begin, int64_t end) {
        sink += isa().read_all(end - begin, array + begin);
      });
    return 2.0 * kFloats * sizeof(float);
  });
  b.copy = best_rate(0.08, [&] {
    parallel_for(kFloats, kPiece, [&](int64_t begin, int64_t end) {
      isa().copy_all(end - begin, from.data() + begin, to.data() + begin);
    });
    return 2.0 * kFloats * sizeof(float);
  });
  return b;
}

}  // namespace tally::cpu
