#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/json.h"
#include "models/trainer.h"

namespace tally::cli {

/// A text that a training is evaluated on, beside what is held out: `--eval NAME=PATH`.
struct EvaluationInput {
  std::string name, path;
};
/// Error unless there is a name of letters, digits, - and _, not "val" and not given twice, and a
/// path, which comes back absolute.
std::vector<EvaluationInput> parse_evaluation_inputs(const std::vector<std::string>& options);
/// As env.json keeps them, and back. Error naming `where` for another form.
Json to_json(const std::vector<EvaluationInput>& inputs);
std::vector<EvaluationInput> evaluation_inputs_from(const Json& json, const std::string& where);

/// The same, opened.
struct EvaluationSet {
  std::string name;
  TokenFile tokens;
};

/// Losses of all evaluation sets of a training: the held-out split first, called val, then the others
/// in the order given.
class Evaluator {
 public:
  Evaluator(Trainer& trainer, const std::vector<EvaluationSet>& sets)
      : trainer_(trainer), sets_(sets) {}
  bool has_any() const { return trainer_.has_validation() || !sets_.empty(); }
  /// `batches` 0: all tokens. Replaces what the last call found.
  void run(int64_t batches);
  /// Loss of the first set. After run().
  double first_loss() const { return found_.front().second.loss; }
  /// Adds what was found: val_loss and val_bits_per_byte, eval/NAME/loss and eval/NAME/bits_per_byte.
  void add_to(Json& line) const;
  /// "  val 1.2345 (0.678 bits/byte)  NAME 1.3456"; empty before run().
  std::string short_text() const;
  /// ", validation loss ...; NAME loss ..." for the last line of a training.
  std::string long_text() const;

 private:
  Trainer& trainer_;
  const std::vector<EvaluationSet>& sets_;
  std::vector<std::pair<std::string, Evaluation>> found_;
};

}  // namespace tally::cli
