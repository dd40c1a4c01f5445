// Token files, text splits, and the order of training.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <set>

#include "data/dataset.h"
#include "data/file.h"
#include "data/text_data.h"
#include "data/tokenizer_io.h"
#include "data/tokenizer_train.h"
#include "tests/data_helpers.h"

using namespace tally;
using Catch::Matchers::Contains;
using test::message_of;
using test::TemporaryFolder;
using test::tokenizer_data;
using Ids = std::vector<TokenId>;

namespace {

TokenFile counting(int64_t tokens) {
  Ids ids(static_cast<size_t>(tokens));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i);
  return TokenFile::from_ids(ids, {});
}

/// Writes numbers of type T as they stand in memory.
template <class T>
void write_raw(const std::string& path, const std::vector<T>& numbers) {
  write_file_atomic(path,
                    {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)});
}

Ids all_ids(const TokenFile& file) {
  Ids ids;
  for (int64_t i = 0; i < file.size(); ++i) ids.push_back(file[i]);
  return ids;
}

std::vector<int64_t> row_of(const Dataset& data, int64_t sample) {
  std::vector<int64_t> x(static_cast<size_t>(data.context())), y(x.size());
  data.sample(sample, x, y);
  x.push_back(y.back());
  return x;
}

}  // namespace

TEST_CASE("token files: every recorded odd file is taken or refused as expected", "[F44]") {
  int seen = 0;
  for (const Json& c : read_json(tokenizer_data("hostile/index.json"))) {
    if (c["kind"] != "token_data") continue;
    ++seen;
    const std::string path = tokenizer_data("hostile/" + c["path"].get<std::string>());
    const TokenFileOptions options{TokenWidth::u16, c["params"]["vocab_size"], ""};
    TokenFileReport report;
    const std::string message =
        message_of([&] { report = inspect_token_file(path, options, c["params"]["context"]); });
    INFO(c["id"] << ": " << message);
    CHECK((message == "accepted") == (c["expect"] == "accept"));
    if (c["expect"] == "reject") {
      CHECK_THAT(message, Contains(path));
    } else {
      CHECK(report.tokens == 9);
      CHECK(report.starts == 1);
      CHECK(report.windows == 1);
      CHECK(report.max_id == 8);
      CHECK(report.distinct == 9);
    }
    for (const Json& word : c.value("must_name", Json::array())) {
      CHECK_THAT(message, Contains(word.get<std::string>()));
    }
  }
  CHECK(seen == 7);
}

TEST_CASE("token files: .npy comes back, 16 bits up to 65,536 ids, else 32", "[F44]") {
  const TemporaryFolder folder;
  for (const int64_t vocab : {300, 65536, 65537, 200000}) {
    const Ids ids{0, 1, static_cast<TokenId>(vocab - 1), 255, 256};
    write_token_file(folder / "x.npy", ids, {"hash", vocab, TokenId{1}, 3, 12345678901});
    const TokenFile file = TokenFile::open(folder / "x.npy");
    CHECK(all_ids(file) == ids);
    CHECK(file.width() == (vocab <= 65536 ? TokenWidth::u16 : TokenWidth::u32));
    CHECK(file.meta().tokenizer_hash == "hash");
    CHECK(file.meta().vocab_size == vocab);
    CHECK(file.meta().eot == TokenId{1});
    CHECK(file.meta().documents == 3);
    CHECK(file.meta().source_bytes == 12345678901);
    CHECK(file.content_hash() == TokenFile::from_ids(ids, {}).content_hash());
  }
}

