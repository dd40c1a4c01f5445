// Any text: each named pre-tokenizer cuts it into pieces that cover it, it comes back from the ids of
// byte-level tokenizers, and merges learnt from it are in the vocabulary.
#include "core/error.h"
#include "data/bpe_train.h"
#include "data/pretokenizer.h"
#include "data/tokenizer_train.h"
#include "tests/fuzz/round_trip.h"

namespace {

using namespace tally;

constexpr const char* kPatterns[] = {"gpt2",  "cl100k",   "o200k",  "llama3",
                                     "qwen2", "nanochat", "smollm", "none"};

// Compiled once: that takes far longer than a text.
const Pretokenizer& pretokenizer(uint8_t which) {
  static const std::vector<Pretokenizer> all = [] {
    std::vector<Pretokenizer> list;
    for (const char* name : kPatterns) list.emplace_back(patterns_by_name(name));
    return list;
  }();
  return all[which % all.size()];
}

const Tokenizer& tokenizer(uint8_t which) {
  static const std::vector<Tokenizer> all = [] {
    std::vector<Tokenizer> list = {Tokenizer::bytes(true)};
    for (const char* pattern : kPatterns) {
      TokenizerTrainer trainer({.vocab_size = 400, .pattern = pattern});
      for (int i = 0; i < 3; ++i)
        trainer.add("the cat's hat is at the mat, 1234 \xE4\xB8\xAD\xE4\xB8\xAD  \n\n");
      list.push_back(trainer.train());
    }
    return list;
  }();
  return all[which % all.size()];
}

void learn(std::string_view text, uint8_t which) {
  PieceCounts pieces;
  size_t covered = 0;
  pretokenizer(which).split(text, [&](std::string_view piece) {
    fuzz::require(piece.data() == text.data() + covered, "a piece elsewhere");
    covered += piece.size();
    pieces.add(piece);
  });
  fuzz::require(covered == text.size(), "the pieces leave something out");
  const LearntBpe learnt = learn_bpe(pieces, 20, static_cast<TieRule>(which >> 6 & 1));
  fuzz::require(learnt.tokens.size() == 256 + learnt.merges.size(), "a merge without its token");
  for (const Merge& m : learnt.merges) {
    fuzz::require(m.left < m.result && m.right < m.result && m.result < learnt.tokens.size(),
                  "a merge of what does not exist yet");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] & 0x80)
      learn(text, data[0]);
    else
      fuzz::round_trip(tokenizer(data[0]), text);
  } catch (const Error&) {
  }
  return 0;
}
