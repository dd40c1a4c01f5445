#include "core/backend.h"

#include <array>
#include <string>

#include "core/error.h"

namespace tally {
namespace {

using Registry = std::array<std::unique_ptr<Backend>, kMaxDeviceKinds>;
// Never destroyed: tensors in static objects may outlive every other static.
Registry& registry() {
  static Registry& r = *new Registry;
  return r;
}

std::string registered_names() {
  std::string text;
  for (const auto& b : registry()) {
    if (b) text += (text.empty() ? "" : ", ") + std::string(b->name());
  }
  return text.empty() ? "none (call tally::register_all())" : text;
}

}  // namespace

Device register_backend(std::unique_ptr<Backend> b, uint8_t kind) {
  check(b != nullptr, "register_backend: a backend must be given; got null");
  check(kind < kMaxDeviceKinds, "register_backend: at most 8 kinds; got kind ", int{kind});
  check(!registry()[kind], "register_backend: kind ", int{kind}, " is taken; cannot add ",
        b->name());
  registry()[kind] = std::move(b);
  return {kind, 0};
}

Device register_backend(std::unique_ptr<Backend> b) {
  for (uint8_t kind = kFirstFreeKind; kind < kMaxDeviceKinds; ++kind) {
    if (!registry()[kind]) return register_backend(std::move(b), kind);
  }
  fail("register_backend: all kinds for backends from outside are taken");
}

bool has_backend(Device d) { return d.kind < kMaxDeviceKinds && registry()[d.kind] != nullptr; }

Backend& backend(Device d) {
  if (!has_backend(d)) [[unlikely]] {
    fail("device: no backend of kind ", int{d.kind},
         " is registered; registered: ", registered_names());
  }
  return *registry()[d.kind];
}

std::string to_text(Device d) {
  std::string text =
      has_backend(d) ? std::string(backend(d).name()) : "device" + std::to_string(d.kind);
  return d.index ? text + ":" + std::to_string(d.index) : text;
}

Device parse_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  for (uint8_t k = 0; k < kMaxDeviceKinds; ++k) {
    if (!registry()[k] || registry()[k]->name() != kind) continue;
    if (colon == std::string_view::npos) return {k, 0};
    const std::string_view digits = text.substr(colon + 1);
    if (digits.size() == 1 && digits[0] >= '0' && digits[0] <= '9') {
      return {k, static_cast<uint8_t>(digits[0] - '0')};
    }
  }
  fail("device: must be one of ", registered_names(), "; got '", text, "'");
}

}  // namespace tally
