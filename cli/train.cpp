#include <fmt/format.h>

#include <cstdio>

#include "cli/common.h"
#include "cli/ledger_view.h"
#include "cli/probe_view.h"
#include "cli/run_report.h"
#include "cli/train_session.h"
#include "data/file.h"
#include "data/tokenizer_io.h"
#include "models/config_json.h"
#include "models/generate.h"
#include "models/tensorboard.h"
#include "models/trainer.h"

namespace tally::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// True at every n-th step; never for 0.
bool due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

/// The loop: steps, evaluations, samples, checkpoints, one line a logged step.
class Loop {
 public:
  Loop(const TrainOptions& o, Session& s, Trainer& trainer, RunDirectory& run)
      : o_(o), s_(s), trainer_(trainer), run_(run), line_(o.quiet), first_(trainer.steps_done()) {}

  int run() {
    const TrainConfig& t = s_.config.train;
    install_interrupt();
    start_ = logged_ = Clock::now();
    while (trainer_.steps_done() < t.steps) {
      const int64_t next = trainer_.steps_done() + 1;
      const bool last = next == t.steps;
      const bool evaluate = trainer_.has_validation() && !last && due(next, t.eval_every);
      const bool logged = due(next, t.log_every) || last || evaluate;
      const StepResult r = probed_step(logged);
      if (logged) log(r, evaluate);
      show(r, last);
      if (due(r.step, t.sample_every)) sample();
      if (!last && due(r.step, t.checkpoint_every)) save();
      if (interrupted()) return stop("interrupted", 130);
      if (o_.max_minutes > 0 && seconds() > o_.max_minutes * 60 && !last)
        return stop("the time is up", 0);
    }
    if (trainer_.steps_done() > first_) save();
    line_.finish();
    return finish();
  }

