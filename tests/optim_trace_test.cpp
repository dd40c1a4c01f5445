// Twenty steps of every optimizer, recorded with another framework.
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "cli/verify_optim.h"
#include "core/error.h"
#include "data/file.h"
#include "tests/registered.h"

using namespace tally;

TEST_CASE(
    "recorded optimizers: parameters, norms and moments are within the tolerance of the trace",
    "[optim]") {
  const Device devices[] = {kReference, kCPU};
  std::set<std::string> traces;
  for (const auto& entry : std::filesystem::directory_iterator(TALLY_TEST_DATA "/optim")) {
    const std::string name = entry.path().filename().string();
    const std::vector<cli::Comparison> rows = cli::verify_optim(entry.path().string(), devices);
    CHECK(rows.size() >= 8);  // two parameters or more, two types, two devices
    for (const cli::Comparison& c : rows) {
      INFO(name << ": " << c.what << ": error " << c.error << ", bound " << c.bound);
      CHECK(c.ok());
    }
    traces.insert(name.substr(0, name.find_first_of("._")));
  }
  CHECK(traces == std::set<std::string>{"adafactor", "adagrad", "adam", "adamw", "lion", "muon",
                                        "nadam", "rmsprop", "sgd", "shampoo", "soap"});
}

TEST_CASE("recorded optimizers: a file of another kind is refused", "[optim][error]") {
  const Device devices[] = {kCPU};
  CHECK_THROWS_WITH(
      cli::verify_optim(std::string(TALLY_TEST_DATA "/ops") + "/norm.safetensors", devices),
      Catch::Contains("is no trace: its metadata has no attributes"));
}
