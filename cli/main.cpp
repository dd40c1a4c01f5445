// The command line: what the words mean. What the verbs do stands in their own files.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <functional>
#include <iostream>

#include "backends/register_all.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/parallel.h"
#include "models/suggest.h"

namespace {

using namespace tally::cli;
using Run = std::function<int()>;

void add_common(CLI::App& app, Common& o) {
  app.add_flag("--json", o.json, "Print one JSON document on stdout and nothing else there");
  app.add_flag("--quiet", o.quiet, "No progress, no notes");
  app.add_option("--device", o.device, "reference, cpu, meta")->capture_default_str();
  app.add_option("--dtype", o.dtype, "f32, f64, bf16")->capture_default_str();
  app.add_option("--threads", o.threads, "Threads; 0: all")->check(CLI::Range(0, 1024));
  app.add_option_function<uint64_t>(
      "--seed", [&o](uint64_t s) { o.seed = s, o.seed_given = true; },
      "Seed of all randomness (1)");
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

/// Every verb's options live as long as the program: CLI11 writes into them.
struct Options {
  DoctorOptions doctor;
  ModelsOptions models;
  TrainOptions train;
  EvalOptions eval;
  GenerateOptions generate;
  TokenizerOptions tokenizer;
  DataOptions data;
  GradcheckOptions gradcheck;
  AccountOptions account;
  ProfileVerbOptions profile;
  StepOptions step;
  ReportVerbOptions report;
  CompareOptions compare;
  VerifyOptions verify;
  ImportOptions import;
};

template <class O>
CLI::App* add(CLI::App& app, O& options, int (*f)(const O&), Run& run, const char* name,
              const char* does, const char* example) {
  CLI::App* verb = add_verb(app, name, does, example);
  add_common(*verb, options);
  verb->callback([&run, &options, f] {
    run = [&options, f] {
      if (options.threads > 0) tally::set_num_threads(options.threads);
      return f(options);
    };
  });
  return verb;
}

void add_training(CLI::App& app, Options& o, Run& run) {
  CLI::App* v = add(app, o.train, train, run, "train", "Train a model on text or token files",
                    "tally train demo --data data/corpus/king_james.txt --out runs/demo");
  add_target(*v, o.train.target);
  v->get_option("target")->required(false);
  v->add_option("--data", o.train.data, "Text files, token files (.npy) or a folder of them");
  v->add_option("--out", o.train.out, "Run directory to write");
  v->add_option("--resume", o.train.resume, "Run directory to go on with");
  v->add_option("--tokenizer", o.train.tokenizer,
                "Tokenizer for text files; default: as configured");
  v->add_option("--steps", o.train.steps, "Updates; default: as configured")
      ->check(CLI::PositiveNumber);
  v->add_option("--max-minutes", o.train.max_minutes, "Save and stop after so long")
      ->check(CLI::PositiveNumber);
  v->add_option("--val-fraction", o.train.val_fraction, "Share of documents held out")
      ->check(CLI::Range(0.0, 0.9));

  v = add(app, o.eval, eval, run, "eval",
          "Loss, perplexity and bits per byte of a trained model on a text",
          "tally eval runs/demo --data data/corpus/king_james.txt");
  v->add_option("run", o.eval.run, "Run or Hugging Face directory")->required();
  v->add_option("--data", o.eval.data, "Text or token files; default: the run's held-out split");

  v = add(app, o.generate, generate, run, "generate", "Continue a text",
          "tally generate runs/demo --prompt \"And God said\" --max-new-tokens 60");
  v->add_option("run", o.generate.run, "Run or Hugging Face directory")->required();
  v->add_option("--prompt", o.generate.prompt, "The text to go on with");
  v->add_option("--max-new-tokens", o.generate.max_new_tokens)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  v->add_option("--temperature", o.generate.temperature)->capture_default_str();
  v->add_option("--top-k", o.generate.top_k)->capture_default_str();
  v->add_option("--top-p", o.generate.top_p)->capture_default_str();
  v->add_option("--min-p", o.generate.min_p)->capture_default_str();
  v->add_flag("--greedy", o.generate.greedy, "Always the most likely token");
  v->add_option("--stop", o.generate.stop, "End at this text; repeatable")->allow_extra_args(false);
  v->add_flag("--stats", o.generate.stats, "Prefill and decode tokens/s, bytes per token");
}

void add_text(CLI::App& app, Options& o, Run& run) {
  CLI::App* t =
      add_verb(app, "tokenizer", "Train and use byte-level BPE tokenizers",
               "tally tokenizer train data/corpus/king_james.txt --vocab-size 2048 --out tok");
  t->require_subcommand(1);
  for (const char* name : {"train", "encode", "decode", "info"}) {
    CLI::App* v = add(*t, o.tokenizer, tokenizer, run, name, "", "");
    v->parse_complete_callback([&o, name] { o.tokenizer.verb = name; });
    const bool training = std::string_view(name) == "train";
    if (training) {
      v->description("Learn merges from text files");
      v->footer(
          "Example:\n  tally tokenizer train data/corpus/king_james.txt --vocab-size 2048 --out "
          "tok");
      v->add_option("files", o.tokenizer.files, "Text files")->required();
      v->add_option("--vocab-size", o.tokenizer.vocab_size, "Tokens, special ones included")
          ->required();
      v->add_option("--out", o.tokenizer.out, "Folder for tokenizer.json")->required();
      v->add_option("--pattern", o.tokenizer.pattern, "Pre-tokenizer: gpt2, gpt4, llama3, ...")
          ->capture_default_str();
      v->add_option("--ties", o.tokenizer.ties, "Among equal counts: bytes-greater, id-smaller, hf")
          ->capture_default_str();
      v->add_option("--special", o.tokenizer.special_tokens,
                    "Special tokens; default <|endoftext|>");
    } else {
      v->add_option("tokenizer", o.tokenizer.tokenizer,
                    "tokenizer.json, vocab.json, a .tiktoken file or a folder")
          ->required();
    }
    if (std::string_view(name) == "encode") {
      v->description("Text to ids");
      v->footer("Example:\n  tally tokenizer encode runs/demo --text \"In the beginning\"");
      v->add_option("files", o.tokenizer.files, "Text files; default: --text or stdin");
      v->add_option("--text", o.tokenizer.text);
      v->add_option("--special", o.tokenizer.special,
                    "Special tokens in the text: plain, allow, refuse")
          ->capture_default_str();
    }
    if (std::string_view(name) == "decode") {
      v->description("Ids to text");
      v->footer("Example:\n  tally tokenizer decode runs/demo 12 55 3");
      v->add_option("ids", o.tokenizer.files, "Ids; default: from stdin");
    }
    if (std::string_view(name) == "info") {
      v->description("What a tokenizer file holds");
      v->footer("Example:\n  tally tokenizer info runs/demo");
    }
  }
  CLI::App* d =
      add_verb(app, "data", "Prepare and inspect token files",
               "tally data prepare data/corpus/king_james.txt --tokenizer tok --out tokens");
  d->require_subcommand(1);
  for (const char* name : {"prepare", "inspect"}) {
    CLI::App* v = add(*d, o.data, data, run, name, "", "");
    v->parse_complete_callback([&o, name] { o.data.verb = name; });
    v->add_option("files", o.data.files)->required();
    if (std::string_view(name) == "prepare") {
      v->description("Text files to memory-mapped token shards");
      v->footer(
          "Example:\n  tally data prepare data/corpus/king_james.txt --tokenizer tok --out tokens");
      v->add_option("--tokenizer", o.data.tokenizer)->required();
      v->add_option("--out", o.data.out, "Folder")->required();
      v->add_option("--val-fraction", o.data.val_fraction)->check(CLI::Range(0.0, 0.9));
    } else {
      v->description("Check a token file and say what it holds");
      v->footer("Example:\n  tally data inspect tokens/train.npy");
      v->add_option("--vocab-size", o.data.vocab_size);
      v->add_option("--context", o.data.context);
      // --dtype of a raw file is an element type of files: u16, uint16, ...
      v->remove_option(v->get_option("--dtype"));
      v->add_option("--dtype", o.data.element_type, "Element type of a raw file: uint16, uint32");
    }
  }
}

void add_step(CLI::App& app, Options& o, Run& run) {
  CLI::App* v = add(app, o.step, step, run, "step",
                    "Walk one training step op by op: formula, shapes, cost, saved tensors, values",
                    "tally step runs/demo --module \"blocks[0]\" --html step.html");
  add_target(*v, o.step.target);
  v->add_option("--data", o.step.data, "Text or token files; default: the run's own");
  v->add_option("--text", o.step.text, "Walk this text instead");
  v->add_option("--batch", o.step.batch, "Sequences; default: as the target trains")
      ->check(CLI::PositiveNumber);
  v->add_option("--seq", o.step.seq, "Tokens a sequence; default: as the target trains")
      ->check(CLI::PositiveNumber);
  v->add_option("--index", o.step.index, "Which batch of the data; default: the one that is next")
      ->check(CLI::NonNegativeNumber);
  v->add_option("--from", o.step.from, "First call shown")->check(CLI::PositiveNumber);
  v->add_option("--to", o.step.to, "Last call shown")->check(CLI::PositiveNumber);
  v->add_option("--op", o.step.op, "Only ops whose name begins so");
  v->add_option("--module", o.step.module, "Only layers whose path begins so");
  v->add_option("--values", o.step.values, "First values of each tensor")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  v->add_option("--html", o.step.html, "Write the step as one page that opens offline");
}

void add_insight(CLI::App& app, Options& o, Run& run) {
  add(app, o.doctor, doctor, run, "doctor", "What this machine can do, and a self-test",
      "tally doctor");
  CLI::App* v = add(app, o.models, models, run, "models",
                    "The presets; with a name, what it is made of", "tally models gpt2");
  v->add_option("name", o.models.name, "A preset");

  v = add(app, o.gradcheck, gradcheck, run, "gradcheck",
          "Check every backward pass against central differences in float64",
          "tally gradcheck rms_norm");
  v->add_option("what", o.gradcheck.what, "all, the name of an op or layer, or a model")
      ->capture_default_str();
  v->add_option("--cases", o.gradcheck.cases, "At most so many samples an op")
      ->check(CLI::PositiveNumber);
  v->add_option("--set", o.gradcheck.set, "Change a field of a model")->allow_extra_args(false);

  v = add(app, o.account, account, run, "account",
          "Parameters, FLOPs, bytes and memory of a model, without running it",
          "tally account llama-3-8b --batch 1 --seq 8192 --train");
  add_target(*v, o.account.target);
  v->add_option("--batch", o.account.batch, "Sequences")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  v->add_option("--seq", o.account.seq, "Tokens a sequence; default: the model's context")
      ->check(CLI::PositiveNumber);
  v->add_flag("--train", o.account.train, "Forward, backward and update");
  v->add_flag("--decode", o.account.decode, "One new token after --seq cached ones");
  v->add_option("--optimizer", o.account.optimizer)->capture_default_str();
  v->add_option("--by", o.account.by, "op, layer, class or phase")->capture_default_str();
  v->add_flag("--algebra", o.account.algebra, "Each formula with its numbers");
  v->add_option("--train-tokens", o.account.train_tokens,
                "With --flops-per-s: days for so many tokens")
      ->check(CLI::PositiveNumber);
  v->add_option("--flops-per-s", o.account.flops_per_s, "Peak of one device, as 989e12")
      ->check(CLI::PositiveNumber);
  v->add_option("--devices", o.account.devices)->check(CLI::PositiveNumber)->capture_default_str();
  v->add_option("--mfu", o.account.mfu, "Share of the peak that model FLOPs reach")
      ->check(CLI::Range(0.001, 1.0))
      ->capture_default_str();
  v->add_option("--fit", o.account.fit, "Largest batch within so much memory, as 80GB");

  v = add(app, o.profile, profile, run, "profile",
          "Run real steps and time every call: rates, shares, roofline, trace",
          "tally profile demo --batch 16 --out profile");
  add_target(*v, o.profile.target);
  v->add_option("--batch", o.profile.batch, "Sequences; default: as the target trains")
      ->check(CLI::PositiveNumber);
  v->add_option("--seq", o.profile.seq, "Tokens a sequence; default: as the target trains")
      ->check(CLI::PositiveNumber);
  v->add_option("--steps", o.profile.steps, "Measured steps, after two to warm up")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  v->add_flag("--decode", o.profile.decode, "One token after --seq cached ones instead");
  v->add_option("--by", o.profile.by, "op, layer, class or phase")->capture_default_str();
  v->add_option("--out", o.profile.out, "Folder for profile.html and trace.json")
      ->capture_default_str();

  add_step(app, o, run);

  v = add(app, o.report, report, run, "report", "Write a run's report.html anew",
          "tally report runs/demo");
  v->add_option("run", o.report.run, "Run directory")->required();
  v = add(
      app, o.compare, compare, run, "compare",
      "Two runs: results, what differs in their configuration, curves in one page; with --values "
      "the first op whose values differ",
      "tally compare runs/a runs/b --out compare.html");
  v->add_option("a", o.compare.a, "Run directory")->required();
  v->add_option("b", o.compare.b, "Run directory")->required();
  v->add_option("--out", o.compare.out, "Page to write")->capture_default_str();
  v->add_flag("--values", o.compare.values,
              "The same batch through both models: the first op whose outputs differ; a and b may "
              "be any targets");
  v->add_option("--tolerance", o.compare.tolerance,
                "Differences up to this times (1 + the larger value) pass; default: none do")
      ->check(CLI::NonNegativeNumber);
  v->add_option("--text", o.compare.text, "Compare on this text; default: data of the first");
  v->add_option("--batch", o.compare.batch, "Sequences")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  v->add_option("--seq", o.compare.seq, "Tokens a sequence; default: as the first trains")
      ->check(CLI::PositiveNumber);

  v = add_verb(app, "verify", "Replay results recorded with another framework",
               "tally verify model tests/data/models/llama1");
  v->require_subcommand(1);
  for (const char* name : {"model", "ops", "optim", "tokenizer"}) {
    CLI::App* w = add(*v, o.verify, verify, run, name, "Replay recorded results",
                      "tally verify model tests/data/models/llama1");
    w->parse_complete_callback([&o, name] { o.verify.verb = name; });
    w->add_option("files", o.verify.files, "What was recorded")->required();
    w->add_option("--tokenizer", o.verify.tokenizer);
    w->add_flag("--known", o.verify.known, "Pass over cases of ops that this build does not have");
  }
  v = add(app, o.import, import, run, "import",
          "Weights from a Hugging Face directory or a safetensors file",
          "tally import model.safetensors --inspect");
  v->add_option("path", o.import.path)->required();
  v->add_option("--out", o.import.out, "Run directory to write");
  v->add_flag("--inspect", o.import.inspect, "Check and list the tensors, write nothing");
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* s : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(s->get_name());
  return names;
}

int usage_error(const CLI::App& app, int argc, char** argv, const CLI::ParseError& e) {
  if (argc > 1 && argv[1][0] != '-') {
    const auto names = verb_names(app);
    if (std::find(names.begin(), names.end(), argv[1]) == names.end()) {
      std::fprintf(stderr, "tally: unknown verb '%s'%s; `tally --help` lists the verbs\n", argv[1],
                   tally::did_you_mean(argv[1], names).c_str());
      return 2;
    }
  }
  std::fprintf(stderr,
               "tally: %s; `tally --help` and `tally VERB --help` show what is understood\n",
               e.what());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error to report, not an end
  CLI::App app("Tally: train small language models and see what every step costs", "tally");
  app.require_subcommand(1);
  Options options;
  Run run;
  add_training(app, options, run);
  add_text(app, options, run);
  add_insight(app, options, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto subs = app.get_subcommands();
    std::cout << (subs.empty()                         ? app.help()
                  : subs[0]->get_subcommands().empty() ? subs[0]->help()
                                                       : subs[0]->get_subcommands()[0]->help());
    return 0;
  } catch (const CLI::ParseError& e) {
    return usage_error(app, argc, argv, e);
  }
  try {
    tally::register_all();
    return run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tally: %s\n", e.what());
    return 1;
  }
}
