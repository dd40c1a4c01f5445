// Hostile and odd input files (tests/data/hostile): every one is accepted or refused as its index
// says, with the words that the message must contain.
#include <catch2/catch.hpp>
#include <chrono>
#include <clocale>

#include "core/error.h"
#include "data/json.h"
#include "models/checkpoint.h"
#include "models/hf_config.h"
#include "models/parameters.h"
#include "models/safetensor_file.h"
#include "tests/message_of.h"

using Catch::Matchers::Contains;
using namespace tally;
using test::message_of;

namespace {

const std::string kFolder = TALLY_TEST_DATA "/hostile/";

/// Runs every case of one kind through `open`; returns how many there were.
template <class F>
int run_cases(const std::string& kind, F open) {
  int cases = 0;
  const Json index = read_json(kFolder + "index.json");
  for (const Json& c : index["cases"]) {
    if (c["kind"] != kind) continue;
    ++cases;
    INFO(c["id"] << ": " << c["why"]);
    const auto start = std::chrono::steady_clock::now();
    const std::string said = message_of([&] { open(kFolder + c["path"].get<std::string>()); });
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(1));
    INFO(said);
    CHECK((said == "accepted") == (c["expect"] == "accept"));
    if (said == "accepted") continue;
    CHECK_THAT(said, Contains(kFolder));
    const Json words = c.value("must_name", Json::array());
    for (const Json& word : words) {
      // The words stand in the message itself, not only in the name of the file.
      CHECK_THAT(said.substr(said.find(": ")), Contains(word.get<std::string>()));
    }
  }
  return cases;
}

std::vector<float> values(const SafetensorFile& file, const char* name) {
  std::vector<float> out(static_cast<size_t>(file.at(name).numel()));
  read_values(file.at(name), out);
  return out;
}

std::vector<double> doubles(const SafetensorFile& file, const char* name) {
  std::vector<double> out(static_cast<size_t>(file.at(name).numel()));
  read_values(file.at(name), out);
  return out;
}

ModelConfig config(const std::string& name) {
  return read_hf_config(kFolder + name + "/config.json").config;
}

std::vector<int64_t> shape_of(const ModelConfig& c, const std::string& name) {
  for (const ParameterSpec& p : parameter_specs(c)) {
    if (p.name == name) return p.shape;
  }
  return {};
}

}  // namespace

TEST_CASE("hostile: weight files", "[file][error][F51]") {
  CHECK(run_cases("safetensors", [](const std::string& path) { SafetensorFile file(path); }) == 30);
}

TEST_CASE("hostile: configurations of published models", "[config][error][F25][F27]") {
  CHECK(run_cases("config", [](const std::string& path) { read_hf_config(path); }) == 15);
}

TEST_CASE("hostile: checkpoint folders", "[file][error][F49][F50][F51]") {
  CHECK(run_cases("checkpoint_dir",
                  [](const std::string& path) { Checkpoint::hugging_face(path); }) == 10);
}

TEST_CASE("hostile: odd but valid weight files give their values", "[file]") {
  const SafetensorFile basic(kFolder + "st_ok_basic.safetensors");
  CHECK(values(basic, "a") == std::vector<float>{1, -2});
  CHECK(values(basic, "b") == std::vector<float>{3.5});
  const SafetensorFile empty(kFolder + "st_ok_zero_size.safetensors");
  CHECK(empty.at("e").shape == std::vector<int64_t>{0, 4});
  CHECK(values(empty, "a") == std::vector<float>{7});
  const SafetensorFile scalar(kFolder + "st_ok_scalar.safetensors");
  CHECK(scalar.at("s").shape.empty());
  CHECK(doubles(scalar, "s") == std::vector<double>{2.5});
  CHECK(doubles(SafetensorFile(kFolder + "st_ok_unaligned.safetensors"), "abc") ==
        std::vector<double>{1, 2});
  CHECK(values(SafetensorFile(kFolder + "st_ok_metadata.safetensors"), "a") ==
        std::vector<float>{1});
  const SafetensorFile types(kFolder + "st_ok_dtypes.safetensors");
  CHECK(types.tensors().size() == 13);
  for (const char* name : {"bf16", "f16", "f32"}) {
    CHECK(values(types, name) == std::vector<float>{1, -2});
  }
}

TEST_CASE("hostile: odd but valid configurations mean what they say", "[config][F25]") {
  CHECK(config("cfg_ok_min").head_dim == 2);
  CHECK(config("cfg_ok_min").kv_heads == 2);
  CHECK(config("cfg_ok_min").rope_base == 10000);
  CHECK(config("cfg_ok_rope_parameters").rope_base == 500000);
  CHECK(config("cfg_kv_absent").kv_heads == 4);
  ModelConfig wide = config("cfg_head_dim_explicit");
  wide.fused_qkv = false;
  CHECK(shape_of(wide, "blocks.0.attention.q.weight") == std::vector<int64_t>{24, 8});
  CHECK(shape_of(wide, "blocks.0.attention.k.weight") == std::vector<int64_t>{12, 8});
  CHECK(shape_of(wide, "blocks.0.attention.out.weight") == std::vector<int64_t>{8, 24});
  for (const char* locale : {"C", "de_DE.UTF-8", "fr_FR.UTF-8"}) {
    if (!std::setlocale(LC_ALL, locale)) continue;  // not installed here
    CHECK(config("cfg_locale_numbers").norm_eps == 1.5e-05);
    CHECK(config("cfg_locale_numbers").rope_base == 54321.5);
  }
  std::setlocale(LC_ALL, "C");
}

TEST_CASE("hostile: two shards hold the model that one file holds", "[file]") {
  const Checkpoint one = Checkpoint::hugging_face(kFolder + "ck_ok");
  const Checkpoint two = Checkpoint::hugging_face(kFolder + "ck_sharded_ok");
  REQUIRE(one.sources().size() == 9);  // 12 tensors: q, k, v and gate, up are fused here
  for (const WeightSource& source : one.sources()) {
    INFO(source.parameter.name);
    std::vector<float> a(static_cast<size_t>(source.parameter.numel())), b(a.size());
    one.read(source.parameter.name, a);
    two.read(source.parameter.name, b);
    CHECK(a == b);
  }
}
