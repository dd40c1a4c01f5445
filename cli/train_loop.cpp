#include "cli/train_loop.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/common.h"
#include "cli/ledger_view.h"
#include "cli/probe_view.h"
#include "cli/run_report.h"
#include "models/tensorboard.h"
#include "models/training_sample.h"

namespace tally::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// True at every n-th step; never for 0.
bool due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

class Loop {
 public:
  Loop(const TrainOptions& o, Session& s, Trainer& trainer, RunDirectory& run)
      : o_(o),
        s_(s),
        trainer_(trainer),
        run_(run),
        line_(o.quiet),
        evaluator_(trainer, s.evaluation),
        first_(trainer.steps_done()) {}

  int run() {
    const TrainConfig& t = s_.config.train;
    install_interrupt();
    start_ = logged_ = Clock::now();
    while (trainer_.steps_done() < t.steps && !trainer_.early_stop().out_of_patience()) {
      const int64_t next = trainer_.steps_done() + 1;
      const bool last = next == t.steps;
      const bool evaluate = evaluates(next, last);
      const bool logged = due(next, t.log_every) || last || evaluate;
      const StepResult r = probed_step(logged);
      if (trainer_.wants_rollback()) {
        roll_back(r);
        continue;
      }
      if (logged) log(r, evaluate);
      show(r, last);
      if (due(r.step, t.sample_every)) sample();
      if (!last && (due(r.step, t.checkpoint_every) || best_at_ == r.step)) save();
      if (interrupted()) return stop("interrupted", 130);
      if (o_.max_minutes > 0 && seconds() > o_.max_minutes * 60 && !last)
        return stop("the time is up", 0);
    }
    if (trainer_.steps_done() > first_ && saved_at_ != trainer_.steps_done()) save();
    line_.finish();
    return finish();
  }

