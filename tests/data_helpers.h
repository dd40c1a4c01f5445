#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.h"
#include "data/json.h"
#include "tests/message_of.h"

/// What the tests of text, tokens and data share.
namespace tally::test {

inline std::string tokenizer_data(const std::string& name) {
  return std::string(TALLY_TEST_DATA) + "/tokenizer/" + name;
}

inline std::string repeated(std::string_view unit, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += unit;
  return text;
}

inline std::string random_letters(size_t size) {
  std::string text;
  uint32_t state = 7;
  while (text.size() < size) {
    state = state * 1664525 + 1013904223;
    text += static_cast<char>('a' + (state >> 24) % 26);
  }
  return text;
}

/// An empty folder that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tally-test-XXXXXX").string();
    check(::mkdtemp(name.data()) != nullptr, "test: cannot make a temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tally::test
