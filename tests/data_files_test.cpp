// Data in many files: which they are, in which order, and that they read as one.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "data/data_files.h"
#include "data/dataset.h"
#include "data/text_data.h"
#include "tests/data_helpers.h"
#include "tests/message_of.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("tally_files_" + std::to_string(::getpid()))) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string at(const std::string& name) const { return (path / name).string(); }
  fs::path path;
};

std::vector<TokenId> some_ids(size_t count, TokenId seed) {
  std::vector<TokenId> ids(count);
  for (size_t i = 0; i < count; ++i) ids[i] = static_cast<TokenId>((i * 37 + seed) % 251);
  return ids;
}

std::string text_of_ids(const TokenFile& f) {
  std::vector<int64_t> ids(static_cast<size_t>(f.size()));
  f.read(0, ids);
  std::string text;
  for (const int64_t id : ids) text += std::to_string(id) + " ";
  return text;
}

}  // namespace

TEST_CASE("token files: several read as one, whatever their widths and borders", "[data]") {
  const Folder folder;
  std::vector<TokenId> all;
  std::vector<TokenFile> files;
  for (const size_t size : {1, 100, 3, 57, 800}) {
    const auto ids = some_ids(size, static_cast<TokenId>(size));
    all.insert(all.end(), ids.begin(), ids.end());
    const std::string name = folder.at(std::to_string(size) + ".npy");
    write_token_file(name, ids, {"hash", 256, TokenId{250}, 2, 10},
                     size % 2 ? TokenWidth::u16 : TokenWidth::u32);
    files.push_back(TokenFile::open(name));
  }
  const TokenFile whole = TokenFile::from_ids(all, {"hash", 256, TokenId{250}, 10, 50});
  const TokenFile joined = TokenFile::joined(files);
  CHECK(joined.size() == whole.size());
  CHECK(joined.meta().documents == 10);
  CHECK(joined.meta().source_bytes == 50);
  CHECK(joined.content_hash() == whole.content_hash());
  for (int64_t i = 0; i < joined.size(); ++i) CHECK(joined[i] == whole[i]);
  for (const auto& [from, to] :
       {std::pair<int64_t, int64_t>{0, 961}, {0, 2}, {99, 105}, {500, 960}}) {
    CHECK(text_of_ids(joined.slice(from, to)) == text_of_ids(whole.slice(from, to)));
    CHECK(joined.slice(from, to).content_hash() == whole.slice(from, to).content_hash());
  }
  const TokenFile inner = joined.slice(50, 900);  // a part of a part, joined with another
  CHECK(text_of_ids(TokenFile::joined({inner.slice(30, 300), inner})) ==
        text_of_ids(whole.slice(80, 350)) + text_of_ids(whole.slice(50, 900)));
  const Dataset one(whole, 16, 5), many(joined, 16, 5);
  std::vector<int64_t> a(64), b(64), ta(64), tb(64);
  for (int64_t step = 0; step < 40; ++step) {
    many.will_read(step, 2, 4);
    one.batch(step, a, ta), many.batch(step, b, tb);
    CHECK((a == b && ta == tb));
  }
}

TEST_CASE("token files: of two tokenizers they are no one file; a bad id is found in its own",
          "[data][error]") {
  const Folder folder;
  write_token_file(folder.at("a.npy"), some_ids(20, 1), {"one", 256, {}, 0, 0});
  write_token_file(folder.at("b.npy"), some_ids(20, 2), {"two", 256, {}, 0, 0});
  const TokenFile a = TokenFile::open(folder.at("a.npy")), b = TokenFile::open(folder.at("b.npy"));
  CHECK_THAT(message_of([&] {
               TokenFile::joined({a, b});
             }),
             Contains("b.npy: was made with tokenizer two"));
  CHECK_THAT(message_of([&] { TokenFile::joined({}); }), Contains("at least one token file"));
  write_token_file(folder.at("c.npy"), std::vector<TokenId>{1, 2, 300}, {"one", 0, {}, 0, 0});
  TokenFileOptions small;
  small.vocab_size = 256;
  const TokenFile c = TokenFile::open(folder.at("c.npy"), small);
  std::vector<int64_t> ids(23);
  CHECK_THAT(message_of([&] {
               TokenFile::joined({a, c}).read(0, ids);
             }),
             Contains("c.npy: ids must be below") && Contains("id 300 at place 2 "));
}

TEST_CASE("data files: folders and patterns give their files by name", "[data]") {
  const Folder folder;
  fs::create_directories(folder.at("shards"));
  for (const char* name : {"shards/part-10.npy", "shards/part-2.npy", "shards/Part-3.npy",
                           "shards/val-0.npy", "shards/read.me"})
    std::ofstream(folder.at(name)) << "x";
  const DataFiles found = find_data_files({folder.at("shards")});
  CHECK(found.tokens);
  CHECK(found.train == std::vector<std::string>{folder.at("shards/Part-3.npy"),
                                                folder.at("shards/part-10.npy"),
                                                folder.at("shards/part-2.npy")});
  CHECK(found.val == std::vector<std::string>{folder.at("shards/val-0.npy")});
  CHECK(find_data_files({folder.at("shards/part-*.npy")}).train ==
        std::vector<std::string>{folder.at("shards/part-10.npy"), folder.at("shards/part-2.npy")});
  // The order given, between paths.
  CHECK(find_data_files({folder.at("shards/part-2.npy"), folder.at("shards/part-1?.npy")}).train ==
        std::vector<std::string>{folder.at("shards/part-2.npy"), folder.at("shards/part-10.npy")});
  std::ofstream(folder.at("a[1].txt")) << "x";  // a file of that name is no pattern
  CHECK(find_data_files({folder.at("a[1].txt")}).train ==
        std::vector<std::string>{folder.at("a[1].txt")});
  CHECK_THAT(message_of([&] { find_data_files({folder.at("*.bin")}); }),
             Contains("no file has a name of this pattern"));
  CHECK_THAT(message_of([&] {
               find_data_files({folder.at("a[1].txt"), folder.at("shards")});
             }),
             Contains("is a token file") && Contains("train on one kind"));
  fs::create_directories(folder.at("only"));
  CHECK_THAT(message_of([&] { find_data_files({folder.at("only")}); }), Contains("it has none"));
  std::ofstream(folder.at("only/val.npy")) << "x";
  CHECK_THAT(message_of([&] { find_data_files({folder.at("only")}); }),
             Contains("set apart for validation"));
}

TEST_CASE("data files: a folder of shards trains as its tokens in one file", "[data]") {
  const Folder folder;
  const Tokenizer bytes = Tokenizer::bytes();
  const TokenMeta meta{bytes.hash(), bytes.vocab_size(), bytes.eot(), 0, 0};
  fs::create_directories(folder.at("shards"));
  std::vector<TokenId> all;
  for (TokenId i = 0; i < 5; ++i) {
    const auto ids = some_ids(200 + i, i);
    all.insert(all.end(), ids.begin(), ids.end());
    write_token_file(folder.at("shards/" + std::to_string(i) + ".npy"), ids, meta);
  }
  write_token_file(folder.at("all.npy"), all, meta);
  DataOptions o;
  o.text.val_fraction = 0.1;
  const TokenSplits one = open_data(folder.at("all.npy"), bytes, o);
  for (const std::string& path : {folder.at("shards"), folder.at("shards/*.npy")}) {
    const TokenSplits many = open_data(path, bytes, o);
    CHECK(many.train.content_hash() == one.train.content_hash());
    CHECK(many.val->content_hash() == one.val->content_hash());
  }
}
