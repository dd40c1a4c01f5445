// SentencePiece models, from .model files and from GGUF files.
#include <catch2/catch.hpp>

#include "data/bpe_alphabet.h"
#include "data/file.h"
#include "data/gguf.h"
#include "data/protobuf.h"
#include "data/sentence_piece.h"
#include "data/tokenizer_io.h"
#include "tests/data_helpers.h"
#include "tests/gguf_helpers.h"

using namespace tally;
using Catch::Matchers::Contains;
using test::GgufBytes;
using test::message_of;
using test::TemporaryFolder;
using test::tokenizer_data;
using Ids = std::vector<TokenId>;

namespace {

Tokenizer load_gguf_bytes(const std::string& bytes) {
  return parse_gguf_tokenizer(parse_gguf(std::as_bytes(std::span(bytes)), "x.gguf"), "x.gguf");
}

/// A model of a few pieces: 0 unknown, then those given.
SentencePieceSpec small_model(std::vector<SentencePiece> pieces, bool unigram) {
  SentencePieceSpec spec;
  spec.pieces = {{"<unk>", 0, PieceKind::unknown}};
  spec.pieces.insert(spec.pieces.end(), pieces.begin(), pieces.end());
  spec.unigram = unigram;
  spec.add_dummy_prefix = spec.remove_extra_whitespaces = false;
  return spec;
}

Ids encode(const SentencePieceSpec& spec, std::string_view text) {
  Ids ids;
  SentencePieces(spec).encode(text, ids);
  return ids;
}

std::string refusal(const std::function<void(SentencePieceSpec&)>& spoil) {
  SentencePieceSpec spec = small_model({{"a", -1}, {"b", -2}}, true);
  spoil(spec);
  return message_of([&] { SentencePieces pieces(spec); });
}

}  // namespace

TEST_CASE("sentencepiece: ids and texts are those that its library recorded") {
  for (const std::string name : {"unigram_kjv_2000", "bpe_bytes_600"}) {
    const Tokenizer t = load_tokenizer(tokenizer_data(name + ".model"));
    const Json file = read_json(tokenizer_data(name + ".cases.json"));
    REQUIRE(file["cases"].size() == 76);
    for (const Json& c : file["cases"]) {
      INFO(name << ", case " << c["name"]);
      CHECK(t.encode(c["text"].get<std::string>()) == c["ids"].get<Ids>());
      CHECK(t.decode_text(c["ids"].get<Ids>()) == c["decoded"].get<std::string>());
    }
  }
}

TEST_CASE("sentencepiece: ill-formed text reads as U+FFFD, with bytes it comes back so") {
  const Tokenizer t = load_tokenizer(tokenizer_data("bpe_bytes_600.model"));
  CHECK(t.decode(t.encode("a\xFF\xC3z")) == "a\xEF\xBF\xBD\xEF\xBF\xBDz");
  CHECK(t.decode(t.encode("\xE4\xB8\xAD")) == "\xE4\xB8\xAD");
}

TEST_CASE("sentencepiece: tokens that go on from a text keep their first blank") {
  const Tokenizer t = load_tokenizer(tokenizer_data("bpe_bytes_600.model"));
  StreamDecoder stream(t);
  std::string text;
  for (const TokenId id : t.encode("the lord")) text += stream.push(id);
  CHECK(text + stream.finish() == " the lord");
}

TEST_CASE("sentencepiece: control pieces come from no text but an allowed one") {
  const Tokenizer t = load_tokenizer(tokenizer_data("bpe_bytes_600.model"));
  CHECK(t.find_added("</s>") == TokenId{2});
  CHECK(t.eot() == TokenId{2});
  const Ids plain = t.encode("a</s>");
  CHECK(std::ranges::find(plain, TokenId{2}) == plain.end());
  CHECK(t.encode("a</s>", SpecialTokens::allowed).back() == 2);
  CHECK(t.decode(t.encode("a</s> b", SpecialTokens::allowed)) == "a</s> b");
}

TEST_CASE("sentencepiece: unigram takes the most probable pieces, user-defined ones first") {
  const std::vector<SentencePiece> pieces = {{"a", -1}, {"b", -2}, {"ab", -4}, {"abab", -5}};
  CHECK(encode(small_model(pieces, true), "ab") == Ids{1, 2});
  CHECK(encode(small_model(pieces, true), "abab") == Ids{4});
  auto with = pieces;
  with[2].kind = PieceKind::user_defined;
  CHECK(encode(small_model(with, true), "abab") == Ids{3, 3});
  with[2].kind = PieceKind::unused;
  CHECK(encode(small_model(with, true), "ab") == Ids{1, 2});
  CHECK(encode(small_model(pieces, true), "xyab") == Ids{0, 1, 2});  // one unknown for both
}

