#include "data/prefix_targets.h"

#include <algorithm>

#include "core/error.h"

namespace tally {
namespace {

constexpr uint64_t kPrefix = 0x707265666978;  // "prefix"

}  // namespace

int64_t draw_prefix(const SequenceKey& key, int64_t length) {
  check(length >= 2, "prefix_targets: a prefix and what follows need at least 2 tokens; got ",
        length);
  return 1 + below(Draws(key, kPrefix).block(0)[0], length - 1);
}

void ignore_prefix(int64_t prefix, std::span<int64_t> targets) {
  const auto size = static_cast<int64_t>(targets.size());
  check(prefix >= 0 && prefix <= size, "prefix_targets: the prefix must be 0..", size,
        " tokens, those that have a target; got ", prefix);
  std::fill_n(targets.begin(), std::max(prefix - 1, int64_t{0}), kIgnoredTarget);
}

}  // namespace tally
