#include "data/text_data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "data/data_files.h"
#include "data/file.h"
#include "data/utf8.h"

namespace tally {
namespace fs = std::filesystem;
namespace {

/// The length of the line end at the start of `text`, 0 if there is none.
size_t line_end(std::string_view text) {
  return text.starts_with('\n') ? 1 : text.starts_with("\r\n") ? 2 : 0;
}

void for_each_part(std::string_view text, DocumentRule rule,
                   const std::function<void(std::string_view)>& use) {
  if (rule == DocumentRule::whole_file) {
    if (!text.empty()) use(text);
    return;
  }
  while (!text.empty()) {
    if (const size_t empty_line = line_end(text)) {
      text.remove_prefix(empty_line);
      continue;
    }
    size_t end = 0;  // behind the last line of this document
    do {
      end = std::min(text.find('\n', end), text.size() - 1) + 1;
    } while (end < text.size() && line_end(text.substr(end)) == 0);
    use(text.substr(0, end));
    text.remove_prefix(end);
  }
}

/// Where the held-out tail begins.
size_t tail_start(std::string_view text, double fraction) {
  auto at = static_cast<size_t>(static_cast<double>(text.size()) * (1 - fraction));
  const auto inside_character = [&](size_t i) {
    return i < text.size() && (static_cast<uint8_t>(text[i]) & 0xC0) == 0x80;
  };
  for (int steps = 0; steps < 3 && at > 0 && inside_character(at); ++steps) --at;
  return at;
}

// Appends a document to `ids`, and counts it.
void append_document(std::string_view document, Encoder& encoder, std::vector<TokenId>& ids,
                     TokenMeta& meta) {
  encoder.append(document, SpecialTokens::plain, ids);
  meta.source_bytes += static_cast<int64_t>(document.size());
  ++meta.documents;
  if (meta.eot) {
    ids.push_back(*meta.eot);
  } else {
    encoder.append("\n", SpecialTokens::plain, ids);
    ++meta.source_bytes;
  }
}

std::string hex(uint64_t bits) {
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[bits >> shift & 15];
  return digits;
}

TokenMeta meta_of(const Tokenizer& t) { return {t.hash(), t.vocab_size(), t.eot(), 0, 0}; }

// One of the two files of prepared data.
struct WrittenSplit {
  WrittenSplit(const std::string& file, const Tokenizer& t, std::optional<TokenWidth> width)
      : path(file), meta(meta_of(t)), writer(file, t.vocab_size(), width) {}
  TokenFile finish() {
    writer.finish(meta);
    return TokenFile::open(path);
  }
  std::string path;
  TokenMeta meta;
  TokenFileWriter writer;
};

std::string joined(const std::vector<std::string>& files) {
  if (files.size() == 1) return files[0];
  return files[0] + " and " + std::to_string(files.size() - 1) + " more";
}

TokenSplits split_tokens(TokenFile tokens, const TextOptions& options) {
  if (options.val_fraction == 0) return {std::move(tokens), std::nullopt};
  const int64_t n = tokens.size();
  auto cut = static_cast<int64_t>(static_cast<double>(n) * (1 - options.val_fraction));
  if (const auto eot = tokens.meta().eot) {  // a document is not cut in two
    int64_t border = cut;
    while (border > 0 && tokens[border - 1] != *eot) --border;
    if (border > 0) cut = border;
  }
  check(cut > 0 && cut < n, tokens.name(),
        ": the held-out part and the rest must each have a token; ", "there are ", n,
        " for a fraction of ", options.val_fraction);
  return {tokens.slice(0, cut), tokens.slice(cut, n)};
}

void check_fraction(double fraction) {
  check(fraction >= 0 && fraction <= 0.5,
        "data: the held-out fraction must be from 0 to 0.5; given ", fraction);
}

}  // namespace

DocumentRule document_rule_by_name(const std::string& name) {
  if (name == "empty-line") return DocumentRule::empty_line;
  if (name == "whole-file") return DocumentRule::whole_file;
  fail("data: documents must be parted by empty-line or whole-file; given \"", name, "\"");
}

SplitRule split_rule_by_name(const std::string& name) {
  if (name == "documents") return SplitRule::documents;
  if (name == "tail") return SplitRule::tail;
  fail("data: what is held out must be documents or tail; given \"", name, "\"");
}

void for_each_document(const std::vector<std::string>& files, const TextOptions& options,
                       const UseDocument& use) {
  check_fraction(options.val_fraction);
  check(!files.empty(), "data: there must be at least one text file; none was given");
  const bool by_document = options.val_fraction > 0 && options.split == SplitRule::documents;
  const int64_t every = by_document ? std::llround(1 / options.val_fraction) : 0;
  int64_t documents = 0, held_out = 0;
  for (const std::string& path : files) {
    const MappedFile file(path);
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                                file.bytes().size());
    check(!text.empty(), path, ": a text file must hold text; it is empty");
    const bool tail = options.val_fraction > 0 && options.split == SplitRule::tail;
    const size_t cut = tail ? tail_start(text, options.val_fraction) : text.size();
    for (const bool behind : {false, true}) {
      const std::string_view part = behind ? text.substr(cut) : text.substr(0, cut);
      for_each_part(part, options.documents, [&](std::string_view document) {
        ++documents;
        const bool out = behind || (every > 0 && documents % every == 0);
        held_out += out;
        use(document, out);
      });
    }
  }
  check(documents > 0, joined(files), ": there must be a line that is not empty; there is none");
  check(options.val_fraction == 0 || (held_out > 0 && held_out < documents), joined(files),
        ": holding out a fraction of ", options.val_fraction, " needs more documents (parted by ",
        "empty lines); there are ", documents,
        "; add empty lines, or hold nothing out (--val-fraction 0)");
}

