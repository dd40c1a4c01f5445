// Encoding and decoding against recorded ids (tests/data/tokenizer).
#include <catch2/catch.hpp>
#include <ctime>

#include "data/tokenizer.h"
#include "data/tokenizer_io.h"
#include "data/tokenizer_train.h"
#include "tests/data_helpers.h"

using namespace tally;
using Catch::Matchers::Contains;
using test::message_of;
using test::random_letters;
using test::repeated;
using test::tokenizer_data;
using Ids = std::vector<TokenId>;

namespace {

/// The bytes and two special tokens, the shorter one the start of the longer.
Tokenizer overlapping() {
  TokenizerSpec spec = Tokenizer::bytes(true).spec();
  spec.tokens.emplace_back("<|endoftext|><|endoftext|>");
  spec.added.push_back({spec.tokens.back(), 257, true});
  return Tokenizer(spec);
}

}  // namespace

TEST_CASE("tokenizer: encodes and decodes as recorded for three tokenizer.json files") {
  for (const std::string name : {"gpt2_1000", "llama3_1200", "smollm_900"}) {
    const Tokenizer t = load_tokenizer(tokenizer_data(name + ".tokenizer.json"));
    const Json file = read_json(tokenizer_data(name + ".cases.json"));
    REQUIRE(file["cases"].size() == 112);
    for (const Json& c : file["cases"]) {
      const std::string text = c["text"];
      INFO(name << ", case " << c["name"]);
      const Ids ids = t.encode(text, SpecialTokens::allowed);
      CHECK(ids == c["ids"].get<Ids>());
      CHECK(t.wrap(ids) == c["ids_with_post_processor"].get<Ids>());
      CHECK(t.decode(ids) == c["decoded_keep_special"].get<std::string>());
    }
  }
}

TEST_CASE("tokenizer: any bytes come back exactly, and as text with U+FFFD as recorded") {
  const Tokenizer learnt = load_tokenizer(tokenizer_data("smollm_900.tokenizer.json"));
  const Tokenizer bytes = Tokenizer::bytes();
  const Json cases = read_json(tokenizer_data("ill_formed.json"));
  REQUIRE(cases.size() == 8);
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  CHECK(learnt.decode(learnt.encode(all)) == all);
  CHECK(bytes.decode_text(bytes.encode(all)) == cases.back()["decode_replace"].get<std::string>());
  const std::string latin1 = "caf\xE9 na\xEFve", mixed = "\xFF\xFEhello\x80";
  for (const Tokenizer* t : {&learnt, &bytes}) {
    CHECK(t->decode(t->encode(latin1)) == latin1);
    CHECK(t->decode_text(t->encode(latin1)) == "caf\xEF\xBF\xBD na\xEF\xBF\xBDve");
    CHECK(t->decode(t->encode(mixed)) == mixed);
  }
}

TEST_CASE("tokenizer: characters spread over tokens survive, and bytes are counted", "[F41]") {
  const Tokenizer t = Tokenizer::bytes();
  const std::string text = "\xC3\xA9\xF0\x9F\x98\x80\xE4\xB8\xAD";
  CHECK(t.vocab_size() == 256);
  CHECK(t.encode(text) == Ids{0xC3, 0xA9, 0xF0, 0x9F, 0x98, 0x80, 0xE4, 0xB8, 0xAD});
  CHECK(t.decode_text(t.encode(text)) == text);
  CHECK(t.decode_text(Ids{0xFF, 0x41, 0xE4, 0xB8}) ==
        "\xEF\xBF\xBD"
        "A\xEF\xBF\xBD");
  CHECK(t.token_byte_length(128) == 1);
}

TEST_CASE("stream decoder: holds incomplete characters back", "[F41]") {
  const Tokenizer t = Tokenizer::bytes(true);
  StreamDecoder stream(t);
  std::vector<std::string> out;
  for (const int id : {0x61, 0xF0, 0x9F, 0x98, 0x80, 0xE4, 0x62, 256, 0xC3}) {
    out.push_back(stream.push(id));
  }
  CHECK(out == std::vector<std::string>{"a", "", "", "", "\xF0\x9F\x98\x80", "",
                                        "\xEF\xBF\xBD"
                                        "b",
                                        "", ""});
  CHECK(stream.finish() == "\xEF\xBF\xBD");
  CHECK(stream.finish().empty());
}

