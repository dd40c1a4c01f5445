// Recorded cases that are damaged: verify says what is wrong with them and reads nothing that is not
// there.
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>

#include "cli/verify_model.h"
#include "data/file.h"
#include "models/safetensor_file.h"
#include "tests/data_helpers.h"
#include "tests/registered.h"

using namespace tally;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

using Tensors = std::vector<StoredTensor>;
using Metadata = std::map<std::string, std::string>;

/// What verify says of the recorded model `name` when `change` has been at its case.
std::string refusal(const std::string& name,
                    const std::function<void(Tensors&, Metadata&)>& change) {
  const fs::path from = fs::path(TALLY_TEST_DATA "/models") / name;
  const test::TemporaryFolder folder;
  for (const char* file : {"config.json", "model.safetensors"})
    write_file_atomic(folder / file, read_file((from / file).string()));
  const SafetensorFile recorded((from / "case.safetensors").string());
  Tensors tensors = recorded.tensors();
  Metadata metadata = recorded.metadata();
  change(tensors, metadata);
  write_safetensors(folder / "case.safetensors", tensors, metadata);
  return test::message_of([&] { cli::verify_model(folder.path(), DType::f32, kReference); });
}

/// One tensor cut, or said twice, to another shape.
std::string with_shape(const std::string& name, const std::string& tensor,
                       const std::vector<int64_t>& shape) {
  std::vector<std::byte> bytes;
  return refusal(name, [&](Tensors& all, Metadata&) {
    for (StoredTensor& t : all) {
      if (t.name != tensor) continue;
      t.shape = shape;
      bytes.resize(static_cast<size_t>(t.numel()) * bytes_of(t.type));
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = t.data[i % t.data.size()];
      t.data = bytes;
      return;
    }
    FAIL("there is no tensor " << tensor);
  });
}

std::string with_metadata(const std::string& key, const std::string& value) {
  return refusal("llama1", [&](Tensors&, Metadata& metadata) { metadata[key] = value; });
}

}  // namespace

TEST_CASE("verify model: a case whose tensors have other shapes is refused by name", "[model]") {
  CHECK_THAT(with_shape("llama1", "labels", {1, 2}), Contains("labels must have the shape"));
  CHECK_THAT(with_shape("llama1", "labels", {34}), Contains("\"labels\" must be (sequences"));
  CHECK_THAT(with_shape("llama1", "labels", {0, 17}), Contains("\"labels\" must be (sequences"));
  CHECK_THAT(with_shape("llama1", "input_ids", {2, 0}), Contains("\"input_ids\" must be"));
  CHECK_THAT(with_shape("llama1", "loss", {0}), Contains("loss must be one number"));
  CHECK_THAT(with_shape("llama1", "prompt", {0, 9}), Contains("\"prompt\" must be (sequences"));
  CHECK_THAT(with_shape("llama1", "prompt", {3, 9}), Contains("greedy has 2 texts"));
  CHECK_THAT(with_shape("llama1", "greedy", {1}), Contains("\"greedy\" must be (sequences"));
  CHECK_THAT(with_shape("llama1", "greedy_logits", {2, 12, 4000}), Contains("greedy_logits must"));
  CHECK_THAT(with_shape("llama1", "logits", {0}), Contains("0 recorded"));
  CHECK_THAT(with_shape("t5_v1_0", "decoder_input_ids", {0, 5}), Contains("must be (sequences"));
  CHECK_THAT(with_shape("t5_v1_0", "greedy", {0, 12}), Contains("\"greedy\" must be (sequences"));
  CHECK_THAT(with_shape("bert", "loss", {2}), Contains("loss must be one number"));
}

TEST_CASE("verify model: a bound that lets everything pass is none", "[model]") {
  for (const char* value : {"inf", "nan", "1e9", "0", "-1", "many", "", "1e-5x"})
    CHECK_THAT(with_metadata("tol_logits", value), Contains("above 0 and up to 0.1"));
  CHECK_THAT(with_metadata("tol_grad", "1e999"), Contains("above 0 and up to 0.1"));
  CHECK(with_metadata("tol_logits", "3e-5") == "accepted");
}
