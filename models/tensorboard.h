#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tally {

/// Scalars for TensorBoard: one events.out.tfevents file in a folder, a record a logged step. The
/// format is TensorFlow's: records of a length, a masked CRC-32C of it, an Event message in
/// protocol buffers' wire format, and a masked CRC-32C of that.
class TensorBoardLog {
 public:
  /// Makes the folder and a new file in it; `number` keeps the files of a resumed run apart. Error
  /// when it cannot be written.
  TensorBoardLog(const std::string& folder, int64_t number);
  /// Appends the scalars of a step; names with a slash are grouped ("loss/training").
  void add(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);
  const std::string& file() const { return file_; }

 private:
  void write(const std::string& event);
  std::string file_;
};

/// CRC-32C of bytes under the mask that keeps a CRC over data that holds CRCs sound.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace tally
