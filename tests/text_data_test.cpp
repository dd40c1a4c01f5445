// From text files to tokens: documents, what is held out, folders of data.
#include <catch2/catch.hpp>

#include "data/file.h"
#include "data/text_data.h"
#include "data/tokenizer_io.h"
#include "data/tokenizer_train.h"
#include "tests/data_helpers.h"

using namespace tally;
using Catch::Matchers::Contains;
using test::message_of;
using test::TemporaryFolder;

namespace {

std::string king_james() {
  return std::string(TALLY_TEST_DATA) + "/../../data/corpus/king_james.txt";
}

using Documents = std::vector<std::pair<std::string, bool>>;

Documents documents(const std::vector<std::string>& files, const TextOptions& options) {
  Documents out;
  for_each_document(files, options, [&](std::string_view document, bool held_out) {
    out.emplace_back(document, held_out);
  });
  return out;
}

std::string text_of(const TokenFile& file, const Tokenizer& tokenizer) {
  std::vector<int64_t> ids(static_cast<size_t>(file.size()));
  file.read(0, ids);
  return tokenizer.decode(ids);
}

}  // namespace

TEST_CASE("documents: empty lines part them, whatever the line ends and however many") {
  const TemporaryFolder folder;
  write_file_atomic(folder / "a.txt", "\n\none\ntwo\n\n\nthree\r\n\r\nfour");
  CHECK(documents({folder / "a.txt"}, {}) ==
        Documents{{"one\ntwo\n", false}, {"three\r\n", false}, {"four", false}});
  CHECK(documents({folder / "a.txt"}, {.documents = DocumentRule::whole_file}).size() == 1);
  write_file_atomic(folder / "b.txt", std::string("\xFF\x00\n\nx", 5));
  CHECK(documents({folder / "b.txt"}, {}) ==
        Documents{{std::string("\xFF\x00\n", 3), false}, {"x", false}});
}

TEST_CASE("documents: every n-th is held out, counted through all files") {
  const TemporaryFolder folder;
  write_file_atomic(folder / "a.txt", "1\n\n2\n\n3\n");
  write_file_atomic(folder / "b.txt", "4\n\n5\n");
  CHECK(documents({folder / "a.txt", folder / "b.txt"}, {.val_fraction = 0.5}) ==
        Documents{{"1\n", false}, {"2\n", true}, {"3\n", false}, {"4\n", true}, {"5\n", false}});
}

TEST_CASE("documents: a tail is held out between two characters") {
  const TemporaryFolder folder;
  write_file_atomic(folder / "a.txt",
                    "abcd\xE4\xB8\xAD"
                    "efg");
  const TextOptions tail{
      .documents = DocumentRule::whole_file, .split = SplitRule::tail, .val_fraction = 0.4};
  CHECK(documents({folder / "a.txt"}, tail) == Documents{{"abcd", false},
                                                         {"\xE4\xB8\xAD"
                                                          "efg",
                                                          true}});
}

TEST_CASE("documents: unusable files and fractions are refused with what to do") {
  const TemporaryFolder folder;
  const auto refusal = [](const std::vector<std::string>& files, const TextOptions& options = {}) {
    return message_of([&] { documents(files, options); });
  };
  write_file_atomic(folder / "empty.txt", "");
  write_file_atomic(folder / "lines.txt", "\n\n\n");
  write_file_atomic(folder / "one.txt", "one document\n");
  CHECK_THAT(refusal({}), Contains("at least one"));
  CHECK_THAT(refusal({folder / "none.txt"}), Contains("none.txt"));
  CHECK_THAT(refusal({folder / "empty.txt"}), Contains("empty.txt") && Contains("it is empty"));
  CHECK_THAT(refusal({folder / "lines.txt"}), Contains("not empty"));
  CHECK_THAT(refusal({folder / "one.txt"}, {.val_fraction = 0.1}), Contains("--val-fraction 0"));
  CHECK_THAT(refusal({folder / "one.txt"}, {.val_fraction = 0.6}), Contains("0.6"));
  CHECK_THAT(refusal({folder / "one.txt"}, {.val_fraction = -1}), Contains("-1"));
  CHECK_THAT(message_of([] { document_rule_by_name("x"); }), Contains("empty-line"));
  CHECK_THAT(message_of([] { split_rule_by_name("x"); }), Contains("tail"));
}

