#pragma once
#include <string>
#include <vector>

#include "core/watch.h"
#include "nn/language_model.h"
#include "optim/optimizer.h"

namespace tally {

/// One operand of a call that was walked through.
struct WalkedView {
  std::string name;
  Shape shape;
  DType dtype;
  bool output, updated;
  ValueSummary values;  // of an input as it was read, of an output as it was written
};

/// A tensor that an op keeps for its backward pass.
struct SavedNote {
  std::string name;  // of the operand, "" for another tensor
  Shape shape;
  double bytes = 0;
  bool kept_anyway = false;  // a parameter, or memory that another op keeps already
};

/// One call of a step, with its values.
struct WalkedCall {
  int64_t number = 0;  // 1, 2, ... in the order of the step
  Entry entry{};       // none before the call has run
  std::string formula;
  std::vector<WalkedView> views;
  std::vector<SavedNote> saved;
  double saved_bytes() const;  // those not kept anyway
};

/// A training step, call by call.
struct Walk {
  std::vector<WalkedCall> calls;
  double loss = 0, grad_norm = 0;
};

/// What to walk.
struct WalkOptions {
  int64_t first = 4;  // values of each operand that are shown; all of them for a number this large
  Generator* dropout = nullptr;  // masks of a training step; null: none
  double clip = 1, lr = 1e-3;    // of the update
  bool counts_targets = false;   // as tally::StepOptions: the mean is over those that are not -100
};

/// One step of `model` on its micro-batches: forward, backward and, where `optimizer` is given, clip
/// and update, which change the model. Every value is read, so it takes its time. The bits are those
/// of a step that nobody looks at.
Walk walk_step(nn::LanguageModel& model, std::span<const nn::ModelBatch> batches,
               const WalkOptions& options, optim::Optimizer* optimizer = nullptr);

/// Where two walks part.
struct WalkDifference {
  enum class What { none, ops, values } what = What::none;
  int64_t number = 0;  // of the first call that differs
  std::string a, b;    // the calls: op and module; of `values` the same
  std::string output;  // the output that differs
  double largest = 0;  // largest |a - b|; NaN where one of them is a NaN and the other is not
  int64_t place = 0;   // element at which it is
  double value_a = 0, value_b = 0;
  int64_t differing = 0, count = 0;  // elements of the output
  int64_t compared = 0;              // calls that agree before it
};

/// The first call whose outputs differ by more than `tolerance` |larger of both| + tolerance (0:
/// in any bit that changes the value), or at which the sequences of ops or shapes part. Both walks
/// must have kept all values (WalkOptions::first).
WalkDifference first_difference(const Walk& a, const Walk& b, double tolerance = 0);

}  // namespace tally
