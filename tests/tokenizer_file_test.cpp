// Reading and writing tokenizer.json, vocab.json + merges.txt and tiktoken files.
#include <catch2/catch.hpp>

#include "data/file.h"
#include "data/tokenizer_io.h"
#include "tests/data_helpers.h"

using namespace tally;
using Catch::Matchers::Contains;
using test::message_of;
using test::TemporaryFolder;
using test::tokenizer_data;
using Ids = std::vector<TokenId>;

namespace {

Ids ids_of(const std::string& path, const char* text) {
  return load_tokenizer(tokenizer_data("hostile/" + path)).encode(text, SpecialTokens::allowed);
}

/// The message on loading a tokenizer.json after `spoil` has changed it.
std::string refusal(const std::function<void(Json&)>& spoil) {
  const TemporaryFolder folder;
  Json json = read_json(tokenizer_data("gpt2_1000.tokenizer.json"));
  spoil(json);
  write_file_atomic(folder / "tokenizer.json", json.dump());
  return message_of([&] { load_tokenizer(folder.path()); });
}

}  // namespace

TEST_CASE("tokenizer files: every recorded odd file is taken or refused as expected") {
  const Json cases = read_json(tokenizer_data("hostile/index.json"));
  int seen = 0;
  for (const Json& c : cases) {
    if (!c["kind"].get<std::string>().starts_with("tokenizer")) continue;
    ++seen;
    const std::string path = tokenizer_data("hostile/" + c["path"].get<std::string>());
    const std::string message = message_of([&] { load_tokenizer(path); });
    INFO(c["id"] << ": " << message);
    CHECK((message == "accepted") == (c["expect"] == "accept"));
    if (c["expect"] == "reject") CHECK_THAT(message, Contains("hostile/"));
    for (const Json& word : c.value("must_name", Json::array())) {
      CHECK_THAT(message, Contains(word.get<std::string>()));
    }
  }
  CHECK(seen == 10);
}

TEST_CASE("tokenizer files: the odd files that are taken give the right ids") {
  CHECK(ids_of("tk_ok.tiktoken", "aathe") == Ids{256, 258});
  CHECK(ids_of("tk_ok.tiktoken", "aaa") == Ids{256, 'a'});
  CHECK(ids_of("vm_ok", "the") == Ids{257});
  CHECK(ids_of("tj_merges_as_pairs/tokenizer.json", "the") == Ids{257});
  CHECK(ids_of("tj_overlapping_specials", "a<e><e>b") == Ids{'a', 259, 'b'});
  CHECK(ids_of("tj_overlapping_specials", "a<e>b") == Ids{'a', 258, 'b'});
}

TEST_CASE("tokenizer.json: a template of a token that is no text reads back as the same",
          "[error]") {
  const TemporaryFolder folder;
  TokenizerSpec spec = load_tokenizer(tokenizer_data("gpt2_1000.tokenizer.json")).spec();
  const Tokenizer bytes(spec);
  spec.prefix = bytes.encode("\xAD", SpecialTokens::plain);
  const Tokenizer tokenizer(spec);
  save_tokenizer_json(tokenizer, folder / "tokenizer.json");
  const Tokenizer back = load_tokenizer(folder.path());
  CHECK(back.hash() == tokenizer.hash());
  CHECK(back.spec().prefix == spec.prefix);
}

TEST_CASE("tokenizer.json: what is written reads back as the same tokenizer") {
  const TemporaryFolder folder;
  for (const std::string name : {"gpt2_1000", "llama3_1200", "smollm_900"}) {
    const Tokenizer a = load_tokenizer(tokenizer_data(name + ".tokenizer.json"));
    save_tokenizer_json(a, folder / "tokenizer.json");
    const Tokenizer b = load_tokenizer(folder.path());
    CHECK(a.hash() == b.hash());
    CHECK(a.spec().patterns == b.spec().patterns);
    CHECK(a.spec().prefix == b.spec().prefix);
    CHECK(a.eot() == b.eot());
  }
  for (const char* name : {"cl100k", "o200k", "qwen2", "nanochat", "none"}) {
    TokenizerSpec spec = Tokenizer::bytes(true).spec();
    spec.patterns = patterns_by_name(name);
    spec.suffix = {256};
    save_tokenizer_json(Tokenizer(spec), folder / "tokenizer.json");
    const Tokenizer b = load_tokenizer(folder.path());
    CHECK(b.pattern_name() == name);
    CHECK(b.wrap({1}) == Ids{1, 256});
    CHECK(b.hash() == Tokenizer(spec).hash());
  }
}

