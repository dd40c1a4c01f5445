#include "data/token_format.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "data/file.h"
#include "data/json.h"

namespace tally::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int32_t kLlmMagic16 = 20240520, kLlmMagic32 = 20240801;  // GPT-2's and LLaMA-3's
constexpr size_t kLlmHeader = 256 * sizeof(int32_t);
constexpr const char* kOurFormat = "tally-tokens";

template <class T>
T read_at(std::span<const std::byte> file, size_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

/// What stands behind 'key': in the header, a Python dictionary, up to the next comma outside
/// brackets or quotes; empty if the key is not there.
std::string_view npy_value(std::string_view header, std::string_view key) {
  const size_t at = header.find("'" + std::string(key) + "':");
  if (at == std::string_view::npos) return {};
  std::string_view rest = header.substr(at + key.size() + 3);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  int depth = 0;
  size_t end = 0;
  for (; end < rest.size(); ++end) {
    const char c = rest[end];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (depth < 0 || (depth == 0 && (c == ',' || c == '}'))) break;
  }
  return rest.substr(0, end);
}

int64_t npy_count(std::string_view shape, const std::string& path) {
  int64_t count = -1;
  const char* stop = shape.data() + shape.size();
  if (shape.starts_with('(')) {
    const auto parsed = std::from_chars(shape.data() + 1, stop, count);
    const std::string_view rest(parsed.ptr, static_cast<size_t>(stop - parsed.ptr));
    if (parsed.ec != std::errc() || rest != ",)") count = -1;
  }
  check(count >= 0, path, ": a token array must have one dimension; its shape is ", shape,
        "; save array.reshape(-1)");
  return count;
}

TokenLayout npy_layout(const std::string& path, std::span<const std::byte> file) {
  check(file.size() >= 12, path, ": a .npy file must have a whole header; it has ", file.size(),
        " bytes");
  const auto version = read_at<uint8_t>(file, 6);
  check(version >= 1 && version <= 3, path, ": the .npy version must be 1, 2 or 3; it is ",
        int{version});
  const size_t start = version == 1 ? 10 : 12;
  const size_t length = version == 1 ? read_at<uint16_t>(file, 8) : read_at<uint32_t>(file, 8);
  check(length <= file.size() - start, path, ": a .npy file must have a whole header; it says ",
        length, " bytes and the file has ", file.size());
  const std::string_view header(reinterpret_cast<const char*>(file.data()) + start, length);
  const std::string_view descr = npy_value(header, "descr");
  check(descr == "'<u2'" || descr == "'<u4'", path,
        ": tokens must be little-endian uint16 or uint32; the array's type is ", descr,
        "; save array.astype(\"<u2\") or \"<u4\"");
  const TokenWidth width = descr == "'<u2'" ? TokenWidth::u16 : TokenWidth::u32;
  return {"npy", start + length, npy_count(npy_value(header, "shape"), path), width};
}

std::optional<TokenLayout> llm_layout(std::span<const std::byte> file) {
  if (file.size() < kLlmHeader) return std::nullopt;
  const auto magic = read_at<int32_t>(file, 0), version = read_at<int32_t>(file, 4);
  const int64_t count = read_at<int32_t>(file, 8);
  if (magic == kLlmMagic16 && version == 1) return {{"llm.c", kLlmHeader, count, TokenWidth::u16}};
  if (magic == kLlmMagic32 && version == 7) return {{"llm.c", kLlmHeader, count, TokenWidth::u32}};
  return std::nullopt;
}

TokenLayout raw_layout(const std::string& path, size_t bytes, std::optional<TokenWidth> width) {
  check(width.has_value(), path, ": a raw token file does not say how wide its numbers are; give ",
        "--dtype uint16 or uint32");
  const auto each = static_cast<size_t>(*width);
  check(bytes % each == 0, path, ": the size must be a multiple of ", each, " bytes for ", *width,
        "; it is ", bytes, "; is the width right and the file whole?");
  return {"raw", 0, static_cast<int64_t>(bytes / each), *width};
}

int64_t whole_number(const Json& json, const char* key, const std::string& path) {
  check(json.contains(key) && json[key].is_number_unsigned() &&
            json[key].get<uint64_t>() <= uint64_t(INT64_MAX),
        path, ": \"", key, "\" must be a whole number, 0 or more; prepare the data again");
  return json[key].get<int64_t>();
}

}  // namespace

