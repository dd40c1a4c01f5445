#include "cli/verify_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "autograd/functional.h"
#include "autograd/proof/run_sample.h"
#include "cli/common.h"
#include "cli/recorded_case.h"

namespace tally::cli {
namespace {

double largest(const std::vector<double>& v) {
  double m = 0;
  for (double x : v) m = std::max(m, std::fabs(x));
  return m;
}

/// Largest difference over `scale` (the largest recorded value, or more); NaN counts as infinite.
double difference(const std::vector<double>& ours, const std::vector<double>& theirs,
                  double scale) {
  check(ours.size() == theirs.size(), "verify: ", ours.size(), " values here, ", theirs.size(),
        " recorded");
  double worst = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double d = std::fabs(ours[i] - theirs[i]);
    worst = std::isnan(d) ? INFINITY : std::max(worst, d);
  }
  return worst / std::max(scale, 1e-300);
}

/// The same, by tokens of `width` logits, but for the `passed_over` worst of them.
double difference_of_tokens(const std::vector<double>& ours, const std::vector<double>& theirs,
                            size_t width, size_t passed_over) {
  const double scale = largest(theirs);
  std::vector<double> errors;
  for (size_t at = 0; at < theirs.size(); at += width) {
    const auto row = [&](const std::vector<double>& v) {
      return std::vector<double>(v.begin() + static_cast<std::ptrdiff_t>(at),
                                 v.begin() + static_cast<std::ptrdiff_t>(at + width));
    };
    errors.push_back(difference(row(ours), row(theirs), scale));
  }
  std::ranges::sort(errors, std::greater<>());
  return errors.at(passed_over);
}

/// Beside our gradients the recorded ones, of what the public program trains.
void compare_gradients(const RecordedCase& c, const RecordedModel& model,
                       const Checkpoint& checkpoint, double bound, std::vector<Comparison>& out) {
  std::vector<std::string> names;
  std::vector<std::pair<std::vector<double>, std::vector<double>>> pairs;
  double largest_of_all = 0;
  const auto parameters = model.module->named_parameters();
  for (const WeightSource& source : checkpoint.sources()) {
    if (!source.parts[0].trained) continue;
    names.push_back(source.parameter.name);
    std::vector<double> theirs(static_cast<size_t>(source.parameter.numel()));
    read_source(
        source,
        [&](const std::string& name) -> const StoredTensor& { return c.file().at("grad." + name); },
        std::span<double>(theirs));
    const auto ours = std::find_if(parameters.begin(), parameters.end(),
                                   [&](const auto& p) { return p.first == source.parameter.name; });
    check(ours != parameters.end() && ours->second.grad().defined(), "verify: no gradient for ",
          source.parameter.name);
    largest_of_all = std::max(largest_of_all, largest(theirs));
    pairs.emplace_back(to_doubles(ours->second.grad()), std::move(theirs));
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    const double scale = std::max(largest(pairs[i].second), 1e-3 * largest_of_all);
    out.push_back(
        {"gradient " + names[i], difference(pairs[i].first, pairs[i].second, scale), bound});
  }
}

/// Greedy continuation with the cache, `v` tokens to choose from: how many tokens differ, and the
/// logits that chose them.
void compare_greedy(const RecordedCase& c, const RecordedModel& model, int64_t v, double bound,
                    std::vector<Comparison>& out) {
  const Tensor greedy = c.ids("greedy", kReference);
  const auto tokens = to_host<int64_t>(greedy);
  const auto logits = c.numbers("greedy_logits");
  Tensor next = model.start;
  const int64_t b = next.size(0), steps = greedy.size(1);
  check(greedy.size(0) == b, c.file().path(), ": greedy has ", greedy.size(0),
        " texts, what they go on with has ", b);
  check(logits.size() == tokens.size() * static_cast<size_t>(v), c.file().path(),
        ": greedy_logits must hold the ", v, " logits of each of ", tokens.size(),
        " tokens; it holds ", logits.size(), " numbers");
  double wrong = 0, worst = 0;
  for (int64_t s = 0; s < steps; ++s) {
    const auto ours = to_doubles(model.next(next));
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < b; ++i) {
      const auto row = ours.begin() + i * v;
      chosen.push_back(std::max_element(row, row + v) - row);
      wrong += chosen.back() != tokens[static_cast<size_t>(i * steps + s)];
      const auto recorded = logits.begin() + (i * steps + s) * v;
      worst =
          std::max(worst, difference({row, row + v}, {recorded, recorded + v}, largest(logits)));
    }
    next = from_host<int64_t>(chosen, {b, 1}, model.start.device());
  }
  out.push_back({"greedy tokens that differ", wrong, 0});
  out.push_back({"greedy logits", worst, bound});
}