TEST_CASE("token files: ids that do not fit are not written, and nothing else is", "[F44]") {
  const TemporaryFolder folder;
  write_token_file(folder / "x.npy", Ids{65535}, {}, TokenWidth::u16);
  CHECK(all_ids(TokenFile::open(folder / "x.npy")) == Ids{65535});
  for (const TokenId id : {65536u, 100256u}) {
    CHECK_THAT(message_of([&] {
                 write_token_file(folder / "y.npy", Ids{1, id}, {}, TokenWidth::u16);
               }),
               Contains(std::to_string(id)) && Contains("write uint32"));
    CHECK_FALSE(std::filesystem::exists(folder / "y.npy"));
  }
  TokenMeta meta;
  meta.vocab_size = 10;
  CHECK_THAT(message_of([&] {
               write_token_file(folder / "y.npy", Ids{1, 10}, meta);
             }),
             Contains("below the vocabulary's 10") && Contains("place 1"));
  CHECK_THAT(message_of([&] { write_token_file(folder / "y.npy", Ids{}, {}); }), Contains("none"));
  CHECK_THAT(message_of([&] { write_token_file(folder / "y.bin", Ids{1}, {}); }), Contains(".npy"));
}

TEST_CASE("token files: raw numbers need a width, llm.c's header gives it") {
  const TemporaryFolder folder;
  write_raw<uint16_t>(folder / "raw.bin", {7, 8, 9});
  CHECK_THAT(message_of([&] { TokenFile::open(folder / "raw.bin"); }), Contains("--dtype"));
  CHECK(all_ids(TokenFile::open(folder / "raw.bin", {TokenWidth::u16, 0, ""})) == Ids{7, 8, 9});
  CHECK_THAT(message_of([&] {
               TokenFile::open(folder / "raw.bin", {TokenWidth::u32, 0, ""});
             }),
             Contains("multiple of 4") && Contains("it is 6"));

  std::vector<int32_t> header(256);
  header[0] = 20240801, header[1] = 7, header[2] = 2;
  header.insert(header.end(), {100000, 5});
  write_raw(folder / "llm.bin", header);
  const TokenFile llm = TokenFile::open(folder / "llm.bin");
  CHECK(llm.format() == "llm.c");
  CHECK(all_ids(llm) == Ids{100000, 5});
  CHECK_THAT(message_of([&] {
               TokenFile::open(folder / "llm.bin", {TokenWidth::u16, 0, ""});
             }),
             Contains("uint32"));
  header.pop_back();
  write_raw(folder / "llm.bin", header);
  CHECK_THAT(message_of([&] { TokenFile::open(folder / "llm.bin"); }), Contains("says 2"));
}

TEST_CASE("token files: other .npy arrays are refused by their type or shape") {
  const TemporaryFolder folder;
  write_token_file(folder / "good.npy", Ids{1, 2, 3}, {});
  const std::string good = read_file(folder / "good.npy");
  const auto open_with = [&](const std::string& old_text, const std::string& new_text) {
    std::string bytes = good;
    bytes.replace(bytes.find(old_text), old_text.size(), new_text);
    write_file_atomic(folder / "x.npy", bytes);
    return message_of([&] { TokenFile::open(folder / "x.npy"); });
  };
  CHECK(open_with("<u2", "<u2") == "accepted");
  CHECK_THAT(open_with("<u2", ">u2"), Contains(">u2") && Contains("little-endian"));
  CHECK_THAT(open_with("<u2", "<f2"), Contains("<f2"));
  CHECK_THAT(open_with("<u2", "<i8"), Contains("<i8"));
  CHECK_THAT(open_with("(3,), ", "(3,1),"), Contains("one dimension"));
  CHECK_THAT(open_with("(3,)", "(2,)"), Contains("says 2") && Contains("room for 3"));
  CHECK_THAT(open_with("'descr'", "'other'"), Contains("type"));
  CHECK_THAT(open_with(std::string("\x76\x00", 2), std::string("\xFF\xFF", 2)),
             Contains("whole header"));
  CHECK_THAT(open_with("NUMPY\x01", "NUMPY\x09"), Contains("version"));
}

