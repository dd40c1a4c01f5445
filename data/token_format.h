#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "data/token_file.h"

namespace tally::detail {

/// Where the tokens lie in a file.
struct TokenLayout {
  const char* format;
  size_t offset;  // bytes before the first token
  int64_t count;
  TokenWidth width;
};

/// Finds out from the first bytes (and for .bin, `width`). Throws Error beginning with `path`.
TokenLayout read_layout(const std::string& path, std::span<const std::byte> file,
                        std::optional<TokenWidth> width);

/// The header of a one-dimensional .npy file, padded so that the data begins at a multiple of 64.
std::string npy_header(int64_t count, TokenWidth width);

/// The JSON that belongs to a token file: x.npy -> x.json.
std::string path_beside(const std::string& path);

/// Reads its text into `meta`; false if it is none of ours. Throws Error if it does not fit the file.
bool read_meta(const std::string& text, const std::string& token_path, int64_t tokens,
               TokenMeta& meta);
void write_meta(const std::string& token_path, int64_t tokens, TokenWidth width,
                const TokenMeta& meta);

}  // namespace tally::detail