TEST_CASE("text data: King James has 1,189 chapters, every tenth held out") {
  const Documents chapters = documents({king_james()}, {.val_fraction = 0.1});
  REQUIRE(chapters.size() == 1189);
  int held_out = 0;
  size_t bytes = 0;
  for (size_t i = 0; i < chapters.size(); ++i) {
    CHECK(chapters[i].second == ((i + 1) % 10 == 0));
    held_out += chapters[i].second;
    bytes += chapters[i].first.size();
  }
  CHECK(held_out == 118);
  CHECK(bytes == 4'139'038 - 1188);
}

TEST_CASE("text data: tokens, documents and source bytes add up, with and without end of text") {
  const TemporaryFolder folder;
  write_file_atomic(folder / "a.txt", "ab\n\ncd\n\n\xFF\n");
  const Tokenizer with = Tokenizer::bytes(true), without = Tokenizer::bytes(false);
  const TokenSplits a = tokenize_files({folder / "a.txt"}, with, {.val_fraction = 0.5});
  CHECK(text_of(a.train, with) == "ab\n<|endoftext|>\xFF\n<|endoftext|>");
  CHECK(text_of(*a.val, with) == "cd\n<|endoftext|>");
  CHECK(a.train.meta().documents == 2);
  CHECK(a.train.meta().source_bytes == 5);
  CHECK(a.train.meta().tokenizer_hash == with.hash());
  const TokenSplits b = tokenize_files({folder / "a.txt"}, without);
  CHECK(text_of(b.train, without) == "ab\n\ncd\n\n\xFF\n\n");
  CHECK(b.train.meta().source_bytes == b.train.size());
  CHECK_FALSE(b.val.has_value());
}

TEST_CASE("text data: the tokens of a text spell a special token as text") {
  const TemporaryFolder folder;
  write_file_atomic(folder / "a.txt", "<|endoftext|>");
  const TokenSplits a = tokenize_files({folder / "a.txt"}, Tokenizer::bytes(true));
  CHECK(a.train.size() == 14);
  CHECK(a.train[0] == '<');
  CHECK(a.train[13] == 256);
}

TEST_CASE("text data: prepared folders open again, and only with their tokenizer") {
  const TemporaryFolder folder;
  write_file_atomic(folder / "a.txt", "one two\n\nthree four\n\nfive six\n\nseven eight\n");
  TokenizerTrainer trainer({.vocab_size = 280});
  trainer.add("one two three four five six seven eight");
  const Tokenizer t = trainer.train();
  const TokenSplits made =
      prepare_data({folder / "a.txt"}, t, folder / "out", {.val_fraction = 0.25});
  const TokenSplits opened = open_data(folder / "out", t);
  CHECK(text_of(opened.train, t) == text_of(made.train, t));
  CHECK(text_of(*opened.val, t) == "seven eight\n<|endoftext|>");
  CHECK_THAT(message_of([&] { open_data(folder / "out", Tokenizer::bytes()); }),
             Contains("another tokenizer") || Contains("made with tokenizer"));
  // Without a held-out part the old one must not stay.
  prepare_data({folder / "a.txt"}, t, folder / "out");
  CHECK_FALSE(open_data(folder / "out", t).val.has_value());
}

