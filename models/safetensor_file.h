#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/file.h"

namespace tally {

/// Element types of weight files.
enum class StoredType : uint8_t {
  boolean,
  u8,
  i8,
  f8_e4m3,
  f8_e5m2,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  i64,
  u64,
  f64,
  // Blocks of quantised values (models/block_types.h): in GGUF files alone.
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q4_k,
  q5_k,
  q6_k
};
/// Of one element; of one block where values are quantised by block.
size_t bytes_of(StoredType);
/// Elements of one block; 1 where each stands for itself.
int64_t block_elements(StoredType);
/// Of `elements`, which make whole blocks.
size_t stored_bytes(StoredType, int64_t elements);
/// As files spell it: "F32", "BF16", ...
std::string_view name_of(StoredType);
/// The type that a safetensors file calls so.
std::optional<StoredType> stored_type(std::string_view name);

/// A named array in a weight file. `data` is little-endian, row-major and may begin at any address.
struct StoredTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<int64_t> shape;  // empty: a scalar
  std::span<const std::byte> data;

  int64_t numel() const;
  /// "F32 (4, 8)"
  std::string description() const;
};

/// The content of a safetensors file.
struct Safetensors {
  std::vector<StoredTensor> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
};

/// Reads the bytes of a safetensors file: 8 bytes header length, a JSON header, the data. The spans
/// point into `bytes`. Nothing in the header is believed: every size and offset is checked against
/// the others and against the file, and the tensors must cover the data without hole or overlap.
/// Throws Error that begins with `origin` and names the tensor where there is one.
Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& origin);

/// A safetensors file, mapped into memory and checked.
class SafetensorFile {
 public:
  explicit SafetensorFile(const std::string& path);
  const std::string& path() const { return file_.path(); }
  const std::vector<StoredTensor>& tensors() const { return content_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return content_.metadata; }
  /// nullptr if there is none of that name.
  const StoredTensor* find(std::string_view name) const;
  /// Throws Error with a did-you-mean if there is none of that name.
  const StoredTensor& at(std::string_view name) const;

 private:
  MappedFile file_;
  Safetensors content_;
  std::map<std::string_view, size_t> index_;
};

/// Writes a safetensors file atomically. Data begins at a multiple of 64 bytes, tensors are sorted
/// by falling element size, so every one is aligned. Throws Error if a name occurs twice, if data
/// and shape disagree or if the file cannot be written.
void write_safetensors(const std::string& path, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace tally
