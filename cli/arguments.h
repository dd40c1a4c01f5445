#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "cli/verbs.h"
#include "core/parallel.h"

// What the words of the command line mean, verb by verb. CLI11 is seen by these files alone.
namespace tally::cli {

/// The verb that was named, ready to run.
using Run = std::function<int()>;

constexpr int64_t kMany = 1'000'000'000;  // of anything: beyond it, sizes overflow 64 bits

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
  CoordinatesOptions coordinates;
  ReportVerbOptions report;
  CompareOptions compare;
  VerifyOptions verify;
  ImportOptions import;
  ExportOptions export_model;
  ConvertOptions convert;
};

/// The options that every verb has.
void add_common(CLI::App& app, Common& options);
/// A model or run as the first word, and changes to its configuration.
void add_target(CLI::App& app, TargetOptions& target);
CLI::App* add_verb(CLI::App& app, const char* name, const char* does, const char* example);

/// A verb that does `f` with its options when it is named.
template <class O>
CLI::App* add(CLI::App& app, O& options, int (*f)(const O&), Run& run, const char* name,
              const char* does, const char* example) {
  CLI::App* verb = add_verb(app, name, does, example);
  add_common(*verb, options);
  verb->callback([&run, &options, f] {
    run = [&options, f] {
      if (options.threads > 0) set_num_threads(options.threads);
      return f(options);
    };
  });
  return verb;
}

void add_training(CLI::App& app, Options& options, Run& run);
void add_text(CLI::App& app, Options& options, Run& run);
void add_insight(CLI::App& app, Options& options, Run& run);

}  // namespace tally::cli
