// Every family of published checkpoints against a recorded model of its own (tests/data/models):
// a small random one in the public library's format, with what that library computed.
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "cli/verify_model.h"
#include "models/checkpoint.h"
#include "models/hf_config.h"
#include "models/hf_export.h"
#include "models/hf_writer.h"
#include "tests/data_helpers.h"
#include "tests/registered.h"

using namespace tally;
namespace fs = std::filesystem;

namespace {

const std::set<std::string> kNoDecoders = {"bert", "marian", "t5_v1_0", "t5_v1_1"};

std::vector<std::string> recorded_decoders() {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(TALLY_TEST_DATA "/models")) {
    const std::string name = entry.path().filename();
    if (!kNoDecoders.contains(name)) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  return folders;
}

void check_recorded(const std::string& folder, DType dtype, Device device) {
  const auto results = cli::verify_model(folder, dtype, device);
  CHECK(results.size() >= (dtype == DType::bf16 ? 2u : 10u));
  for (const auto& r : results) {
    INFO(folder << " on " << to_text(device) << " in " << to_text(dtype) << ": " << r.what
                << " error " << r.error << ", bound " << r.bound);
    CHECK(r.ok());
  }
}

}  // namespace

TEST_CASE("family: recorded models come out: logits, loss, gradients, greedy text",
          "[model][L7][L52]") {
  const auto folders = recorded_decoders();
  REQUIRE(folders.size() >= 48);
  for (const std::string& folder : folders) {
    for (const Device device : {kReference, kCPU}) {
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
        check_recorded(folder, dtype, device);
    }
  }
}

TEST_CASE("family: what is exported is the file that was imported, bit for bit", "[model]") {
  for (const std::string& folder : recorded_decoders()) {
    INFO(folder);
    const Checkpoint checkpoint = Checkpoint::hugging_face(folder);
    const HfModel model = read_hf_config(folder + "/config.json");
    const test::TemporaryFolder to;
    export_hugging_face(
        to / "out", model.config, *model.family,
        [&](std::string_view name, std::span<float> out) { checkpoint.read(name, out); },
        StoredType::f32);
    const SafetensorFile before(folder + "/model.safetensors"), after(to / "out/model.safetensors");
    CHECK(after.tensors().size() == before.tensors().size());
    for (const StoredTensor& t : before.tensors()) {
      INFO(t.name);
      const StoredTensor* found = after.find(t.name);
      REQUIRE(found);
      CHECK(same_content(t, *found));
    }
    CHECK(read_hf_config(to / "out/config.json").family == model.family);
  }
}

TEST_CASE("family: one that can say all of the model is found, or what it lacks is said",
          "[model][error]") {
  const auto config_of = [](const char* name) {
    return read_hf_config(std::string(TALLY_TEST_DATA "/models/") + name + "/config.json").config;
  };
  CHECK(hf_family_for(config_of("llama1")).model_type == std::string("llama"));
  CHECK(hf_family_for(config_of("gpt2")).model_type == std::string("gpt2"));
  CHECK(hf_family_for(config_of("gemma2")).model_type == std::string("gemma2"));
  CHECK(hf_family_for(config_of("qwen3")).model_type == std::string("qwen3"));
  CHECK_THROWS_WITH(hf_config_to_json(config_of("qwen3"), hf_family("llama")),
                    Catch::Contains("llama cannot say qk_norm = \"head\""));
  ModelConfig odd = config_of("llama1");
  odd.residual_gain = ResidualGain::vector;
  CHECK_THROWS_WITH(hf_family_for(odd), Catch::Contains("no published family"));
}

TEST_CASE("family: each has a recorded model", "[model]") {
  std::set<std::string> recorded;
  for (const std::string& folder : recorded_decoders())
    recorded.insert(read_hf_config(folder + "/config.json").family->model_type);
  for (const HfFamily* family : hf_families()) {
    INFO(family->model_type);
    CHECK(recorded.contains(family->model_type));
  }
}