TEST_CASE("token files: a JSON of another file, or another tokenizer's tokens, are refused") {
  const TemporaryFolder folder;
  write_token_file(folder / "x.npy", Ids{1, 2, 3}, {"abc", 10, {}, 0, 0});
  TokenFileOptions options;
  options.tokenizer_hash = "def";
  CHECK_THAT(message_of([&] { TokenFile::open(folder / "x.npy", options); }),
             Contains("abc") && Contains("def"));
  options.tokenizer_hash = "abc";
  CHECK(TokenFile::open(folder / "x.npy", options).size() == 3);
  write_token_file(folder / "y.npy", Ids{1, 2, 3, 4}, {"abc", 10, {}, 0, 0});
  std::filesystem::copy(folder / "y.json", folder / "x.json",
                        std::filesystem::copy_options::overwrite_existing);
  CHECK_THAT(message_of([&] { TokenFile::open(folder / "x.npy"); }),
             Contains("says 4") && Contains("has 3"));
  write_file_atomic(folder / "x.json", R"({"somebody": "else"})");
  CHECK(TokenFile::open(folder / "x.npy").meta().vocab_size == 0);
  const std::string whole = read_file(folder / "y.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string json = whole;
    json.replace(json.find(from), from.size(), to);
    write_file_atomic(folder / "y.json", json);
    return message_of([&] { TokenFile::open(folder / "y.npy"); });
  };
  CHECK_THAT(with("\"vocab_size\": 10", "\"vocab_size\": 18446744073709551615"),
             Contains("\"vocab_size\" must be a whole number, 0 or more"));
  CHECK_THAT(with("\"eot_id\": null", "\"eot_id\": 4294967296"),
             Contains("\"eot_id\" must be an id; it is 4294967296"));
}

TEST_CASE("token files: an id out of the vocabulary is found on reading, with its place") {
  const TemporaryFolder folder;
  write_raw<uint32_t>(folder / "x.bin", {1, 2, 300000, 4});
  const TokenFile file = TokenFile::open(folder / "x.bin", {TokenWidth::u32, 1000, ""});
  std::vector<int64_t> out(2);
  file.read(0, out);
  CHECK(out == std::vector<int64_t>{1, 2});
  CHECK_THAT(message_of([&] { file.read(1, out); }), Contains("300000") && Contains("place 2"));
  CHECK_THAT(message_of([&] { file.read(3, out); }), Contains("among its 4"));
  CHECK_THAT(message_of([&] { file.read(-1, out); }), Contains("among its 4"));
  CHECK(all_ids(file.slice(2, 4)) == Ids{300000, 4});
}

TEST_CASE("dataset: files shorter than a window are refused, longer ones counted", "[F44]") {
  for (const int64_t tokens : {0, 8}) {
    CHECK_THAT(message_of([&] { Dataset(counting(tokens), 8); }),
               Contains("at least 9 tokens") && Contains("there are " + std::to_string(tokens)));
  }
  const Dataset nine(counting(9), 8);
  CHECK(nine.windows() == 1);
  for (const int64_t sample : {0, 1, 77}) {
    CHECK(row_of(nine, sample) == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  }
  // One window an epoch, and over the epochs both of the windows there are.
  const Dataset ten(counting(10), 8);
  CHECK(ten.windows() == 1);
  std::set<int64_t> starts;
  for (int64_t i = 0; i < 50; ++i) starts.insert(ten.start(i));
  CHECK(starts == std::set<int64_t>{0, 1});
  const TemporaryFolder folder;
  write_token_file(folder / "x.npy", all_ids(counting(10)), {});
  CHECK(inspect_token_file(folder / "x.npy", {}, 8).starts == 2);
  CHECK_THAT(message_of([] { Dataset(counting(9), 0); }), Contains("context"));
}

TEST_CASE("keyed permutation: is one, for every size, and depends on the key") {
  for (const int64_t size : {1, 2, 3, 4, 5, 16, 17, 255, 1000, 4097}) {
    for (const uint64_t key : {0, 1, 99}) {
      std::vector<bool> seen(static_cast<size_t>(size));
      for (int64_t i = 0; i < size; ++i) {
        const int64_t j = keyed_permutation(i, size, key);
        REQUIRE((j >= 0 && j < size));
        REQUIRE_FALSE(seen[static_cast<size_t>(j)]);
        seen[static_cast<size_t>(j)] = true;
      }
    }
  }
  int same = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    same += keyed_permutation(i, 1000, 1) == keyed_permutation(i, 1000, 2);
  }
  CHECK(same < 10);
  CHECK(keyed_permutation(5, int64_t{1} << 40, 3) < int64_t{1} << 40);
}

