#include "models/gguf_file.h"

#include <algorithm>

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

GgufFile::GgufFile(const std::string& path)
    : file_(path),
      content_(parse_gguf(file_.bytes(), path)),
      tensors_(gguf_tensors(content_, path)) {
  for (size_t i = 0; i < tensors_.size(); ++i) index_[tensors_[i].name] = i;
}

const StoredTensor* GgufFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace tally