/// What a recording did otherwise than the models of its family. transformers adds Falcon's ALiBi
/// twice when attention is "eager": once in the mask and once to the scores; its other kinds of
/// attention, and the code that the weights come from, add it once.
std::vector<std::string> as_recorded(const RecordedCase& c, const std::string& folder) {
  const auto& metadata = c.file().metadata();
  const auto kind = metadata.find("attn_implementation");
  const bool eager = kind != metadata.end() && kind->second == "eager";
  const HfModel model = read_hf_config(folder + "/config.json");
  const bool is_falcon = model.family->model_type == std::string_view("falcon");
  if (!eager || !is_falcon || model.config.position != Position::alibi) return {};
  return {fmt::format("model.alibi_scale={:.17g}", 2 * model.config.alibi_scale)};
}

/// 4e-2, or four times what rounding the weights to bf16 alone moves the logits, all else in f32:
/// weights, activations and sums are rounded, and some models magnify what the first of these does
/// (Nemotron's squared ReLU: 5e-2). docs/hugging_face.md has what transformers itself computes.
double coarse_bound(const RecordedCase& c, const std::string& folder, Device device,
                    std::span<const std::string> changes, const std::vector<double>& logits) {
  const RecordedModel model = load_recorded(c, folder, DType::f32, device, changes);
  for (const auto& [name, p] : model.module->named_parameters())
    run(p.device(), ops::Copy::Call{to(to(p, DType::bf16), DType::f32), p});
  const double moved = difference(to_doubles(model.logits()), logits, largest(logits));
  return std::max(4e-2, 4 * moved);
}

}  // namespace

std::vector<Comparison> verify_model(const std::string& folder, DType dtype, Device device) {
  const RecordedCase c(folder);
  const Checkpoint checkpoint = Checkpoint::hugging_face(folder);
  const std::vector<std::string> changes = as_recorded(c, folder);
  for (const std::string& change : changes)
    fmt::print(stderr, "as recorded: {} (docs/hugging_face.md)\n", change);
  const RecordedModel model = load_recorded(c, folder, dtype, device, changes);
  const bool exact = dtype == DType::f64, coarse = dtype == DType::bf16;
  std::vector<Comparison> out;
  const auto logits = c.numbers(exact ? "logits64" : "logits");
  const double tol_logits = exact    ? 1e-9
                            : coarse ? coarse_bound(c, folder, device, changes, logits)
                                     : c.tolerance("tol_logits", 2e-5);
  // Rounding to bf16 may exchange two experts whose scores lie close, and that token's logits jump:
  // one token in 16 may, and says nothing of the others.
  const bool jumps = coarse && checkpoint.config().experts > 0;
  const auto width = static_cast<size_t>(checkpoint.config().vocab);
  const auto ours = to_doubles(model.logits());
  check(ours.size() == logits.size(), "verify: ", ours.size(), " logits here, ", logits.size(),
        " recorded");
  const size_t passed_over = jumps ? logits.size() / width / 16 : 0;
  out.push_back({"logits", difference_of_tokens(ours, logits, width, passed_over), tol_logits});
  model.module->requires_grad();
  Tape tape;
  const Tensor loss = model.loss();
  const auto recorded_loss = c.numbers(exact ? "loss64" : "loss");
  check(recorded_loss.size() == 1, c.file().path(), ": the loss must be one number; it has ",
        recorded_loss.size());
  const double theirs = recorded_loss[0];
  out.push_back({"loss", std::fabs(loss.item() - theirs) / std::fabs(theirs),
                 exact    ? 1e-9
                 : coarse ? 2e-2
                          : 1e-5});
  if (coarse)
    return out;  // weights in bf16 are others than the recorded ones: the rest says nothing
  tape.backward(loss);
  // The recorded gradients and greedy logits are those of the float32 run, whatever we compute in.
  compare_gradients(c, model, checkpoint, c.tolerance("tol_grad", 1e-4), out);
  if (model.next)
    compare_greedy(c, model, checkpoint.config().vocab, c.tolerance("tol_logits", 2e-5), out);
  return out;
}

}  // namespace tally::cli
