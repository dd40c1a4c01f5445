#include "cli/step_data.h"

#include <algorithm>
#include <filesystem>

#include "cli/common.h"
#include "cli/loaded_model.h"
#include "cli/run_inputs.h"
#include "data/text_data.h"
#include "data/tokenizer_io.h"
#include "data/translation_pairs.h"
#include "models/architecture.h"
#include "models/batch_rows.h"
#include "models/build.h"
#include "models/manifest.h"
#include "models/profile.h"
#include "models/recompute.h"
#include "models/report.h"
#include "models/safetensor_file.h"
#include "models/trainer.h"
#include "models/training_step.h"

namespace tally::cli {
namespace {

bool has_dropout(const ModelConfig& m) {
  return m.embedding_dropout > 0 || m.attention_dropout > 0 || m.residual_dropout > 0;
}

void load_run_state(StepModel& s) {
  const RunDirectory run = RunDirectory::open(s.target.folder);
  const std::string folder = s.target.checkpoint.empty() ? run.latest() : s.target.checkpoint;
  const std::string trained = read_run_inputs(run.path()).dtype;
  check(trained.empty() || trained == to_text(s.model->dtype()), run.path(), ": was trained in ",
        trained, ", so its next step is one in ", trained, "; give --dtype ", trained);
  check_manifest(folder);
  const RunDirectory::State state = run.read_state(folder);
  const std::string moments = folder + "/optimizer.safetensors";
  // Weights that were imported or converted: no step has been taken with them.
  if (state.step == 0 && SafetensorFile(moments).tensors().empty()) return;
  RunDirectory::load(moments, s.optimizer->state());
  s.steps_done = state.step;
  s.rollbacks = rollbacks_before(state, folder);
  s.optimizer->set_steps(state.step - skipped_steps(state, folder));
  if (s.dropout) s.dropout->set_position(state.dropout_position(folder));
}

// The tokenizer of a run or a checkpoint; bytes for a vocabulary as small as that.
Tokenizer tokenizer_of(const StepModel& s) {
  if (!s.target.folder.empty()) return load_tokenizer(s.target.folder);
  const int64_t vocab = s.target.config.model.vocab;
  check(vocab <= 257,
        "step: a text needs a tokenizer, and a preset has none; name a run directory (tally train) "
        "or leave --text and --data out for made-up tokens");
  return Tokenizer::bytes(vocab == 257);
}

std::vector<std::string> files_of(const StepOptions& o, const StepModel& s) {
  if (!o.data.empty() || s.target.kind != TargetKind::run) return o.data;
  return read_run_inputs(s.target.folder).files("give --data FILE");
}

// The rows that an architecture makes of windows of `seq` tokens.
Objective objective_of(const StepModel& s, const Tokenizer& tokenizer, int64_t seq) {
  TrainConfig t = s.target.config.train;
  t.seq = seq;
  const ModelConfig& m = s.target.config.model;
  return {m, t, objective_tokens(m, tokenizer, t.pairs), objective_window(m, t)};
}

StepBatch text_batch(const StepOptions& o, const StepModel& s, int64_t seq) {
  const Tokenizer tokenizer = tokenizer_of(s);
  const bool pairs = s.target.config.train.pairs;
  std::vector<TokenId> tokens;
  if (!pairs) {
    tokens = tokenizer.encode(o.text);
    // A window ends before the token that a decoder goes on to.
    if (s.target.config.model.architecture != Architecture::decoder && !tokens.empty())
      tokens.push_back(tokens.back());
    check(tokens.size() >= 2, "--text: needs at least 2 tokens, one to go on to; got ",
          tokens.size());
    seq = std::min<int64_t>(seq, static_cast<int64_t>(tokens.size()) - 1);
  }
  const Objective objective = objective_of(s, tokenizer, seq);
  const Dataset data(pairs ? tokenize_pair(o.text, tokenizer, seq, "--text")
                           : TokenFile::from_ids(tokens, {}, "--text"),
                     objective.window());
  BatchRows row(objective, 1);
  objective.windows_in_order(data, 0, row.spans());
  return {{row.on(s.model->device())}, "--text", objective.counts_targets()};
}

StepBatch data_batch(const StepOptions& o, const StepModel& s,
                     const std::vector<std::string>& files, int64_t batch, int64_t seq) {
  const TrainConfig& t = s.target.config.train;
  const Tokenizer tokenizer = tokenizer_of(s);
  tally::DataOptions options;
  if (o.data.empty()) options.text.val_fraction = t.val_fraction;
  const TokenSplits splits = t.pairs
                                 ? tokenize_pairs(files, tokenizer, seq, options.text.val_fraction)
                                 : open_data(files, tokenizer, options);
  const Objective objective = objective_of(s, tokenizer, seq);
  const Dataset data(splits.train, objective.window(), data_seed(t, s.rollbacks));
  const int64_t index = o.index >= 0 ? o.index : ramp_of(t).before(s.steps_done);
  StepBatch step;
  step.counts_targets = objective.counts_targets();
  step.source = (t.accumulation > 1 ? to_text(t.accumulation) + " batches from " : "batch ") +
                to_text(index) + " of " + files[0] + (files.size() > 1 ? ", ..." : "");
  for (int64_t micro = 0; micro < t.accumulation; ++micro) {
    BatchRows rows(objective, batch);
    objective.batch(data, index + micro, rows.spans());
    step.micro.push_back(rows.on(s.model->device()));
  }
  return step;
}

// What the step takes, and the `values` of each operand that the walk keeps as doubles.
void check_step_memory(const StepModel& s, int64_t batch, int64_t seq, int64_t values) {
  ReportOptions r;
  r.batch = batch, r.seq = seq;
  r.train = true;
  r.dtype = s.model->dtype();
  r.recompute = s.target.config.train.recompute;
  r.optimizer = optimizer_of(s.target.config.train, s.target.config.model);
  const Report report = make_report(s.target.config.model, r);
  const double moved = report.cost.bytes_read + report.cost.bytes_written;
  const double kept =
      static_cast<double>(values) * static_cast<double>(report.entries.size()) * 8 * 5;
  check_memory("step", report.peak + std::min(kept, 2 * moved));
}

}  // namespace

StepModel make_step_model(const std::string& name, const std::vector<std::string>& set, DType dtype,
                          Device device) {
  Trainer::check_dtype(dtype);
  check(device != kMeta, "step: meta computes no values to look at; use account");
  StepModel s;
  s.target = resolve_target(name, set);
  const TrainConfig& t = s.target.config.train;
  const bool run = s.target.kind == TargetKind::run;
  if (!s.target.folder.empty()) {
    LoadedModel loaded = load_model(name, dtype, device);
    check(loaded.config.model == s.target.config.model, "--set: the weights of ", name,
          " fix its model; only train.* can be changed here");
    s.model = std::move(loaded.model);
  } else {
    s.model = build_language_model(s.target.config.model, dtype, device);
    initialise(*s.model, s.target.config.model, static_cast<uint64_t>(t.seed));
  }
  s.model->set_recompute(recompute_layers(t.recompute, s.target.config.model.all_layers()));
  s.optimizer = optim::make_optimizer(*s.model, optimizer_of(t, s.target.config.model));
  if (has_dropout(s.target.config.model)) s.dropout = dropout_of(t);
  if (run) load_run_state(s);
  s.lr = schedule_of(t, s.target.config.model).at(s.steps_done);
  return s;
}

StepBatch make_step_batch(const StepOptions& o, const StepModel& s) {
  const ModelConfig& m = s.target.config.model;
  const TrainConfig& t = s.target.config.train;
  const int64_t batch = o.batch > 0 ? o.batch : t.batch;
  const int64_t seq = o.seq > 0 ? o.seq : t.seq > 0 ? t.seq : m.context;
  check(seq <= m.context, "step: ", seq, " tokens do not fit the context of ", m.context,
        "; use a smaller --seq");
  check(o.text.empty() || o.data.empty(), "step: choose one of --text and --data");
  check_step_memory(s, batch, seq, o.values);
  if (!o.text.empty()) return text_batch(o, s, seq);
  const std::vector<std::string> files = files_of(o, s);
  if (!files.empty()) return data_batch(o, s, files, batch, seq);
  const tally::StepOptions shape = step_shape(m, batch, seq);
  StepBatch step{{}, "made-up tokens", shape.counts_targets};
  for (int64_t micro = 0; micro < t.accumulation; ++micro) {
    const uint64_t seed = o.seed + 3 * static_cast<uint64_t>(micro);
    const auto ids = [&](uint64_t number) {
      return random_ids({batch, seq}, m.vocab, seed + number, s.model->device());
    };
    step.micro.push_back({ids(0), ids(1), shape.source > 0 ? ids(2) : Tensor(), {}});
  }
  return step;
}

}  // namespace tally::cli
