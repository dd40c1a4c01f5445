// Any bytes as a tokenizer file, and any text through one that loads: errors are Error, and what is
// encoded decodes to the same bytes.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "data/file.h"
#include "data/text_data.h"
#include "data/tokenizer_io.h"
#include "data/tokenizer_train.h"

using namespace tally;

namespace {

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "tokenizer_fuzz: %s\n", what);
  std::abort();
}

void round_trip(const Tokenizer& tokenizer, std::string_view text) {
  for (const SpecialTokens special : {SpecialTokens::plain, SpecialTokens::allowed}) {
    try {
      require(tokenizer.decode(tokenizer.encode(text, special)) == text, "other bytes came back");
    } catch (const Error&) {  // a byte without a token, a pattern over its limits
    }
  }
}

void load_file(std::string_view bytes, const char* name) {
  const std::string path = "/tmp/tally_tokenizer_fuzz" + std::string(name);
  write_file_atomic(path, bytes);
  try {
    const Tokenizer tokenizer = load_tokenizer(path);
    round_trip(tokenizer, "The cat's 1234 \xE4\xB8\xAD\xFF  \r\n <|endoftext|>x");
    save_tokenizer_json(tokenizer, path + ".saved.json");
    require(load_tokenizer(path + ".saved.json").hash() == tokenizer.hash(), "saved otherwise");
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      load_file(rest, ".json");
      break;
    case 1:
      load_file(rest, ".tiktoken");
      break;
    case 2: {
      const std::string path = "/tmp/tally_tokenizer_fuzz.npy";
      write_file_atomic(path, rest);
      try {
        inspect_token_file(path, {}, 1);
      } catch (const Error&) {
      }
      break;
    }
    default: {
      TokenizerTrainer trainer({.vocab_size = 300, .pattern = "cl100k"});
      trainer.add(rest);
      round_trip(trainer.train(), rest);
      round_trip(Tokenizer::bytes(true), rest);
    }
  }
  return 0;
}
