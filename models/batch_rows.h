#pragma once
#include <vector>

#include "models/objective.h"
#include "nn/language_model.h"

namespace tally {

/// The rows of one batch of an objective, in host memory.
struct BatchRows {
  BatchRows(const Objective& objective, int64_t rows);
  BatchSpans spans() { return {ids, targets, source, mask}; }
  nn::ModelBatch on(Device device) const;

  int64_t rows;
  std::vector<int64_t> ids, targets, source;  // (B,T), (B,T), (B,S)
  std::vector<uint8_t> mask;                  // (B,S); empty: no filler
};

}  // namespace tally
