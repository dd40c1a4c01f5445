#include "core/error.h"
#include "data/bpe_alphabet.h"
#include "data/file.h"
#include "data/json.h"
#include "data/pretokenizer_patterns.h"
#include "data/tokenizer_io.h"

namespace tally {
namespace {

std::string quoted(const std::string& text) { return Json(text).dump(); }

std::string spelled(const Tokenizer& tokenizer, TokenId id) {
  const std::string& bytes = tokenizer.spec().tokens[id];
  return tokenizer.find_added(bytes) == id ? bytes : to_alphabet(bytes);
}

/// {"token": id, ...} in the order of the ids, which is why it is put together by hand.
std::string vocab_json(const Tokenizer& tokenizer, const char* separator) {
  std::string out = "{";
  for (TokenId id = 0; id < tokenizer.spec().tokens.size(); ++id) {
    if (tokenizer.spec().tokens[id].empty()) continue;
    if (out.size() > 1) out += ",";
    out += separator + quoted(spelled(tokenizer, id)) + ": " + std::to_string(id);
  }
  return out + "}";
}

std::string added_json(const AddedToken& t) {
  return "{\"id\": " + std::to_string(t.id) + ", \"content\": " + quoted(t.text) +
         ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
         "\"special\": " +
         (t.special ? "true}" : "false}");
}

std::string byte_level_json(bool use_regex) {
  return std::string("{\"type\": \"ByteLevel\", \"add_prefix_space\": false, ") +
         "\"trim_offsets\": true, \"use_regex\": " + (use_regex ? "true}" : "false}");
}

std::string stage_json(const std::string& pattern) {
  if (pattern == kDigitPattern) return "{\"type\": \"Digits\", \"individual_digits\": true}";
  return "{\"type\": \"Split\", \"pattern\": {\"Regex\": " + quoted(pattern) +
         "}, \"behavior\": \"Isolated\", \"invert\": false}";
}

std::string pretokenizer_json(const std::vector<std::string>& patterns) {
  const bool last_is_gpt2 = !patterns.empty() && patterns.back() == kGpt2Pattern;
  const size_t before = patterns.size() - (last_is_gpt2 ? 1 : 0);
  if (before == 0) return byte_level_json(last_is_gpt2);
  std::string out = "{\"type\": \"Sequence\", \"pretokenizers\": [";
  for (size_t i = 0; i < before; ++i) out += stage_json(patterns[i]) + ", ";
  return out + byte_level_json(last_is_gpt2) + "]}";
}

std::string template_json(const Tokenizer& tokenizer) {
  const TokenizerSpec& spec = tokenizer.spec();
  if (spec.prefix.empty() && spec.suffix.empty()) return "null";
  Json single = Json::array(), special = Json::object();
  const auto add = [&](TokenId id) {
    const std::string text = spelled(tokenizer, id);
    single.push_back({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
    special[text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
  };
  for (const TokenId id : spec.prefix) add(id);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  for (const TokenId id : spec.suffix) add(id);
  Json pair = single;
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  return Json{{"type", "TemplateProcessing"},
              {"single", single},
              {"pair", pair},
              {"special_tokens", special}}
      .dump();
}

std::string model_json(const Tokenizer& tokenizer) {
  const TokenizerSpec& spec = tokenizer.spec();
  std::string out =
      "{\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null,\n"
      "    \"continuing_subword_prefix\": null, \"end_of_word_suffix\": null,\n"
      "    \"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": ";
  out += spec.whole_pieces_first ? "true" : "false";
  out += ",\n    \"vocab\": " + vocab_json(tokenizer, "\n      ") + ",\n    \"merges\": [";
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    const Merge& m = spec.merges[i];
    out += (i == 0 ? "\n      [" : ",\n      [") + quoted(to_alphabet(spec.tokens[m.left])) + ", " +
           quoted(to_alphabet(spec.tokens[m.right])) + "]";
  }
  return out + "]}";
}

}  // namespace

void save_tokenizer_json(const Tokenizer& tokenizer, const std::string& path) {
  write_file_atomic(path, tokenizer_json(tokenizer, path));
}

std::string tokenizer_json(const Tokenizer& tokenizer, const std::string& path) {
  const TokenizerSpec& spec = tokenizer.spec();
  check(!spec.pieces, path,
        ": tokenizer.json is written for byte-level BPE; this is SentencePiece: ",
        "write tokenizer.model instead");
  std::string out = "{\n  \"version\": \"1.0\", \"truncation\": null, \"padding\": null,\n";
  out += "  \"added_tokens\": [";
  for (size_t i = 0; i < spec.added.size(); ++i) {
    out += (i == 0 ? "\n    " : ",\n    ") + added_json(spec.added[i]);
  }
  out += "],\n  \"normalizer\": null,\n  \"pre_tokenizer\": " + pretokenizer_json(spec.patterns);
  out += ",\n  \"post_processor\": " + template_json(tokenizer);
  out += ",\n  \"decoder\": " + byte_level_json(true);
  return out + ",\n  \"model\": " + model_json(tokenizer) + "\n}\n";
}

void save_tokenizer(const Tokenizer& tokenizer, const std::string& folder) {
  const TokenizerSpec& spec = tokenizer.spec();
  if (spec.target_pieces) return save_marian(tokenizer, folder);
  const auto eot = tokenizer.eot();
  Json config = Json::object();
  if (eot && eot != detail::guess_eot(spec.added)) config["eos_token"] = spec.tokens[*eot];
  if (!spec.pieces) {
    save_tokenizer_json(tokenizer, folder + "/tokenizer.json");
  } else {
    save_sentence_piece(tokenizer, folder + "/tokenizer.model");
    if (eot) config["eos_token"] = spec.tokens[*eot];
    if (!spec.prefix.empty()) config["bos_token"] = spec.tokens[spec.prefix[0]];
    config["add_bos_token"] = !spec.prefix.empty();
    config["add_eos_token"] = !spec.suffix.empty();
  }
  if (!config.empty()) write_file_atomic(folder + "/tokenizer_config.json", config.dump(2) + "\n");
}

void save_vocab_merges(const Tokenizer& tokenizer, const std::string& folder) {
  const TokenizerSpec& spec = tokenizer.spec();
  check(tokenizer.pattern_name() == "gpt2" && !spec.whole_pieces_first, folder,
        ": vocab.json and merges.txt stand for GPT-2's pattern and plain merging; this tokenizer ",
        "has ", spec.whole_pieces_first ? "whole pieces first" : "the pattern ",
        spec.whole_pieces_first ? "" : tokenizer.pattern_name(), "; write tokenizer.json instead");
  std::string merges = "#version: 0.2\n";
  for (const Merge& m : spec.merges) {
    merges += to_alphabet(spec.tokens[m.left]) + " " + to_alphabet(spec.tokens[m.right]) + "\n";
  }
  write_file_atomic(folder + "/merges.txt", merges);
  write_file_atomic(folder + "/vocab.json", vocab_json(tokenizer, "") + "\n");
}

}  // namespace tally
