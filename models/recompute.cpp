#include "models/recompute.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/error.h"

namespace tally {
namespace {

struct Range {
  int64_t first = 0, last = 0;
};

bool parse_number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

bool parse_range(std::string_view text, Range& range) {
  const size_t dash = text.find('-');
  if (!parse_number(text.substr(0, dash), range.first)) return false;
  range.last = range.first;
  return dash == std::string_view::npos || parse_number(text.substr(dash + 1), range.last);
}

}  // namespace

std::vector<bool> recompute_layers(const std::string& text, int64_t layers,
                                   const std::string& where) {
  std::vector<bool> chosen(static_cast<size_t>(layers), text == "all");
  if (text == "none" || text == "all") return chosen;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    Range range;
    check(parse_range(std::string_view(text).substr(at, comma - at), range), where,
          ": recompute must be none, all, or layers such as \"0-5,8\"; it is \"", text, "\"");
    check(range.first <= range.last && range.last < layers, where, ": recompute names the layers ",
          range.first, " to ", range.last, "; the model has 0 to ", layers - 1);
    for (int64_t i = range.first; i <= range.last; ++i) chosen[static_cast<size_t>(i)] = true;
    at = comma + 1;
  }
  return chosen;
}

std::string recompute_first(int64_t count, int64_t layers) {
  if (count <= 0) return "none";
  if (count >= layers) return "all";
  return count == 1 ? "0" : "0-" + std::to_string(count - 1);
}

}  // namespace tally
