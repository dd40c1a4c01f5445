#include <cstdio>
#include <memory>
#include <optional>

#include "cli/common.h"
#include "cli/train_loop.h"
#include "cli/train_session.h"
#include "data/file.h"
#include "data/tokenizer_io.h"
#include "models/config_json.h"
#include "models/trainer.h"

namespace tally::cli {
namespace {

std::unique_ptr<Trainer> make_trainer(const Session& s) {
  return std::make_unique<Trainer>(s.config, *s.data, s.tokenizer.byte_lengths(),
                                   parse_dtype(s.inputs.dtype), parse_device(s.inputs.device),
                                   s.tokens);
}

int go_on(const TrainOptions& o) {
  RunDirectory run = RunDirectory::open(o.resume);
  const RunLock lock(run);
  Session s = resumed_session(o, run);
  const auto trainer = make_trainer(s);
  trainer->resume(run, s.facts);
  const int64_t done = trainer->steps_done(), steps = s.config.train.steps;
  check(done <= steps, "train: this run has ", done, " steps already; --steps ", steps, " is less");
  write_file_atomic(run.file("config.json"), to_json_text(s.config));  // all that can fail is done
  run.drop_lines_after(done);
  if (done == steps) {
    std::fprintf(stderr, "this run has all its %lld steps; give more with --steps N\n",
                 static_cast<long long>(done));
  } else if (trainer->early_stop().out_of_patience()) {
    std::fprintf(stderr,
                 "this run stopped early; to go on give it more with --set train.patience=N\n");
  }
  return run_training(o, s, *trainer, run);
}

void show_optimizer(const TrainConfig& t, optim::Optimizer& optimizer) {
  const auto kind = static_cast<size_t>(t.optimizer);
  std::fprintf(stderr, "optimizer %s, %s of state\n%s",
               std::string(enum_names(t.optimizer)[kind]).c_str(),
               bytes_text(optim::state_bytes(optimizer)).c_str(),
               optim::describe(optimizer.groups()).c_str());
}

/// The trainer of a branch stands where its trunk's checkpoint does.
void take_from_trunk(const Session& s, Trainer& trainer) {
  trainer.branch(RunDirectory::open(s.trunk), s.facts, s.checkpoint);
  check(trainer.steps_done() < s.config.train.steps, "train: the checkpoint to branch from has ",
        trainer.steps_done(), " steps already; give more than that with --steps");
}

int begin(const TrainOptions& o) {
  const bool branch = !o.branch.empty();
  // Fails, if it must, before anything is written.
  Session s = branch ? branched_session(o) : new_session(o);
  RunDirectory::check_free(o.out);
  if (!branch) open_session_data(o, s);
  std::optional<RunLock> lock;
  std::unique_ptr<Trainer> trainer;
  RunDirectory run = RunDirectory::create_whole(o.out, [&](RunDirectory& made) {
    lock.emplace(made);
    RunDirectory::check_free(o.out);  // nobody was faster
    save_tokenizer(s.tokenizer, made.path());
    write_file_atomic(made.file("env.json"), session_environment(s).dump(2) + "\n");
    write_file_atomic(made.file("config.json"), to_json_text(s.config));
    trainer = make_trainer(s);
    if (branch) take_from_trunk(s, *trainer);
    trainer->save(made, s.facts);  // whatever happens from here on can be resumed
  });
  if (!o.quiet) show_optimizer(s.config.train, trainer->optimizer());
  return run_training(o, s, *trainer, run);
}

}  // namespace

int train(const TrainOptions& o) {
  if (o.target.print_config) {
    std::fputs(to_json_text(new_session(o).config).c_str(), stdout);
    return 0;
  }
  check(o.resume.empty() || o.branch.empty(),
        "train: --branch begins another run and --resume goes on with one; choose one");
  return o.resume.empty() ? begin(o) : go_on(o);
}

}  // namespace tally::cli
