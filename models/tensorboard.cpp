#include "models/tensorboard.h"

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "data/checksum.h"

namespace tally {
namespace {

// Little-endian bytes of an unsigned number.
template <class T>
std::string raw(T value) {
  std::string out;
  for (size_t i = 0; i < sizeof(T); ++i)
    out += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  return out;
}

// Fields of a protocol buffer: the number and the wire type, then the value.
std::string varint(uint64_t v) {
  std::string out;
  for (; v >= 128; v >>= 7) out += static_cast<char>(static_cast<unsigned char>(v | 128));
  return out + static_cast<char>(static_cast<unsigned char>(v));
}
std::string key(unsigned field, unsigned wire_type) { return varint(field << 3 | wire_type); }
std::string double_field(unsigned field, double v) {
  return key(field, 1) + raw(std::bit_cast<uint64_t>(v));
}
std::string float_field(unsigned field, float v) {
  return key(field, 5) + raw(std::bit_cast<uint32_t>(v));
}
std::string bytes_field(unsigned field, const std::string& v) {
  return key(field, 2) + varint(v.size()) + v;
}

double now() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5.
std::string event(int64_t step, const std::string& rest) {
  return double_field(1, now()) + key(2, 0) + varint(static_cast<uint64_t>(step)) + rest;
}

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

TensorBoardLog::TensorBoardLog(const std::string& folder, int64_t number) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check(!error, folder, ": cannot make this folder: ", error.message());
  file_ = folder + "/events.out.tfevents." + std::to_string(static_cast<int64_t>(now())) + "." +
          std::to_string(number) + ".tally";
  write(event(0, bytes_field(3, "brain.Event:2")));
}

void TensorBoardLog::add(int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;  // Summary: value = 1; Value: tag = 1, simple_value = 2
  for (const auto& [name, value] : scalars)
    summary += bytes_field(1, bytes_field(1, name) + float_field(2, static_cast<float>(value)));
  write(event(step, bytes_field(5, summary)));
}

void TensorBoardLog::write(const std::string& event) {
  const std::string length = raw(static_cast<uint64_t>(event.size()));
  std::ofstream out(file_, std::ios::app | std::ios::binary);
  out << length << raw(masked_crc32c(length)) << event << raw(masked_crc32c(event));
  out.flush();
  check(out.good(), file_, ": cannot be written: ", std::strerror(errno));
}

}  // namespace tally
