#include "data/gguf.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>
#include <set>

#include "core/error.h"
#include "data/utf8.h"

namespace tally {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

constexpr std::string_view kGgufMagic = "GGUF";
// Far above the largest published models (a thousand tensors, a million entries of lists).
constexpr uint64_t kMaxTensors = 1 << 16, kMaxEntries = 1 << 16, kMaxElements = 1 << 23;
constexpr size_t kMaxDims = 4;

/// ggml's numbers of the types of metadata.
struct Kind {
  enum : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };
};

/// What the decimal notation of `value` was, as far as an f32 can tell.
double as_written(float value) {
  char digits[64];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  double result = static_cast<double>(value);  // stays for infinities and NaN
  std::from_chars(digits, end, result);
  return result;
}

/// Takes a file apart from front to back.
class GgufReader {
 public:
  GgufReader(std::span<const std::byte> bytes, const std::string& origin)
      : bytes_(bytes), origin_(origin) {}

  Gguf read() {
    Gguf file;
    check(looks_like_gguf(bytes_), origin_, ": a GGUF file begins with the letters GGUF");
    at_ = kGgufMagic.size();
    file.version = number<uint32_t>("its version");
    check(file.version == 2 || file.version == 3, origin_, ": its version is ", file.version,
          file.version == 1                   ? " (with 32-bit counts); convert it anew"
          : std::rotl(file.version, 8) < 256U ? "; big-endian files are not read"
                                              : "; versions 2 and 3 are read");
    const auto tensors = count("tensors", kMaxTensors, 24);
    const auto entries = count("entries of metadata", kMaxEntries, 13);
    for (uint64_t i = 0; i < entries; ++i) read_entry(file);
    for (uint64_t i = 0; i < tensors; ++i) read_tensor(file);
    place_data(file);
    return file;
  }

 private:
  size_t left() const { return bytes_.size() - at_; }

  template <class T>
  T number(const std::string& what) {
    check(left() >= sizeof(T), origin_, ": the file ends within ", what);
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  uint64_t count(const std::string& what, uint64_t limit, size_t least_bytes) {
    const auto n = number<uint64_t>("the number of " + what);
    check(n <= limit, origin_, ": it is said to have ", n, " ", what, "; at most ", limit,
          " are read");
    check(n <= left() / least_bytes, origin_, ": it is said to have ", n, " ", what,
          ", more than the file has room for");
    return n;
  }

  std::string_view string(const std::string& what) {
    const auto size = number<uint64_t>(what);
    check(size <= left(), origin_, ": ", what, " is said to have ", size,
          " bytes; the file has only ", left(), " more");
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return text;
  }

  std::string name(const char* what) {
    std::string text(string(what));
    check(!text.empty() && well_formed_prefix(text) == text.size(), origin_, ": ", what,
          " must be a text; it is ", quoted_name(text));
    return text;
  }

  GgufValue read_value(uint32_t kind, const std::string& what) {
    switch (kind) {
      case Kind::u8:
        return int64_t{number<uint8_t>(what)};
      case Kind::i8:
        return int64_t{number<int8_t>(what)};
      case Kind::u16:
        return int64_t{number<uint16_t>(what)};
      case Kind::i16:
        return int64_t{number<int16_t>(what)};
      case Kind::u32:
        return int64_t{number<uint32_t>(what)};
      case Kind::i32:
        return int64_t{number<int32_t>(what)};
      case Kind::i64:
        return number<int64_t>(what);
      case Kind::u64: {
        const auto value = number<uint64_t>(what);
        check(value <= uint64_t(INT64_MAX), origin_, ": ", what, " = ", value, " is too large");
        return static_cast<int64_t>(value);
      }
      case Kind::f32:
        return as_written(number<float>(what));
      case Kind::f64:
        return number<double>(what);
      case Kind::boolean: {
        const auto value = number<uint8_t>(what);
        check(value <= 1, origin_, ": ", what, " must be true or false (1 or 0); it is ",
              int{value});
        return value == 1;
      }
      case Kind::text:
        return string(what);
      default:
        fail(origin_, ": ", what, " has the unknown type ", kind);
    }
  }

  GgufValue read_list(const std::string& what) {
    const auto kind = number<uint32_t>(what);
    check(kind != Kind::list, origin_, ": ", what, " is a list of lists, which is not read");
    check(kind <= Kind::f64, origin_, ": ", what, " has elements of the unknown type ", kind);
    constexpr size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};
    const auto n = count("elements in " + what, kMaxElements - elements_, kBytes[kind]);
    elements_ += n;
    std::vector<int64_t> integers;
    std::vector<double> numbers;
    std::vector<std::string_view> texts;
    for (uint64_t i = 0; i < n; ++i) {
      if (kind == Kind::f32) {  // scores, which stay what they are
        numbers.push_back(double{number<float>(what)});
        continue;
      }
      const GgufValue value = read_value(kind, what);
      if (const auto* t = std::get_if<std::string_view>(&value)) texts.push_back(*t);
      if (const auto* d = std::get_if<double>(&value)) numbers.push_back(*d);
      if (const auto* k = std::get_if<int64_t>(&value)) integers.push_back(*k);
      if (const auto* b = std::get_if<bool>(&value)) integers.push_back(*b ? 1 : 0);
    }
    if (kind == Kind::text) return texts;
    if (kind == Kind::f32 || kind == Kind::f64) return numbers;
    return integers;
  }

