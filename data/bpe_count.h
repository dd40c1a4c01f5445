#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

/// How often each distinct piece of a text occurs: a hash table whose keys lie in one string.
class PieceCounts {
 public:
  struct Entry {
    uint64_t hash, begin, count;
    uint32_t size;
  };

  void add(std::string_view piece, uint64_t times = 1);

  /// In the order in which the pieces were first seen.
  const std::vector<Entry>& entries() const { return entries_; }
  std::string_view piece(const Entry& e) const {
    return std::string_view(bytes_).substr(e.begin, e.size);
  }
  size_t total_bytes() const { return bytes_.size(); }

 private:
  void grow();

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // entry + 1, 0 where free; a power of two, at most half full
};

}  // namespace tally