TEST_CASE("tokenizer: special tokens in text are plain, tokens or refused, as asked", "[F43]") {
  const Tokenizer t = overlapping();
  const std::string longer = "<|endoftext|><|endoftext|>", text = "a" + longer + "b";
  CHECK(t.encode(text, SpecialTokens::allowed) == Ids{'a', 257, 'b'});
  CHECK(t.encode("<|endoftext|>b", SpecialTokens::allowed) == Ids{256, 'b'});
  CHECK(t.encode(text + longer.substr(0, 20), SpecialTokens::allowed).size() == 4 + 7);
  CHECK(t.encode(text).size() == text.size());  // the default: bytes
  CHECK(t.encode(text) == t.encode(text, SpecialTokens::plain));
  CHECK_THAT(message_of([&] { t.encode(text, SpecialTokens::refuse); }),
             Contains(longer) && Contains("at byte 1"));
  CHECK(t.encode("a < b", SpecialTokens::refuse).size() == 5);
}

TEST_CASE("tokenizer: text that spells a special token never becomes it, even with whole pieces") {
  TokenizerSpec spec = overlapping().spec();
  spec.whole_pieces_first = true;
  const Tokenizer t(spec);
  CHECK(t.encode("<|endoftext|>").size() == 13);
}

TEST_CASE("tokenizer: added tokens that are not special are found in any text") {
  TokenizerSpec spec = overlapping().spec();
  spec.tokens.emplace_back("    ");
  spec.added.push_back({"    ", 258, false});
  const Tokenizer t(spec);
  CHECK(t.encode("a     b") == Ids{'a', 258, ' ', 'b'});
  CHECK(t.encode("    ", SpecialTokens::refuse) == Ids{258});
  CHECK(t.token_byte_length(258) == 4);
}

TEST_CASE("tokenizer: special tokens are no text: no bytes, and left out when asked") {
  const Tokenizer t = Tokenizer::bytes(true);
  const Ids ids{'h', 'i', 256};
  CHECK(t.decode(ids) == "hi<|endoftext|>");
  CHECK(t.decode(ids, true) == "hi");
  CHECK(t.token_byte_length(256) == 0);
  CHECK(t.byte_lengths()[256] == 0);
  CHECK(t.byte_lengths()['h'] == 1);
  CHECK(t.eot() == TokenId{256});
  CHECK(t.find_added("<|endoftext|>") == TokenId{256});
  CHECK_FALSE(t.find_added("h").has_value());
  CHECK(Tokenizer::bytes().eot() == std::nullopt);
}

TEST_CASE("tokenizer: ids out of the vocabulary are refused with their place") {
  const Tokenizer t = Tokenizer::bytes();
  CHECK_THAT(message_of([&] { t.decode(Ids{'a', 256}); }), Contains("256") && Contains("place 1"));
  CHECK_THAT(message_of([&] { t.decode(std::vector<int64_t>{-1}); }), Contains("-1"));
  CHECK_THAT(message_of([&] { t.token_bytes(256); }), Contains("256"));
  TokenizerSpec gap = t.spec();
  gap.tokens.resize(258);
  gap.tokens[257] = "ab";
  CHECK_THAT(message_of([&] { Tokenizer(gap).decode(Ids{256}); }), Contains("gap"));
}

TEST_CASE("tokenizer: a byte without a token is an error where the text holds it") {
  TokenizerSpec spec = Tokenizer::bytes().spec();
  spec.tokens['x'].clear();
  const Tokenizer t(spec);
  CHECK(t.encode("abc").size() == 3);
  CHECK_THAT(message_of([&] { t.encode("axe"); }), Contains("120"));
  CHECK(describe(t).missing_bytes == 1);
}

