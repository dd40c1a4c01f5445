// Verbs on text and tokens: tokenizer, data.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "cli/common.h"
#include "data/file.h"
#include "data/text_data.h"
#include "data/tokenizer_io.h"
#include "data/tokenizer_train.h"
#include "models/suggest.h"

namespace tally::cli {
namespace {

std::string standard_input() { return {std::istreambuf_iterator<char>(std::cin), {}}; }

TieRule tie_rule(const std::string& name) {
  const std::vector<std::string> names = {"bytes-greater", "id-smaller", "hf"};
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<TieRule>(i);
  }
  fail("--ties: must be bytes-greater, id-smaller or hf; got '", name, "'",
       did_you_mean(name, names));
}

SpecialTokens special_rule(const std::string& name) {
  if (name == "plain") return SpecialTokens::plain;
  if (name == "allow") return SpecialTokens::allowed;
  check(name == "refuse", "--special: must be plain, allow or refuse; got '", name, "'");
  return SpecialTokens::refuse;
}

int train_verb(const TokenizerOptions& o) {
  TokenizerTrainOptions options;
  options.vocab_size = o.vocab_size;
  options.pattern = o.pattern;
  options.tie = tie_rule(o.ties);
  if (!o.special_tokens.empty()) options.special = o.special_tokens;
  const auto start = std::chrono::steady_clock::now();
  const Tokenizer t = train_tokenizer(o.files, options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  make_folder(o.out);
  save_tokenizer_json(t, o.out + "/tokenizer.json");
  if (o.json)
    print_json({{"vocab_size", t.vocab_size()},
                {"merges", t.spec().merges.size()},
                {"hash", t.hash()},
                {"seconds", seconds.count()},
                {"path", o.out + "/tokenizer.json"}});
  else
    std::printf("%lld tokens (%zu merges) in %s: %s/tokenizer.json\n",
                static_cast<long long>(t.vocab_size()), t.spec().merges.size(),
                duration_text(seconds.count()).c_str(), o.out.c_str());
  return 0;
}

int encode_verb(const TokenizerOptions& o) {
  const Tokenizer t = load_tokenizer(o.tokenizer);
  std::string text = o.text;
  for (const std::string& f : o.files) text += read_file(f);
  if (o.text.empty() && o.files.empty()) text = standard_input();
  const auto ids = t.encode(text, special_rule(o.special));
  if (o.json) {
    print_json({{"ids", ids}, {"tokens", ids.size()}, {"bytes", text.size()}});
    return 0;
  }
  std::string line;
  for (const auto id : ids) line += (line.empty() ? "" : " ") + std::to_string(id);
  std::puts(line.c_str());
  return 0;
}

int64_t parse_id(const std::string& word) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  check(error == std::errc() && end == word.data() + word.size(),
        "tokenizer decode: ids are whole numbers; got '", word, "'");
  return id;
}

int decode_verb(const TokenizerOptions& o) {
  const Tokenizer t = load_tokenizer(o.tokenizer);
  std::vector<int64_t> ids;
  for (const std::string& word : o.files) ids.push_back(parse_id(word));
  if (o.files.empty()) {
    for (std::string word; std::cin >> word;) ids.push_back(parse_id(word));
  }
  const std::string text = t.decode(std::span<const int64_t>(ids));
  if (o.json) {
    std::vector<TokenId> narrow(ids.begin(), ids.end());
    print_json({{"text", t.decode_text(narrow)}, {"bytes", text.size()}});
  } else {
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return 0;
}

int info_verb(const TokenizerOptions& o) {
  const TokenizerInfo i = describe(load_tokenizer(o.tokenizer));
  if (o.json) {
    Json added = Json::array();
    for (const AddedToken& a : i.added) added.push_back({{"id", a.id}, {"text", a.text}});
    print_json({{"vocab_size", i.vocab_size},
                {"tokens", i.tokens},
                {"merges", i.merges},
                {"pattern", i.pattern},
                {"hash", i.hash},
                {"longest_token", i.longest_token},
                {"missing_bytes", i.missing_bytes},
                {"added", added},
                {"eot", i.eot ? Json(*i.eot) : Json()}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {
      {"what", "value"},
      {"vocabulary", to_text(i.vocab_size)},
      {"tokens", to_text(i.tokens)},
      {"merges", to_text(i.merges)},
      {"pattern", i.pattern},
      {"longest token, bytes", to_text(i.longest_token)},
      {"bytes without a token", to_text(i.missing_bytes)},
      {"end of text", i.eot ? to_text(static_cast<int64_t>(*i.eot)) : "none"},
      {"hash", i.hash}};
  for (const AddedToken& a : i.added)
    rows.push_back({"added token " + to_text(static_cast<int64_t>(a.id)), a.text});
  std::fputs(table_text(rows).c_str(), stdout);
  return 0;
}

Json file_json(const TokenFile& f) {
  return {{"path", f.name()},
          {"tokens", f.size()},
          {"element_type", to_text(f.width())},
          {"documents", f.meta().documents},
          {"source_bytes", f.meta().source_bytes}};
}

int prepare_verb(const DataOptions& o) {
  const Tokenizer t = load_tokenizer(o.tokenizer);
  TextOptions text;
  text.val_fraction = o.val_fraction;
  std::error_code unknown;  // of a file that is not there, which prepare_data refuses
  int64_t all = 0;
  for (const std::string& file : o.files)
    if (const auto size = std::filesystem::file_size(file, unknown); !unknown)
      all += static_cast<int64_t>(size);
  const Progress progress("tokenize", "bytes", o.quiet || o.json);
  const TokenSplits s = prepare_data(o.files, t, o.out, text, {},
                                     [&](int64_t bytes) { progress(bytes, std::max(all, bytes)); });
  if (o.json) {
    Json json = {{"train", file_json(s.train)}};
    if (s.val) json["val"] = file_json(*s.val);
    print_json(json);
    return 0;
  }
  for (const TokenFile* f : {&s.train, s.val ? &*s.val : nullptr}) {
    if (f)
      std::printf("%s: %lld tokens of %lld documents\n", f->name().c_str(),
                  static_cast<long long>(f->size()), static_cast<long long>(f->meta().documents));
  }
  return 0;
}

int inspect_verb(const DataOptions& o) {
  for (const std::string& file : o.files) {
    TokenFileOptions options;
    if (!o.element_type.empty()) options.width = token_width_by_name(o.element_type);
    options.vocab_size = o.vocab_size;
    const TokenFileReport r = inspect_token_file(file, options, o.context);
    if (o.json) {
      print_json({{"path", r.path},
                  {"format", r.format},
                  {"element_type", to_text(r.width)},
                  {"tokens", r.tokens},
                  {"distinct", r.distinct},
                  {"max_id", r.max_id},
                  {"vocab_size", r.meta.vocab_size},
                  {"documents", r.meta.documents},
                  {"source_bytes", r.meta.source_bytes},
                  {"tokenizer_hash", r.meta.tokenizer_hash},
                  {"context", r.context},
                  {"starts", r.starts},
                  {"windows", r.windows}});
      continue;
    }
    std::printf("%s: %s, %s, %lld tokens, %lld distinct ids up to %lld", r.path.c_str(),
                r.format.c_str(), to_text(r.width).c_str(), static_cast<long long>(r.tokens),
                static_cast<long long>(r.distinct), static_cast<long long>(r.max_id));
    if (r.context)
      std::printf(", %lld windows of %lld tokens", static_cast<long long>(r.windows),
                  static_cast<long long>(r.context));
    std::printf("\n");
  }
  return 0;
}

}  // namespace

int tokenizer(const TokenizerOptions& o) {
  if (o.verb == "train") return train_verb(o);
  if (o.verb == "encode") return encode_verb(o);
  return o.verb == "decode" ? decode_verb(o) : info_verb(o);
}

int data(const DataOptions& o) { return o.verb == "prepare" ? prepare_verb(o) : inspect_verb(o); }

}  // namespace tally::cli
