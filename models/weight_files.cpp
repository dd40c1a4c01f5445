#include "models/weight_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "core/dtype.h"
#include "core/error.h"
#include "data/json.h"
#include "models/block_types.h"

namespace tally {
namespace fs = std::filesystem;
namespace {

/// False too where the name is too long to exist or the folder may not be read.
bool exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// weight_map of an index file: tensor name -> file name, each checked to be a plain name.
std::map<std::string, std::string> read_index(const std::string& index) {
  const Json document = read_json(index, false, size_t{16} << 20);
  check(document.is_object() && document.contains("weight_map"), index,
        ": must be an object with a weight_map");
  const Json& weight_map = document["weight_map"];
  check(weight_map.is_object(), index,
        ": weight_map must be an object of tensor names and file names; its type is ",
        weight_map.type_name());
  std::map<std::string, std::string> files;
  for (const auto& [tensor, value] : weight_map.items()) {
    check(value.is_string(), index, ": the file of ", Json(tensor).dump(), " must be a text");
    const auto& file = value.get_ref<const std::string&>();
    const bool plain = !file.empty() && file != "." && file != ".." &&
                       file.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
    check(plain, index, ": the file of ", Json(tensor).dump(), " is ", value.dump(),
          "; only plain names of files in the same folder are allowed, nothing was opened");
    files[tensor] = file;
  }
  check(!files.empty(), index, ": weight_map is empty");
  return files;
}

template <class From, class To, class Convert>
void convert_all(const StoredTensor& tensor, std::span<To> out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    From value;  // a copy, since the data may begin at any address
    std::memcpy(&value, tensor.data.data() + i * sizeof(From), sizeof(From));
    out[i] = convert(value);
  }
}

void read_blocks(const StoredTensor& tensor, std::span<float> out) {
  dequantise(tensor.type, tensor.data, out);
}
void read_blocks(const StoredTensor& tensor, std::span<double> out) {
  std::vector<float> values(out.size());
  dequantise(tensor.type, tensor.data, values);
  std::ranges::copy(values, out.begin());
}

template <class To>
void read_floats(const StoredTensor& tensor, std::span<To> out, const char* target) {
  check(out.size() == size_t(tensor.numel()), tensor.name, ": ", out.size(),
        " elements are wanted; the file has ", tensor.description());
  const auto widen = [](auto v) { return static_cast<To>(static_cast<float>(v)); };
  if (tensor.type == StoredType::f32) return convert_all<float>(tensor, out, widen);
  if (tensor.type == StoredType::bf16) return convert_all<bf16>(tensor, out, widen);
  if (tensor.type == StoredType::f16) return convert_all<f16>(tensor, out, widen);
  if (block_elements(tensor.type) > 1) return read_blocks(tensor, out);
  if constexpr (std::is_same_v<To, double>) {
    if (tensor.type == StoredType::f64) {
      return convert_all<double>(tensor, out, [](double v) { return v; });
    }
  }
  fail(tensor.name, ": values of type ", name_of(tensor.type), " cannot be read as ", target,
       " without loss");
}

template <class From>
void read_integers(const StoredTensor& tensor, std::span<int64_t> out) {
  convert_all<From>(tensor, out, [](From v) { return static_cast<int64_t>(v); });
}

}  // namespace

WeightFiles::WeightFiles(const std::string& path) : path_(path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    if (is_gguf_file(path))
      ggufs_.emplace_back(path);
    else
      files_.emplace_back(path);
    return;
  }
  const std::string single = (fs::path(path) / "model.safetensors").string();
  const std::string index = single + ".index.json";
  if (exists(single)) {
    files_.emplace_back(single);
  } else {
    check(exists(index), path,
          ": there is neither model.safetensors nor model.safetensors.index.json in this folder");
    open_shards(path, index);
  }
}

void WeightFiles::open_shards(const std::string& folder, const std::string& index) {
  const auto files = read_index(index);
  std::set<std::string> shards;
  for (const auto& [tensor, file] : files) shards.insert(file);
  for (const std::string& shard : shards) {
    const std::string shard_path = (fs::path(folder) / shard).string();
    check(exists(shard_path), index, ": the file ", Json(shard).dump(),
          " that it names is not in the folder");
    files_.emplace_back(shard_path);
    for (const StoredTensor& tensor : files_.back().tensors()) {
      const auto entry = files.find(tensor.name);
      check(entry != files.end() && entry->second == shard, shard_path, ": holds ",
            Json(tensor.name).dump(), ", which ", index, " does not place there");
    }
  }
  for (const auto& [tensor, file] : files) {
    check(find(tensor) != nullptr, index, ": places ", Json(tensor).dump(), " in ",
          Json(file).dump(), ", which does not hold it");
  }
}

const StoredTensor* WeightFiles::find(std::string_view name) const {
  for (const SafetensorFile& file : files_) {
    if (const StoredTensor* tensor = file.find(name)) return tensor;
  }
  return gguf() ? gguf()->find(name) : nullptr;
}

std::vector<std::string> WeightFiles::names() const {
  std::vector<std::string> names;
  for (const SafetensorFile& file : files_) {
    for (const StoredTensor& tensor : file.tensors()) names.push_back(tensor.name);
  }
  for (const GgufFile& file : ggufs_) {
    for (const StoredTensor& tensor : file.tensors()) names.push_back(tensor.name);
  }
  return names;
}

void read_values(const StoredTensor& tensor, std::span<float> out) {
  read_floats(tensor, out, "f32");
}

void read_values(const StoredTensor& tensor, std::span<double> out) {
  read_floats(tensor, out, "f64");
}

void read_values(const StoredTensor& tensor, std::span<int64_t> out) {
  check(out.size() == size_t(tensor.numel()), tensor.name, ": ", out.size(),
        " elements are wanted; the file has ", tensor.description());
  switch (tensor.type) {
    case StoredType::boolean:
    case StoredType::u8:
      return read_integers<uint8_t>(tensor, out);
    case StoredType::i8:
      return read_integers<int8_t>(tensor, out);
    case StoredType::i16:
      return read_integers<int16_t>(tensor, out);
    case StoredType::u16:
      return read_integers<uint16_t>(tensor, out);
    case StoredType::i32:
      return read_integers<int32_t>(tensor, out);
    case StoredType::u32:
      return read_integers<uint32_t>(tensor, out);
    case StoredType::i64:
      return read_integers<int64_t>(tensor, out);
    default:
      fail(tensor.name, ": values of type ", name_of(tensor.type), " cannot be read as integers");
  }
}

bool same_content(const StoredTensor& a, const StoredTensor& b) {
  return a.type == b.type && a.shape == b.shape && std::ranges::equal(a.data, b.data);
}

}  // namespace tally
