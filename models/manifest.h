#pragma once
#include <string>
#include <vector>

namespace tally {

/// A checkpoint's manifest.json: of each file its length and its CRC-32C, of a weight file the
/// checksum of its header and of every tensor.
///
/// Writes it beside `files`, which lie in `folder`, from what was written there.
void write_manifest(const std::string& folder, const std::vector<std::string>& files);

/// Error unless `files`, all that the manifest names where none are given, are what was written, bit
/// for bit: it names the file, and the tensor whose bytes have changed.
void check_manifest(const std::string& folder, std::vector<std::string> files = {});

}  // namespace tally
