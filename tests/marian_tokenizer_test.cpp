// Marian's pair of SentencePiece models and their vocabulary.
// data/tokenizer/marian: models that sentencepiece 0.2 learnt from verses in English and French, a
// vocab.json without every ninth of their pieces, and what transformers' MarianTokenizer makes of odd
// texts.
#include <catch2/catch.hpp>

#include "data/file.h"
#include "data/json.h"
#include "data/sentence_piece.h"
#include "data/tokenizer_io.h"
#include "data/translation_pairs.h"
#include "tests/data_helpers.h"

using namespace tally;
using Catch::Matchers::Contains;
using test::message_of;
using test::TemporaryFolder;
using test::tokenizer_data;
using Ids = std::vector<TokenId>;

namespace {

/// A copy of the folder with one file changed.
std::string refusal(const char* name, const std::string& content) {
  const TemporaryFolder folder;
  for (const char* file : {"source.spm", "target.spm", "vocab.json"})
    write_file_atomic(folder / file, read_file(tokenizer_data(std::string("marian/") + file)));
  write_file_atomic(folder / name, content);
  return message_of([&] { load_tokenizer(folder / "."); });
}

}  // namespace

TEST_CASE("marian: ids and texts are those of transformers") {
  const Tokenizer t = load_tokenizer(tokenizer_data("marian"));
  const Json cases = read_json(tokenizer_data("marian/cases.json"));
  REQUIRE(cases.size() == 24);
  const auto decoded = [&](const Json& ids) { return t.decode(ids.get<Ids>(), true); };
  for (const Json& c : cases) {
    const std::string text = c["text"];
    INFO(text);
    CHECK(t.wrap(t.encode(text, SpecialTokens::allowed)) == c["ids"].get<Ids>());
    CHECK(decoded(c["ids"]) == c["decoded"].get<std::string>());
    CHECK(decoded(c["target_ids"]) == c["target_decoded"].get<std::string>());
    if (text.find('<') != std::string::npos) continue;  // special tokens are text in a target
    CHECK(t.wrap(t.encode_target(text)) == c["target_ids"].get<Ids>());
  }
}

TEST_CASE("marian: what is saved is the same tokenizer") {
  const Tokenizer t = load_tokenizer(tokenizer_data("marian"));
  const TemporaryFolder folder;
  save_tokenizer(t, folder / ".");
  const Tokenizer again = load_tokenizer(folder / ".");
  CHECK(again.hash() == t.hash());
  CHECK(again.eot() == t.eot());
  CHECK(again.spec().suffix == t.spec().suffix);
  for (const Json& c : read_json(tokenizer_data("marian/cases.json"))) {
    const std::string text = c["text"];
    CHECK(again.encode(text) == t.encode(text));
    CHECK(again.encode_target(text) == t.encode_target(text));
  }
  CHECK(t.encode("In the") != t.encode_target("In the"));
  CHECK_THROWS_WITH(save_sentence_piece(t, folder / "x.model"),
                    Contains("two models and a vocabulary"));
}

TEST_CASE("marian: a pair is written with the model of its side") {
  const Tokenizer t = load_tokenizer(tokenizer_data("marian"));
  const TokenFile row = tokenize_pair("In the\tQue la", t, 16, "here");
  std::vector<int64_t> ids(static_cast<size_t>(pair_row(16)));
  row.read(0, ids);
  const TokenPair pair = pair_of(ids);
  Ids read = t.wrap(t.encode("In the")), written = t.wrap(t.encode_target("Que la"));
  CHECK(std::equal(pair.source.begin(), pair.source.end(), read.begin(), read.end()));
  CHECK(std::equal(pair.target.begin(), pair.target.end(), written.begin(), written.end()));
}

TEST_CASE("marian: what does not fit is refused by name", "[error]") {
  CHECK_THAT(refusal("vocab.json", "[]"), Contains("an object of pieces and their ids is needed"));
  CHECK_THAT(refusal("vocab.json", R"({"</s>": 0, "<unk>": 1})"),
             Contains("Marian's vocabulary needs <pad>"));
  CHECK_THAT(refusal("vocab.json", R"({"</s>": 0, "<unk>": 1, "<pad>": 3})"),
             Contains("every id must have a piece; 2 has none"));
  CHECK_THAT(refusal("vocab.json", R"({"</s>": 0, "<unk>": 0, "<pad>": 1})"),
             Contains("id 0 is used twice"));
  CHECK_THAT(refusal("vocab.json", R"({"</s>": "x"})"), Contains("an id must be a whole number"));
  CHECK_THAT(refusal("vocab.json", R"({"</s>": -1})"), Contains("ids must be from 0 to"));
  CHECK_THAT(refusal("source.spm", read_file(tokenizer_data("bpe_bytes_600.model"))),
             Contains("this is byte-pair encoding"));
  CHECK_THAT(refusal("target.spm", ""), Contains("must have pieces"));
  CHECK_THAT(refusal("tokenizer_config.json", R"({"separate_vocabs": true})"),
             Contains("separate_vocabs other than false is not supported"));
  SentencePieceSpec bpe;
  bpe.pieces = {{"<unk>", 0, PieceKind::unknown}};
  bpe.unigram = false;
  bpe.without_id = {{"a", -1, PieceKind::normal}};
  CHECK_THAT(message_of([&] { SentencePieces pieces(bpe); }), Contains("of unigram models"));
}
