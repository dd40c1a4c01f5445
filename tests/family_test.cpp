// Every family of published checkpoints against a recorded model of its own (tests/data/models):
// a small random one in the public library's format, with what that library computed.
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "cli/verify_model.h"
#include "models/hf_config.h"
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

TEST_CASE("family: each has a recorded model", "[model]") {
  std::set<std::string> recorded;
  for (const std::string& folder : recorded_decoders())
    recorded.insert(read_hf_config(folder + "/config.json").family->model_type);
  for (const HfFamily* family : hf_families()) {
    INFO(family->model_type);
    CHECK(recorded.contains(family->model_type));
  }
}
