#include "cli/train_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

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
  for (const std::string& file : s.inputs.data) {
    check(file.ends_with(".txt"),
          "train: token files say nothing about text; name their tokenizer with --tokenizer (",
          file, ")");
  }
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
  return train_tokenizer(s.inputs.data, options, text);
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

void open_data_of(Session& s) {
  check_names(s.inputs.data);
  tally::DataOptions options;
  options.text.val_fraction = s.config.train.val_fraction;
  const TrainConfig& t = s.config.train;
  if (t.pairs)
    s.data = tokenize_pairs(s.inputs.data, s.tokenizer, t.seq ? t.seq : s.config.model.context,
                            t.val_fraction);
  else if (s.inputs.data.size() == 1)
    s.data = open_data(s.inputs.data[0], s.tokenizer, options);
  else
    s.data = tokenize_files(s.inputs.data, s.tokenizer, options.text);
  s.tokens = objective_tokens(s.config.model, s.tokenizer, t.pairs);
  check(s.tokenizer.vocab_size() <= s.config.model.vocab, "train: the tokenizer has ",
        s.tokenizer.vocab_size(), " tokens, the model ", s.config.model.vocab,
        "; set model.vocab=", s.tokenizer.vocab_size());
  s.facts = {{"model configuration", to_json_text({s.config.model, {}})},
             {"training data", s.data->train.content_hash()},
             {"tokenizer", s.tokenizer.hash()},
             {"seed", to_text(s.config.train.seed)},
             {"batch", batch_text(s.config.train)},
             {"element type", s.inputs.dtype}};
  if (s.config.model.architecture != Architecture::decoder)
    s.facts["objective"] = objective_text(s.config.train);
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
  const int64_t context = objective_window(s.config.model, s.config.train);
  check(s.data->val->size() > context, "train: the held-out part has ", s.data->val->size(),
        " tokens, and a window takes ", context + 1,
        "; hold out more (--val-fraction), nothing (--val-fraction 0), or use a smaller train.seq");
}

}  // namespace

Json session_environment(const Session& s) {
  Json env = environment();
  env["data"] = s.inputs.data;
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
  const int64_t window = objective_window(s.config.model, t);
  static_cast<void>(Dataset(s.data->train, window));
  static_cast<void>(Objective(s.config.model, t, s.tokens, window));
  check_held_out(s);
}

Session resumed_session(const TrainOptions& o, const RunDirectory& run) {
  Session s;
  s.config = resolve_target(run.path(), o.target.set).config;
  if (o.steps > 0) s.config.train.steps = o.steps;
  s.config.resolve_and_check(run.path());
  check_resume_options(o, s.config);
  const char* advice = "start a new run";
  s.inputs = read_run_inputs(run.path());
  check(!s.inputs.device.empty() && !s.inputs.dtype.empty(), s.inputs.path,
        ": does not say how the run was trained; ", advice);
  s.inputs.data = o.data.empty() ? s.inputs.files(advice) : absolute_paths(o.data);
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

}  // namespace tally::cli
