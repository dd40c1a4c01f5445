#include "cli/train_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "data/data_files.h"
#include "data/dataset.h"
#include "data/tokenizer_io.h"
#include "data/tokenizer_train.h"
#include "data/translation_pairs.h"
#include "models/config_json.h"
#include "models/trainer.h"

namespace tally::cli {
namespace {

Tokenizer choose_tokenizer(const TrainOptions& o, const Session& s) {
  if (!o.tokenizer.empty()) return load_tokenizer(o.tokenizer);
  const int64_t vocab = s.config.model.vocab;
  const bool decoder = s.config.model.architecture == Architecture::decoder;
  if (vocab <= 257 && decoder) return Tokenizer::bytes(vocab == 257);
  const DataFiles files = find_data_files(s.inputs.data);
  check(!files.tokens,
        "train: token files say nothing about text; name their tokenizer with --tokenizer (",
        s.inputs.data[0], ")");
  std::fprintf(
      stderr, "%s",
      o.quiet ? "" : fmt::format("learning a tokenizer of {} tokens ...\n", vocab).c_str());
  TokenizerTrainOptions options;
  options.vocab_size = vocab;
  if (!decoder) options.special = objective_specials(s.config.model, s.config.train);
  if (s.config.train.pairs) {
    TokenizerTrainer trainer(options);
    for_each_pair(s.inputs.data, s.config.train.val_fraction,
                  [&](const TextPair& pair, bool held_out, const std::string&) {
                    if (held_out) return;
                    trainer.add(pair.source), trainer.add(pair.target);
                  });
    return trainer.train();
  }
  TextOptions text;
  text.val_fraction = s.config.train.val_fraction;
  return train_tokenizer(files.train, options, text);
}

// The names of a run's data are kept in its env.json.
void check_names(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    try {
      static_cast<void>(Json(file).dump());
    } catch (const Json::exception&) {
      fail("train: the name of a data file must be UTF-8, since env.json keeps it; got ", file,
           "; rename the file");
    }
  }
}

/// What decides where a step begins in the data.
std::string batch_text(const TrainConfig& t) {
  std::string text = fmt::format("{} x {}", t.batch, t.accumulation);
  if (t.accumulation_start > 0)
    text += fmt::format(" from {} in {} steps", t.accumulation_start, t.ramp_steps);
  return text;
}

/// What decides which tokens a model is asked for.
std::string objective_text(const TrainConfig& t) {
  return t.pairs ? "pairs" : fmt::format("corruption {} in spans of {}", t.corruption, t.mean_span);
}

int64_t window_of(const RunConfig& c) { return objective_window(c.model, c.train); }
int64_t pair_length(const RunConfig& c) { return c.train.seq ? c.train.seq : c.model.context; }

/// The sets beside what is held out. The first of all decides what the best model is.
void open_evaluation_sets(Session& s) {
  for (const EvaluationInput& input : s.inputs.evaluation) {
    TokenFile tokens = s.config.train.pairs
                           ? tokenize_pairs({input.path}, s.tokenizer, pair_length(s.config)).train
                           : open_data(input.path, s.tokenizer).train;
    check_window(tokens.size(), window_of(s.config), "--eval " + input.name + "=" + input.path);
    s.evaluation.push_back({input.name, std::move(tokens)});
  }
  if (!s.data->val && !s.evaluation.empty())
    s.facts["first evaluation set"] = s.evaluation[0].tokens.content_hash();
  const TrainConfig& t = s.config.train;
  check(
      s.data->val || !s.evaluation.empty() || (t.patience == 0 && !t.keep_best),
      "train: patience and keep_best look at an evaluation set, and there is none; hold something ",
      "out (--val-fraction 0.1) or name a text with --eval NAME=FILE");
}

void open_data_of(Session& s) {
  check_names(s.inputs.data);
  tally::DataOptions options;
  options.text.val_fraction = s.config.train.val_fraction;
  const TrainConfig& t = s.config.train;
  s.data = t.pairs
               ? tokenize_pairs(s.inputs.data, s.tokenizer, pair_length(s.config), t.val_fraction)
               : open_data(s.inputs.data, s.tokenizer, options);
  s.tokens = objective_tokens(s.config.model, s.tokenizer, t.pairs);
  check(s.tokenizer.vocab_size() <= s.config.model.vocab, "train: the tokenizer has ",
        s.tokenizer.vocab_size(), " tokens, the model ", s.config.model.vocab,
        "; set model.vocab=", s.tokenizer.vocab_size());
  s.facts = {{"model configuration", to_json_text(s.config.model)},
             {"training data", s.data->train.content_hash()},
             {"tokenizer", s.tokenizer.hash()},
             {"seed", to_text(s.config.train.seed)},
             {"batch", batch_text(s.config.train)},
             {"element type", s.inputs.dtype}};
  if (s.config.model.architecture != Architecture::decoder)
    s.facts["objective"] = objective_text(s.config.train);
  open_evaluation_sets(s);
}

std::vector<std::string> absolute_paths(const std::vector<std::string>& files) {
  std::vector<std::string> out;
  out.reserve(files.size());
  for (const std::string& f : files)
    out.push_back(std::filesystem::absolute(f).lexically_normal().string());
  return out;
}

/// What a run that goes on has already; giving it again is a mistake or no change.
void check_resume_options(const TrainOptions& o, const RunConfig& config) {
  const std::string run = o.resume;
  check(o.out.empty() || std::filesystem::path(o.out).lexically_normal() ==
                             std::filesystem::path(run).lexically_normal(),
        "train: --resume ", run, " goes on in its own directory; leave --out ", o.out, " away");
  check(o.tokenizer.empty(), "train: --resume ", run,
        " has its own tokenizer; leave --tokenizer away");
  check(!o.seed_given || static_cast<int64_t>(o.seed) == config.train.seed, "train: --resume ", run,
        " began with seed ", config.train.seed, "; leave --seed away");
  check(o.val_fraction < 0 || o.val_fraction == config.train.val_fraction, "train: --resume ", run,
        " holds out ", config.train.val_fraction, " of the documents; leave --val-fraction away");
  if (!o.target.name.empty() && !o.quiet)
    std::fprintf(stderr, "note: the run goes on with its own configuration, not with that of %s\n",
                 o.target.name.c_str());
}

void check_held_out(const Session& s) {
  if (!s.data->val) return;
  const int64_t context = window_of(s.config);
  check(s.data->val->size() > context, "train: the held-out part has ", s.data->val->size(),
        " tokens, and a window takes ", context + 1,
        "; hold out more (--val-fraction), nothing (--val-fraction 0), or use a smaller train.seq");
}

}  // namespace

