// eval: the loss of a trained model.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>

#include "cli/common.h"
#include "cli/loaded_model.h"
#include "cli/run_inputs.h"
#include "core/ops/clip.h"
#include "data/text_data.h"
#include "data/translation_pairs.h"
#include "models/trainer.h"

namespace tally::cli {
namespace {

/// The tokens to evaluate on: the given files whole, or the run's own held-out split.
TokenFile evaluation_tokens(const EvalOptions& o, const LoadedModel& loaded,
                            const Tokenizer& tokenizer) {
  tally::DataOptions options;
  RunInputs trained;
  std::vector<std::string> files = o.data;
  if (files.empty()) {
    trained = read_run_inputs(loaded.folder);
    files = trained.files("give --data FILE");
    options.text.val_fraction = loaded.config.train.val_fraction;
    check(options.text.val_fraction > 0, "eval: this run holds nothing out; give --data FILE");
  }
  const TrainConfig& train = loaded.config.train;
  TokenSplits splits =
      train.pairs
          ? tokenize_pairs(files, tokenizer, train.seq ? train.seq : loaded.config.model.context,
                           options.text.val_fraction)
          : open_data(files, tokenizer, options);
  if (!o.data.empty()) return splits.train;
  if (!o.quiet && !trained.data_hash.empty() && trained.data_hash != splits.train.content_hash()) {
    std::fprintf(stderr,
                 "note: %s changed since this run was trained: what is held out now may have been "
                 "trained on then\n",
                 files.size() == 1 ? files[0].c_str() : "a data file");
  }
  check(splits.val.has_value(), "eval: this run's data hold nothing out; give --data FILE");
  return *splits.val;
}

/// Refuses a loss that is NaN or infinite, naming the first weight that is.
void check_loss(nn::Module& model, double loss) {
  if (std::isfinite(loss)) return;
  std::string bad;
  for (const auto& [name, t] : model.named_parameters()) {
    if (ops::first_not_finite(std::span(&t, 1)) != 0) continue;
    bad = name;
    break;
  }
  fail("eval: the loss is ", loss,
       bad.empty()
           ? "; all weights are finite, but too large for this element type: try --dtype f64"
           : "; the first bad weight is " + bad + ": the checkpoint is damaged");
}

}  // namespace

int eval(const EvalOptions& o) {
  LoadedModel loaded = load_model(o.run, dtype_of_options(o), device_of_options(o));
  const Tokenizer tokenizer = load_model_tokenizer(loaded);
  const TokenFile tokens = evaluation_tokens(o, loaded, tokenizer);
  const TrainConfig& t = loaded.config.train;
  const int64_t context = objective_window(loaded.config.model, loaded.config.train);
  const Objective objective(loaded.config.model, loaded.config.train,
                            objective_tokens(loaded.config.model, tokenizer, t.pairs), context);
  const Evaluation e = evaluate(*loaded.model, objective, tokens, tokenizer.byte_lengths(), 8,
                                context, 0, Progress("eval", "tokens", o.quiet));
  check_loss(*loaded.model, e.loss);
  if (o.json) {
    print_json({{"loss", e.loss},
                {"perplexity", e.perplexity()},
                {"bits_per_byte", e.bits_per_byte},
                {"tokens", e.tokens},
                {"bytes", e.bytes}});
  } else {
    std::printf("loss %.4f nats/token, perplexity %.3f, %.4f bits per byte, %lld %stokens\n",
                e.loss, e.perplexity(), e.bits_per_byte, static_cast<long long>(e.tokens),
                o.data.empty() ? "held-out " : "");
  }
  return 0;
}

}  // namespace tally::cli