TEST_CASE("tokenizer: very long words take time near their length", "[F42]") {
  const Tokenizer t = load_tokenizer(tokenizer_data("gpt2_1000.tokenizer.json"));
  for (const std::string& text : {repeated("a", 100'000), repeated("^", 1'000'000),
                                  random_letters(1'000'000), repeated(" ", 1'000'000)}) {
    const std::clock_t start = std::clock();  // CPU time: a busy machine does not stretch it
    const Ids ids = t.encode(text);
    CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 5);
    CHECK(t.decode(ids) == text);
  }
}

TEST_CASE("tokenizer: long and short pieces merge by the same rules", "[F42]") {
  const Tokenizer t = load_tokenizer(tokenizer_data("gpt2_1000.tokenizer.json"));
  TokenizerSpec spec = t.spec();
  spec.patterns.clear();  // one piece, so that its length decides how it is merged
  const Tokenizer whole(spec);
  const std::string word = random_letters(40);
  const Ids alone = t.encode(word);
  // A blank begins no merge's right side with these letters before it: the ids of the words of a
  // long piece are those of the words.
  Ids expected;
  std::string text;
  for (int i = 0; i < 50; ++i) {
    text += "\n\n" + word;
    const Ids part = whole.encode("\n\n" + word);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  CHECK(alone.size() > 10);
  CHECK(whole.encode(text) == expected);
}

TEST_CASE("encoder: remembering pieces changes no id") {
  const Tokenizer t = load_tokenizer(tokenizer_data("llama3_1200.tokenizer.json"));
  Encoder encoder(t);
  const std::string filler = random_letters(3000) + repeated(" of the people, by the people", 200);
  Ids together, apart;
  for (int i = 0; i < 3; ++i) {
    for (const std::string& text : {filler, random_letters(50), std::string("\n\n The people  ")}) {
      encoder.append(text, SpecialTokens::plain, together);
    }
  }
  Encoder fresh(t);
  for (int i = 0; i < 3; ++i) {
    for (const std::string& text : {filler, random_letters(50), std::string("\n\n The people  ")}) {
      const Ids ids = t.encode(text);
      apart.insert(apart.end(), ids.begin(), ids.end());
    }
  }
  CHECK(together == apart);
}

TEST_CASE("tokenizer: the hash tells tokenizers apart, whatever file they came from") {
  const Tokenizer a = load_tokenizer(tokenizer_data("gpt2_1000.tokenizer.json"));
  const Tokenizer b = load_tokenizer(tokenizer_data("smollm_900.tokenizer.json"));
  CHECK(a.hash().size() == 16);
  CHECK(a.hash() != b.hash());
  CHECK(Tokenizer::bytes().hash() == "39d4fd634ad60baa");  // stable from version to version
  CHECK(Tokenizer::bytes(true).hash() != Tokenizer::bytes(false).hash());
  TokenizerSpec spec = a.spec();
  std::swap(spec.merges[0], spec.merges[1]);
  CHECK(Tokenizer(spec).hash() != a.hash());
}

TEST_CASE("tokenizer: parts that do not fit together are refused") {
  const TokenizerSpec good = load_tokenizer(tokenizer_data("gpt2_1000.tokenizer.json")).spec();
  const auto refusal = [&](const std::function<void(TokenizerSpec&)>& spoil) {
    return message_of([&] {
      TokenizerSpec spec = good;
      spoil(spec);
      Tokenizer{spec};
    });
  };
  CHECK(refusal([](TokenizerSpec&) {}) == "accepted");
  CHECK_THAT(refusal([](TokenizerSpec& s) { s.tokens.clear(); }), Contains("empty"));
  CHECK_THAT(refusal([](TokenizerSpec& s) { s.merges[0].left = 5000; }), Contains("5000"));
  CHECK_THAT(refusal([](TokenizerSpec& s) { s.merges[3].result = 1; }), Contains("merge 4"));
  CHECK_THAT(refusal([](TokenizerSpec& s) { s.merges.push_back(s.merges[0]); }),
             Contains("a second time"));
  CHECK_THAT(refusal([](TokenizerSpec& s) { s.added[0].text = "<x>"; }), Contains("<x>"));
  CHECK_THAT(refusal([](TokenizerSpec& s) { s.prefix = {70000}; }), Contains("begin token"));
  CHECK_THAT(refusal([](TokenizerSpec& s) { s.eot = 70000; }), Contains("end-of-text"));
}
