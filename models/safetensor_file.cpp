#include "models/safetensor_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/error.h"
#include "data/json.h"
#include "models/suggest.h"

namespace tally {
namespace {

static_assert(std::endian::native == std::endian::little, "weight files are little-endian");

constexpr size_t kLengthBytes = 8;
/// A 405-billion-parameter model needs 200 KB; what is larger was not written in good faith, and
/// parsing it would take ten times its size in memory.
constexpr uint64_t kMaxHeaderBytes = uint64_t{8} << 20;
constexpr size_t kAlignment = 64;

struct TypeRow {
  std::string_view name;
  size_t bytes;
  int64_t block = 1;
};
constexpr std::array<TypeRow, 23> kTypes = {
    {{"BOOL", 1},        {"U8", 1},          {"I8", 1},         {"F8_E4M3", 1},   {"F8_E5M2", 1},
     {"I16", 2},         {"U16", 2},         {"F16", 2},        {"BF16", 2},      {"I32", 4},
     {"U32", 4},         {"F32", 4},         {"I64", 8},        {"U64", 8},       {"F64", 8},
     {"Q4_0", 18, 32},   {"Q4_1", 20, 32},   {"Q5_0", 22, 32},  {"Q5_1", 24, 32}, {"Q8_0", 34, 32},
     {"Q4_K", 144, 256}, {"Q5_K", 176, 256}, {"Q6_K", 210, 256}}};

/// A name as JSON writes it: control characters of a hostile file never reach the terminal.
std::string quoted(const std::string& name) {
  return Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Turns one member of the header into a tensor.
class EntryReader {
 public:
  EntryReader(std::span<const std::byte> data, const std::string& origin)
      : data_(data), origin_(origin) {}

  StoredTensor read(const std::string& name, const Json& entry) {
    where_ = origin_ + ": tensor " + quoted(name);
    check(entry.is_object(), where_, " must be an object with dtype, shape and data_offsets");
    for (const auto& [key, value] : entry.items()) {
      check(key == "dtype" || key == "shape" || key == "data_offsets", where_,
            " has an unknown entry ", quoted(key));
    }
    StoredTensor tensor;
    tensor.name = name;
    tensor.type = read_type(member(entry, "dtype"));
    tensor.shape = read_shape(member(entry, "shape"));
    tensor.data = read_span(member(entry, "data_offsets"), byte_size(tensor));
    return tensor;
  }

 private:
  const Json& member(const Json& entry, const char* key) const {
    check(entry.contains(key), where_, " has no ", key);
    return entry[key];
  }

  StoredType read_type(const Json& value) const {
    check(value.is_string(), where_, ": dtype must be a text such as \"F32\"; it is ",
          value.dump());
    const auto& name = value.get_ref<const std::string&>();
    const auto type = stored_type(name);
    check(type.has_value(), where_, ": the element type ", quoted(name), " is not supported");
    return *type;
  }

  uint64_t unsigned_integer(const Json& value, const char* what) const {
    check(value.is_number_unsigned(), where_, ": ", what, " must be non-negative integers; one is ",
          value.is_primitive() ? value.dump() : "a list or an object");
    return value.get<uint64_t>();
  }

  std::vector<int64_t> read_shape(const Json& value) const {
    check(value.is_array(), where_, ": shape must be a list of sizes");
    std::vector<int64_t> shape;
    for (const Json& size : value) {
      const uint64_t n = unsigned_integer(size, "the sizes of its shape");
      check(n <= uint64_t(INT64_MAX), where_, ": the size ", n, " in its shape is too large");
      shape.push_back(static_cast<int64_t>(n));
    }
    return shape;
  }

  /// The bytes that type and shape ask for. A product that wraps around must not look right, not
  /// even where another size is 0.
  uint64_t byte_size(const StoredTensor& tensor) const {
    int64_t bytes = static_cast<int64_t>(bytes_of(tensor.type));
    bool wrapped = false, empty = false;
    for (const int64_t size : tensor.shape) {
      if (size == 0)
        empty = true;
      else
        wrapped |= __builtin_mul_overflow(bytes, size, &bytes);
    }
    check(!wrapped, where_, ": its shape has more elements than can be counted");
    return empty ? 0 : static_cast<uint64_t>(bytes);
  }

  std::span<const std::byte> read_span(const Json& value, uint64_t expected) const {
    check(value.is_array() && value.size() == 2, where_,
          ": data_offsets must be two numbers, [begin, end]");
    const uint64_t begin = unsigned_integer(value[0], "data_offsets");
    const uint64_t end = unsigned_integer(value[1], "data_offsets");
    check(begin <= end, where_, ": data_offsets [", begin, ", ", end, "] run backwards");
    check(end <= data_.size(), where_, ": its data would end at byte ", end, " of ", data_.size(),
          "; the file is cut short or not what it says");
    check(end - begin == expected, where_, ": shape and type need ", expected,
          " bytes; data_offsets give ", end - begin);
    return data_.subspan(begin, expected);
  }

  std::span<const std::byte> data_;
  const std::string& origin_;
  std::string where_;
};

std::map<std::string, std::string> read_metadata(const Json& value, const std::string& origin) {
  check(value.is_object(), origin, ": __metadata__ must be an object of texts");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    check(text.is_string(), origin, ": __metadata__ ", quoted(key), " must be a text; its type is ",
          text.type_name());
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

/// Tensors must lie one behind the other and fill the data: bytes that belong to two tensors, or to
/// none, could mean something else to the next reader.
void check_cover(std::vector<StoredTensor>& tensors, std::span<const std::byte> data,
                 const std::string& origin) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
  });
  const std::byte* at = data.data();
  for (const StoredTensor& tensor : tensors) {
    if (tensor.data.data() != at) {
      fail(origin, ": tensor ", quoted(tensor.name), " begins at byte ",
           tensor.data.data() - data.data(), " where the one before it ends at ", at - data.data(),
           tensor.data.data() < at ? ": they overlap" : ": the bytes between belong to no tensor");
    }
    at += tensor.data.size();
  }
  const auto rest = static_cast<size_t>(data.data() + data.size() - at);
  check(rest == 0, origin, ": ", rest, " bytes after the last tensor belong to no tensor");
}

Json header_entry(const StoredTensor& tensor, size_t begin) {
  return {{"dtype", std::string(name_of(tensor.type))},
          {"shape", tensor.shape},
          {"data_offsets", {begin, begin + tensor.data.size()}}};
}

std::string make_header(std::span<const StoredTensor* const> tensors,
                        const std::map<std::string, std::string>& metadata,
                        const std::string& path) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const StoredTensor* tensor : tensors) {
    check(tensor->name != "__metadata__" && !header.contains(tensor->name), path,
          ": cannot write two tensors called ", quoted(tensor->name));
    check(block_elements(tensor->type) == 1, path, ": tensor ", quoted(tensor->name), " of ",
          tensor->description(), " is not a type of safetensors files");
    check(uint64_t(tensor->numel()) * bytes_of(tensor->type) == tensor->data.size(), path,
          ": tensor ", quoted(tensor->name), " of ", tensor->description(), " has ",
          tensor->data.size(), " bytes of data");
    header[tensor->name] = header_entry(*tensor, offset);
    offset += tensor->data.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    fail(path, ": cannot write names or metadata that are not UTF-8");
  }
  const size_t unpadded = kLengthBytes + text.size();
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  check(text.size() <= kMaxHeaderBytes, path, ": too many tensors for one file");
  return text;
}

}  // namespace