TEST_CASE("text data: what is written document by document is what is held in memory") {
  const TemporaryFolder folder;
  const Tokenizer t = Tokenizer::bytes(true);
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "document " + std::to_string(i) + "\n\n";
  write_file_atomic(folder / "a.txt", text);
  const TextOptions options{.val_fraction = 0.25};
  int64_t last = 0, calls = 0;
  prepare_data({folder / "a.txt"}, t, folder / "out", options, {}, [&](int64_t bytes) {
    CHECK(bytes > last);
    last = bytes;
    ++calls;
  });
  CHECK(calls == 3000);
  CHECK(last == static_cast<int64_t>(text.size()) - 3000);  // the empty lines are no document's
  const TokenSplits held = tokenize_files({folder / "a.txt"}, t, options);
  for (const auto& [name, tokens] : {std::pair{"train", held.train}, {"val", *held.val}}) {
    std::vector<int64_t> wide(static_cast<size_t>(tokens.size()));
    tokens.read(0, wide);
    const std::vector<TokenId> ids(wide.begin(), wide.end());
    const std::string base = folder / ("out/" + std::string(name));
    TokenMeta meta = tokens.meta();
    meta.preparation = TokenFile::open(base + ".npy").meta().preparation;
    CHECK(meta.preparation.size() == 16);
    write_token_file(folder / "whole.npy", ids, meta);
    CHECK(read_file(base + ".npy") == read_file(folder / "whole.npy"));
    CHECK(read_file(base + ".json") == read_file(folder / "whole.json"));
  }
  // A pair of two preparations is refused, and so is one of which one file says nothing.
  prepare_data({folder / "a.txt"}, t, folder / "other", {.val_fraction = 0.5});
  open_data(folder / "other", t);
  for (const char* name : {"val.npy", "val.json"})
    std::filesystem::copy_file(folder / ("out/" + std::string(name)),
                               folder / ("other/" + std::string(name)),
                               std::filesystem::copy_options::overwrite_existing);
  CHECK_THAT(message_of([&] { open_data(folder / "other", t); }),
             Contains("not prepared together"));
  std::filesystem::remove(folder / "other/val.json");
  CHECK_THAT(message_of([&] { open_data(folder / "other", t); }),
             Contains("not prepared together"));
  {
    const FolderLock other(folder / "other");
    CHECK_THAT(message_of([&] { prepare_data({folder / "a.txt"}, t, folder / "other", options); }),
               Contains("another program is writing"));
  }
  prepare_data({folder / "a.txt"}, t, folder / "other", options);
  CHECK(open_data(folder / "other", t).val.has_value());
  // What cannot be finished changes nothing.
  const std::string before = read_file(folder / "out/train.npy");
  write_file_atomic(folder / "b.txt", "one document\n");
  CHECK_THROWS(prepare_data({folder / "b.txt"}, t, folder / "out", options));
  CHECK(read_file(folder / "out/train.npy") == before);
  CHECK(std::distance(std::filesystem::directory_iterator(folder / "out"), {}) == 4);
}

TEST_CASE("text data: a path may be a text, a folder of texts or a token file") {
  const TemporaryFolder folder;
  const Tokenizer t = Tokenizer::bytes(true);
  write_file_atomic(folder / "b.txt", "bb");
  write_file_atomic(folder / "a.txt", "aa");
  CHECK(text_of(open_data(folder.path(), t).train, t) == "aa<|endoftext|>bb<|endoftext|>");
  CHECK(text_of(open_data(folder / "b.txt", t).train, t) == "bb<|endoftext|>");
  write_token_file(folder / "x.npy", t.encode("abc<|endoftext|>defg", SpecialTokens::allowed),
                   {t.hash(), 257, TokenId{256}, 2, 7});
  const TokenSplits split = open_data(folder / "x.npy", t, {.text = {.val_fraction = 0.3}});
  CHECK(text_of(split.train, t) == "abc<|endoftext|>");  // not within a document
  CHECK(text_of(*split.val, t) == "defg");
  const TemporaryFolder bare;
  CHECK_THAT(message_of([&] { open_data(bare.path(), t); }), Contains("data prepare"));
  CHECK_THAT(message_of([&] { open_data(bare / "missing.txt", t); }), Contains("missing.txt"));
}

TEST_CASE("text data: a tokenizer is learnt from what is not held out") {
  const TemporaryFolder folder;
  write_file_atomic(folder / "a.txt", "aaaa aaaa\n\nqzqzqzqzqz\n");
  const Tokenizer all = train_tokenizer({folder / "a.txt"}, {.vocab_size = 262});
  const Tokenizer part =
      train_tokenizer({folder / "a.txt"}, {.vocab_size = 262}, {.val_fraction = 0.5});
  CHECK(all.encode("qz").size() == 1);
  CHECK(part.encode("qz").size() == 2);
  CHECK(part.encode("aa").size() == 1);
}
