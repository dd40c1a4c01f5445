// The words of the verbs that train and use a model, and those that all verbs share.
#include "cli/arguments.h"
#include "cli/checks.h"

namespace tally::cli {

void add_common(CLI::App& app, Common& o) {
  app.add_flag("--json", o.json, "Print one JSON document on stdout and nothing else there");
  app.add_flag("--quiet", o.quiet, "No progress, no notes");
  app.add_option("--device", o.device, "reference, cpu, meta")->capture_default_str();
  app.add_option("--dtype", o.dtype, "f32, f64, bf16")->capture_default_str();
  app.add_option("--threads", o.threads, "Threads; 0: all")->check(whole(0, 1024));
  app.add_option_function<uint64_t>(
         "--seed", [&o](uint64_t s) { o.seed = s, o.seed_given = true; },
         "Seed of all randomness (1)")
      ->check(whole(0, 1'000'000'000'000'000));  // as the field train.seed
}

void add_target(CLI::App& app, TargetOptions& t) {
  app.add_option("target", t.name,
                 "A preset (tally models), a JSON file, a run or a Hugging Face directory")
      ->required();
  app.add_option("--set", t.set, "Change a field: dotted.path=value; repeatable")
      ->allow_extra_args(false);
  app.add_flag("--print-config", t.print_config, "Print the resolved configuration and stop");
}

CLI::App* add_verb(CLI::App& app, const char* name, const char* does, const char* example) {
  CLI::App* verb = app.add_subcommand(name, does);
  verb->footer(std::string("Example:\n  ") + example);
  return verb;
}

void add_training(CLI::App& app, Options& o, Run& run) {
  CLI::App* v = add(app, o.train, train, run, "train", "Train a model on text or token files",
                    "tally train demo --data data/corpus/king_james.txt --out runs/demo");
  add_target(*v, o.train.target);
  v->get_option("target")->required(false);
  v->add_option("--data", o.train.data,
                "Text file, token file (.npy), a folder of them or a quoted pattern ('*.npy'); "
                "repeatable")
      ->allow_extra_args(false);
  v->add_option("--eval", o.train.eval,
                "Another text to evaluate on: NAME=FILE, as --data; repeatable")
      ->allow_extra_args(false);
  v->add_option("--out", o.train.out, "Run directory to write");
  v->add_option("--resume", o.train.resume, "Run directory to go on with");
  v->add_option("--branch", o.train.branch,
                "Run or checkpoint (RUN/checkpoints/step-N) to go on from in another run (--out), "
                "with another schedule or end");
  v->add_option("--tokenizer", o.train.tokenizer,
                "Tokenizer for text files; default: as configured");
  v->add_option("--steps", o.train.steps, "Updates; default: as configured")
      ->check(whole(1, kMany));
  v->add_option("--max-minutes", o.train.max_minutes, "Save and stop after so long")
      ->check(number(1e-6, 1e9));
  v->add_flag("--tensorboard", o.train.tensorboard,
              "Write the curves for TensorBoard too, into tb/");
  v->add_option("--val-fraction", o.train.val_fraction, "Share of documents held out")
      ->check(number(0, 0.5));

  v = add(app, o.eval, eval, run, "eval",
          "Loss, perplexity and bits per byte of a trained model on a text",
          "tally eval runs/demo --data data/corpus/king_james.txt");
  v->add_option("run", o.eval.run, "Run or Hugging Face directory")->required();
  v->add_option("--data", o.eval.data,
                "Text or token file; repeatable; default: the run's held-out split")
      ->allow_extra_args(false);

  v = add(app, o.generate, generate, run, "generate", "Continue a text",
          "tally generate runs/demo --prompt \"And God said\" --max-new-tokens 60");
  v->add_option("run", o.generate.run, "Run or Hugging Face directory")->required();
  v->add_option(
      "--prompt", o.generate.prompt,
      "The text to go on with; of an encoder-decoder the text to read, <extra_id_0> where "
      "something is missing; of an encoder a text with [MASK]");
  v->add_option("--max-new-tokens", o.generate.max_new_tokens, "At most so many tokens")
      ->check(whole(0, kMany))
      ->capture_default_str();
  v->add_option("--temperature", o.generate.temperature,
                "Below 1 the likely tokens gain, above 1 the others; 0: as --greedy")
      ->check(number(0, 1e6))
      ->capture_default_str();
  v->add_option("--top-k", o.generate.top_k, "Choose among so many likeliest tokens; 0: all")
      ->check(whole(0, kMany))
      ->capture_default_str();
  v->add_option("--top-p", o.generate.top_p,
                "Choose among the likeliest tokens that together reach this probability")
      ->check(number(0, 1))
      ->capture_default_str();
  v->add_option("--min-p", o.generate.min_p,
                "Leave out tokens below this share of the likeliest one's probability")
      ->check(number(0, 1))
      ->capture_default_str();
  v->add_flag("--greedy", o.generate.greedy, "Always the most likely token");
  v->add_option("--stop", o.generate.stop, "End at this text; repeatable")->allow_extra_args(false);
  v->add_flag("--stats", o.generate.stats, "Prefill and decode tokens/s, bytes per token");
}

}  // namespace tally::cli