 private:
  /// A step, measured by the probes that are on where it is logged.
  StepResult probed_step(bool logged) {
    const bool listed = trainer_.steps_done() == first_ + 3;
    const std::vector<std::string>& names = s_.config.train.probes;
    if (!logged || names.empty()) return listed ? listed_step() : trainer_.step();
    Probes probes(names, trainer_.optimizer().groups());
    trainer_.measure_noise(std::ranges::find(names, "noise_scale") != names.end());
    const StepResult r = listed ? listed_step() : trainer_.step();
    trainer_.measure_noise(false);
    probes.noise(r.noise);
    probes_ = probes_json(probes.values());
    return r;
  }
  /// A step under a ledger, kept for the report, with what the machine allows beside it.
  StepResult listed_step() {
    StepLedger l;
    StepResult r;
    trainer_.set_mode(StepMode::planned);  // replayed calls do not allocate: no memory to show
    {
      Ledger ledger;
      const auto start = Clock::now();
      r = trainer_.step();
      l.step_seconds = std::chrono::duration<double>(Clock::now() - start).count();
      l.calls.assign(ledger.entries().begin(), ledger.entries().end());
    }
    trainer_.set_mode(StepMode::replayed);
    const auto pause = Clock::now();
    l.ceilings = measure_ceilings();
    peak_ = l.ceilings.flops;
    save_ledger(run_.path(), l);
    const auto paused = Clock::now() - pause;  // no part of the training's time
    start_ += paused;
    logged_ += paused;
    return r;
  }
  void save() {
    trainer_.save(run_, s_.facts);
    report();
  }
  /// The report is for people; that it cannot be written is no reason to stop.
  void report() {
    try {
      write_report(run_.path());
    } catch (const std::exception& e) {
      line_.finish();
      std::fprintf(stderr, "note: no report: %s\n", e.what());
    }
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void log(const StepResult& r, bool evaluate) {
    const std::chrono::duration<double> passed = Clock::now() - logged_;
    const double steps = static_cast<double>(r.step - logged_step(r));
    Json m = {
        {"step", r.step},
        {"tokens", r.tokens},
        {"loss", r.loss},
        {"lr", r.lr},
        {"grad_norm", r.grad_norm},
        {"log_z", r.log_z},
        {"tokens_per_s", steps * static_cast<double>(trainer_.tokens_per_step()) / passed.count()},
        {"flops_per_s", steps * trainer_.model_flops_per_step() / passed.count()}};
    if (evaluate) {
      val_ = trainer_.evaluate(s_.config.train.eval_batches);
      m["val_loss"] = val_.loss;
      m["val_bits_per_byte"] = val_.bits_per_byte;
    }
    if (!probes_.empty()) m["probes"] = probes_;
    run_.append_metrics(m.dump());
    if (o_.tensorboard) write_tensorboard(m);
    logged_ = Clock::now();
    last_logged_ = r.step;
  }
  void write_tensorboard(const Json& metrics) {
    if (!tensorboard_) tensorboard_.emplace(run_.file("tb"), first_);
    std::vector<std::pair<std::string, double>> scalars;
    for (const auto& [name, value] : metrics.items()) {
      if (value.is_number() && name != "step") scalars.push_back({name, value.get<double>()});
    }
    tensorboard_->add(metrics["step"].get<int64_t>(), scalars);
  }
  int64_t logged_step(const StepResult&) const { return last_logged_ ? last_logged_ : first_; }

  void show(const StepResult& r, bool last) {
    const double per_step = seconds() / static_cast<double>(r.step - first_);
    std::string text =
        fmt::format("step {}/{}  loss {:.4f}", r.step, s_.config.train.steps, r.loss);
    if (val_.tokens > 0)
      text += fmt::format("  val {:.4f} ({:.3f} bits/byte)", val_.loss, val_.bits_per_byte);
    text += fmt::format("  {} tokens/s",
                        short_number(static_cast<double>(trainer_.tokens_per_step()) / per_step));
    if (peak_ > 0)
      text += fmt::format("  {:.0f}% of peak",
                          100 * trainer_.model_flops_per_step() / per_step / peak_);
    text += fmt::format(
        "  ETA {}", duration_text(per_step * static_cast<double>(s_.config.train.steps - r.step)));
    line_.show(text, last);
  }

  void sample() {
    const bool shown = !o_.quiet && !o_.json;
    if (shown) line_.finish();
    tally::GenerateOptions g;
    g.max_new_tokens = s_.config.train.sample_tokens;
    g.sampling = {0.8, 40, 1, 0};
    if (shown) std::fputs("  sample: ", stderr);
    std::string text;
    // A tokenizer without an end of text has no token that a text begins with.
    generate_text(trainer_.decoder(), s_.tokenizer, s_.tokenizer.eot() ? "" : "\n", g,
                  [&](std::string_view piece) {
                    text += piece;
                    if (shown) std::fwrite(piece.data(), 1, piece.size(), stderr);
                  });
    if (shown) std::fputc('\n', stderr);
    run_.append_line("samples.jsonl", Json{{"step", trainer_.steps_done()}, {"text", text}}.dump());
  }

  int stop(const char* why, int code) {
    save();
    line_.finish();
    std::fprintf(stderr, "%s: saved after step %lld; go on with: tally train --resume %s\n", why,
                 static_cast<long long>(trainer_.steps_done()), run_.path().c_str());
    return code;
  }

  int finish() {
    Json result = {{"run", run_.path()},
                   {"steps", trainer_.steps_done()},
                   {"seconds", seconds()},
                   {"tokens", trainer_.tokens_seen()}};
    std::string text = fmt::format("done: {} steps, {} tokens in {}", trainer_.steps_done(),
                                   short_number(static_cast<double>(trainer_.tokens_seen())),
                                   duration_text(seconds()));
    if (trainer_.has_validation()) {
      const Evaluation e = trainer_.evaluate();
      result["val_loss"] = e.loss;
      result["val_bits_per_byte"] = e.bits_per_byte;
      if (trainer_.steps_done() > first_)
        run_.append_metrics(Json{
            {"step", trainer_.steps_done()},
            {"final", true},
            {"val_loss", e.loss},
            {"val_bits_per_byte",
             e.bits_per_byte}}.dump());
      text += fmt::format(
          ", validation loss {:.4f} nats/token, {:.4f} bits per byte ({} held-out tokens)", e.loss,
          e.bits_per_byte, e.tokens);
    }
    report();
    if (o_.json)
      print_json(result);
    else
      std::printf("%s; run in %s\n", text.c_str(), run_.path().c_str());
    return 0;
  }

  const TrainOptions& o_;
  Session& s_;
  Trainer& trainer_;
  RunDirectory& run_;
  ProgressLine line_;
  std::optional<TensorBoardLog> tensorboard_;
  Evaluation val_;
  Json probes_ = Json::object();  // of the last logged step
  double peak_ = 0;
  int64_t first_, last_logged_ = 0;
  Clock::time_point start_, logged_;
};

int run_session(const TrainOptions& o, Session& s, RunDirectory& run, bool resume) {
  Trainer trainer(s.config, *s.data, s.tokenizer.byte_lengths(), parse_dtype(s.inputs.dtype),
                  parse_device(s.inputs.device), s.tokens);
  if (resume) {
    trainer.resume(run, s.facts);
    check(trainer.steps_done() <= s.config.train.steps, "train: this run has ",
          trainer.steps_done(), " steps already; --steps ", s.config.train.steps, " is less");
    write_file_atomic(run.file("config.json"),
                      to_json_text(s.config));  // all that can fail is done
    run.drop_lines_after(trainer.steps_done());
    if (trainer.steps_done() == s.config.train.steps) {
      std::fprintf(stderr, "this run has all its %lld steps; give more with --steps N\n",
                   static_cast<long long>(trainer.steps_done()));
    }
  } else {
    trainer.save(run, s.facts);  // whatever happens from here on can be resumed
    if (!o.quiet) {
      const auto kind = static_cast<size_t>(s.config.train.optimizer);
      std::fprintf(stderr, "optimizer %s, %s of state\n%s",
                   std::string(enum_names(s.config.train.optimizer)[kind]).c_str(),
                   bytes_text(optim::state_bytes(trainer.optimizer())).c_str(),
                   optim::describe(trainer.optimizer().groups()).c_str());
    }
  }
  return Loop(o, s, trainer, run).run();
}

}  // namespace

int train(const TrainOptions& o) {
  if (o.target.print_config) {
    std::fputs(to_json_text(new_session(o).config).c_str(), stdout);
    return 0;
  }
  if (!o.resume.empty()) {
    RunDirectory run = RunDirectory::open(o.resume);
    const RunLock lock(run);
    Session s = resumed_session(o, run);
    return run_session(o, s, run, true);
  }
  Session s = new_session(o);
  RunDirectory::check_free(o.out);
  open_session_data(o, s);  // fails, if it must, before anything is written
  RunDirectory run = RunDirectory::create(o.out);
  const RunLock lock(run);
  RunDirectory::check_free(o.out);  // nobody was faster
  save_tokenizer(s.tokenizer, run.path());
  write_file_atomic(run.file("env.json"), session_environment(s).dump(2) + "\n");
  write_file_atomic(run.file("config.json"), to_json_text(s.config));
  return run_session(o, s, run, false);
}

}  // namespace tally::cli
