// Any bytes as a SentencePiece model: refused with an Error, or any text can be encoded and decoded,
// and the ids are in the vocabulary.
#include <cstdlib>

#include "core/error.h"
#include "data/sentence_piece.h"
#include "data/tokenizer_io.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const tally::Tokenizer tokenizer(
        tally::detail::sentence_piece_tokens(tally::parse_sentence_piece(bytes, "fuzz")));
    for (const std::string_view text :
         {std::string_view("The cat's 1234 \xE4\xB8\xAD\xFF  \r\n"), bytes.substr(0, 200)}) {
      const auto ids = tokenizer.encode(text);
      for (const tally::TokenId id : ids) {
        if (id >= tokenizer.vocab_size()) std::abort();
      }
      tokenizer.decode(ids);
    }
  } catch (const tally::Error&) {
  }
  return 0;
}
