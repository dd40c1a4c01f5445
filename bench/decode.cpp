// Decoding against the speed of memory: every weight is read once a token, so tokens a second times
// the bytes of the weights is a bandwidth, and a plain read of as many bytes by the same threads its
// bound. The two take turns, token by token, and so do the element types, round by round. Without a
// DIR it makes a LLaMA of 110 M parameters and exports it; either way the model is imported from
// safetensors.
//   decode [DIR] [--rounds N] [--tokens N] [--threads N] [--prompt N]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/features.h"
#include "backends/cpu/isa.h"
#include "backends/register_all.h"
#include "core/error.h"
#include "core/parallel.h"
#include "models/build.h"
#include "models/checkpoint.h"
#include "models/generate.h"
#include "models/hf_export.h"
#include "models/zoo.h"

namespace tally {
namespace {

namespace fs = std::filesystem;

/// 12 layers of 768, a tied head of 32,000: 109.5 M parameters, all of which a token reads.
ModelConfig llama_110m() {
  RunConfig run = find_preset("llama-7b").config;
  ModelConfig& m = run.model;
  m.layers = 12, m.d_model = 768, m.heads = 12, m.kv_heads = 12, m.head_dim = 64, m.d_ff = 2048;
  m.tied_head = true;
  m.resolve();
  return m;
}

struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("tally-decode-{}", getpid());
  ~Folder() { fs::remove_all(path); }
};

void export_random(const std::string& folder) {
  const ModelConfig config = llama_110m();
  const auto model = build_model(config, DType::f32, kCPU);
  initialise(*model, config, 1);
  const auto state = model->named_state();
  const ReadParameter read = [&](std::string_view name, std::span<float> out) {
    for (const auto& [own, t] : state)
      if (own == name) std::ranges::copy(to_host<float>(t), out.begin());
  };
  export_hugging_face(folder, config, hf_family("llama"), read, StoredType::f32);
}

std::unique_ptr<nn::Decoder> imported(const std::string& folder, DType dtype) {
  const Checkpoint checkpoint = Checkpoint::hugging_face(folder);
  auto model = build_model(checkpoint.config(), dtype, kCPU);
  for (auto& [name, t] : model->named_state()) {
    std::vector<float> values(static_cast<size_t>(t.numel()));
    checkpoint.read(name, std::span(values));
    const Tensor wide = from_host<float>(values, t.shape(), kCPU);
    const Tensor stored = dtype == DType::f32 ? wide : to(wide, dtype);
    backend(kCPU).copy_from_host(t.data(), stored.data(), t.nbytes());
    t.storage().note_write("load");
  }
  return model;
}

/// GB/s, the best of a round and over all of it.
struct Speed {
  double best = 0, mean = 0;
};
Speed speed_of(double bytes, const std::vector<double>& seconds) {
  double sum = 0, least = seconds.at(0);
  for (const double s : seconds) sum += s, least = std::min(least, s);
  return {bytes / least / 1e9, bytes * static_cast<double>(seconds.size()) / sum / 1e9};
}

struct Side {
  DType dtype;
  std::unique_ptr<nn::Decoder> model = nullptr;
  double bytes = 0;                            // of weights
  std::vector<Speed> tokens = {}, reads = {};  // a round each
};

struct Options {
  std::string folder;
  int rounds = 9, tokens = 24, threads = num_threads(), prompt = 16;
};

/// Seconds: of one thread those that it had a core, which other programs disturb less.
double now() {
  timespec t{};
  clock_gettime(num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Seconds that the pool takes to read the first floats of `memory`.
double read_once(const Tensor& memory, double bytes) {
  constexpr int64_t kPiece = int64_t{1} << 16;  // floats
  const float* data = static_cast<const float*>(memory.data());
  std::atomic<float> sink{0};
  const double start = now();
  parallel_for(
      static_cast<int64_t>(bytes / sizeof(float)) / kPiece * kPiece, kPiece,
      [&](int64_t begin, int64_t end) { sink += cpu::isa().read_all(end - begin, data + begin); });
  return now() - start;
}

/// Greedy decoding, and behind each token a read of as many bytes.
void decode(Side& side, const Options& o, const Tensor& memory, bool counts) {
  std::vector<int64_t> prompt(static_cast<size_t>(o.prompt));
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int64_t>(7 * i + 1);
  GenerateOptions options;
  options.max_new_tokens = o.tokens + 1;
  options.sampling.temperature = 0;
  std::vector<double> tokens, reads;
  double last = now();
  generate_ids(*side.model, prompt, options, std::nullopt, [&](int64_t) {
    tokens.push_back(now() - last);
    reads.push_back(read_once(memory, side.bytes));
    last = now();
    return true;
  });
  tokens.erase(tokens.begin());  // the prompt
  if (!counts) return;
  side.tokens.push_back(speed_of(side.bytes, tokens));
  side.reads.push_back(speed_of(side.bytes, reads));
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

template <class F>
double median_of(const std::vector<Speed>& speeds, F f) {
  std::vector<double> v;
  for (const Speed& s : speeds) v.push_back(f(s));
  return median(v);
}

void report(const Side& side) {
  std::vector<double> best, mean;
  for (size_t i = 0; i < side.reads.size(); ++i) {
    best.push_back(side.tokens[i].best / side.reads[i].best);
    mean.push_back(side.tokens[i].mean / side.reads[i].mean);
  }
  const auto [low, high] = std::ranges::minmax(best);
  const double speed = median_of(side.tokens, [](const Speed&s) { return s.best; }),
               bound = median_of(side.reads, [](const Speed&s) { return s.best; });
  fmt::print(
      "| {} | {:.0f} MB | {:.1f} of {:.1f} GB/s | {:.2f} ({:.2f} to {:.2f}) | {:.2f} | {:.0f} |\n",
      to_text(side.dtype), side.bytes / 1e6, speed, bound, median(best), low, high, median(mean),
      speed * 1e9 / side.bytes);
}

void measure(const Options& o) {
  set_num_threads(o.threads);
  Folder own;
  if (o.folder.empty()) export_random(own.path);
  const std::string folder = o.folder.empty() ? own.path.string() : o.folder;
  std::array<Side, 2> sides{{{DType::f32}, {DType::bf16}}};
  for (Side& side : sides) {
    side.model = imported(folder, side.dtype);
    for (const auto& [name, t] : side.model->named_parameters())
      side.bytes += static_cast<double>(t.nbytes());
  }
  const Tensor memory = full({static_cast<int64_t>(sides[0].bytes) / 4}, 1, DType::f32, kCPU);
  for (int round = 0; round <= o.rounds; ++round)  // the first touches all memory
    for (size_t i = 0; i < sides.size(); ++i)
      decode(sides[round % 2 == 0 ? i : sides.size() - 1 - i], o, memory, round > 0);
  fmt::print("{}, {} thread(s), {} tokens behind {}, {} rounds\n", cpu::name(cpu::isa().isa),
             o.threads, o.tokens, o.prompt, o.rounds);
  fmt::print(
      "| weights | bytes a token | fastest token, of fastest read | ratio, median (spread) | ratio "
      "of "
      "all tokens to all reads | tokens/s |\n");
  for (const Side& side : sides) report(side);
}

}  // namespace
}  // namespace tally

int main(int argc, char** argv) {
  try {
    tally::register_all();
    tally::Options o;
    for (int i = 1; i < argc; ++i) {
      const std::string_view name = argv[i];
      int* const value = name == "--rounds"    ? &o.rounds
                         : name == "--tokens"  ? &o.tokens
                         : name == "--threads" ? &o.threads
                         : name == "--prompt"  ? &o.prompt
                                               : nullptr;
      if (value == nullptr)
        o.folder = name;
      else if (i + 1 < argc)
        *value = std::stoi(argv[++i]);
    }
    tally::check(o.rounds > 0 && o.tokens > 0 && o.prompt > 0,
                 "decode: --rounds, --tokens and --prompt must be 1 or more");
    tally::measure(o);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
  return 0;
}