size_t bytes_of(StoredType type) { return kTypes[static_cast<size_t>(type)].bytes; }

int64_t block_elements(StoredType type) { return kTypes[static_cast<size_t>(type)].block; }

size_t stored_bytes(StoredType type, int64_t elements) {
  return static_cast<size_t>(elements / block_elements(type)) * bytes_of(type);
}

std::string_view name_of(StoredType type) { return kTypes[static_cast<size_t>(type)].name; }

std::optional<StoredType> stored_type(std::string_view name) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name && kTypes[i].block == 1) return static_cast<StoredType>(i);
  }
  return std::nullopt;
}

int64_t StoredTensor::numel() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

std::string StoredTensor::description() const {
  std::string text = std::string(name_of(type)) + " (";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& origin) {
  check(bytes.size() >= kLengthBytes, origin,
        ": a safetensors file has at least 8 bytes; this has ", bytes.size());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  check(length <= kMaxHeaderBytes, origin, ": the header is said to have ", length,
        " bytes; at most ", kMaxHeaderBytes, " are allowed");
  check(length <= bytes.size() - kLengthBytes, origin, ": the header is said to have ", length,
        " bytes; the file has ", bytes.size(), " in all");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  const Json header = parse_json(text, origin + ": header");
  check(text.starts_with('{') && header.is_object(), origin, ": the header must be a JSON object");

  const auto data = bytes.subspan(kLengthBytes + length);
  Safetensors content;
  EntryReader reader(data, origin);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__")
      content.metadata = read_metadata(entry, origin);
    else
      content.tensors.push_back(reader.read(name, entry));
  }
  check_cover(content.tensors, data, origin);
  return content;
}

SafetensorFile::SafetensorFile(const std::string& path)
    : file_(path), content_(parse_safetensors(file_.bytes(), path)) {
  for (size_t i = 0; i < tensors().size(); ++i) index_[tensors()[i].name] = i;
}

const StoredTensor* SafetensorFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors()[found->second];
}

const StoredTensor& SafetensorFile::at(std::string_view name) const {
  if (const StoredTensor* tensor = find(name)) return *tensor;
  std::vector<std::string> names;
  for (const StoredTensor& tensor : tensors()) names.push_back(tensor.name);
  const std::string best = closest(name, names);
  fail(path(), ": there is no tensor \"", name, "\"",
       best.empty() ? "" : "; did you mean \"" + best + "\"?");
}

void write_safetensors(const std::string& path, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return bytes_of(a->type) > bytes_of(b->type);
  });
  const std::string header = make_header(order, metadata, path);
  write_file_atomic(path, [&](const Sink& sink) {
    const uint64_t length = header.size();
    sink(&length, kLengthBytes);
    sink(header.data(), header.size());
    for (const StoredTensor* tensor : order) sink(tensor->data.data(), tensor->data.size());
  });
}

}  // namespace tally
