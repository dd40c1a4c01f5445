#include "models/manifest.h"

#include <fmt/format.h>

#include "core/error.h"
#include "data/checksum.h"
#include "data/file.h"
#include "data/json.h"
#include "models/safetensor_file.h"

namespace tally {
namespace {

constexpr const char* kManifest = "/manifest.json";

std::string checksum(std::span<const std::byte> bytes) {
  return fmt::format("{:08x}", crc32c(bytes));
}

// Of a weight file all bytes are in its header or in a tensor.
Json checksums_of(std::span<const std::byte> bytes, const std::string& path) {
  Json j = {{"bytes", bytes.size()}};
  if (!path.ends_with(".safetensors")) {
    j["crc32c"] = checksum(bytes);
    return j;
  }
  const Safetensors content = parse_safetensors(bytes, path);
  size_t data = 0;
  j["tensors"] = Json::object();
  for (const StoredTensor& t : content.tensors) {
    j["tensors"][t.name] = checksum(t.data);
    data += t.data.size();
  }
  j["header"] = checksum(bytes.first(bytes.size() - data));
  return j;
}

// What differs, as a learner would say it.
std::string difference(const Json& said, const Json& is) {
  if (said.value("bytes", Json()) != is["bytes"])
    return "has " + is["bytes"].dump() + " bytes, was written with " +
           said.value("bytes", Json()).dump();
  const Json sums = is.value("tensors", Json::object()),
             written = said.value("tensors", Json::object());
  if (!written.is_object()) return "has tensors, was written with " + written.dump();
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

Json parsed_manifest(std::string_view text, const std::string& path) {
  Json manifest = parse_json(text, path);
  // Written without blanks, so that other bytes are another document, or none.
  if (!manifest.is_object() || text != manifest.dump() + "\n")
    damaged(path, "it is not as it was written");
  return manifest;
}

const Json& entry_of(const Json& manifest, const std::string& folder, const std::string& name) {
  const auto said = manifest.find(name);
  if (said == manifest.end() || !said->is_object())
    damaged(folder + kManifest, "it does not say what " + name + " holds");
  return *said;
}

void check_entry(const Json& said, std::span<const std::byte> bytes, const std::string& path) {
  const Json is = checksums_of(bytes, path);
  if (said != is) damaged(path, difference(said, is));
}

}  // namespace

void write_manifest(const std::string& folder, const std::vector<std::string>& files) {
  Json manifest = Json::object();
  for (const std::string& name : files) {
    const MappedFile file(folder + "/" + name);
    manifest[name] = checksums_of(file.bytes(), file.path());
  }
  write_file_atomic(folder + kManifest, manifest.dump() + "\n");
}

void check_manifest(const std::string& folder, const std::vector<std::string>& files) {
  const std::string path = folder + kManifest;
  const Json manifest = parsed_manifest(read_file(path), path);
  for (const std::string& name : files) {
    const Json& said = entry_of(manifest, folder, name);
    const MappedFile file(folder + "/" + name);
    check_entry(said, file.bytes(), file.path());
  }
}

void check_manifest(std::string_view text, const std::string& folder,
                    std::span<const NamedBytes> files) {
  const Json manifest = parsed_manifest(text, folder + kManifest);
  for (const auto& [name, bytes] : files)
    check_entry(entry_of(manifest, folder, name), bytes, folder + "/" + name);
}

}  // namespace tally
