#include "data/tokenizer_train.h"

#include <algorithm>

#include "core/error.h"
#include "data/file.h"
#include "data/tokenizer_io.h"
#include "data/utf8.h"

namespace tally {
namespace {

std::vector<AddedToken> special_tokens(const std::vector<std::string>& texts) {
  std::vector<AddedToken> tokens;
  for (const std::string& text : texts) {
    check(well_formed_prefix(text) == text.size(), "tokenizer: the special token '",
          replace_ill_formed(text), "' must be UTF-8, which tokenizer.json is written in");
    tokens.push_back({text, 0, true});
  }
  return tokens;
}

}  // namespace

TokenizerTrainer::TokenizerTrainer(TokenizerTrainOptions options)
    : options_(std::move(options)),
      pretokenizer_(patterns_by_name(options_.pattern)),
      matcher_(special_tokens(options_.special)) {
  const auto least = static_cast<int64_t>(256 + options_.special.size());
  check(options_.vocab_size >= least && options_.vocab_size <= detail::kMaxVocabulary,
        "tokenizer: the vocabulary must have room for 256 bytes and ", options_.special.size(),
        " special tokens, and at most ", detail::kMaxVocabulary, " ids; given ",
        options_.vocab_size, "; choose ", least, " or more");
}

void TokenizerTrainer::add(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const SpecialMatcher::Match m = matcher_.find(text, at, true);
    pretokenizer_.split(text.substr(at, m.begin - at),
                        [this](std::string_view piece) { counts_.add(piece); });
    at = m.end;
  }
}

Tokenizer TokenizerTrainer::train() const {
  check(!counts_.entries().empty(), "tokenizer: there must be text to learn from; there is none");
  const auto special = static_cast<int64_t>(options_.special.size());
  LearntBpe learnt = learn_bpe(counts_, options_.vocab_size - 256 - special, options_.tie);
  TokenizerSpec spec;
  spec.tokens = std::move(learnt.tokens);
  spec.merges = std::move(learnt.merges);
  spec.patterns = pretokenizer_.patterns();
  for (const std::string& text : options_.special) {
    spec.added.push_back({text, static_cast<TokenId>(spec.tokens.size()), true});
    spec.tokens.push_back(text);
  }
  spec.eot = detail::guess_eot(spec.added);
  return Tokenizer(std::move(spec));
}

Tokenizer train_tokenizer(const std::vector<std::string>& files,
                          const TokenizerTrainOptions& options) {
  return train_tokenizer(files, options, {.documents = DocumentRule::whole_file});
}

Tokenizer train_tokenizer(const std::vector<std::string>& files,
                          const TokenizerTrainOptions& options, const TextOptions& text) {
  TokenizerTrainer trainer(options);
  for_each_document(files, text, [&](std::string_view document, bool held_out) {
    if (!held_out) trainer.add(document);
  });
  return trainer.train();
}

TokenizerInfo describe(const Tokenizer& tokenizer) {
  const TokenizerSpec& spec = tokenizer.spec();
  TokenizerInfo info;
  info.vocab_size = tokenizer.vocab_size();
  info.merges = static_cast<int64_t>(spec.merges.size());
  info.pattern = tokenizer.pattern_name();
  info.hash = tokenizer.hash();
  info.added = spec.added;
  info.eot = spec.eot;
  std::vector<bool> has(256);
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    const std::string& t = spec.tokens[id];
    info.tokens += !t.empty();
    if (tokenizer.is_special(static_cast<int64_t>(id))) continue;
    info.longest_token = std::max(info.longest_token, static_cast<int64_t>(t.size()));
    if (t.size() == 1) has[static_cast<uint8_t>(t[0])] = true;
  }
  info.missing_bytes = std::count(has.begin(), has.end(), false);
  return info;
}

}  // namespace tally
