#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/ledger.h"
#include "core/tensor.h"
#include "models/config.h"
#include "optim/make.h"

namespace tally {

/// What a machine can do at most.
struct Ceilings {
  double flops = 0;  // f32 multiply-adds in registers, operations a second
  struct Level {
    std::string name;
    double read = 0;  // bytes a second
  };
  std::vector<Level> levels;  // nearest first; the last is memory
  double memory() const { return levels.empty() ? 0 : levels.back().read; }
  /// Operations a second that work of `intensity` FLOPs a byte can reach with its data in memory.
  double roof(double intensity) const;
};

/// What to run.
struct ProfileOptions {
  int64_t batch = 1, seq = 0;  // seq 0: the model's context
  int steps = 5, warm_up = 2;
  bool decode = false;  // one token after `seq` cached ones instead of a training step
  DType dtype = DType::f32;
  optim::OptimizerChoice optimizer;
  Device device = kCPU;
  uint64_t seed = 1;
  std::string recompute = "none";  // as train.recompute
};

/// Real steps of a model, every call timed.
struct Profile {
  ModelConfig config;
  ProfileOptions options;
  std::vector<Entry> calls;  // of the median step, in order; see Ledger
  double step_seconds = 0;   // wall time of that step
  double calls_seconds = 0;  // sum over its calls
  int64_t tokens = 0;        // of a step
  double peak_bytes = 0;     // most live bytes while a step ran
  double mean_seconds = 0;   // of all measured steps
};

/// Trains (or decodes) on made-up tokens and lists every call of the step whose wall time is the
/// median of `steps`. An encoder-decoder reads as many tokens as it writes. `progress` hears of each
/// step. Error for a sequence beyond the context, and for an encoder that should decode.
Profile profile_model(const ModelConfig& config, const ProfileOptions& options,
                      const std::function<void(int)>& progress = {});

/// Made-up tokens below `vocab`, a function of the seed alone.
Tensor random_ids(const Shape& shape, int64_t vocab, uint64_t seed, Device device);

/// Class of the lecture's tables (L20, L21): contraction, normalization, elementwise, movement, or
/// optimizer for all that the optimizer's phase does.
std::string class_of(const Entry& e);

/// The calls as a trace for Perfetto or chrome://tracing: the modules as nested spans above the
/// calls, with shapes, FLOPs and bytes of each, and the live bytes as a counter.
std::string chrome_trace(std::span<const Entry> calls);

}  // namespace tally
