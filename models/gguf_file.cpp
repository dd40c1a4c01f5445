#include "models/gguf_file.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"

namespace tally {
namespace {

struct GgmlType {
  uint32_t number;
  const char* name;
  std::optional<StoredType> type;  // none: known by name, not read
};
const GgmlType* ggml_type(uint32_t number) {
  static const std::vector<GgmlType> list = {{0, "F32", StoredType::f32},
                                             {1, "F16", StoredType::f16},
                                             {2, "Q4_0", StoredType::q4_0},
                                             {3, "Q4_1", StoredType::q4_1},
                                             {6, "Q5_0", StoredType::q5_0},
                                             {7, "Q5_1", StoredType::q5_1},
                                             {8, "Q8_0", StoredType::q8_0},
                                             {9, "Q8_1", {}},
                                             {10, "Q2_K", {}},
                                             {11, "Q3_K", {}},
                                             {12, "Q4_K", StoredType::q4_k},
                                             {13, "Q5_K", StoredType::q5_k},
                                             {14, "Q6_K", StoredType::q6_k},
                                             {15, "Q8_K", {}},
                                             {16, "IQ2_XXS", {}},
                                             {17, "IQ2_XS", {}},
                                             {18, "IQ3_XXS", {}},
                                             {19, "IQ1_S", {}},
                                             {20, "IQ4_NL", {}},
                                             {21, "IQ3_S", {}},
                                             {22, "IQ2_S", {}},
                                             {23, "IQ4_XS", {}},
                                             {24, "I8", StoredType::i8},
                                             {25, "I16", StoredType::i16},
                                             {26, "I32", StoredType::i32},
                                             {27, "I64", StoredType::i64},
                                             {28, "F64", StoredType::f64},
                                             {29, "IQ1_M", {}},
                                             {30, "BF16", StoredType::bf16},
                                             {34, "TQ1_0", {}},
                                             {35, "TQ2_0", {}},
                                             {39, "MXFP4", {}}};
  const auto found = std::ranges::find(list, number, &GgmlType::number);
  return found == list.end() ? nullptr : &*found;
}

StoredType gguf_type_of(const GgufTensor& tensor, const std::string& what) {
  const GgmlType* type = ggml_type(tensor.type);
  check(type, what, " has the unknown element type ", tensor.type);
  check(type->type.has_value(), what, " has the element type ", type->name,
        ", which is not read; F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K and Q6_K "
        "are");
  return *type->type;
}

/// The bytes that type and shape ask for.
uint64_t bytes_asked(const StoredTensor& tensor, const std::string& what) {
  const int64_t block = block_elements(tensor.type);
  const int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  check(columns % block == 0, what, " has rows of ", columns, " values; ", name_of(tensor.type),
        " stores them in blocks of ", block);
  int64_t bytes = 0;
  const bool wraps = __builtin_mul_overflow(tensor.numel() / block,
                                            static_cast<int64_t>(bytes_of(tensor.type)), &bytes);
  check(!wraps, what, " has more bytes than can be counted");
  return static_cast<uint64_t>(bytes);
}

/// A whole number of the metadata; `otherwise` where it is not there.
int64_t whole_number(const Gguf& file, const char* key, int64_t otherwise,
                     const std::string& origin) {
  const GgufValue* value = file.find(key);
  if (!value) return otherwise;
  const auto* number = std::get_if<int64_t>(value);
  check(number, origin, ": ", key, " must be a whole number");
  return *number;
}

/// How the name of a part ends.
std::string part_ending(int64_t number, int64_t count) {
  const auto digits = [](int64_t n) {
    const std::string text = std::to_string(n);
    return std::string(5 - std::min<size_t>(5, text.size()), '0') + text;
  };
  return "-" + digits(number) + "-of-" + digits(count) + ".gguf";
}

}  // namespace

std::vector<StoredTensor> gguf_tensors(const Gguf& file, const std::string& origin) {
  std::vector<StoredTensor> tensors;
  uint64_t end = 0;
  for (const GgufTensor& listed : file.tensors) {
    const std::string what = origin + ": tensor " + quoted_name(listed.name);
    StoredTensor& tensor = tensors.emplace_back(
        StoredTensor{listed.name, gguf_type_of(listed, what), listed.shape, {}});
    const uint64_t bytes = bytes_asked(tensor, what);
    const uint64_t begin = (end + file.alignment - 1) / file.alignment * file.alignment;
    check(listed.offset == begin, what, " begins at byte ", listed.offset, "; it must begin at ",
          begin, ", where the one before it ends");
    check(bytes <= file.data.size() - listed.offset, what, " of ", tensor.description(), " needs ",
          bytes, " bytes; the file has only ", file.data.size() - listed.offset, " more");
    tensor.data = file.data.subspan(listed.offset, bytes);
    end = listed.offset + bytes;
  }
  const uint64_t padded = (end + file.alignment - 1) / file.alignment * file.alignment;
  check(file.data.size() <= padded, origin, ": ", file.data.size() - end,
        " bytes after the last tensor belong to no tensor");
  return tensors;
}

GgufFile::Part::Part(const std::string& path)
    : file(path), content(parse_gguf(file.bytes(), path)) {}

GgufFile::GgufFile(const std::string& path) {
  parts_.emplace_back(path);
  tensors_ = gguf_tensors(content(), path);
  const int64_t count = whole_number(content(), "split.count", 1, path);
  if (count != 1) open_others(path, count);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const bool fresh = index_.emplace(tensors_[i].name, i).second;
    check(fresh, path, ": two of its parts hold the tensor ", quoted_name(tensors_[i].name));
  }
}

void GgufFile::open_others(const std::string& path, int64_t count) {
  check(count >= 1 && count <= 99999, path, ": split.count is ", count,
        "; a model has 1 to 99999 parts");
  const int64_t number = whole_number(content(), "split.no", 0, path);
  check(number == 0, path, ": is part ", number + 1, " of ", count,
        "; name the first, which ends in ", part_ending(1, count));
  check(path.ends_with(part_ending(1, count)), path, ": is the first of ", count,
        " parts, so its name must end in ", part_ending(1, count));
  const std::string prefix = path.substr(0, path.size() - part_ending(1, count).size());
  for (int64_t i = 2; i <= count; ++i) {
    const std::string name = prefix + part_ending(i, count);
    std::error_code unreadable;
    check(std::filesystem::exists(name, unreadable), path, ": part ", i, " of ", count, ", ", name,
          ", is missing");
    const Gguf& part = parts_.emplace_back(name).content;
    check(whole_number(part, "split.no", -1, name) == i - 1 &&
              whole_number(part, "split.count", -1, name) == count,
          name, ": does not say that it is part ", i, " of ", count);
    for (StoredTensor& tensor : gguf_tensors(part, name)) tensors_.push_back(std::move(tensor));
  }
  const auto found = static_cast<int64_t>(tensors_.size());
  const int64_t wanted = whole_number(content(), "split.tensors.count", found, path);
  check(found == wanted, path, ": split.tensors.count is ", wanted, "; its parts hold ", found,
        " tensors");
}

const StoredTensor* GgufFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace tally