TEST_CASE("sentencepiece: BPE joins by score and takes unused pieces apart again") {
  std::vector<SentencePiece> pieces = {{"a", -9},  {"b", -9},  {"c", -9},
                                       {"ab", -2}, {"bc", -1}, {"abc", -3}};
  CHECK(encode(small_model(pieces, false), "abc") == Ids{6});
  CHECK(encode(small_model(pieces, false), "aab") == Ids{1, 4});
  pieces[5].kind = PieceKind::unused;
  CHECK(encode(small_model(pieces, false), "abc") == Ids{1, 5});
  pieces[4].kind = PieceKind::unused;
  CHECK(encode(small_model(pieces, false), "abc") == Ids{1, 2, 3});
  pieces[0].kind = PieceKind::user_defined;
  CHECK(encode(small_model(pieces, false), "ab") == Ids{1, 2});
}

TEST_CASE("sentencepiece: what is written reads back as the same tokenizer") {
  const TemporaryFolder folder;
  for (const std::string name : {"unigram_kjv_2000", "bpe_bytes_600"}) {
    const Tokenizer a = load_tokenizer(tokenizer_data(name + ".model"));
    save_tokenizer(a, folder.path());
    const Tokenizer b = load_tokenizer(folder.path());
    CHECK(a.hash() == b.hash());
    CHECK(a.eot() == b.eot());
    CHECK(b.wrap({5}) == Ids{5});
    TokenizerSpec spec = a.spec();
    spec.prefix = {1};
    save_tokenizer(Tokenizer(spec), folder.path());
    CHECK(load_tokenizer(folder.path()).wrap({5}) == Ids{1, 5});
    CHECK_THAT(message_of([&] { save_tokenizer_json(a, folder / "t.json"); }),
               Contains("tokenizer.model"));
  }
}

TEST_CASE("gguf: the tokenizer inside is the one that was put there") {
  for (const std::string name : {"unigram_kjv_2000", "bpe_bytes_600"}) {
    const Tokenizer a = load_tokenizer(tokenizer_data(name + ".model"));
    GgufBytes file;
    test::add_pieces(file, a.spec().pieces->spec());
    file.number("tokenizer.ggml.bos_token_id", 1).number("tokenizer.ggml.eos_token_id", 2);
    const Tokenizer b = load_gguf_bytes(file.bytes());
    CHECK(a.hash() == b.hash());
    CHECK(b.eot() == TokenId{2});
    // LLaMA's begins texts with a token of its own unless the file says otherwise.
    CHECK(b.wrap({7}) == (name == "bpe_bytes_600" ? Ids{1, 7} : Ids{7}));
  }
  for (const std::string name : {"gpt2_1000", "llama3_1200", "smollm_900"}) {
    const Tokenizer a = load_tokenizer(tokenizer_data(name + ".tokenizer.json"));
    std::vector<std::string> tokens, merges;
    std::vector<int32_t> kinds;
    for (size_t id = 0; id < a.spec().tokens.size(); ++id) {
      const std::string& bytes = a.spec().tokens[id];
      const bool added = a.find_added(bytes) == TokenId(id);
      tokens.push_back(added ? bytes : to_alphabet(bytes));
      kinds.push_back(!added ? 1 : a.is_special(int64_t(id)) ? 3 : 4);
    }
    for (const Merge& m : a.spec().merges)
      merges.push_back(to_alphabet(a.spec().tokens[m.left]) + " " +
                       to_alphabet(a.spec().tokens[m.right]));
    GgufBytes file;
    file.text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", tokens);
    file.texts("tokenizer.ggml.merges", merges).integers("tokenizer.ggml.token_type", kinds);
    file.text("tokenizer.ggml.pre", name == "gpt2_1000"     ? "gpt-2"
                                    : name == "llama3_1200" ? "llama-bpe"
                                                            : "smollm");
    CHECK(load_gguf_bytes(file.bytes()).hash() == a.hash());
  }
}