  void read_entry(Gguf& file) {
    const std::string key = name("the key of an entry");
    const std::string what = "the entry " + quoted_name(key);
    const auto kind = number<uint32_t>(what);
    GgufValue value = kind == Kind::list ? read_list(what) : read_value(kind, what);
    check(file.metadata.emplace(key, std::move(value)).second, origin_, ": ", what,
          " is there twice");
  }

  void read_tensor(Gguf& file) {
    GgufTensor tensor;
    tensor.name = name("the name of a tensor");
    const std::string what = "tensor " + quoted_name(tensor.name);
    check(names_.insert(tensor.name).second, origin_, ": ", what, " is there twice");
    const auto dims = number<uint32_t>(what);
    check(dims <= kMaxDims, origin_, ": ", what, " has ", dims, " dimensions; at most ", kMaxDims,
          " are allowed");
    int64_t elements = 1;
    for (uint32_t i = 0; i < dims; ++i) {
      const auto size = number<uint64_t>(what);
      const bool fits = size <= uint64_t(INT64_MAX) &&
                        !__builtin_mul_overflow(elements, static_cast<int64_t>(size), &elements);
      check(fits && size > 0, origin_, ": ", what, " has the size ", size,
            size > 0 ? "; its elements cannot be counted" : "; sizes are above 0");
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
    tensor.type = number<uint32_t>(what);
    tensor.offset = number<uint64_t>(what);
    file.tensors.push_back(std::move(tensor));
  }

  void place_data(Gguf& file) {
    if (const GgufValue* value = file.find("general.alignment")) {
      const auto* n = std::get_if<int64_t>(value);
      check(n && *n >= 8 && *n <= (1 << 20) && std::has_single_bit(uint64_t(*n)), origin_,
            ": general.alignment must be a power of two from 8 to 1048576");
      file.alignment = static_cast<uint64_t>(*n);
    }
    const size_t begin = (at_ + file.alignment - 1) / file.alignment * file.alignment;
    file.data = bytes_.subspan(std::min(begin, bytes_.size()));
    for (const GgufTensor& tensor : file.tensors) {
      const std::string what = "tensor " + quoted_name(tensor.name);
      check(tensor.offset % file.alignment == 0, origin_, ": ", what, " begins at byte ",
            tensor.offset, ", which is no multiple of the alignment ", file.alignment);
      check(tensor.offset < file.data.size(), origin_, ": ", what, " begins at byte ",
            tensor.offset, " of ", file.data.size(), "; the file is cut short");
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& origin_;
  size_t at_ = 0;
  uint64_t elements_ = 0;
  std::set<std::string, std::less<>> names_;
};

}  // namespace

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found = metadata.find(key);
  return found == metadata.end() ? nullptr : &found->second;
}

bool looks_like_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= kGgufMagic.size() &&
         std::memcmp(bytes.data(), kGgufMagic.data(), kGgufMagic.size()) == 0;
}

bool is_gguf_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  return file.read(magic, sizeof magic) && std::string_view(magic, sizeof magic) == kGgufMagic;
}

Gguf parse_gguf(std::span<const std::byte> bytes, const std::string& origin) {
  return GgufReader(bytes, origin).read();
}

std::string quoted_name(std::string_view name) {
  constexpr size_t kShown = 200;
  std::string text = "\"";
  for (const char c : replace_ill_formed(name.substr(0, kShown))) {
    const bool control = static_cast<uint8_t>(c) < 0x20 || c == 0x7F;
    if (c == '"' || c == '\\') text += '\\';
    text += control ? '?' : c;
  }
  return text + "\"";
}

}  // namespace tally
