#include "data/pretokenizer_patterns.h"

#include <array>
#include <vector>

#include "core/error.h"
#include "data/pretokenizer.h"

namespace tally {
namespace {

constexpr std::string_view kWhiteSpace = R"(\p{Z}\x09-\x0d\x85)";

struct Named {
  std::string_view name;
  std::array<std::string_view, 2> stages;  // empty: none
};

// cl100k: the pattern GPT-4 came with. tiktoken's present one puts `\s++$` before `\s*[\r\n]`; ids
// are equal with GPT-4's vocabulary, pieces are not.
constexpr Named kNamed[] = {
    {"gpt2", {kGpt2Pattern, ""}},
    {"cl100k",
     {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
      R"(|\s*[\r\n]|\s+(?!\S)|\s+)",
      ""}},
    {"o200k",
     {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
      R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
      R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      ""}},
    {"llama3",
     {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
      R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      ""}},
    {"qwen2",
     {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
      R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      ""}},
    {"nanochat",
     {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
      R"(|\s*[\r\n]|\s+(?!\S)|\s+)",
      ""}},
    {"smollm", {kDigitPattern, kGpt2Pattern}},
    {"none", {"", ""}},
};

std::vector<std::string> stages_of(const Named& named) {
  std::vector<std::string> stages;
  for (const std::string_view s : named.stages) {
    if (!s.empty()) stages.emplace_back(s);
  }
  return stages;
}

}  // namespace

std::vector<std::string> patterns_by_name(const std::string& name) {
  std::string names;
  for (const Named& named : kNamed) {
    if (named.name == name || (named.name == "cl100k" && name == "gpt4")) return stages_of(named);
    names += (names.empty() ? "" : ", ") + std::string(named.name);
  }
  fail("pretokenizer: the pattern must be one of ", names, "; given \"", name,
       "\"; choose one of these names");
}

std::string name_of_patterns(const std::vector<std::string>& patterns) {
  for (const Named& named : kNamed) {
    if (stages_of(named) == patterns) return std::string(named.name);
  }
  return "custom";
}

std::string rewrite_white_space(const std::string& pattern) {
  std::string out;
  bool in_set = false;
  const auto refuse = [&](const char* what) {
    fail("pretokenizer: a set must hold plain characters, ranges and classes; ", what, " in ",
         pattern, " is read differently by different engines; write it without");
  };
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (c == '\\') {
      ++i;
      if (next == 's') {
        out += in_set ? std::string(kWhiteSpace) : "[" + std::string(kWhiteSpace) + "]";
      } else if (next == 'S') {
        if (in_set) refuse("\\S");
        out += "[^" + std::string(kWhiteSpace) + "]";
      } else {
        out += c;
        if (next != '\0') out += next;
      }
      continue;
    }
    if (in_set && c == '[') refuse("a nested set");
    if (in_set && c == '&' && next == '&') refuse("an intersection (&&)");
    if (!in_set && c == '[') {
      in_set = true;
      out += c;
      if (next == '^') out += pattern[++i];
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') out += pattern[++i];  // []a]: a literal
      continue;
    }
    if (c == ']') in_set = false;
    out += c;
  }
  return out;
}

}  // namespace tally
