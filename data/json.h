#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tally {

using Json = nlohmann::json;

/// Parses JSON text. Refuses duplicate keys, more than 64 levels of nesting and invalid UTF-8, each
/// as an Error that begins with `origin` (a file name) and names line and column. Numbers that do
/// not fit are refused too. `comments`: allow // and /* */.
Json parse_json(std::string_view text, const std::string& origin, bool comments = false);

/// parse_json of a whole file (at most `max_bytes`). Throws Error if it cannot be read.
Json read_json(const std::string& path, bool comments = false,
               size_t max_bytes = size_t{256} << 20);

}  // namespace tally
