#include "core/error.h"

#include <charconv>

namespace tally {

std::string to_text(double v) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), v);
  return std::string(buffer, result.ptr);
}

void detail::throw_error(std::initializer_list<std::string> parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  throw Error(text);
}

}  // namespace tally
