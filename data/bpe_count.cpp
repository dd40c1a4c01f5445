#include "data/bpe_count.h"

#include "core/error.h"
#include "data/bpe.h"

namespace tally {

void PieceCounts::add(std::string_view piece, uint64_t times) {
  if (entries_.size() * 2 >= slots_.size()) grow();
  const uint64_t hash = hash_bytes(piece);
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    Entry& e = entries_[slots_[slot] - 1];
    if (e.hash == hash && this->piece(e) == piece) {
      e.count += times;
      return;
    }
  }
  check(
      piece.size() < UINT32_MAX && entries_.size() + 1 < UINT32_MAX,
      "bpe: pieces must be shorter than 4 GiB and distinct ones fewer than 2^32; given a piece of ",
      piece.size(), " bytes; train on less text");
  entries_.push_back({hash, bytes_.size(), times, static_cast<uint32_t>(piece.size())});
  bytes_ += piece;
  slots_[slot] = static_cast<uint32_t>(entries_.size());
}

void PieceCounts::grow() {
  slots_.assign(slots_.empty() ? 1024 : slots_.size() * 2, 0);
  const size_t mask = slots_.size() - 1;
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    size_t slot = entries_[i].hash & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = i + 1;
  }
}

}  // namespace tally
