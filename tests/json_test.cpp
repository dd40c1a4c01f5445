#include "data/json.h"

#include <catch2/catch.hpp>
#include <clocale>

#include "core/error.h"

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using namespace tally;

namespace {
std::string refusal(std::string_view text, bool comments = false) {
  try {
    parse_json(text, "f.json", comments);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}
}  // namespace

TEST_CASE("json: reads every kind of value", "[json]") {
  const Json v = parse_json(
      R"({"a": [1, -2, 2.5, "x", true, null, {}], "b": 18446744073709551615})", "f.json");
  CHECK(v["a"].dump() == R"([1,-2,2.5,"x",true,null,{}])");
  CHECK(v["b"].get<uint64_t>() == UINT64_MAX);
  CHECK(parse_json("3", "f.json") == 3);
}

TEST_CASE("json: refuses a duplicate key and says where", "[json][error]") {
  CHECK(refusal("{\"a\": 1,\n \"a\": 2}") ==
        "f.json: line 2, column 4: the key \"a\" occurs twice in one object; keep one of them");
  CHECK(refusal(R"({"a": {"b": 1}, "c": {"b": 2}})") == "accepted");
  CHECK_THAT(refusal(R"({"a": {"b": 1, "b": 1}})"), Contains("\"b\""));
}

TEST_CASE("json: refuses text that is not JSON, with its position", "[json][error]") {
  CHECK_THAT(refusal("{\"a\":\n[1,}"), StartsWith("f.json: line 2, column 4: not valid JSON"));
  CHECK_THAT(refusal(""), StartsWith("f.json: line 1, column 0: not valid JSON"));
  CHECK_THAT(refusal("[1] 2"), Contains("not valid JSON"));
  CHECK_THAT(refusal("[1"), Contains("not valid JSON"));
  CHECK_THAT(refusal("[nan]"), Contains("not valid JSON"));
}

TEST_CASE("json: refuses numbers that do not fit", "[json][error]") {
  CHECK_THAT(refusal("[1e400]"), Contains("overflow"));
  CHECK_THAT(refusal(R"({"a": [0, 18446744073709551616]})"),
             Contains("18446744073709551616 of a[1] does not fit"));
  CHECK_THAT(refusal("[-9223372036854775809]"), Contains("does not fit"));
}

TEST_CASE("json: refuses bytes that are not UTF-8 and a byte order mark", "[json][error]") {
  CHECK_THAT(refusal("{\"a\": \"\xff\"}"), Contains("ill-formed UTF-8"));
  CHECK_THAT(refusal("[\"\xc0\xaf\"]"), Contains("ill-formed UTF-8"));
  CHECK_THAT(refusal("[\"\\ud800\"]"), Contains("not valid JSON"));
  CHECK_THAT(refusal("\xEF\xBB\xBF{}"), Contains("byte order mark"));
}

TEST_CASE("json: refuses more than 64 levels, a hundred thousand too", "[json][error][F51]") {
  CHECK(refusal(std::string(64, '[') + std::string(64, ']')) == "accepted");
  CHECK_THAT(refusal(std::string(65, '[') + std::string(65, ']')), Contains("64 levels"));
  CHECK_THAT(refusal(std::string(100000, '[')), Contains("64 levels"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  CHECK_THAT(refusal(objects), Contains("64 levels"));
}

TEST_CASE("json: messages stay short and free of control characters", "[json][error]") {
  const std::string long_key(100000, 'k');
  CHECK(refusal("{\"" + long_key + "\": 1, \"" + long_key + "\": 1}").size() < 300);
  CHECK(refusal("[\"" + long_key).size() < 500);
  CHECK(refusal(R"({"\u001b[2J": 1, "\u001b[2J": 1})").find('\x1b') == std::string::npos);
}

TEST_CASE("json: comments are read only where they are asked for", "[json]") {
  CHECK(parse_json("// one\n[1, /* two */ 2]", "f.json", true).dump() == "[1,2]");
  CHECK_THAT(refusal("// one\n[1]"), Contains("not valid JSON"));
  CHECK_THAT(refusal("[1] /* open", true), Contains("not valid JSON"));
}

TEST_CASE("json: numbers read the same in every locale", "[json]") {
  for (const char* locale : {"C", "de_DE.UTF-8", "fr_FR.UTF-8"}) {
    if (!std::setlocale(LC_ALL, locale)) continue;  // not installed here
    CHECK(parse_json("[1.5e-05]", "f.json")[0].get<double>() == 1.5e-05);
    CHECK(parse_json("[54321.5]", "f.json").dump() == "[54321.5]");
  }
  std::setlocale(LC_ALL, "C");
}

TEST_CASE("json: a file that cannot be read is named", "[json][error]") {
  CHECK_THROWS_WITH(read_json("no/such/file.json"), StartsWith("no/such/file.json: "));
}
