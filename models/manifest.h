#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

/// A checkpoint's manifest.json: of each file its length and its CRC-32C, of a weight file the
/// checksum of its header and of every tensor.
///
/// Writes it beside `files`, which lie in `folder`, from what was written there.
void write_manifest(const std::string& folder, const std::vector<std::string>& files);

/// Error unless `files`, of a checkpoint all where none are given, are what was written, bit for bit:
/// it names the file, and the tensor whose bytes have changed. What the manifest leaves out is damage.
void check_manifest(const std::string& folder,
                    const std::vector<std::string>& files = {
                        "model.safetensors", "optimizer.safetensors", "state.json"});

/// One file of a checkpoint: its name in the folder and its content.
struct NamedBytes {
  std::string name;
  std::span<const std::byte> bytes;
};

/// check_manifest of files in memory: `manifest` is the text of manifest.json, `folder` stands
/// before the names in errors.
void check_manifest(std::string_view manifest, const std::string& folder,
                    std::span<const NamedBytes> files);

}  // namespace tally
