#include "models/step_guard.h"

#include <algorithm>
#include <cmath>

namespace tally {
namespace {

constexpr double kLeastDeviation = 1e-3;  // as a share of the mean

}  // namespace

void RunningWindow::add(double value) {
  if (!std::isfinite(value)) return;
  if (full()) values_.erase(values_.begin());
  values_.push_back(value);
}

void RunningWindow::set_values(const std::vector<double>& values) {
  values_.clear();
  for (const double v : values) add(v);
}

double RunningWindow::mean() const {
  double sum = 0;
  for (const double v : values_) sum += v;
  return sum / static_cast<double>(values_.size());
}

double RunningWindow::deviation() const {
  const double middle = mean();
  double sum = 0;
  for (const double v : values_) sum += (v - middle) * (v - middle);
  return std::sqrt(sum / static_cast<double>(values_.size()));
}

double RunningWindow::median() const {
  std::vector<double> sorted = values_;
  std::ranges::sort(sorted);
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

StepGuard::StepGuard(const TrainConfig& c)
    : deviations_(c.skip_deviations),
      factor_(c.spike_factor),
      survives_(c.rollback_after > 0),
      loss_(c.guard_window),
      norm_(c.guard_window) {}

bool StepGuard::beyond(Watched& w, double value) const {
  if (deviations_ <= 0 || !std::isfinite(value)) return false;
  if (!w.accepted.full()) {
    w.accepted.add(value);
    return false;
  }
  const double mean = w.accepted.mean();
  const double deviation = std::max(w.accepted.deviation(), kLeastDeviation * std::fabs(mean));
  const double limit = mean + deviations_ * deviation;
  w.accepted.add(std::min(value, limit));
  return value > limit;
}

bool StepGuard::is_spike(Watched& w, double value) const {
  if (factor_ <= 0 || !std::isfinite(value)) return false;
  const bool spike = w.seen.full() && value > factor_ * w.seen.median();
  w.seen.add(value);
  return spike;
}

bool StepGuard::skips(double loss, double norm) {
  // Both see every step: no short cut between them.
  const bool spike_of_loss = is_spike(loss_, loss), spike_of_norm = is_spike(norm_, norm);
  spikes_ += spike_of_loss || spike_of_norm;
  const bool loss_beyond = beyond(loss_, loss), norm_beyond = beyond(norm_, norm);
  const bool finite = std::isfinite(loss) && std::isfinite(norm);
  const bool skip = loss_beyond || norm_beyond || (survives_ && !finite);
  skipped_ += skip;
  in_a_row_ = skip ? in_a_row_ + 1 : 0;
  return skip;
}

void StepGuard::save(Facts& facts) const {
  const auto number = [&](const char* name, int64_t value) {
    if (value != 0) facts[name] = std::to_string(value);
  };
  const auto window = [&](const char* name, const RunningWindow& w) {
    if (!w.values().empty()) facts[name] = numbers_text(w.values());
  };
  number("skipped_steps", skipped_);
  number("skipped_in_a_row", in_a_row_);
  number("spikes", spikes_);
  window("guard_loss", loss_.accepted);
  window("guard_norm", norm_.accepted);
  window("spike_loss", loss_.seen);
  window("spike_norm", norm_.seen);
}

void StepGuard::load(const Facts& facts, const std::string& where) {
  skipped_ = whole_fact(facts, "skipped_steps", where);
  in_a_row_ = whole_fact(facts, "skipped_in_a_row", where);
  spikes_ = whole_fact(facts, "spikes", where);
  loss_.accepted.set_values(number_facts(facts, "guard_loss", where));
  norm_.accepted.set_values(number_facts(facts, "guard_norm", where));
  loss_.seen.set_values(number_facts(facts, "spike_loss", where));
  norm_.seen.set_values(number_facts(facts, "spike_norm", where));
}

}  // namespace tally
