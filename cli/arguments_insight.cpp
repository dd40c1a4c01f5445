// The words of the verbs that show what a model is, costs and computes.
#include "cli/arguments.h"
#include "cli/checks.h"

namespace tally::cli {

namespace {

void add_step(CLI::App& app, Options& o, Run& run) {
  CLI::App* v = add(app, o.step, step, run, "step",
                    "Walk one training step op by op: formula, shapes, cost, saved tensors, values",
                    "tally step runs/demo --module \"blocks[0]\" --html step.html");
  add_target(*v, o.step.target);
  v->add_option("--data", o.step.data, "Text or token files; default: the run's own");
  v->add_option("--text", o.step.text, "Walk this text instead");
  v->add_option("--batch", o.step.batch, "Sequences; default: as the target trains")
      ->check(whole(1, kMany));
  v->add_option("--seq", o.step.seq, "Tokens a sequence; default: as the target trains")
      ->check(whole(1, kMany));
  v->add_option("--index", o.step.index, "Which batch of the data; default: the one that is next")
      ->check(whole(0, kMany));
  v->add_option("--from", o.step.from, "First call shown")->check(whole(1, kMany));
  v->add_option("--to", o.step.to, "Last call shown")->check(whole(1, kMany));
  v->add_option("--op", o.step.op, "Only ops whose name begins so");
  v->add_option("--module", o.step.module, "Only layers whose path begins so");
  v->add_option("--values", o.step.values, "First values of each tensor")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  v->add_option("--html", o.step.html, "Write the step as one page that opens offline");
}

}  // namespace

void add_insight(CLI::App& app, Options& o, Run& run) {
  add(app, o.doctor, doctor, run, "doctor", "What this machine can do, and a self-test",
      "tally doctor");
  CLI::App* v =
      add(app, o.models, models, run, "models",
          "The presets, and the lecture's tables of them; with a name, what it is made of",
          "tally models --table norm --family \"Gemma 2\"");
  for (const char* idle : {"--device", "--dtype", "--threads", "--seed"})  // nothing is computed
    v->remove_option(v->get_option(idle));
  v->add_option("name", o.models.name, "A preset");
  v->add_option("--table", o.models.table,
                "norm, placement, position, activation, width, heads, aspect, vocabulary, "
                "regularisation, stability or all");
  v->add_option("--family", o.models.family, "Models of one family only");
  v->add_flag("--small", o.models.small, "Also those of published families that train here");
  v->add_flag("--markdown", o.models.markdown, "Print docs/models.md");

  v = add(app, o.gradcheck, gradcheck, run, "gradcheck",
          "Check every backward pass against central differences in float64",
          "tally gradcheck rms_norm");
  v->add_option("what", o.gradcheck.what, "all, the name of an op or layer, or a model")
      ->capture_default_str();
  v->add_option("--cases", o.gradcheck.cases, "At most so many samples an op")
      ->check(whole(1, kMany));
  v->add_option("--set", o.gradcheck.set, "Change a field of a model")->allow_extra_args(false);

  v = add(app, o.account, account, run, "account",
          "Parameters, FLOPs, bytes and memory of a model, without running it",
          "tally account llama-3-8b --batch 1 --seq 8192 --train");
  add_target(*v, o.account.target);
  v->add_option("--batch", o.account.batch, "Sequences")
      ->check(whole(1, kMany))
      ->capture_default_str();
  v->add_option("--seq", o.account.seq, "Tokens a sequence; default: what the context holds")
      ->check(whole(1, kMany));
  v->add_flag("--train", o.account.train, "Forward, backward and update");
  v->add_flag("--decode", o.account.decode, "One new token after --seq cached ones")
      ->excludes("--train");
  v->add_option("--optimizer", o.account.optimizer,
                "Whose update is counted; default: train.optimizer");
  v->add_option("--by", o.account.by, "op, layer, class or phase")->capture_default_str();
  v->add_flag("--algebra", o.account.algebra, "Each formula with its numbers");
  v->add_option("--train-tokens", o.account.train_tokens,
                "With --flops-per-s: days for so many tokens")
      ->check(number(1, 1e30));
  v->add_option("--flops-per-s", o.account.flops_per_s, "Peak of one device, as 989e12")
      ->check(number(1, 1e30));
  v->add_option("--devices", o.account.devices, "How many train together")
      ->check(whole(1, kMany))
      ->capture_default_str();
  v->add_option("--mfu", o.account.mfu, "Share of the peak that model FLOPs reach")
      ->check(number(0.001, 1))
      ->capture_default_str();
  v->add_option("--fit", o.account.fit, "Largest batch within so much memory, as 80GB");

  v = add(app, o.profile, profile, run, "profile",
          "Run real steps and time every call: rates, shares, roofline, trace",
          "tally profile demo --batch 16 --out profile");
  add_target(*v, o.profile.target);
  v->add_option("--batch", o.profile.batch, "Sequences; default: as the target trains")
      ->check(whole(1, kMany));
  v->add_option("--seq", o.profile.seq, "Tokens a sequence; default: as the target trains")
      ->check(whole(1, kMany));
  v->add_option("--steps", o.profile.steps, "Measured steps, after two to warm up")
      ->check(whole(1, 10000))
      ->capture_default_str();
  v->add_flag("--decode", o.profile.decode, "One token after --seq cached ones instead");
  v->add_option("--by", o.profile.by, "op, layer, class or phase")->capture_default_str();
  v->add_option("--out", o.profile.out, "Folder for profile.html and trace.json")
      ->capture_default_str();

  add_step(app, o, run);
  v = add(app, o.coordinates, coordinates, run, "coordinates",
          "Does a step move the activations alike at every width? muP's coordinate check",
          "tally coordinates llama-smoke --set model.mup_base_width=64");
  add_target(*v, o.coordinates.target);
  v->add_option("--widths", o.coordinates.widths, "d_model, one after the other")
      ->delimiter(',')
      ->check(whole(1, 1 << 20))
      ->capture_default_str();
  v->add_option("--steps", o.coordinates.steps, "Steps at train.lr on one batch")
      ->check(whole(1, 10000))
      ->capture_default_str();
  v = add(app, o.report, report, run, "report", "Write a run's report.html anew",
          "tally report runs/demo");
  v->add_option("run", o.report.run, "Run directory")->required();
  v = add(
      app, o.compare, compare, run, "compare",
      "Two runs: results, what differs in their configuration, curves in one page; two models: on "
      "which axes they differ, and what both cost; with --values the first op whose values differ",
      "tally compare gpt2 llama-7b");
  v->add_option("a", o.compare.a, "Run directory, preset, file or Hugging Face directory")
      ->required();
  v->add_option("b", o.compare.b, "Another")->required();
  v->add_option("--out", o.compare.out, "Page to write")->capture_default_str();
  v->add_flag("--values", o.compare.values,
              "The same batch through both models: the first op whose outputs differ; a and b may "
              "be any targets");
  v->add_option("--tolerance", o.compare.tolerance,
                "Differences up to this times (1 + the larger value) pass; default: none do")
      ->check(number(0, 1e30));
  v->add_option("--text", o.compare.text, "Compare on this text; default: data of the first");
  v->add_option("--batch", o.compare.batch, "Sequences")
      ->check(whole(1, kMany))
      ->capture_default_str();
  v->add_option("--seq", o.compare.seq, "Tokens a sequence; default: as the first trains")
      ->check(whole(1, kMany));

  v = add_verb(app, "verify", "Replay results recorded with another framework",
               "tally verify model tests/data/models/llama1");
  v->require_subcommand(1);
  CLI::App* w = add(*v, o.verify, verify, run, "model", "Loss, logits and gradients of a model",
                    "tally verify model tests/data/models/llama1");
  w->parse_complete_callback([&o] { o.verify.verb = "model"; });
  w->add_option("folders", o.verify.files, "Folders with case.safetensors")->required();
  w = add(*v, o.verify, verify, run, "ops", "Outputs and gradients of single ops",
          "tally verify ops tests/data/ops/norm.safetensors");
  w->parse_complete_callback([&o] { o.verify.verb = "ops"; });
  w->add_option("files", o.verify.files, "Files of recorded cases")->required();
  w->add_flag("--known", o.verify.known, "Pass over cases of ops that this build does not have");
  w = add(*v, o.verify, verify, run, "optim", "Twenty steps of an optimizer",
          "tally verify optim tests/data/optim/adamw.safetensors");
  w->parse_complete_callback([&o] { o.verify.verb = "optim"; });
  w->add_option("files", o.verify.files, "Files of recorded traces")->required();
  w = add(*v, o.verify, verify, run, "tokenizer", "Ids, cuts and merges of a tokenizer",
          "tally verify tokenizer tests/data/tokenizer/gpt2_1000.cases.json");
  w->parse_complete_callback([&o] { o.verify.verb = "tokenizer"; });
  w->add_option("files", o.verify.files, "Files of recorded cases")->required();
  w->add_option("--tokenizer", o.verify.tokenizer,
                "The vocabulary of cases that name one, or the folder that holds it");
  v = add(app, o.import, import, run, "import",
          "Weights from a Hugging Face directory or a GGUF file",
          "tally import model.safetensors --inspect");
  v->add_option("path", o.import.path, "Hugging Face directory, GGUF or safetensors file")
      ->required();
  v->add_option("--out", o.import.out, "Run directory to write");
  v->add_flag("--inspect", o.import.inspect, "Check and list the tensors, write nothing");
  v = add(app, o.export_model, export_model, run, "export",
          "Weights as a Hugging Face directory that the public library loads",
          "tally export runs/demo --out demo-hf --verify");
  v->add_option("model", o.export_model.path, "Run or Hugging Face directory")->required();
  v->add_option("--out", o.export_model.out, "Folder to write")->required();
  v->add_option("--to", o.export_model.to, "Format")->check(CLI::IsMember({"hf"}));
  v->add_option("--family", o.export_model.family,
                "model_type to write; otherwise the first that can say all of the model");
  v->add_flag("--verify", o.export_model.verify, "Load it again and compare the logits");
  v = add(app, o.convert, convert, run, "convert",
          "Fewer heads of keys and values, or another order of rotary pairs",
          "tally convert runs/demo --kv-heads 1 --out runs/demo-mqa");
  v->add_option("model", o.convert.path, "Run or Hugging Face directory")->required();
  v->add_option("--out", o.convert.out, "Run directory to write")->required();
  v->add_option("--kv-heads", o.convert.kv_heads,
                "Heads that remain: means of those they stand for");
  v->add_option("--rope", o.convert.rope, "Order of rotary pairs")
      ->check(CLI::IsMember({"half", "interleaved"}));
}

}  // namespace tally::cli
