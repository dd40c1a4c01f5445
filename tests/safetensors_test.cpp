#include "models/safetensor_file.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "core/error.h"
#include "models/weight_files.h"
#include "tests/message_of.h"

using Catch::Matchers::Contains;
using namespace tally;
using test::message_of;
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "tally-weights-test-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_.string(); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

template <class T>
StoredTensor tensor(const std::string& name, StoredType type, std::vector<int64_t> shape,
                    const std::vector<T>& values) {
  return {name, type, std::move(shape), std::as_bytes(std::span(values))};
}

std::string with_header(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\0');
}

std::string refusal(const std::string& header, size_t data_bytes) {
  const std::string bytes = with_header(header, data_bytes);
  try {
    parse_safetensors(std::as_bytes(std::span(bytes)), "w");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("safetensors: what is written reads back, aligned", "[file]") {
  const Folder folder;
  const std::vector<float> a = {1, -2, 3, 4, 5, 6};
  const std::vector<double> b = {2.5};
  const std::vector<uint8_t> c = {1, 2, 3};
  const std::vector<StoredTensor> tensors = {tensor("c", StoredType::u8, {3}, c),
                                             tensor("a", StoredType::f32, {2, 3}, a),
                                             tensor("b \"ä\"", StoredType::f64, {}, b),
                                             {"none", StoredType::bf16, {0, 7}, {}}};
  write_safetensors(folder / "w", tensors, {{"format", "pt"}, {"step", "12"}});
  const SafetensorFile file(folder / "w");
  CHECK(file.metadata() == std::map<std::string, std::string>{{"format", "pt"}, {"step", "12"}});
  CHECK(file.tensors().size() == 4);
  CHECK(file.at("none").shape == std::vector<int64_t>{0, 7});
  CHECK(file.at("c").data.size() == 3);
  for (const StoredTensor& t : file.tensors()) {
    CHECK(reinterpret_cast<uintptr_t>(t.data.data()) % bytes_of(t.type) == 0);
  }
  std::vector<float> values(6);
  read_values(file.at("a"), values);
  CHECK(values == a);
  double scalar = 0;
  read_values(file.at("b \"ä\""), std::span(&scalar, 1));
  CHECK(scalar == 2.5);
  CHECK(file.at("a").description() == "F32 (2, 3)");
}

TEST_CASE("safetensors: an unknown tensor is refused with a suggestion", "[file][error]") {
  const Folder folder;
  const std::vector<float> a = {1};
  const std::vector<StoredTensor> tensors = {tensor("weight", StoredType::f32, {1}, a)};
  write_safetensors(folder / "w", tensors);
  const SafetensorFile file(folder / "w");
  CHECK(file.find("wieght") == nullptr);
  CHECK_THROWS_WITH(file.at("wieght"), Contains("did you mean \"weight\"?"));
}

TEST_CASE("safetensors: the writer refuses what would not read back", "[file][error]") {
  const Folder folder;
  const std::vector<float> a = {1, 2};
  const StoredTensor good = tensor("a", StoredType::f32, {2}, a);
  const std::vector<StoredTensor> twice = {good, good};
  const std::vector<StoredTensor> wrong = {tensor("a", StoredType::f32, {3}, a)};
  const std::vector<StoredTensor> reserved = {tensor("__metadata__", StoredType::f32, {2}, a)};
  const std::vector<StoredTensor> bytes = {tensor("\xff", StoredType::f32, {2}, a)};
  CHECK_THAT(message_of([&] { write_safetensors(folder / "w", twice); }), Contains("two tensors"));
  CHECK_THAT(message_of([&] { write_safetensors(folder / "w", wrong); }),
             Contains("8 bytes of data"));
  CHECK_THAT(message_of([&] { write_safetensors(folder / "w", reserved); }),
             Contains("__metadata__"));
  CHECK_THAT(message_of([&] { write_safetensors(folder / "w", bytes); }), Contains("UTF-8"));
  CHECK_FALSE(fs::exists(folder / "w"));
}

TEST_CASE("safetensors: sizes and offsets are not believed", "[file][error][F51]") {
  const auto entry = [](const std::string& shape, const std::string& offsets) {
    return R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  CHECK(refusal(entry("[1]", "[0,4]"), 4) == "accepted");
  CHECK(refusal(entry("[0,1152921504606846976]", "[0,0]"), 0) == "accepted");
  CHECK_THAT(refusal(entry("[0,4611686018427387904,16]", "[0,0]"), 0), Contains("\"w\""));
  CHECK_THAT(refusal(entry("[4611686018427387905]", "[0,4]"), 4), Contains("\"w\""));
  CHECK_THAT(refusal(entry("[18446744073709551615]", "[0,4]"), 4), Contains("too large"));
  CHECK_THAT(refusal(entry("[1]", "[4,0]"), 4), Contains("backwards"));
  CHECK_THAT(refusal(entry("[1]", "[0,8]"), 4), Contains("cut short"));
  CHECK_THAT(refusal(entry("[1]", "[0]"), 4), Contains("[begin, end]"));
  CHECK_THAT(refusal(entry("[1]", "[0,\"4\"]"), 4), Contains("non-negative integers"));
  CHECK_THAT(refusal(entry("1", "[0,4]"), 4), Contains("shape must be a list"));
  CHECK_THAT(refusal(R"({"w":{"dtype":"F32","shape":[1]}})", 4), Contains("no data_offsets"));
  CHECK_THAT(refusal(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4),
             Contains("unknown entry \"x\""));
  CHECK_THAT(refusal(R"({"w":3})", 4), Contains("must be an object"));
  CHECK_THAT(refusal(R"( {"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
             Contains("must be a JSON object"));
  CHECK_THAT(refusal(R"({"\u001b[31m":3})", 0), !Contains("\x1b"));
}

TEST_CASE("safetensors: narrow floats widen exactly, wide ones are not narrowed", "[file]") {
  const std::vector<uint16_t> half = {0x3c00, 0xc000, 0x0001, 0x7c00};   // 1, -2, 2^-24, inf
  const std::vector<uint16_t> brain = {0x3f80, 0xc000, 0x0001, 0x7f80};  // 1, -2, 2^-133, inf
  const std::vector<double> wide = {1, 2};
  const std::vector<int8_t> small = {-1, 2};
  std::vector<float> out(4);
  read_values(tensor("h", StoredType::f16, {4}, half), out);
  CHECK(out == std::vector<float>{1, -2, 0x1p-24f, std::numeric_limits<float>::infinity()});
  read_values(tensor("b", StoredType::bf16, {4}, brain), out);
  CHECK(out == std::vector<float>{1, -2, 0x1p-133f, std::numeric_limits<float>::infinity()});
  std::vector<float> two(2);
  std::vector<double> doubles(2);
  std::vector<int64_t> integers(2);
  CHECK_THAT(message_of([&] { read_values(tensor("d", StoredType::f64, {2}, wide), two); }),
             Contains("d: values of type F64 cannot be read as f32"));
  CHECK_THAT(message_of([&] { read_values(tensor("i", StoredType::i8, {2}, small), two); }),
             Contains("I8"));
  CHECK_THAT(message_of([&] { read_values(tensor("d", StoredType::f64, {2}, wide), integers); }),
             Contains("integers"));
  CHECK_THAT(
      message_of([&] { read_values(tensor("d", StoredType::f64, {2}, wide), std::span(out)); }),
      Contains("4 elements are wanted"));
  read_values(tensor("d", StoredType::f64, {2}, wide), doubles);
  CHECK(doubles == wide);
  read_values(tensor("i", StoredType::i8, {2}, small), integers);
  CHECK(integers == std::vector<int64_t>{-1, 2});
}

TEST_CASE("weights: an index may name only files in its own folder", "[file][error][F49]") {
  const Folder folder;
  const std::vector<float> a = {1};
  const std::vector<StoredTensor> tensors = {tensor("a", StoredType::f32, {1}, a)};
  write_safetensors(folder / "s1", tensors);
  const auto open_with = [&](const std::string& map) {
    std::ofstream(folder / "model.safetensors.index.json") << R"({"weight_map":)" << map << "}";
    return message_of([&] { WeightFiles(folder.path()); });
  };
  CHECK(open_with(R"({"a":"s1"})") == "accepted");
  for (const char* name : {"../s1", "/etc/hostname", "x/s1", "..", ".", "", "a\\\\b", "s\\u0000"}) {
    CHECK_THAT(open_with(R"({"a":")" + std::string(name) + "\"}"), Contains("nothing was opened"));
  }
  CHECK_THAT(open_with(R"({"a":1})"), Contains("must be a text"));
  CHECK_THAT(open_with("{}"), Contains("empty"));
  CHECK_THAT(open_with("[]"), Contains("weight_map must be an object"));
  CHECK_THAT(open_with(R"({"a":"s2"})"), Contains("\"s2\""));
  CHECK_THAT(open_with(R"({"a":"s1","b":"s1"})"), Contains("does not hold it"));
  CHECK_THAT(open_with(R"({"b":"s1"})"), Contains("does not place there"));
  CHECK_THAT(open_with(R"({"a":")" + std::string(5000, 's') + "\"}"),
             Contains("not in the folder"));
}

TEST_CASE("weights: a folder without weights is refused", "[file][error]") {
  const Folder folder;
  CHECK_THAT(message_of([&] { WeightFiles(folder.path()); }),
             Contains("neither model.safetensors"));
}
