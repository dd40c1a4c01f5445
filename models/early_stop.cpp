#include "models/early_stop.h"

#include "core/error.h"

namespace tally {

bool EarlyStop::judge(int64_t step, double loss) {
  const bool better = best_step_ < 0 || loss < best_loss_ - min_delta_;
  since_ = better ? 0 : since_ + 1;
  if (better) best_step_ = step, best_loss_ = loss;
  return better;
}

void EarlyStop::save(Facts& facts) const {
  if (best_step_ < 0) return;
  facts["best_step"] = std::to_string(best_step_);
  facts["best_loss"] = numbers_text({best_loss_});
  facts["evaluations_since_best"] = std::to_string(since_);
}

void EarlyStop::load(const Facts& facts, const std::string& where) {
  best_step_ = whole_fact(facts, "best_step", where, -1);
  since_ = whole_fact(facts, "evaluations_since_best", where);
  if (best_step_ < 0) return;
  const std::vector<double> loss = number_facts(facts, "best_loss", where);
  check(loss.size() == 1, where, "/state.json: best_loss must be one number beside best_step");
  best_loss_ = loss[0];
}

}  // namespace tally
