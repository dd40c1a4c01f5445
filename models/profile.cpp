#include "models/profile.h"

#include <algorithm>
#include <chrono>

#include "core/random.h"
#include "data/json.h"
#include "models/architecture.h"
#include "models/build.h"
#include "models/recompute.h"
#include "models/training_step.h"

namespace tally {
namespace {

using Clock = std::chrono::steady_clock;

/// One step that can be run again: a training step or the decoding of a token.
class Work {
 public:
  Work(const ModelConfig& config, const ProfileOptions& o)
      : o_(o), config_(config), model_(build_language_model(config, o.dtype, o.device)) {
    initialise(*model_, config, o.seed);
    const auto ids = [&](int64_t tokens, uint64_t stream) {
      return random_ids({o.batch, tokens}, config.vocab, o.seed + stream, o.device);
    };
    if (o.decode) {
      prompt_ = ids(o.seq, 0), next_ = ids(1, 2);
      return;
    }
    // In host memory: the step has its own tensors for them, which are all that an account counts.
    ids_ = to_host<int64_t>(ids(o.seq, 0)), targets_ = to_host<int64_t>(ids(o.seq, 1));
    model_->set_recompute(recompute_layers(o.recompute, config.all_layers()));
    const auto optimizer = [&](nn::Module& m) { return optim::make_optimizer(m, o.optimizer); };
    step_ = std::make_unique<TrainingStep>(*model_, optimizer, step_shape(config, o.batch, o.seq),
                                           dropout_);
  }
  /// Runs the step under `ledger`'s eyes; returns its wall time.
  double run(Ledger& ledger) {
    std::function<void()> work = [this] { train(); };
    if (o_.decode) work = prepare_decoding(*model_, config_, prompt_, next_);
    ledger.clear();
    backend(o_.device).reset_peak();
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  void train() {
    step_->gradients([&](int64_t, const BatchSpans& to) {
      std::copy_n(ids_.begin(), to.ids.size(), to.ids.begin());
      std::copy_n(targets_.begin(), to.targets.size(), to.targets.begin());
      std::copy_n(targets_.begin(), to.source.size(), to.source.begin());
    });
    step_->update(1e-4);
  }

  ProfileOptions o_;
  ModelConfig config_;
  std::unique_ptr<nn::LanguageModel> model_;
  Generator dropout_;
  std::unique_ptr<TrainingStep> step_;
  std::vector<int64_t> ids_, targets_;  // of a training step
  Tensor prompt_, next_;                // of decoding
};

// A span of the trace that is still open.
struct OpenSpan {
  std::string name;
  double start = 0, end = 0;
};

Json span_json(const char* category, const std::string& name, double start, double seconds) {
  return {{"name", name}, {"cat", category},   {"ph", "X"},           {"pid", 1},
          {"tid", 1},     {"ts", start * 1e6}, {"dur", seconds * 1e6}};
}

std::vector<std::string> path_parts(const Entry& e) {
  std::vector<std::string> parts = {to_text(e.phase)};
  std::string part;
  for (const char* c = e.module; *c; ++c) {
    if (*c == '.') {
      parts.push_back(part);
      part.clear();
    } else {
      part += *c;
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

// Closes the spans beyond `keep`; those around a call end with it.
void close_spans(std::vector<OpenSpan>& open, size_t keep, Json& events) {
  while (open.size() > keep) {
    const OpenSpan& s = open.back();
    events.push_back(span_json("module", s.name, s.start, s.end - s.start));
    open.pop_back();
  }
}

Json call_json(const Entry& e) {
  std::string shapes;
  for (const Shape& s : e.shapes) shapes += (shapes.empty() ? "" : " ") + to_text(s);
  Json json = span_json(to_text(e.kind).c_str(), e.op, e.start, e.seconds);
  json["args"] = {{"module", e.module},
                  {"shapes", shapes},
                  {"dtype", to_text(e.dtype)},
                  {"flops", e.cost.flops},
                  {"bytes_read", e.cost.bytes_read},
                  {"bytes_written", e.cost.bytes_written},
                  {"provider", e.provider},
                  {"reference_loops", e.fallback}};
  return json;
}

}  // namespace

Tensor random_ids(const Shape& shape, int64_t vocab, uint64_t seed, Device device) {
  std::vector<int64_t> ids(static_cast<size_t>(shape.numel()));
  uint64_t state = seed;
  for (int64_t& id : ids) {  // Knuth's MMIX generator: any spread over the vocabulary serves
    state = state * 6364136223846793005u + 1442695040888963407u;
    id = static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(vocab));
  }
  return from_host<int64_t>(ids, shape, device);
}

double Ceilings::roof(double intensity) const { return std::min(flops, intensity * memory()); }

std::string class_of(const Entry& e) {
  return e.phase == Phase::optimizer ? "optimizer" : to_text(e.kind);
}

Profile profile_model(const ModelConfig& config, const ProfileOptions& given,
                      const std::function<void(int)>& progress) {
  Profile p;
  p.config = config;
  p.options = given;
  ProfileOptions& o = p.options;
  if (o.seq == 0) o.seq = config.context - (o.decode ? 1 : 0);
  const int64_t needed = o.seq + (o.decode ? 1 : 0);
  check(needed <= config.context, "profile: ", needed, " tokens do not fit the context of ",
        config.context, "; use a smaller --seq, or --set model.context=", needed);
  check(o.device != kMeta, "profile: meta computes nothing that could be timed; use account");
  p.tokens = o.batch * (o.decode ? 1 : o.seq);
  Work work(config, o);
  std::vector<std::pair<double, std::vector<Entry>>> steps;
  for (int i = 0; i < o.warm_up + o.steps; ++i) {
    Ledger ledger;
    const double seconds = work.run(ledger);
    p.peak_bytes = static_cast<double>(backend(o.device).memory().peak);
    if (progress) progress(i);
    if (i < o.warm_up) continue;
    p.mean_seconds += seconds / o.steps;
    steps.emplace_back(seconds,
                       std::vector<Entry>(ledger.entries().begin(), ledger.entries().end()));
  }
  std::sort(steps.begin(), steps.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  auto& [seconds, calls] = steps[(steps.size() - 1) / 2];
  p.step_seconds = seconds;
  p.calls = std::move(calls);
  for (const Entry& e : p.calls) p.calls_seconds += e.seconds;
  return p;
}

std::string chrome_trace(std::span<const Entry> calls) {
  Json events = Json::array();
  std::vector<OpenSpan> open;
  const double begin = calls.empty() ? 0 : calls.front().start;
  for (Entry e : calls) {
    e.start -= begin;
    const auto parts = path_parts(e);
    size_t same = 0;
    while (same < std::min(parts.size(), open.size()) && parts[same] == open[same].name) ++same;
    close_spans(open, same, events);
    for (size_t i = same; i < parts.size(); ++i) open.push_back({parts[i], e.start, e.start});
    for (OpenSpan& s : open) s.end = e.start + e.seconds;
    events.push_back(call_json(e));
    events.push_back({{"name", "live bytes"},
                      {"ph", "C"},
                      {"pid", 1},
                      {"ts", e.start * 1e6},
                      {"args", {{"bytes", e.live}}}});
  }
  close_spans(open, 0, events);
  return Json{{"displayTimeUnit", "ms"}, {"traceEvents", events}}.dump();
}

}  // namespace tally