 private:
  /// Whether a step is evaluated on the way. The last one is where a run looks for its best model.
  bool evaluates(int64_t step, bool last) const {
    const TrainConfig& t = s_.config.train;
    if (!evaluator_.has_any() || t.eval_every == 0) return false;
    return last ? t.patience > 0 || t.keep_best : due(step, t.eval_every);
  }
  /// What was logged of the steps that are undone goes with them.
  void roll_back(const StepResult& r) {
    trainer_.roll_back(run_);
    run_.drop_lines_after(trainer_.steps_done());
    first_ = std::min(first_, trainer_.steps_done());
    last_logged_ = trainer_.steps_done();
    line_.finish();
    std::fprintf(
        stderr,
        "step %lld: %lld steps in a row were skipped or not finite (loss %g, gradient norm "
        "%g); back to step %lld, on with another order of the data (rollback %lld)\n",
        static_cast<long long>(r.step), static_cast<long long>(s_.config.train.rollback_after),
        r.loss, r.grad_norm, static_cast<long long>(trainer_.steps_done()),
        static_cast<long long>(trainer_.rollbacks()));
  }
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
    probes.moments(trainer_.optimizer().state());
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
    l.ceilings = measure_ceilings(trainer_.model().dtype());
    peak_ = l.ceilings.flops;
    save_ledger(run_.path(), l);
    const auto paused = Clock::now() - pause;  // no part of the training's time
    start_ += paused;
    logged_ += paused;
    return r;
  }
  void save() {
    trainer_.save(run_, s_.facts);
    saved_at_ = trainer_.steps_done();
    // It reads all that was logged: of a long run no more often than takes a fiftieth of the time.
    if (Clock::now() - reported_ >= 50 * report_time_) report();
  }
  /// The report is for people; that it cannot be written is no reason to stop.
  void report() {
    reported_ = Clock::now();
    try {
      write_report(run_.path());
    } catch (const std::exception& e) {
      line_.finish();
      std::fprintf(stderr, "note: no report: %s\n", e.what());
    }
    report_time_ = Clock::now() - reported_;
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
      evaluator_.run(s_.config.train.eval_batches);
      evaluator_.add_to(m);
      if (trainer_.judge(evaluator_.first_loss()) && s_.config.train.keep_best) best_at_ = r.step;
    }
    add_stability(m, r);
    if (!probes_.empty()) m["probes"] = probes_;
    run_.append_metrics(m.dump());
    if (o_.tensorboard) write_tensorboard(m);
    logged_ = Clock::now();
    last_logged_ = r.step;
  }
  /// What the kit of docs/stability.md has done so far, where it is on.
  void add_stability(Json& m, const StepResult& r) const {
    const TrainConfig& t = s_.config.train;
    const bool skips = t.skip_deviations > 0 || t.rollback_after > 0;
    if (skips) m["skipped_steps"] = trainer_.guard().skipped();
    if (skips && r.skipped) m["skipped"] = 1;
    if (t.spike_factor > 0) m["spikes"] = trainer_.guard().spikes();
    if (t.rollback_after > 0) m["rollbacks"] = trainer_.rollbacks();
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
    text += evaluator_.short_text();
    if (r.skipped) text += "  skipped";
    text += fmt::format("  {} tokens/s",
                        short_number(static_cast<double>(trainer_.tokens_per_step()) / per_step));
    if (peak_ > 0)
      text += fmt::format("  {:.0f}% of peak",
                          100 * trainer_.model_flops_per_step() / per_step / peak_);
    text += fmt::format(
        "  ETA {}", duration_text(per_step * static_cast<double>(s_.config.train.steps - r.step)));
    line_.show(text, last);
  }

  /// A model may say an id that its tokenizer has no token for: no reason to stop either.
  void sample() {
    try {
      write_sample();
    } catch (const Error& e) {
      line_.finish();
      std::fprintf(stderr, "note: no sample: %s\n", e.what());
    }
  }
  void write_sample() {
    const bool shown = !o_.quiet && !o_.json;
    if (shown) line_.finish();
    tally::GenerateOptions g;
    g.max_new_tokens = s_.config.train.sample_tokens;
    g.sampling = {0.8, 40, 1, 0};
    if (shown) std::fputs("  sample: ", stderr);
    const TrainingSample sample =
        training_sample(trainer_, s_.tokenizer, s_.tokens, g, [&](std::string_view piece) {
          if (shown) std::fwrite(piece.data(), 1, piece.size(), stderr);
        });
    if (shown) std::fputc('\n', stderr);
    Json line = {{"step", trainer_.steps_done()}, {"text", sample.text}};
    if (!sample.source.empty()) line["source"] = sample.source;
    run_.append_line("samples.jsonl", line.dump());
  }

  int stop(const char* why, int code) {
    report_time_ = {};  // the report is due, too
    save();
    line_.finish();
    std::fprintf(stderr, "%s: saved after step %lld; go on with: %s train --resume %s\n", why,
                 static_cast<long long>(trainer_.steps_done()), o_.program.c_str(),
                 run_.path().c_str());
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
    if (evaluator_.has_any()) {
      evaluator_.run(0);
      evaluator_.add_to(result);
      if (trainer_.steps_done() > first_) {
        Json line = {{"step", trainer_.steps_done()}, {"final", true}};
        evaluator_.add_to(line);
        run_.append_metrics(line.dump());
      }
      text += evaluator_.long_text();
    }
    text += outcome_of_kit(result);
    report();
    if (o_.json)
      print_json(result);
    else
      std::printf("%s; run in %s\n", text.c_str(), run_.path().c_str());
    return 0;
  }

  /// Early stop, best model, skips, spikes and rollbacks, for the last line.
  std::string outcome_of_kit(Json& result) const {
    const TrainConfig& t = s_.config.train;
    const EarlyStop& e = trainer_.early_stop();
    std::string text;
    if (e.out_of_patience())
      text += fmt::format("; early stop: no lower loss in {} evaluations", t.patience);
    if (e.best_step() >= 0 && (t.patience > 0 || t.keep_best)) {
      result["best_step"] = e.best_step(), result["best_loss"] = e.best_loss();
      text += fmt::format("; best: {:.4f} after step {}{}", e.best_loss(), e.best_step(),
                          t.keep_best ? " (" + run_.path() + "/best)" : "");
    }
    StepResult none;
    add_stability(result, none);
    for (const char* name : {"skipped_steps", "spikes", "rollbacks"})
      if (result.contains(name)) text += fmt::format("; {}: {}", name, result[name].get<int64_t>());
    return text;
  }

  const TrainOptions& o_;
  Session& s_;
  Trainer& trainer_;
  RunDirectory& run_;
  ProgressLine line_;
  std::optional<TensorBoardLog> tensorboard_;
  Evaluator evaluator_;
  Json probes_ = Json::object();  // of the last logged step
  double peak_ = 0;
  int64_t first_, last_logged_ = 0, saved_at_ = -1, best_at_ = -1;
  Clock::time_point start_, logged_, reported_;
  Clock::duration report_time_{};
};

}  // namespace

int run_training(const TrainOptions& o, Session& s, Trainer& trainer, RunDirectory& run) {
  return Loop(o, s, trainer, run).run();
}

}  // namespace tally::cli
