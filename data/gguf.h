#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tally {

/// A value of GGUF metadata. Whole numbers of any width are int64_t, floats double; a single f32 is
/// the shortest decimal that names it (1e-05, not 9.99999975e-06), since that is what was written.
using GgufValue = std::variant<bool, int64_t, double, std::string_view, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string_view>>;

/// One tensor as the file lists it.
struct GgufTensor {
  std::string name;
  std::vector<int64_t> shape;  // row-major: the file's sizes in reverse
  uint32_t type = 0;           // ggml's number of the element type
  uint64_t offset = 0;         // of its first byte in Gguf::data
};

/// The content of a GGUF file; texts and `data` point into its bytes.
struct Gguf {
  uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;  // in the order of the file
  uint64_t alignment = 32;
  std::span<const std::byte> data;

  /// nullptr if there is no such entry.
  const GgufValue* find(std::string_view key) const;
};

/// True if the bytes begin as every GGUF file does.
bool looks_like_gguf(std::span<const std::byte> bytes);
/// The same of a file; false if it cannot be read.
bool is_gguf_file(const std::string& path);

/// Reads header, metadata and list of tensors of a GGUF file, version 2 or 3, little-endian. Nothing
/// in it is believed: every count and length is checked against what is left of the file before
/// memory is taken, names are there once, sizes can be multiplied, offsets are aligned and inside
/// the data. What the element types ask for is checked by whoever knows them. Throws Error that
/// begins with `origin` and names the entry or tensor where there is one.
Gguf parse_gguf(std::span<const std::byte> bytes, const std::string& origin);

/// A name of a file as messages show it: control characters never reach the terminal.
std::string quoted_name(std::string_view name);

}  // namespace tally
