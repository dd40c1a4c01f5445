#pragma once
#include <span>
#include <string>

#include "models/config.h"

namespace tally {

enum class TargetKind : uint8_t { preset, file, run, hugging_face, gguf };

/// A model or run, found by what the user called it.
struct Target {
  TargetKind kind = TargetKind::preset;
  RunConfig config;    // overridden, resolved and checked
  std::string folder;  // of a run or a Hugging Face checkpoint, a GGUF file, otherwise empty
  /// The folder of the checkpoint that was named, of a run; empty: its newest.
  std::string checkpoint = {};
};

/// Finds `name`: a preset, a run directory, a checkpoint of a run (RUN/checkpoints/step-N, RUN/best or
/// RUN/latest), a Hugging Face directory (or its config.json), a GGUF
/// file or a JSON file;
/// then applies the overrides ("model.d_model=256"), fills in derived fields and checks. Throws
/// Error with a did-you-mean if there is no such thing.
Target resolve_target(const std::string& name, std::span<const std::string> overrides = {});

}  // namespace tally