Json session_environment(const Session& s) {
  Json env = environment();
  env["data"] = s.inputs.data;
  if (!s.inputs.evaluation.empty()) env["eval"] = to_json(s.inputs.evaluation);
  env["device"] = s.inputs.device;
  env["dtype"] = s.inputs.dtype;
  env["seed"] = s.config.train.seed;
  env["data_hash"] = s.facts.at("training data");
  env["tokenizer_hash"] = s.facts.at("tokenizer");
  if (s.config.train.pairs) {
    env["train_pairs"] = s.data->train.meta().documents;
    env["val_pairs"] = s.data->val ? s.data->val->meta().documents : 0;
    return env;
  }
  env["train_tokens"] = s.data->train.size();
  env["val_tokens"] = s.data->val ? s.data->val->size() : 0;
  return env;
}

Session new_session(const TrainOptions& o) {
  check(!o.target.name.empty(),
        "train: name a preset, a JSON file or a run to start from (`tally models` lists the "
        "presets), or --resume a run");
  check(o.target.print_config || !o.data.empty(),
        "train: name the text to train on with --data FILE");
  check(o.target.print_config || !o.out.empty(),
        "train: name the run directory to write with --out");
  Session s;
  s.config = resolve_target(o.target.name, o.target.set).config;
  if (o.steps > 0) s.config.train.steps = o.steps;
  if (o.seed_given) s.config.train.seed = static_cast<int64_t>(o.seed);
  if (o.val_fraction >= 0) s.config.train.val_fraction = o.val_fraction;
  s.config.train.warmup = std::min(s.config.train.warmup, s.config.train.steps);
  s.config.resolve_and_check(o.target.name);
  s.inputs.data = absolute_paths(o.data);
  s.inputs.evaluation = parse_evaluation_inputs(o.eval);
  s.inputs.device = o.device;
  s.inputs.dtype = o.dtype;
  Trainer::check_dtype(parse_dtype(o.dtype));
  check(parse_device(o.device) != kMeta,
        "train: meta computes nothing; use account for what a "
        "training costs, or --device cpu");
  return s;
}

