#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/text_data.h"

namespace tally {

/// A text and what is to be written for it.
struct TextPair {
  std::string_view source, target;
};
/// Calls `use(pair, held_out, where)` for each line "source, a tab, target" of the files in order;
/// blank lines are passed over. Every round(1 / val_fraction)-th pair is held out; `where` is
/// "file, line 7". Throws Error naming file and line: no tab or several, an empty side; for no
/// pairs, or too few to hold one out.
using UsePair = std::function<void(const TextPair& pair, bool held_out, const std::string& where)>;
void for_each_pair(const std::vector<std::string>& files, double val_fraction, const UsePair& use);

/// Their tokens in rows of one length, so that a Dataset of that context gives whole pairs, in
/// another order each epoch.
///
///   row    [tokens of the source, tokens of the target, source .. filler, target .. filler]
///   source as a prompt is encoded (Tokenizer::wrap)      target with the end of text behind it
///
/// Throws Error for a side of more than `length` tokens and a tokenizer without an end of text.
TokenSplits tokenize_pairs(const std::vector<std::string>& files, const Tokenizer& tokenizer,
                           int64_t length, double val_fraction = 0);

/// One such row, of the pair that `line` is; `where` it stands, for messages.
TokenFile tokenize_pair(std::string_view line, const Tokenizer& tokenizer, int64_t length,
                        const std::string& where);

/// Tokens of a row with `length` tokens a side.
constexpr int64_t pair_row(int64_t length) { return 2 + 2 * length; }

/// One pair of a row, without its filler.
struct TokenPair {
  std::span<const int64_t> source, target;
};
/// Throws Error for a row that tokenize_pairs did not write.
TokenPair pair_of(std::span<const int64_t> row);

}  // namespace tally
