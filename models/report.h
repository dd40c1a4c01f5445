#pragma once
#include <string>
#include <vector>

#include "core/ledger.h"
#include "models/config.h"
#include "models/parameters.h"
#include "optim/make.h"

namespace tally {

/// What to account for.
struct ReportOptions {
  int64_t batch = 1, seq = 0;  // seq 0: what the context holds
  bool train = false;   // forward, backward and the AdamW update; else the forward pass alone
  bool decode = false;  // one more token for each sequence, `seq` tokens being in the cache
  DType dtype = DType::f32;
  std::string recompute = "none";    // as train.recompute; of a training step
  int64_t accumulation = 1;          // micro-batches in a training step
  optim::OptimizerChoice optimizer;  // of a training step
  int64_t source = 0;                // what the encoder of an encoder-decoder reads; 0: seq
};

/// What a model costs, from a run of the same code on the meta device.
struct Report {
  ModelConfig config;
  ReportOptions options;
  ParameterCount parameters;
  int64_t tokens = 0;          // of the pass
  std::vector<Entry> entries;  // every call, in order
  std::vector<LedgerTotal> by_op, by_layer, by_class, by_phase;
  Cost cost;         // counted by the loops
  ModelFlops model;  // the field's convention: products only
  // Bytes. `saved`: what the forward pass keeps for the backward; `peak`: most bytes live at once.
  double weights = 0, gradients = 0, optimizer = 0, saved = 0, peak = 0;
  double kv_cache_per_token = 0, kv_cache = 0;
  /// FLOPs per byte moved.
  double intensity() const { return cost.flops / (cost.bytes_read + cost.bytes_written); }
};

/// Throws Error for a configuration that cannot be built or a sequence beyond the context.
Report make_report(const ModelConfig& config, const ReportOptions& options);

/// Largest batch whose peak stays within `bytes`; 0 when not even one sequence fits.
int64_t largest_batch(const ModelConfig& config, ReportOptions options, double bytes);

/// Which layers to compute again so that a training step fits.
struct RecomputeChoice {
  bool fits = false;               // false: not even with all layers
  int64_t layers = 0;              // how many
  std::string recompute = "none";  // the value of train.recompute that names them
  double peak = 0;                 // bytes
  double extra_flops = 0;          // of a step, for the second forward passes
};
/// The fewest layers whose recomputation brings the peak of a step within `bytes`: the first ones,
/// since what the last layer saved is needed at once, before any of the memory is let go.
RecomputeChoice choose_recompute(const ModelConfig& config, ReportOptions options, double bytes);

}  // namespace tally
