#include "data/masked_tokens.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace tally {
namespace {

constexpr uint64_t kMaskedTokens = 0x6d61736b6564;  // "masked"

bool is_share(double p) { return p >= 0 && p <= 1; }

bool may_be_chosen(const MaskedTokenOptions& o, int64_t id) {
  return id != o.boundary && std::find(o.never.begin(), o.never.end(), id) == o.never.end();
}

// Hides one token of those that may be, each as likely.
void mask_one(const MaskedTokenOptions& o, const Draws& draws, std::span<int64_t> ids,
              std::span<int64_t> targets) {
  std::vector<size_t> places;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (may_be_chosen(o, ids[i])) places.push_back(i);
  }
  if (places.empty()) return;
  const auto count = static_cast<int64_t>(places.size());
  const size_t place = places[static_cast<size_t>(below(draws.block(ids.size())[0], count))];
  targets[place] = std::exchange(ids[place], o.mask_id);
}

}  // namespace

void MaskedTokenOptions::check() const {
  tally::check(vocab >= 1 && mask_id >= 0 && mask_id < vocab,
               "masked_tokens: mask_id must be an id of the vocabulary 0..", vocab - 1, "; got ",
               mask_id);
  tally::check(mask_id != boundary, "masked_tokens: mask_id = ", mask_id,
               " must not be the token that ends a document");
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
  bool chosen = false;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids[i];
    check(id >= 0 && id < o.vocab, "masked_tokens: ids must be in 0..", o.vocab - 1, "; place ", i,
          " holds ", id);
    targets[i] = kIgnoredTarget;
    const auto words = draws.block(i);  // to choose: two; what becomes of it; which other id
    if (to_uniform(words[0], words[1]) >= o.rate) continue;
    if (!may_be_chosen(o, id)) continue;
    targets[i] = id;
    chosen = true;
    const double share = words[2] * 0x1p-32;
    const int64_t other = share < o.mask_share ? o.mask_id : below(words[3], o.vocab);
    if (share < o.mask_share + o.random_share && other != o.boundary) ids[i] = other;
  }
  if (o.at_least_one && !chosen) mask_one(o, draws, ids, targets);
}

}  // namespace tally
