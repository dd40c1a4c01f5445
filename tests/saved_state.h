#pragma once
// Checkpoints whose numbers say which save they are of.
#include <catch2/catch.hpp>

#include "models/manifest.h"
#include "tests/training_helpers.h"

namespace tally::test {

/// What a save writes, every number being `value`.
struct State {
  explicit State(float value)
      : model{{"a", full({1 << 12}, value, DType::f32, kCPU)},
              {"b", full({7, 11}, value, DType::f32, kCPU)}},
        optimizer{{"m.a", full({1 << 12}, value, DType::f32, kCPU)}} {}
  NamedTensors model, optimizer;
};

/// What lies in a run's folders that no finished save leaves.
inline int strays(const RunDirectory& run) {
  int n = 0;
  for (const auto& entry : fs::directory_iterator(run.file("checkpoints")))
    n += !entry.path().filename().string().starts_with("step-") && entry.path() != run.latest();
  for (const auto& entry : fs::directory_iterator(run.path()))
    n += entry.path().filename().string().find(".tmp") != std::string::npos;
  return n;
}

/// Loads the newest checkpoint, checks that all of it is of one save, and returns which.
inline int64_t check_newest(const RunDirectory& run) {
  const std::string newest = run.latest();  // an Error if it were not there
  const int64_t saved = std::stoll(run.read_state(newest).facts.at("value"));
  check_manifest(newest);
  const State read(0);
  RunDirectory::load(newest + "/model.safetensors", read.model);
  RunDirectory::load(newest + "/optimizer.safetensors", read.optimizer);
  for (const NamedTensors* tensors : {&read.model, &read.optimizer}) {
    for (const auto& [name, t] : *tensors) {
      const auto v = t.host<float>();
      REQUIRE(std::count(v.begin(), v.end(), static_cast<float>(saved)) == t.numel());
    }
  }
  REQUIRE(strays(run) <= 1);
  return saved;
}

}  // namespace tally::test