void open_session_data(const TrainOptions& o, Session& s) {
  s.tokenizer = choose_tokenizer(o, s);
  open_data_of(s);
  const TrainConfig& t = s.config.train;
  // Throw where the text is too short for a window, or a window for what is asked of it.
  const int64_t window = window_of(s.config);
  static_cast<void>(Dataset(s.data->train, window));
  static_cast<void>(Objective(s.config.model, t, s.tokens, window));
  check_held_out(s);
}

namespace {

/// What a run began with, for one that goes on from it.
Session continued_session(const TrainOptions& o, const RunDirectory& run) {
  Session s;
  s.config = resolve_target(run.path(), o.target.set).config;
  if (o.steps > 0) s.config.train.steps = o.steps;
  s.config.resolve_and_check(run.path());
  const char* advice = "start a new run";
  s.inputs = read_run_inputs(run.path());
  check(!s.inputs.device.empty() && !s.inputs.dtype.empty(), s.inputs.path,
        ": does not say how the run was trained; ", advice);
  s.inputs.data = o.data.empty() ? s.inputs.files(advice) : absolute_paths(o.data);
  if (!o.eval.empty()) s.inputs.evaluation = parse_evaluation_inputs(o.eval);
  s.tokenizer = load_tokenizer(run.path());
  open_data_of(s);
  check_held_out(s);
  const Json now = environment();
  for (const char* key : {"isa", "gemm"}) {
    const Json before = s.inputs.environment.value(key, Json("?"));
    if (before != now[key])
      std::fprintf(stderr,
                   "note: this run was trained with %s %s, it goes on with %s: the numbers will "
                   "differ in their last bits\n",
                   key, before.dump().c_str(), now[key].dump().c_str());
  }
  return s;
}

}  // namespace

Session resumed_session(const TrainOptions& o, const RunDirectory& run) {
  Session s = continued_session(o, run);
  check_resume_options(o, s.config);
  return s;
}

Session branched_session(const TrainOptions& o) {
  check(!o.out.empty(), "train: name the run directory of the branch with --out");
  check(o.target.name.empty(), "train: --branch ", o.branch, " has its own model; leave ",
        o.target.name, " away");
  check(o.tokenizer.empty(), "train: --branch ", o.branch,
        " has its own tokenizer; leave --tokenizer away");
  const Target trunk = resolve_target(o.branch);
  check(trunk.kind == TargetKind::run, "train: --branch ", o.branch,
        ": is not a run (tally train --out) or a checkpoint of one");
  const RunDirectory run = RunDirectory::open(trunk.folder);
  Session s = continued_session(o, run);
  check(!o.seed_given || static_cast<int64_t>(o.seed) == s.config.train.seed, "train: --branch ",
        o.branch, " began with seed ", s.config.train.seed, "; leave --seed away");
  check(o.val_fraction < 0 || o.val_fraction == s.config.train.val_fraction, "train: --branch ",
        o.branch, " holds out ", s.config.train.val_fraction,
        " of the documents; leave --val-fraction away");
  s.trunk = trunk.folder;
  s.checkpoint = trunk.checkpoint.empty() ? run.latest() : trunk.checkpoint;
  return s;
}

}  // namespace tally::cli
