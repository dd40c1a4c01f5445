#include "models/manifest.h"

#include <fmt/format.h>

#include "core/error.h"
#include "data/checksum.h"
#include "data/json.h"
#include "models/safetensor_file.h"

namespace tally {
namespace {

constexpr const char* kManifest = "/manifest.json";

std::string checksum(std::span<const std::byte> bytes) {
  return fmt::format("{:08x}", crc32c(bytes));
}

// Of a weight file all bytes are in its header or in a tensor.
Json checksums_of(const std::string& path) {
  const MappedFile file(path);
  Json j = {{"bytes", file.bytes().size()}};
  if (!path.ends_with(".safetensors")) {
    j["crc32c"] = checksum(file.bytes());
    return j;
  }
  const Safetensors content = parse_safetensors(file.bytes(), path);
  size_t data = 0;
  j["tensors"] = Json::object();
  for (const StoredTensor& t : content.tensors) {
    j["tensors"][t.name] = checksum(t.data);
    data += t.data.size();
  }
  j["header"] = checksum(file.bytes().first(file.bytes().size() - data));
  return j;
}

// What differs, as a learner would say it.
std::string difference(const Json& said, const Json& is) {
  if (said.value("bytes", Json()) != is["bytes"])
    return "has " + is["bytes"].dump() + " bytes, was written with " +
           said.value("bytes", Json()).dump();
  const Json sums = is.value("tensors", Json::object()),
             written = said.value("tensors", Json::object());
  for (const auto& [name, sum] : sums.items()) {
    const Json was = written.value(name, Json());
    if (was != sum) return name + " has CRC-32C " + sum.dump() + ", was written with " + was.dump();
  }
  return is.contains("header") ? "its header has changed" : "its bytes have changed";
}

[[noreturn]] void damaged(const std::string& path, const std::string& how) {
  fail(path, ": is damaged: ", how,
       "; take a copy of it, or let `latest` name the checkpoint before it");
}

}  // namespace

void write_manifest(const std::string& folder, const std::vector<std::string>& files) {
  Json manifest = Json::object();
  for (const std::string& name : files) manifest[name] = checksums_of(folder + "/" + name);
  write_file_atomic(folder + kManifest, manifest.dump() + "\n");
}

void check_manifest(const std::string& folder, std::vector<std::string> files) {
  const std::string path = folder + kManifest;
  const Json manifest = read_json(path);
  // Written without blanks, so that other bytes are another document, or none.
  if (!manifest.is_object() || read_file(path) != manifest.dump() + "\n")
    damaged(path, "it is not as it was written");
  if (files.empty()) {
    for (const auto& item : manifest.items()) files.push_back(item.key());
  }
  for (const std::string& name : files) {
    const Json said = manifest.value(name, Json());
    if (!said.is_object()) damaged(path, "it does not say what " + name + " holds");
    const Json is = checksums_of(folder + "/" + name);
    if (said != is) damaged(folder + "/" + name, difference(said, is));
  }
}

}  // namespace tally
