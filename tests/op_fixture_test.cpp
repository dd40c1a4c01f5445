// Values and gradients of ops, recorded with another framework.
#include <catch2/catch.hpp>
#include <filesystem>

#include "backends/register_all.h"
#include "cli/verify_ops.h"

using namespace tally;

TEST_CASE("recorded ops: outputs and gradients are within the recorded tolerance", "[op]") {
  register_all();
  const Device devices[] = {kReference, kCPU};
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TALLY_TEST_DATA "/ops")) {
    const cli::OpReport report = cli::verify_ops(entry.path().string(), devices);
    INFO(entry.path().filename().string());
    CHECK(report.not_built.empty());
    CHECK(report.rows.size() > 20);
    for (const cli::Comparison& c : report.rows) {
      INFO(c.what << ": error " << c.error << ", bound " << c.bound);
      CHECK(c.ok());
    }
    ++files;
  }
  REQUIRE(files >= 3);
}
