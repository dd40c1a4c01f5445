#include "data/masked_tokens.h"

#include <algorithm>

#include "core/error.h"

namespace tally {
namespace {

constexpr uint64_t kMaskedTokens = 0x6d61736b6564;  // "masked"

bool is_share(double p) { return p >= 0 && p <= 1; }

}  // namespace

void MaskedTokenOptions::check() const {
  tally::check(vocab >= 1 && mask_id >= 0 && mask_id < vocab,
               "masked_tokens: mask_id must be an id of the vocabulary 0..", vocab - 1, "; got ",
               mask_id);
  tally::check(is_share(rate) && is_share(mask_share) && is_share(random_share) &&
                   mask_share + random_share <= 1,
               "masked_tokens: rate, mask_share and random_share must be in 0..1, the two shares "
               "at most 1 together; got ",
               rate, ", ", mask_share, " and ", random_share);
}

void mask_tokens(const MaskedTokenOptions& o, const SequenceKey& key, std::span<int64_t> ids,
                 std::span<int64_t> targets) {
  o.check();
  check(ids.size() == targets.size(), "masked_tokens: ids and targets must have one length; got ",
        ids.size(), " and ", targets.size());
  const Draws draws(key, kMaskedTokens);
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids[i];
    check(id >= 0 && id < o.vocab, "masked_tokens: ids must be in 0..", o.vocab - 1, "; place ", i,
          " holds ", id);
    targets[i] = kIgnoredTarget;
    const auto words = draws.block(i);  // to choose: two; what becomes of it; which other id
    if (to_uniform(words[0], words[1]) >= o.rate) continue;
    if (std::find(o.never.begin(), o.never.end(), id) != o.never.end()) continue;
    targets[i] = id;
    const double share = words[2] * 0x1p-32;
    if (share < o.mask_share)
      ids[i] = o.mask_id;
    else if (share < o.mask_share + o.random_share)
      ids[i] = below(words[3], o.vocab);
  }
}

}  // namespace tally