TEST_CASE("gguf: a tokenizer that cannot be read is refused by name") {
  const auto refused = [](const std::function<void(GgufBytes&)>& fill) {
    GgufBytes file;
    fill(file);
    return message_of([&] { load_gguf_bytes(file.bytes()); });
  };
  CHECK_THAT(refused([](GgufBytes&) {}), Contains("tokenizer.ggml.model is missing"));
  CHECK_THAT(refused([](GgufBytes& f) { f.text("tokenizer.ggml.model", "bert"); }),
             Contains("\"bert\" is not supported"));
  CHECK_THAT(refused([](GgufBytes& f) {
               f.text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", {"a", "b"});
               f.texts("tokenizer.ggml.merges", {});
             }),
             Contains("tokenizer.ggml.pre is missing"));
  CHECK_THAT(refused([](GgufBytes& f) {
               f.text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", {"a", "b"});
               f.texts("tokenizer.ggml.merges", {"a b"}).text("tokenizer.ggml.pre", "gpt-2");
             }),
             Contains("number 1") && Contains("not all there"));
  CHECK_THAT(refused([](GgufBytes& f) {
               f.text("tokenizer.ggml.model", "llama").texts("tokenizer.ggml.tokens", {"a", "b"});
               f.reals("tokenizer.ggml.scores", {1});
             }),
             Contains("a number for each of the 2 tokens"));
  CHECK_THAT(refused([](GgufBytes& f) {
               f.text("tokenizer.ggml.model", "llama").texts("tokenizer.ggml.tokens", {"a", "b"});
               f.integers("tokenizer.ggml.token_type", {1, 9});
             }),
             Contains("9 is no kind of token"));
}

TEST_CASE("sentencepiece: models that do not hold together are refused by name") {
  CHECK(refusal([](SentencePieceSpec&) {}) == "accepted");
  CHECK_THAT(refusal([](SentencePieceSpec& s) { s.pieces[0].kind = PieceKind::normal; }),
             Contains("one unknown piece; there is none"));
  CHECK_THAT(refusal([](SentencePieceSpec& s) { s.pieces[1].kind = PieceKind::unknown; }),
             Contains("ids 0 and 1"));
  CHECK_THAT(refusal([](SentencePieceSpec& s) { s.pieces[2].text = "a"; }),
             Contains("there twice"));
  CHECK_THAT(refusal([](SentencePieceSpec& s) { s.pieces[2].text = ""; }),
             Contains("id 2 has none"));
  CHECK_THAT(refusal([](SentencePieceSpec& s) { s.pieces[1].score = NAN; }), Contains("finite"));
  CHECK_THAT(refusal([](SentencePieceSpec& s) { s.byte_fallback = true; }),
             Contains("there are 0 byte pieces"));
  CHECK_THAT(refusal([](SentencePieceSpec& s) {
               s.pieces.push_back({"<0x0g>", 0, PieceKind::byte});
             }),
             Contains("<0x0g>"));
  CHECK_THAT(refusal([](SentencePieceSpec& s) { s.characters = "ab"; }), Contains("only 2 bytes"));
  CHECK_THAT(
      refusal([](SentencePieceSpec& s) { s.characters = std::string("\xF0\xFF\0\0abc", 7); }),
      Contains("said to have 65520 bytes"));
}

TEST_CASE("sentencepiece: every cut of a model file is refused or read, never more") {
  const std::string whole = read_file(tokenizer_data("bpe_bytes_600.model"));
  int refused = 0;
  for (size_t size = 0; size < whole.size(); size += 7) {
    const std::string part = whole.substr(0, size);
    const std::string message =
        message_of([&] { SentencePieces(parse_sentence_piece(part, "x.model")); });
    if (message != "accepted") ++refused;
  }
  CHECK(refused > 1000);  // all but a few that end between two fields, and those lack byte pieces
  CHECK_THAT(message_of([] { parse_sentence_piece("\x0A\x7F", "x.model"); }),
             Contains("127 bytes; only 0 are left"));
  CHECK_THAT(message_of([] { parse_sentence_piece("\x0B", "x.model"); }),
             Contains("unknown kind 3"));
  CHECK_THAT(message_of([] { parse_sentence_piece("", "x.model"); }), Contains("it has none"));
  ProtobufWriter trainer, model;
  trainer.number(3, 3);
  model.text(2, trainer.message());
  CHECK_THAT(message_of([&] { parse_sentence_piece(model.message(), "x.model"); }),
             Contains("type 3 is not supported"));
}
