#include "models/evaluation.h"

#include <algorithm>
#include <cmath>

#include "autograd/tape.h"
#include "core/ops/loss_row.h"
#include "data/dataset.h"
#include "data/prefix_targets.h"
#include "models/batch_rows.h"

namespace tally {

double Evaluation::perplexity() const { return std::exp(loss); }

Evaluation evaluate(nn::LanguageModel& model, const Objective& objective, const TokenFile& tokens,
                    std::span<const uint32_t> byte_lengths, int64_t batch, int64_t context,
                    int64_t batches,
                    const std::function<void(int64_t done, int64_t all)>& progress) {
  const Dataset windows(tokens, context);
  int64_t last = windows.windows();
  if (batches > 0) last = std::min(last, batches * batch);
  Evaluation e;
  double nats = 0;
  for (int64_t at = 0; at < last; at += batch) {
    const int64_t rows = std::min(batch, last - at), length = objective.length();
    BatchRows read(objective, rows);
    objective.windows_in_order(windows, at, read.spans());
    const PauseTape values_only;
    // Without what training adds to the loss: smoothing, z-loss, balance of experts.
    Tensor stats;
    model.batch_loss(read.on(model.device()), 0, nullptr, &stats);
    nats += stats.narrow(0, ops::LossStats::kNll, 1).item();
    e.tokens += static_cast<int64_t>(stats.narrow(0, ops::LossStats::kCount, 1).item());
    for (int64_t row = 0; row < rows; ++row)
      ignore_prefix(objective.prefix(),
                    std::span(read.targets)
                        .subspan(static_cast<size_t>(row * length), static_cast<size_t>(length)));
    e.bytes += source_bytes(read.targets, byte_lengths);
    if (progress) progress((at + rows) * context, last * context);
  }
  check(e.tokens > 0, "evaluate: none of the ", last,
        " windows has a token that is asked for; give more text, or hold out more");
  e.loss = nats / static_cast<double>(e.tokens);
  e.bits_per_byte = e.bytes > 0 ? bits_per_byte(nats, e.bytes) : 0;
  return e;
}

}  // namespace tally
