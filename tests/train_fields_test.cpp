// Fields of a training that nothing would read: refused where somebody has set them.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "models/config_json.h"
#include "models/target.h"
#include "tests/message_of.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

std::string refusal_of(const std::vector<std::string>& set) {
  return message_of([&] { resolve_target("llama-smoke", set); });
}

struct Reads {
  const char* field;  // FIELD=VALUE
  std::vector<std::string> optimizers;
};

const std::vector<Reads>& table() {
  static const std::vector<Reads> list = {
      {"beta1=0.8", {"adamw", "adam", "lion", "muon", "shampoo", "soap", "nadam"}},
      {"beta2=0.8", {"adamw", "adam", "lion", "muon", "shampoo", "soap", "nadam", "rmsprop"}},
      {"eps=1e-6", {"adamw", "adam", "muon", "shampoo", "soap", "nadam", "rmsprop"}},
      {"momentum=0.5", {"sgd", "muon", "rmsprop"}},
      {"nesterov=false", {"sgd", "muon"}},
      {"amsgrad=true", {"adamw", "adam"}},
      {"muon_scaling=original", {"muon"}},
      {"precondition_every=3", {"shampoo", "soap"}},
      {"precondition_longest=64", {"shampoo", "soap"}},
      {"rest_lr_scale=0.5", {"muon", "shampoo", "soap"}},
      {"weight_decay=0.2",
       {"adamw", "adam", "sgd", "lion", "adafactor", "adafactor_t5", "muon", "shampoo", "soap",
        "adagrad", "rmsprop", "nadam"}},
  };
  return list;
}

}  // namespace

TEST_CASE("train fields: what an optimizer does not read is refused by name", "[config][error]") {
  for (const Reads& row : table()) {
    const std::string name = std::string(row.field).substr(0, std::string(row.field).find('='));
    for (const std::string_view kind : enum_names(OptimizerKind{})) {
      INFO(row.field << " with " << kind);
      const std::string message =
          refusal_of({"train.optimizer=" + std::string(kind), "train." + std::string(row.field)});
      if (std::ranges::find(row.optimizers, kind) != row.optimizers.end())
        CHECK(message == "accepted");
      else
        CHECK_THAT(message, Contains("--set: " + name + " was set, and nothing would read it") &&
                                Contains("optimizer = "));
    }
  }
}

TEST_CASE("train fields: an optimizer changes by what it is said to read, and by nothing else",
          "[config]") {
  // What the table calls read must change the weights; the run is that of optimizer_of alone.
  for (const Reads& row : table()) {
    for (const std::string& kind : row.optimizers) {
      INFO(row.field << " with " << kind);
      const auto after = [&](const std::vector<std::string>& set) {
        RunConfig c = tiny();
        apply_override(c, "train.optimizer=" + kind);
        // More than one step, and a matrix longer than the limit that is set.
        c.model.d_ff = 96;
        for (const std::string& s : set) apply_override(c, s);
        c.resolve_and_check("test");
        Made made(c, 100);
        losses(*made.trainer, 7);
        return weights(*made.trainer);
      };
      CHECK(after({}) != after({"train." + std::string(row.field)}));
    }
  }
}

TEST_CASE("train fields: of schedules and the rest too", "[config][error]") {
  const auto needs = [](const char* field, const char* what) {
    INFO(field);
    CHECK_THAT(refusal_of({std::string("train.") + field}), Contains(what));
  };
  needs("decay=cosine", "needs schedule = wsd");
  needs("milestones=0.5", "needs schedule = multi_step");
  needs("ramp_steps=5", "needs accumulation_start above 0");
  needs("min_delta=0.5", "needs patience above 0 or keep_best");
  needs("guard_window=32", "needs skip_deviations or spike_factor above 0");
  CHECK_THAT(refusal_of({"train.schedule=constant", "train.final_lr_fraction=0.5"}),
             Contains("needs schedule = linear, cosine or wsd"));
  CHECK(refusal_of({"train.schedule=wsd", "train.decay=cosine"}) == "accepted");
  CHECK(refusal_of({"train.patience=2", "train.min_delta=0.5"}) == "accepted");
  CHECK(refusal_of({"train.spike_factor=2", "train.guard_window=32"}) == "accepted");
}

TEST_CASE("train fields: a preset's own are nobody's mistake, a document's are", "[config]") {
  for (const std::string_view kind : enum_names(OptimizerKind{}))
    CHECK(refusal_of({"train.optimizer=" + std::string(kind)}) == "accepted");
  const Scratch folder;
  fs::create_directories(folder.path);
  const std::string file = folder.path + "/c.json";
  RunConfig c = tiny();
  c.train.optimizer = OptimizerKind::sgd;
  c.train.beta1 = TrainConfig{}.beta1;
  std::ofstream(file) << to_json_text(c);  // every field, with its default
  CHECK(message_of([&] { resolve_target(file); }) == "accepted");
  c.train.beta1 = 0.5;
  std::ofstream(file) << to_json_text(c);
  CHECK_THAT(message_of([&] { resolve_target(file); }), Contains("c.json: beta1 was set"));
}
