// Recorded cases of learning-rate schedules and of the growing batch.
#include "cli/verify_ops.h"
#include "optim/schedule.h"

namespace tally::cli {
namespace {

using C = OpCase;
using optim::Decay;
using optim::Schedule;

/// The schedule that a case is named after: "warmup_cosine_min", "wsd_1-sqrt".
Schedule schedule_of(const std::string& name) {
  if (name.starts_with("wsd")) return Schedule::wsd;
  if (name.find("cosine") != std::string::npos) return Schedule::cosine;
  if (name.find("linear") != std::string::npos) return Schedule::linear;
  if (name == "inverse_sqrt") return Schedule::inverse_sqrt;
  if (name == "noam") return Schedule::noam;
  check(name.starts_with("constant"), "there is no schedule '", name, "'");
  return Schedule::constant;
}
Decay decay_of(const C& c) {
  const std::string name = c.has("decay") ? c.text("decay") : "linear";
  if (name == "cosine") return Decay::cosine;
  return name == "1-sqrt" ? Decay::one_minus_sqrt : Decay::linear;
}

OpOutputs rates(const C& c) {
  const auto given = [&](const char* key, double otherwise) {
    return c.has(key) ? c.number(key) : otherwise;
  };
  optim::LearningRate s;
  s.schedule = schedule_of(c.case_name);
  s.peak = given("lr", 1);
  s.final_fraction = given("min_ratio", 0);
  s.warmup = c.integer("warmup");
  s.total = static_cast<int64_t>(given("total", 0));
  s.decay_steps = static_cast<int64_t>(given("decay_steps", 0));
  s.decay = decay_of(c);
  s.d_model = static_cast<int64_t>(given("d_model", 1));
  // The library's WSD begins its warm-up at the floor; the case that begins at 0 says so.
  if (s.schedule == Schedule::wsd && c.case_name != "wsd_from_zero")
    s.warmup_from = s.final_fraction;
  std::vector<double> y;
  for (int64_t t : to_host<int64_t>(c.in("step"))) y.push_back(s.at(t));
  return {{"y", from_host<double>(y, c.in("step").shape(), c.device)}};
}

OpOutputs batches(const C& c) {
  const optim::BatchRamp ramp{c.integer("b0"), c.integer("b1"), c.integer("ramp")};
  std::vector<int64_t> y;
  for (int64_t t : to_host<int64_t>(c.in("step"))) y.push_back(ramp.at(t));
  return {{"y", from_host<int64_t>(y, c.in("step").shape(), c.device)}};
}

}  // namespace

void add_schedule_ops(OpTable& t) {
  t["schedule"] = rates;
  t["batch_ramp"] = batches;
}

}  // namespace tally::cli
