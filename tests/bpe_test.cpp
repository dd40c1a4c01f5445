// Patterns and training against recorded splits and merges (tests/data/tokenizer).
#include <catch2/catch.hpp>
#include <ctime>
#include <set>

#include "data/bpe_alphabet.h"
#include "data/file.h"
#include "data/pretokenizer.h"
#include "data/pretokenizer_patterns.h"
#include "data/tokenizer_train.h"
#include "data/utf8.h"
#include "tests/data_helpers.h"

using namespace tally;
using Catch::Matchers::Contains;
using test::message_of;
using test::tokenizer_data;

namespace {

std::vector<std::string> pieces(const Pretokenizer& pretokenizer, std::string_view text) {
  std::vector<std::string> out;
  pretokenizer.split(text, [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out += "0123456789abcdef"[static_cast<uint8_t>(c) >> 4];
    out += "0123456789abcdef"[static_cast<uint8_t>(c) & 15];
  }
  return out;
}

Tokenizer train_on(const std::string& text, TokenizerTrainOptions options) {
  TokenizerTrainer trainer(std::move(options));
  trainer.add(text);
  return trainer.train();
}

/// CPU seconds, which a busy machine does not stretch.
double seconds(const std::function<void()>& act) {
  const std::clock_t start = std::clock();
  act();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("pretokenizer: cuts text as the recorded splits of four patterns") {
  const Json file = read_json(tokenizer_data("pretok.json"));
  for (const auto& [name, pattern] : file["patterns"].items()) {
    REQUIRE(patterns_by_name(name) == std::vector<std::string>{pattern.get<std::string>()});
    const Pretokenizer pretokenizer(patterns_by_name(name));
    for (const Json& c : file["cases"]) {
      std::vector<size_t> ends;
      size_t at = 0;
      for (const std::string& p : pieces(pretokenizer, c["text"].get<std::string>())) {
        ends.push_back(at += p.size());
      }
      INFO(name << ", case " << c["name"]);
      CHECK(ends == c["ends"][name].get<std::vector<size_t>>());
    }
  }
}

TEST_CASE("pretokenizer: a list of patterns cuts the pieces of the one before") {
  const Pretokenizer digits_first(patterns_by_name("smollm"));
  CHECK(pieces(digits_first, "in 1999  x") ==
        std::vector<std::string>{"in", " ", "1", "9", "9", "9", " ", " x"});
  CHECK(patterns_by_name("gpt4") == patterns_by_name("cl100k"));
  CHECK(name_of_patterns(patterns_by_name("gpt4")) == "cl100k");
  CHECK(pieces(Pretokenizer({}), "a b") == std::vector<std::string>{"a b"});
  CHECK(pieces(Pretokenizer({"b"}), "abbc") == std::vector<std::string>{"a", "b", "b", "c"});
}

TEST_CASE("pretokenizer: white space is the Unicode property, without U+180E") {
  CHECK(rewrite_white_space(R"(\s[^\s]\S\\s)") ==
        R"([\p{Z}\x09-\x0d\x85][^\p{Z}\x09-\x0d\x85][^\p{Z}\x09-\x0d\x85]\\s)");
  const Pretokenizer gpt2(patterns_by_name("gpt2"));
  CHECK(pieces(gpt2, "a\xE1\xA0\x8E\xE1\xA0\x8E") ==
        std::vector<std::string>{"a", "\xE1\xA0\x8E\xE1\xA0\x8E"});
}

TEST_CASE("pretokenizer: runs of ill-formed bytes are pieces of their own") {
  const Pretokenizer gpt2(patterns_by_name("gpt2"));
  CHECK(pieces(gpt2, "ab\xFF\x80 c\xE4\xB8") ==
        std::vector<std::string>{"ab", "\xFF\x80", " c", "\xE4\xB8"});
}

TEST_CASE("pretokenizer: refuses patterns that mean something else to another engine") {
  const auto compile = [](const char* pattern) {
    return message_of([&] { Pretokenizer{{pattern}}; });
  };
  CHECK_THAT(compile("(a"), Contains("(a") && Contains("near character 2"));
  CHECK_THAT(compile(R"([^\S])"), Contains("\\S"));
  CHECK_THAT(compile("[a[b]]"), Contains("nested set"));
  CHECK_THAT(compile("[a&&b]"), Contains("intersection"));
  CHECK_THAT(message_of([] { patterns_by_name("gpt5"); }), Contains("cl100k") && Contains("gpt5"));
}

TEST_CASE("pretokenizer: a pattern that backtracks without end is an error, not a hang") {
  const Pretokenizer slow({R"((a+)+[bc])"});
  const std::string text(200, 'a');
  CHECK_THAT(message_of([&] { pieces(slow, text); }), Contains("backtracks less"));
}

TEST_CASE("pretokenizer: one long run takes linear time with every pattern", "[F42]") {
  for (const char* name : {"gpt2", "cl100k", "o200k", "llama3", "qwen2", "nanochat", "smollm"}) {
    const Pretokenizer pretokenizer(patterns_by_name(name));
    for (const std::string unit : {"a", " ", "\n", "A", "^", "7", "\xE4\xB8\xAD", "\xFF"}) {
      std::string text;
      while (text.size() < 300'000) text += unit;
      size_t bytes = 0;
      const double once = seconds([&] {
        pretokenizer.split(text, [&](std::string_view piece) { bytes += piece.size(); });
      });
      INFO(name << ", a run of " << hex(unit));
      CHECK(bytes == text.size());
      CHECK(once < 1.5);  // quadratic time would be minutes
    }
  }
}

TEST_CASE("byte alphabet: spells the 256 bytes with 256 printable characters and back") {
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  const std::string text = to_alphabet(all);
  CHECK(from_alphabet(text) == all);
  CHECK(std::set<uint16_t>(byte_alphabet().begin(), byte_alphabet().end()).size() == 256);
  CHECK(to_alphabet(" \n!") == "\xC4\xA0\xC4\x8A!");
  CHECK(from_alphabet(" ") == std::nullopt);
  CHECK(from_alphabet("\xE4\xB8\xAD") == std::nullopt);
  CHECK(from_alphabet("\xC4") == std::nullopt);
}

TEST_CASE("utf8: ill-formed parts become U+FFFD as recorded") {
  CHECK(replace_ill_formed("\xED\xA0\x80|\xF4\x90\x80\x80|\xC0\xAF|\xF0\x9F\x98") ==
        "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|"
        "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|"
        "\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD");
  CHECK(well_formed_prefix("abcdefgh\xC3\xA9\xF0\x9F\x98\x80\xE4\xB8\xADxyz\xE4\xB8") == 20);
  CHECK(is_unfinished("\xF0\x9F\x98"));
  CHECK_FALSE(is_unfinished("\xF0\x9F\x41"));
  CHECK_FALSE(is_unfinished("\xFF"));
}

TEST_CASE("bpe training: gives the recorded merges under all three tie rules") {
  for (const char* name : {"toy_290_gpt2", "tang300_512_gpt2", "shakespeare_150k_512_gpt2",
                           "shakespeare_150k_1000_llama3"}) {
    const Json file = read_json(tokenizer_data(std::string(name) + ".json"));
    const std::string text = read_file(tokenizer_data(file["text_file"]));
    for (const auto& [rule, expected] : file["rules"].items()) {
      const Tokenizer t = train_on(text, {.vocab_size = file["vocab_size"],
                                          .pattern = file["pattern_name"],
                                          .tie = tie_rule_by_name(rule),
                                          .special = file["special_tokens"]});
      Json merges = Json::array();
      for (const Merge& m : t.spec().merges) {
        merges.push_back({hex(t.token_bytes(m.left)), hex(t.token_bytes(m.right))});
      }
      INFO(name << ", " << rule);
      CHECK(merges == expected["merges_hex"]);
      if (rule != "bytes-greater") continue;
      for (const Json& c : file["encode_with_bytes_greater"]["cases"]) {
        const std::string words = c["text"];
        CHECK(t.encode(words, SpecialTokens::allowed) == c["ids"].get<std::vector<TokenId>>());
      }
    }
  }
}

TEST_CASE("bpe training: a pair that overlaps itself counts everywhere and merges from the left") {
  const Tokenizer t = train_on("aaaaa", {.vocab_size = 260, .pattern = "none", .special = {}});
  REQUIRE(t.spec().merges.size() == 3);  // aa, then aaaa, then aaaaa
  CHECK(t.spec().merges[0] == Merge{'a', 'a', 256});
  CHECK(t.spec().merges[1] == Merge{256, 256, 257});
  CHECK(t.encode("aaa") == std::vector<TokenId>{256, 'a'});
}

TEST_CASE("bpe training: stops when no pair is left, and special tokens are not learnt from") {
  const Tokenizer t = train_on("ab<|endoftext|>ab", {.vocab_size = 1000});
  CHECK(t.vocab_size() == 258);
  CHECK(t.eot() == TokenId{257});
  CHECK(t.encode("ab<|endoftext|>", SpecialTokens::allowed) == std::vector<TokenId>{256, 257});
}

TEST_CASE("bpe training: the order and number of added texts does not change equal counts") {
  TokenizerTrainer one({.vocab_size = 300}), two({.vocab_size = 300});
  for (const char* text : {"the cat sat", "on the mat"}) one.add(text);
  for (const char* text : {"on the mat", "the cat sat"}) two.add(text);
  CHECK(one.train().hash() == two.train().hash());
}

TEST_CASE("bpe training: refuses what it cannot learn from, by name") {
  const auto refusal = [](TokenizerTrainOptions options, std::string_view text) {
    return message_of([&] { train_on(std::string(text), options); });
  };
  CHECK_THAT(refusal({.vocab_size = 256}, "a"), Contains("256") && Contains("choose 257"));
  CHECK_THAT(refusal({.vocab_size = 300}, ""), Contains("text"));
  CHECK_THAT(refusal({.vocab_size = 300, .special = {"<a>", "<a>"}}, "a"), Contains("<a>"));
  CHECK_THAT(refusal({.vocab_size = 300, .special = {""}}, "a"), Contains("empty"));
  CHECK_THAT(message_of([] { tie_rule_by_name("first"); }), Contains("bytes-greater"));
}

TEST_CASE("bpe training: one word of 100 kB is learnt in time near its length", "[F42]") {
  std::string text;
  uint32_t state = 1;
  for (int i = 0; i < 100'000; ++i) {
    state = state * 1664525 + 1013904223;
    text += static_cast<char>('a' + (state >> 24) % 26);
  }
  int64_t size = 0;
  const double took = seconds([&] { size = train_on(text, {.vocab_size = 1500}).vocab_size(); });
  CHECK(size == 1500);
  CHECK(took < 5);  // rewriting the word at each of 1243 merges would be minutes in this build
}