TokenSplits tokenize_files(const std::vector<std::string>& files, const Tokenizer& tokenizer,
                           const TextOptions& options) {
  struct {
    std::vector<TokenId> ids;
    TokenMeta meta;
  } train{{}, meta_of(tokenizer)}, val = train;
  Encoder encoder(tokenizer);
  for_each_document(files, options, [&](std::string_view document, bool held_out) {
    auto& split = held_out ? val : train;
    append_document(document, encoder, split.ids, split.meta);
  });
  const std::string name = joined(files);
  TokenSplits splits{TokenFile::from_ids(train.ids, train.meta, name), std::nullopt};
  if (!val.ids.empty()) splits.val = TokenFile::from_ids(val.ids, val.meta, name + " (held out)");
  return splits;
}

TokenSplits prepare_data(const std::vector<std::string>& files, const Tokenizer& tokenizer,
                         const std::string& folder, const TextOptions& options,
                         std::optional<TokenWidth> width,
                         const std::function<void(int64_t bytes)>& progress) {
  check_fraction(options.val_fraction);
  std::error_code error;
  fs::create_directories(folder, error);
  check(!error, folder, ": cannot make the folder: ", error.message());
  const FolderLock lock(folder);
  const std::string val_path = fs::path(folder) / "val.npy";
  WrittenSplit train(fs::path(folder) / "train.npy", tokenizer, width);
  std::optional<WrittenSplit> val;
  if (options.val_fraction > 0) val.emplace(val_path, tokenizer, width);
  Encoder encoder(tokenizer);
  std::vector<TokenId> ids;  // of one document
  uint64_t hash = 0;         // of all of them, and of what is held out
  for_each_document(files, options, [&](std::string_view document, bool held_out) {
    WrittenSplit& split = held_out ? *val : train;
    ids.clear();
    append_document(document, encoder, ids, split.meta);
    split.writer.append(ids);
    for (const TokenId id : ids) hash = (hash ^ (id + 1)) * 0x9E3779B97F4A7C15u;
    hash = std::rotl(hash, held_out ? 31 : 17);
    if (progress) progress(train.meta.source_bytes + (val ? val->meta.source_bytes : 0));
  });
  // A break from here on leaves a pair whose preparations differ, which open_data refuses.
  if (val) {
    train.meta.preparation = val->meta.preparation = hex(hash);
    train.writer.flush(), val->writer.flush();
    return {train.finish(), val->finish()};
  }
  TokenSplits made{train.finish(), std::nullopt};
  for (const char* name : {"val.json", "val.npy"}) {  // old ones would pass for this data's
    fs::remove(fs::path(folder) / name, error);
    check(!error, folder, "/", name, ": cannot remove it: ", error.message());
  }
  return made;
}

// A folder's train.npy and val.npy must come from the same texts, split once.
void check_pair(const TokenFile& train, const TokenFile& val) {
  check(
      train.meta().preparation == val.meta().preparation, train.name(), " and ", val.name(),
      ": were not prepared together (a preparation was broken off, or one was copied), so what is "
      "held out may be in the training; prepare the data again");
}

TokenSplits open_data(const std::vector<std::string>& paths, const Tokenizer& tokenizer,
                      const DataOptions& options) {
  check_fraction(options.text.val_fraction);
  const DataFiles files = find_data_files(paths);
  if (!files.tokens) return tokenize_files(files.train, tokenizer, options.text);
  const auto open_all = [&](const std::vector<std::string>& list) {
    std::vector<TokenFile> opened;
    for (const std::string& file : list)
      opened.push_back(
          TokenFile::open(file, {options.width, tokenizer.vocab_size(), tokenizer.hash()}));
    return TokenFile::joined(opened);
  };
  if (files.val.empty()) return split_tokens(open_all(files.train), options.text);
  TokenSplits splits{open_all(files.train), open_all(files.val)};
  if (files.train.size() == 1 && files.val.size() == 1) check_pair(splits.train, *splits.val);
  return splits;
}

TokenSplits open_data(const std::string& path, const Tokenizer& tokenizer,
                      const DataOptions& options) {
  return open_data(std::vector<std::string>{path}, tokenizer, options);
}

}  // namespace tally