TEST_CASE("keyed permutation: every place is about equally likely to come first") {
  std::array<int, 10> first{};
  for (uint64_t key = 0; key < 10'000; ++key) ++first[keyed_permutation(0, 10, key)];
  for (const int count : first) CHECK(std::abs(count - 1000) < 150);  // five standard deviations
}

TEST_CASE("dataset: every window comes once an epoch, in another order each epoch", "[F46]") {
  const Dataset data(counting(1003), 10, 5);
  CHECK(data.windows() == 100);
  std::vector<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> order;
    std::set<int64_t> targets;
    for (int64_t i = 0; i < 100; ++i) {
      const auto row = row_of(data, epoch * 100 + i);
      for (size_t k = 1; k < row.size(); ++k) {
        CHECK(row[k] == row[k - 1] + 1);
        targets.insert(row[k]);
      }
      order.push_back(row[0] / 10);
    }
    CHECK(targets.size() == 1000);  // no target twice
    orders.push_back(order);
  }
  CHECK(orders[0] != orders[1]);
  CHECK(orders[1] != orders[2]);
  const Dataset other_seed(counting(1003), 10, 6);
  CHECK(other_seed.start(0) + other_seed.start(1) * 1000 != data.start(0) + data.start(1) * 1000);
}

TEST_CASE("dataset: a batch depends on its step alone, not on what was read before", "[F46]") {
  const Dataset data(counting(500), 7, 9);
  std::vector<int64_t> x(3 * 7), y(x.size()), later_x(x.size()), later_y(x.size());
  const Dataset resumed(counting(500), 7, 9);
  for (const int64_t step : {0, 1, 22, 23, 24, 100}) {  // 71 windows: epochs end inside batches
    for (int64_t s = 0; s <= step; ++s) data.batch(s, x, y);
    resumed.batch(step, later_x, later_y);
    CHECK(x == later_x);
    CHECK(y == later_y);
    for (int64_t row = 0; row < 3; ++row) {
      const auto alone = row_of(data, step * 3 + row);
      CHECK(std::equal(alone.begin(), alone.end() - 1, x.begin() + row * 7));
      CHECK(std::equal(alone.begin() + 1, alone.end(), y.begin() + row * 7));
    }
  }
}

TEST_CASE("dataset: one order whatever the rows of a batch") {
  const Dataset data(counting(300), 5, 2);
  std::vector<int64_t> six_x(6 * 5), six_y(six_x.size()), x(2 * 5), y(x.size());
  data.batch(4, six_x, six_y);
  for (int64_t part = 0; part < 3; ++part) {
    data.batch(4 * 3 + part, x, y);
    CHECK(std::equal(x.begin(), x.end(), six_x.begin() + part * 10));
  }
}

TEST_CASE("dataset: evaluation reads the windows in order, and refuses what is not there") {
  const Dataset data(counting(33), 8);
  std::vector<int64_t> x(2 * 8), y(x.size());
  data.windows_in_order(2, x, y);
  CHECK(x.front() == 16);
  CHECK(y.back() == 32);
  CHECK_THAT(message_of([&] { data.windows_in_order(3, x, y); }), Contains("among the 4"));
  CHECK_THAT(message_of([&] { data.sample(0, x, y); }), Contains("8 tokens"));
  CHECK_THAT(message_of([&] { data.batch(0, std::span(x).first(9), std::span(y).first(9)); }),
             Contains("whole rows"));
  CHECK_THAT(message_of([&] { data.start(-1); }), Contains("-1"));
}

TEST_CASE("bits per byte: total nats over the bytes that the targets stand for") {
  const std::vector<uint32_t> lengths{1, 3, 0};
  CHECK(source_bytes(std::vector<int64_t>{0, 1, 2, 1, -100}, lengths) == 7);
  CHECK_THAT(message_of([&] { source_bytes(std::vector<int64_t>{3}, lengths); }), Contains("3"));
  CHECK(bits_per_byte(7 * std::log(2.0) * 2, 7) == Approx(2).epsilon(1e-15));
  CHECK_THAT(message_of([] { bits_per_byte(1, 0); }), Contains("byte"));
}
