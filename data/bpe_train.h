#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/bpe.h"
#include "data/bpe_count.h"

namespace tally {

/// Which of several pairs with the same count is merged first.
enum class TieRule : uint8_t {
  bytes_greater,  ///< the greatest (left bytes, right bytes), the left ones first: Stanford CS336
  id_smaller,     ///< the smallest (left id, right id): rustbpe, nanochat
  hf,             ///< id_smaller with the 256 bytes in the order of their alphabet's code points
};

/// The rule called "bytes-greater", "id-smaller" or "hf"; throws Error for another name.
TieRule tie_rule_by_name(const std::string& name);

struct LearntBpe {
  std::vector<std::string> tokens;  ///< 256 bytes in their order, then one token a merge
  std::vector<Merge> merges;        ///< ids as in `tokens`
};

/// Learns byte-pair merges: again and again the most frequent pair of neighbours within a piece
/// becomes a token. A pair that overlaps itself (aaa) counts at every place and is merged from the
/// left. Stops early when no pair is left. Sennrich et al. 2016, arXiv:1508.07909.
///
/// Cost: about O(bytes of distinct pieces) for all merges together, since only the places of the
/// merged pair are visited; some 25 bytes of memory for each byte of distinct pieces.
LearntBpe learn_bpe(const PieceCounts& pieces, int64_t merges, TieRule rule);

}  // namespace tally
