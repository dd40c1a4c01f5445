#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tally {

inline constexpr int kMaxDeviceKinds = 8;  // five of ours and three for backends from outside

/// Where a tensor lives and computes: a registered backend and, for several of a kind, which one.
struct Device {
  uint8_t kind = 0, index = 0;
  bool operator==(const Device&) const = default;
};

/// The kinds with a fixed place in the kernel tables.
inline constexpr Device kReference{0, 0}, kCPU{1, 0}, kCUDA{2, 0}, kSIMT{3, 0}, kMeta{4, 0};
inline constexpr uint8_t kFirstFreeKind = 5;

/// "cpu", "cuda:1": the backend's name, with the index when it is not 0.
std::string to_text(Device device);
/// The reverse. Throws Error that lists the registered backends.
Device parse_device(std::string_view text);

}  // namespace tally