TokenLayout read_layout(const std::string& path, std::span<const std::byte> file,
                        std::optional<TokenWidth> width) {
  check(!file.empty(), path, ": a token file must hold tokens; it is empty");
  const std::string_view start(reinterpret_cast<const char*>(file.data()),
                               std::min(file.size(), kMagic.size()));
  const bool is_npy = start == kMagic;
  check(is_npy || !path.ends_with(".npy"), path,
        ": a .npy file must begin with NumPy's magic; it does not; name raw numbers .bin");
  const auto llm = is_npy ? std::nullopt : llm_layout(file);
  const TokenLayout layout = is_npy ? npy_layout(path, file)
                             : llm  ? *llm
                                    : raw_layout(path, file.size(), width);
  check(!width || *width == layout.width, path, ": the file's tokens are ", layout.width, ", but ",
        width.value_or(layout.width), " was asked for; leave the width out");
  const uint64_t room = (file.size() - layout.offset) / static_cast<size_t>(layout.width);
  const bool fits = layout.count >= 0 && static_cast<uint64_t>(layout.count) == room &&
                    (file.size() - layout.offset) % static_cast<size_t>(layout.width) == 0;
  check(fits, path, ": the file must hold the tokens that its header promises; it says ",
        layout.count, " and has room for ", room, "; is the file whole?");
  check(layout.count > 0, path, ": a token file must hold tokens; it has none");
  return layout;
}

std::string npy_header(int64_t count, TokenWidth width) {
  std::string text = "{'descr': '<u" + std::to_string(static_cast<int>(width)) +
                     "', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }";
  text.append(63 - (kMagic.size() + 4 + text.size()) % 64, ' ');
  text += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\x00';
  out += static_cast<char>(text.size() & 0xFF);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

std::string path_beside(const std::string& path) {
  return std::filesystem::path(path).replace_extension(".json");
}

bool read_meta(const std::string& text, const std::string& token_path, int64_t tokens,
               TokenMeta& meta) {
  const std::string path = path_beside(token_path);
  const Json json = parse_json(text, path);
  if (!json.is_object() || json.value("format", Json()) != kOurFormat) return false;
  const int64_t promised = whole_number(json, "tokens", path);
  check(promised == tokens, path, ": this must describe ", token_path, "; it says ", promised,
        " tokens and the file has ", tokens, "; prepare the data again");
  check(json.contains("tokenizer_hash") && json["tokenizer_hash"].is_string(), path,
        ": \"tokenizer_hash\" must be a string; prepare the data again");
  meta.tokenizer_hash = json["tokenizer_hash"].get<std::string>();
  meta.vocab_size = whole_number(json, "vocab_size", path);
  meta.documents = whole_number(json, "documents", path);
  meta.source_bytes = whole_number(json, "source_bytes", path);
  if (const auto of = json.find("preparation"); of != json.end()) {
    check(of->is_string(), path, ": \"preparation\" must be a string; prepare the data again");
    meta.preparation = of->get<std::string>();
  }
  if (json.contains("eot_id") && !json["eot_id"].is_null()) {
    const int64_t eot = whole_number(json, "eot_id", path);
    check(eot < kNoToken, path, ": \"eot_id\" must be an id; it is ", eot,
          "; prepare the data again");
    meta.eot = static_cast<TokenId>(eot);
  }
  return true;
}

void write_meta(const std::string& token_path, int64_t tokens, TokenWidth width,
                const TokenMeta& meta) {
  Json json = {{"format", kOurFormat},
               {"version", 1},
               {"tokens", tokens},
               {"dtype", to_text(width)},
               {"tokenizer_hash", meta.tokenizer_hash},
               {"vocab_size", meta.vocab_size},
               {"eot_id", meta.eot ? Json(*meta.eot) : Json()},
               {"documents", meta.documents},
               {"source_bytes", meta.source_bytes}};
  if (!meta.preparation.empty()) json["preparation"] = meta.preparation;
  write_file_atomic(path_beside(token_path), json.dump(2) + "\n");
}

}  // namespace tally::detail
