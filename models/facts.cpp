#include "models/facts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/error.h"

namespace tally {
namespace {

template <class T>
T fact_number(std::string_view text, const std::string& name, const std::string& where) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool good = error == std::errc() && end == text.data() + text.size();
  if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(value);
  check(good, where, "/state.json: ", name, " must hold numbers; it says '", std::string(text),
        "'");
  return value;
}

}  // namespace

std::string numbers_text(const std::vector<double>& values) {
  std::string text;
  char buffer[32];
  for (const double v : values) {
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, v);
    text += (text.empty() ? "" : " ") + std::string(buffer, end);
  }
  return text;
}

std::vector<double> number_facts(const Facts& facts, const std::string& name,
                                 const std::string& where) {
  std::vector<double> values;
  const auto it = facts.find(name);
  if (it == facts.end()) return values;
  for (std::string_view rest = it->second; !rest.empty();) {
    const size_t blank = std::min(rest.find(' '), rest.size());
    values.push_back(fact_number<double>(rest.substr(0, blank), name, where));
    rest.remove_prefix(std::min(blank + 1, rest.size()));
  }
  return values;
}

int64_t whole_fact(const Facts& facts, const std::string& name, const std::string& where,
                   int64_t otherwise) {
  const auto it = facts.find(name);
  return it == facts.end() ? otherwise : fact_number<int64_t>(it->second, name, where);
}

}  // namespace tally
