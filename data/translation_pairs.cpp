#include "data/translation_pairs.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "data/file.h"

namespace tally {
namespace {

/// Rows of one side of the split.
struct PairRows {
  std::vector<TokenId> ids;
  TokenMeta meta;
};

std::string joined_names(const std::vector<std::string>& files) {
  return files.size() == 1 ? files[0]
                           : files[0] + " and " + std::to_string(files.size() - 1) + " more";
}

TextPair parse_pair(std::string_view line, const std::string& where) {
  const size_t tab = line.find('\t');
  check(tab != std::string_view::npos && line.find('\t', tab + 1) == std::string_view::npos, where,
        ": a pair must be a text, one tab and a text; the line has ",
        std::ranges::count(line, '\t'), " tabs");
  const TextPair pair{line.substr(0, tab), line.substr(tab + 1)};
  check(!pair.source.empty() && !pair.target.empty(), where,
        ": both texts of a pair must have characters; ",
        pair.source.empty() ? "the first" : "the second", " has none");
  return pair;
}

void append_pair(const TextPair& pair, const Tokenizer& tokenizer, int64_t length,
                 const std::string& where, PairRows& rows) {
  const TokenId eot = *tokenizer.eot();
  std::vector<TokenId> read = tokenizer.wrap(tokenizer.encode(pair.source)),
                       written = tokenizer.encode(pair.target);
  written.push_back(eot);
  for (const auto* side : {&read, &written})
    check(static_cast<int64_t>(side->size()) <= length, where, ": ",
          side == &read ? "the text has " : "what is to be written has ", side->size(),
          " tokens; at most ", length, " are room for; raise train.seq, or leave the line out");
  ++rows.meta.documents;
  rows.meta.source_bytes += static_cast<int64_t>(pair.source.size() + pair.target.size());
  rows.ids.push_back(static_cast<TokenId>(read.size()));
  rows.ids.push_back(static_cast<TokenId>(written.size()));
  for (auto* side : {&read, &written}) {
    side->resize(static_cast<size_t>(length), eot);
    rows.ids.insert(rows.ids.end(), side->begin(), side->end());
  }
}

}  // namespace

void for_each_pair(const std::vector<std::string>& files, double val_fraction, const UsePair& use) {
  check(!files.empty(), "pairs: there must be at least one text file; none was given");
  check(val_fraction >= 0 && val_fraction <= 0.5,
        "pairs: the held-out fraction must be from 0 to 0.5; given ", val_fraction);
  const int64_t every = val_fraction > 0 ? std::llround(1 / val_fraction) : 0;
  int64_t pairs = 0;
  for (const std::string& path : files) {
    const std::string text = read_file(path);
    int64_t number = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = std::string_view(text).substr(at, end - at);
      at = end + 1;
      ++number;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty()) continue;
      const std::string where = path + ", line " + std::to_string(number);
      ++pairs;
      use(parse_pair(line, where), every > 0 && pairs % every == 0, where);
    }
  }
  const std::string name = joined_names(files);
  check(pairs > 0, name, ": there must be lines of a text, a tab and a text; there are none");
  check(pairs >= every, name, ": holding out every ", every, "-th pair needs more of them; there ",
        "are ", pairs, "; hold out another fraction, or nothing (--val-fraction 0)");
}

namespace {

PairRows no_rows(const Tokenizer& tokenizer) {
  check(tokenizer.eot().has_value(),
        "pairs: a tokenizer must have an end of text, with which a target ends; choose one that "
        "has, or let train learn one (leave --tokenizer away)");
  PairRows rows;
  rows.meta.eot = tokenizer.eot(), rows.meta.tokenizer_hash = tokenizer.hash();
  return rows;
}

// One number more than the rows, as a Dataset has a target behind its last input. Lengths are no
// ids: the vocabulary is not said.
TokenFile finished(PairRows& rows, const std::string& name) {
  rows.ids.push_back(*rows.meta.eot);
  return TokenFile::from_ids(rows.ids, rows.meta, name);
}

}  // namespace

TokenFile tokenize_pair(std::string_view line, const Tokenizer& tokenizer, int64_t length,
                        const std::string& where) {
  PairRows rows = no_rows(tokenizer);
  append_pair(parse_pair(line, where), tokenizer, length, where, rows);
  return finished(rows, where);
}

TokenSplits tokenize_pairs(const std::vector<std::string>& files, const Tokenizer& tokenizer,
                           int64_t length, double val_fraction) {
  PairRows train = no_rows(tokenizer), held_out = train;
  for_each_pair(files, val_fraction,
                [&](const TextPair& pair, bool is_held_out, const std::string& where) {
                  append_pair(pair, tokenizer, length, where, is_held_out ? held_out : train);
                });
  const std::string name = joined_names(files);
  TokenSplits splits{finished(train, name), std::nullopt};
  if (!held_out.ids.empty()) splits.val = finished(held_out, name + " (held out)");
  return splits;
}

TokenPair pair_of(std::span<const int64_t> row) {
  const int64_t room = (static_cast<int64_t>(row.size()) - 2) / 2;
  check(room >= 1 && row[0] >= 1 && row[0] <= room && row[1] >= 1 && row[1] <= room,
        "pairs: a row must begin with the lengths of its two texts");
  const auto length = static_cast<size_t>(room);
  return {row.subspan(2, static_cast<size_t>(row[0])),
          row.subspan(2 + length, static_cast<size_t>(row[1]))};
}

}  // namespace tally