TEST_CASE("vocab.json and merges.txt: written and read back, by folder or by either file") {
  const TemporaryFolder folder;
  const Tokenizer a = load_tokenizer(tokenizer_data("gpt2_1000.tokenizer.json"));
  save_vocab_merges(a, folder.path());
  for (const std::string& path : {folder.path(), folder / "vocab.json", folder / "merges.txt"}) {
    const Tokenizer b = load_tokenizer(path);
    CHECK(b.hash() == a.hash());
    CHECK(b.eot() == a.eot());
  }
  const Tokenizer llama = load_tokenizer(tokenizer_data("llama3_1200.tokenizer.json"));
  CHECK_THAT(message_of([&] { save_vocab_merges(llama, folder.path()); }),
             Contains("tokenizer.json instead"));
}

TEST_CASE("tiktoken files: written and read back; ids out of order are refused") {
  const TemporaryFolder folder;
  const Tokenizer a = load_tokenizer(tokenizer_data("hostile/tk_ok.tiktoken"));
  save_tiktoken(a, folder / "a.tiktoken");
  CHECK(read_file(folder / "a.tiktoken") == read_file(tokenizer_data("hostile/tk_ok.tiktoken")));
  CHECK(load_tokenizer(folder.path()).hash() == a.hash());
  TokenizerSpec spec = a.spec();
  std::swap(spec.merges[0], spec.merges[2]);
  CHECK_THAT(message_of([&] { save_tiktoken(Tokenizer(spec), folder / "b.tiktoken"); }),
             Contains("order of the merges"));
}

TEST_CASE("tiktoken files: where ranks are not BPE's, the bytes of any two parts decide") {
  const TemporaryFolder folder;
  std::string text = read_file(tokenizer_data("hostile/tk_ok.tiktoken"));
  text += "YWJj 259\n";  // abc, although no ab and no bc is there
  write_file_atomic(folder / "x.tiktoken", text);
  const Tokenizer t = load_tokenizer(folder / "x.tiktoken");
  CHECK(t.spec().whole_pieces_first);
  CHECK(t.encode("abc") == Ids{259});                  // a whole piece
  CHECK(t.encode("abcd") == Ids{'a', 'b', 'c', 'd'});  // merging cannot reach it
  CHECK(t.encode("theaa") == Ids{258, 256});
}

TEST_CASE("tiktoken files: the line of an error is named") {
  const TemporaryFolder folder;
  const auto load = [&](const std::string& text) {
    write_file_atomic(folder / "x.tiktoken", text);
    return message_of([&] { load_tokenizer(folder / "x.tiktoken"); });
  };
  CHECK_THAT(load("AA== 0\nAQ==\n"), Contains("line 2") && Contains("rank"));
  CHECK_THAT(load("AA== 0\nAQ== 1x\n"), Contains("line 2") && Contains("1x"));
  CHECK_THAT(load("AA== 99999999\n"), Contains("line 1") && Contains("99999999"));
  CHECK_THAT(load("AA== 0\nAA== 1\n"), Contains("same bytes"));
  CHECK_THAT(load("\n\n"), Contains("it has none"));
  CHECK_THAT(load("\x0A\x0E\x0A\x05<unk>"), Contains("SentencePiece"));
}

TEST_CASE("tokenizer.json: what is not byte-level BPE is refused by its name") {
  CHECK(refusal([](Json&) {}) == "accepted");
  CHECK_THAT(refusal([](Json& j) { j["model"]["type"] = "Unigram"; }), Contains("Unigram"));
  CHECK_THAT(refusal([](Json& j) { j["model"]["dropout"] = 0.1; }), Contains("dropout"));
  CHECK_THAT(refusal([](Json& j) { j["model"]["byte_fallback"] = true; }),
             Contains("byte_fallback"));
  CHECK_THAT(refusal([](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }),
             Contains("end_of_word_suffix"));
  CHECK_THAT(refusal([](Json& j) { j["normalizer"] = {{"type", "NFC"}}; }), Contains("NFC"));
  CHECK_THAT(refusal([](Json& j) {
               j["pre_tokenizer"] = {{"type", "Metaspace"}};
             }),
             Contains("Metaspace"));
  CHECK_THAT(refusal([](Json& j) { j["pre_tokenizer"]["add_prefix_space"] = true; }),
             Contains("add_prefix_space"));
  CHECK_THAT(refusal([](Json& j) { j["pre_tokenizer"] = nullptr; }), Contains("pre_tokenizer"));
  CHECK_THAT(refusal([](Json& j) {
               j["decoder"] = {{"type", "WordPiece"}};
             }),
             Contains("WordPiece"));
  CHECK_THAT(refusal([](Json& j) {
               j["post_processor"] = {{"type", "BertProcessing"}};
             }),
             Contains("BertProcessing"));
  CHECK_THAT(refusal([](Json& j) { j["added_tokens"][0]["lstrip"] = true; }), Contains("lstrip"));
}

