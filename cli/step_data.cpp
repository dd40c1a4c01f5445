#include "cli/step_data.h"

#include <algorithm>
#include <filesystem>

#include "cli/common.h"
#include "cli/loaded_model.h"
#include "data/text_data.h"
#include "data/tokenizer_io.h"
#include "models/build.h"
#include "models/profile.h"
#include "models/trainer.h"

namespace tally::cli {
namespace {

bool has_dropout(const ModelConfig& m) {
  return m.embedding_dropout > 0 || m.attention_dropout > 0 || m.residual_dropout > 0;
}

void load_run_state(StepModel& s) {
  const RunDirectory run = RunDirectory::open(s.target.folder);
  const std::string folder = run.latest();
  const RunDirectory::State state = run.read_state(folder);
  RunDirectory::load(folder + "/optimizer.safetensors", s.optimizer->state());
  s.optimizer->set_steps(state.step);
  const auto position = state.facts.find("dropout_position");
  if (s.dropout && position != state.facts.end())
    s.dropout->set_position(std::stoull(position->second));
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
  const Json env = read_json(s.target.folder + "/env.json");
  check(env.is_object() && env.contains("data") && env["data"].is_array(), s.target.folder,
        "/env.json: does not say what the run was trained on; give --data FILE");
  return env["data"].get<std::vector<std::string>>();
}

StepBatch batch_of(std::span<const int64_t> ids, std::span<const int64_t> targets,
                   const Shape& shape, Device device, std::string source) {
  return {from_host<int64_t>(ids, shape, device), from_host<int64_t>(targets, shape, device),
          std::move(source)};
}

StepBatch text_batch(const StepOptions& o, const StepModel& s, int64_t seq) {
  const std::vector<TokenId> tokens = tokenizer_of(s).encode(o.text);
  check(tokens.size() >= 2, "--text: needs at least 2 tokens, one to go on to; got ",
        tokens.size());
  const auto n =
      static_cast<size_t>(std::min<int64_t>(seq, static_cast<int64_t>(tokens.size()) - 1));
  const std::vector<int64_t> ids(tokens.begin(), tokens.begin() + static_cast<int64_t>(n)),
      targets(tokens.begin() + 1, tokens.begin() + 1 + static_cast<int64_t>(n));
  return batch_of(ids, targets, {1, static_cast<int64_t>(n)}, s.model->device(), "--text");
}

StepBatch data_batch(const StepOptions& o, const StepModel& s,
                     const std::vector<std::string>& files, int64_t batch, int64_t seq) {
  const TrainConfig& t = s.target.config.train;
  const Tokenizer tokenizer = tokenizer_of(s);
  tally::DataOptions options;
  if (o.data.empty()) options.text.val_fraction = t.val_fraction;
  const TokenSplits splits = files.size() == 1 ? open_data(files[0], tokenizer, options)
                                               : tokenize_files(files, tokenizer, options.text);
  const Dataset data(splits.train, seq, static_cast<uint64_t>(t.seed));
  const int64_t index = o.index >= 0 ? o.index : s.optimizer->steps() * t.accumulation;
  std::vector<int64_t> ids(static_cast<size_t>(batch * seq)), targets(ids.size());
  data.batch(index, ids, targets);
  return batch_of(
      ids, targets, {batch, seq}, s.model->device(),
      "batch " + to_text(index) + " of " + files[0] + (files.size() > 1 ? ", ..." : ""));
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
  if (run || s.target.kind == TargetKind::hugging_face) {
    LoadedModel loaded = load_model(name, dtype, device);
    check(loaded.config.model == s.target.config.model, "--set: the weights of ", name,
          " fix its model; only train.* can be changed here");
    s.model = std::move(loaded.model);
  } else {
    s.model = build_model(s.target.config.model, dtype, device);
    initialise(*s.model, s.target.config.model, static_cast<uint64_t>(t.seed));
  }
  s.optimizer = std::make_unique<optim::AdamW>(optim::decay_groups(*s.model, t.weight_decay),
                                               optim::AdamW::Options{t.beta1, t.beta2, t.eps});
  if (has_dropout(s.target.config.model)) s.dropout = dropout_of(t);
  if (run) load_run_state(s);
  s.lr = schedule_of(t).at(s.optimizer->steps());
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
  if (!o.text.empty()) return text_batch(o, s, seq);
  const std::vector<std::string> files = files_of(o, s);
  if (!files.empty()) return data_batch(o, s, files, batch, seq);
  const Device device = s.model->device();
  return {random_ids({batch, seq}, m.vocab, o.seed, device),
          random_ids({batch, seq}, m.vocab, o.seed + 1, device), "made-up tokens"};
}

}  // namespace tally::cli