TEST_CASE("tokenizer.json: ill-formed members are refused with their place") {
  CHECK_THAT(refusal([](Json& j) { j.erase("model"); }), Contains("model"));
  CHECK_THAT(refusal([](Json& j) { j["model"]["vocab"] = 3; }), Contains("model.vocab"));
  CHECK_THAT(refusal([](Json& j) { j["model"]["vocab"]["!"] = -1; }), Contains("-1"));
  CHECK_THAT(refusal([](Json& j) { j["model"]["vocab"]["!"] = 1e9; }), Contains("1000000000"));
  CHECK_THAT(refusal([](Json& j) { j["model"]["vocab"]["!"] = 7; }), Contains("id 7"));
  CHECK_THAT(refusal([](Json& j) { j["model"]["vocab"]["a b"] = 2000; }), Contains("a b"));
  CHECK_THAT(refusal([](Json& j) { j["model"]["merges"][4] = "x"; }), Contains("number 5"));
  CHECK_THAT(refusal([](Json& j) { j["model"]["merges"][4] = {"q", "q"}; }), Contains("number 5"));
  CHECK_THAT(refusal([](Json& j) { j["added_tokens"][0]["id"] = "0"; }), Contains("\"0\""));
  CHECK_THAT(refusal([](Json& j) { j = Json::array(); }), Contains("object"));
}

TEST_CASE("tokenizer.json: split patterns of other families are taken") {
  const TemporaryFolder folder;
  Json json = read_json(tokenizer_data("gpt2_1000.tokenizer.json"));
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const auto with = [&](Json split) {
    json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {std::move(split), bytes}}};
    write_file_atomic(folder / "tokenizer.json", json.dump());
    return load_tokenizer(folder.path()).spec().patterns;
  };
  const Json regex = {{"Regex", patterns_by_name("cl100k")[0]}};
  CHECK(with({{"type", "Split"}, {"pattern", regex}, {"behavior", "Removed"}, {"invert", true}}) ==
        patterns_by_name("cl100k"));
  CHECK(with({{"type", "Split"},
              {"pattern", {{"String", "a.b"}}},
              {"behavior", "Isolated"},
              {"invert", false}}) == std::vector<std::string>{"a\\.b"});
  CHECK_THAT(message_of([&] {
               with({{"type", "Split"}, {"pattern", regex}, {"behavior", "MergedWithNext"}});
             }),
             Contains("MergedWithNext"));
}

TEST_CASE("load_tokenizer: finds out what a path is, or says what it needs") {
  const TemporaryFolder folder;
  CHECK(load_tokenizer("bytes").vocab_size() == 257);
  CHECK_THAT(message_of([] { load_tokenizer("no-such-file"); }), Contains("no-such-file"));
  CHECK_THAT(message_of([&] { load_tokenizer(folder.path()); }), Contains("none of these"));
  write_file_atomic(folder / "vocab.json", "{\"a\": 0}");
  CHECK_THAT(message_of([&] { load_tokenizer(folder.path()); }), Contains("merges.txt"));
  write_file_atomic(folder / "merges.txt", "a\n");
  CHECK_THAT(message_of([&] { load_tokenizer(folder.path()); }), Contains("line 1"));
}

TEST_CASE("load_tokenizer: the end-of-text token is the one that tokenizer_config.json names") {
  const TemporaryFolder folder;
  save_tokenizer_json(load_tokenizer(tokenizer_data("smollm_900.tokenizer.json")),
                      folder / "tokenizer.json");
  CHECK(load_tokenizer(folder.path()).eot() == TokenId{0});
  write_file_atomic(folder / "tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
  CHECK(load_tokenizer(folder.path()).eot() == TokenId{2});
  write_file_atomic(folder / "tokenizer_config.json",
                    R"({"eos_token": {"content": "<|im_start|>"}})");
  CHECK(load_tokenizer(folder.path()).eot() == TokenId{1});
}
