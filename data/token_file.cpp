#include "data/token_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "data/file.h"
#include "data/token_format.h"

namespace tally {
namespace {

TokenId load(const std::byte* data, int64_t place, TokenWidth width) {
  if (width == TokenWidth::u16) {
    uint16_t id;
    std::memcpy(&id, data + place * 2, 2);
    return id;
  }
  uint32_t id;
  std::memcpy(&id, data + place * 4, 4);
  return id;
}

void check_ids(std::span<const TokenId> ids, int64_t below, const std::string& name) {
  if (below == 0) return;
  for (size_t i = 0; i < ids.size(); ++i) {
    check(ids[i] < below, name, ": ids must be below the vocabulary's ", below, "; id ", ids[i],
          " at place ", i, " is not; was it made with another tokenizer?");
  }
}

std::vector<std::byte> packed(std::span<const TokenId> ids, TokenWidth width) {
  std::vector<std::byte> bytes(ids.size() * static_cast<size_t>(width));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (width == TokenWidth::u16) {
      const auto id = static_cast<uint16_t>(ids[i]);
      std::memcpy(bytes.data() + i * 2, &id, 2);
    } else {
      std::memcpy(bytes.data() + i * 4, &ids[i], 4);
    }
  }
  return bytes;
}

}  // namespace

std::string to_text(TokenWidth width) { return width == TokenWidth::u16 ? "uint16" : "uint32"; }

TokenWidth token_width_by_name(const std::string& name) {
  if (name == "uint16") return TokenWidth::u16;
  if (name == "uint32") return TokenWidth::u32;
  fail("token file: the type of a token must be uint16 or uint32; given \"", name, "\"");
}

TokenFile TokenFile::open(const std::string& path, const TokenFileOptions& options) {
  auto mapped = std::make_shared<const MappedFile>(path);
  const std::string beside = detail::path_beside(path);
  std::error_code ignored;
  std::optional<std::string> json;
  if (beside != path && std::filesystem::exists(beside, ignored))
    json = read_file(beside, size_t{256} << 20);
  const std::span<const std::byte> bytes = mapped->bytes();
  return read(std::move(mapped), bytes, path, json, options);
}

TokenFile TokenFile::parse(std::span<const std::byte> bytes, const std::string& path,
                           const std::optional<std::string>& json,
                           const TokenFileOptions& options) {
  return read(nullptr, bytes, path, json, options);
}

TokenFile TokenFile::read(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                          const std::string& path, const std::optional<std::string>& json,
                          const TokenFileOptions& options) {
  const auto layout = detail::read_layout(path, bytes, options.width);
  TokenFile file;
  file.width_ = layout.width;
  file.format_ = layout.format;
  file.name_ = path;
  file.set_part(std::move(owner), bytes.data() + layout.offset, layout.count);
  if (json) detail::read_meta(*json, path, file.size_, file.meta_);
  if (options.vocab_size > 0) file.meta_.vocab_size = options.vocab_size;
  const std::string& made_with = file.meta_.tokenizer_hash;
  const bool same =
      options.tokenizer_hash.empty() || made_with.empty() || made_with == options.tokenizer_hash;
  check(same, path, ": the tokens must be the model's tokenizer's; they were made with tokenizer ",
        made_with, ", the model has ", options.tokenizer_hash,
        "; prepare the data with the model's tokenizer");
  return file;
}

TokenFile TokenFile::from_ids(std::span<const TokenId> ids, const TokenMeta& meta,
                              const std::string& name) {
  check_ids(ids, meta.vocab_size, name);
  TokenFile file;
  const bool small =
      std::all_of(ids.begin(), ids.end(), [](TokenId id) { return id <= UINT16_MAX; });
  file.width_ = small ? TokenWidth::u16 : TokenWidth::u32;
  auto bytes = std::make_shared<const std::vector<std::byte>>(packed(ids, file.width_));
  file.format_ = "memory";
  file.name_ = name;
  file.meta_ = meta;
  const std::byte* data = bytes->data();
  file.set_part(std::move(bytes), data, static_cast<int64_t>(ids.size()));
  return file;
}

void TokenFile::set_part(std::shared_ptr<const void> owner, const std::byte* data, int64_t size) {
  size_ = size;
  parts_ = std::make_shared<const std::vector<Part>>(
      std::vector<Part>{{std::move(owner), data, 0, size, width_, name_}});
}

TokenFile TokenFile::joined(const std::vector<TokenFile>& files) {
  check(!files.empty(), "data: there must be at least one token file; none was given");
  TokenFile all = files[0];
  std::vector<Part> parts;
  for (const TokenFile& file : files) {
    const bool same = all.meta_.tokenizer_hash.empty() || file.meta_.tokenizer_hash.empty() ||
                      all.meta_.tokenizer_hash == file.meta_.tokenizer_hash;
    check(same, file.name_, ": was made with tokenizer ", file.meta_.tokenizer_hash, ", and ",
          all.name_, " with ", all.meta_.tokenizer_hash,
          "; files that are read as one need one tokenizer");
    const int64_t begin = parts.empty() ? 0 : parts.back().end;
    file.each_part(0, file.size_, [&](const Part& part, int64_t from, int64_t to) {
      const int64_t at = parts.empty() ? 0 : parts.back().end;
      parts.push_back({part.owner, part.at(from), at, at + to - from, part.width, part.name});
    });
    if (begin == 0) continue;
    all.width_ = std::max(all.width_, file.width_);
    if (all.meta_.eot != file.meta_.eot) all.meta_.eot.reset();
    all.meta_.vocab_size = std::max(all.meta_.vocab_size, file.meta_.vocab_size);
    all.meta_.documents += file.meta_.documents;
    all.meta_.source_bytes += file.meta_.source_bytes;
  }
  if (files.size() > 1)
    all.name_ = files[0].name_ + " and " + std::to_string(files.size() - 1) + " more";
  all.first_ = 0, all.size_ = parts.empty() ? 0 : parts.back().end;
  all.parts_ = std::make_shared<const std::vector<Part>>(std::move(parts));
  return all;
}

const TokenFile::Part& TokenFile::part_of(int64_t place) const {
  const auto behind = std::upper_bound(parts_->begin(), parts_->end(), place,
                                       [](int64_t at, const Part& part) { return at < part.end; });
  return behind == parts_->end() ? parts_->back() : *behind;
}

template <class F>
void TokenFile::each_part(int64_t place, int64_t count, F&& use) const {
  for (int64_t at = first_ + place; at < first_ + place + count;) {
    const Part& part = part_of(at);
    const int64_t to = std::min(part.end, first_ + place + count);
    use(part, at, to);
    at = to;
  }
}

TokenId TokenFile::operator[](int64_t place) const {
  const Part& part = part_of(first_ + place);
  return load(part.at(first_ + place), 0, part.width);
}

void TokenFile::will_read(int64_t place, int64_t count) const {
  if (format_ == "memory") return;
  each_part(place, count, [](const Part& part, int64_t from, int64_t to) {
    tally::will_read({part.at(from), static_cast<size_t>((to - from) * int64_t(part.width))});
  });
}

void TokenFile::read(int64_t place, std::span<int64_t> out) const {
  const auto count = static_cast<int64_t>(out.size());
  check(place >= 0 && count <= size_ && place <= size_ - count, name_, ": tokens ", place, " to ",
        place + count, " must be among its ", size_);
  const int64_t below = meta_.vocab_size > 0 ? meta_.vocab_size : INT64_MAX;
  TokenId greatest = 0;
  auto to = out.begin();
  each_part(place, count, [&](const Part& part, int64_t from, int64_t end) {
    const std::byte* data = part.at(from);
    for (int64_t i = 0; i < end - from; ++i) {
      const TokenId id = load(data, i, part.width);
      *to++ = id;
      greatest = std::max(greatest, id);
    }
  });
  if (greatest < below) return;
  const auto bad = std::find_if(out.begin(), out.end(), [&](int64_t id) { return id >= below; });
  const int64_t at = place + (bad - out.begin());
  const Part& part = part_of(first_ + at);
  fail(parts_->size() == 1 ? name_ : part.name, ": ids must be below the vocabulary's ", below,
       "; id ", *bad, " at place ", parts_->size() == 1 ? at : first_ + at - part.begin,
       " is not; was the file made with another tokenizer or width?");
}

TokenFile TokenFile::slice(int64_t begin, int64_t end) const {
  check(begin >= 0 && begin <= end && end <= size_, name_, ": tokens ", begin, " to ", end,
        " must be among its ", size_);
  TokenFile part = *this;
  part.first_ += begin;
  part.size_ = end - begin;
  part.meta_.documents = part.meta_.source_bytes = 0;
  return part;
}

std::string TokenFile::content_hash() const {
  uint64_t hash = 0xCBF29CE484222325u;
  each_part(0, size_, [&](const Part& part, int64_t from, int64_t to) {
    const std::byte* data = part.at(from);
    for (int64_t i = 0; i < to - from; ++i) {
      hash = (hash ^ load(data, i, part.width)) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
  });
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[hash >> shift & 15];
  return digits;
}

TokenFileWriter::TokenFileWriter(const std::string& path, int64_t vocab_size,
                                 std::optional<TokenWidth> width)
    // Of a link the file behind it, so that the JSON lies beside the tokens.
    : path_(std::filesystem::is_symlink(path) ? std::filesystem::weakly_canonical(path).string()
                                              : path),
      vocab_size_(vocab_size),
      width_(width.value_or(vocab_size > 0 && vocab_size <= 65536 ? TokenWidth::u16
                                                                  : TokenWidth::u32)),
      file_((check(path.ends_with(".npy"), path, ": a token file is written as .npy; name it so"),
             path)) {
  const std::string header = detail::npy_header(0, width_);  // finish() says how many they are
  file_.append(header.data(), header.size());
}

void TokenFileWriter::append(std::span<const TokenId> ids) {
  if (ids.empty()) return;
  check_ids(ids, vocab_size_, path_);
  const TokenId greatest = *std::max_element(ids.begin(), ids.end());
  check(width_ == TokenWidth::u32 || greatest <= UINT16_MAX, path_,
        ": uint16 holds ids up to 65535; id ", greatest, " does not fit; write uint32");
  constexpr size_t kBlock = size_t{1} << 20;
  for (size_t at = 0; at < ids.size(); at += kBlock) {
    const auto block = packed(ids.subspan(at, std::min(kBlock, ids.size() - at)), width_);
    file_.append(block.data(), block.size());
  }
  size_ += static_cast<int64_t>(ids.size());
}

void TokenFileWriter::flush() {
  check(size_ > 0, path_, ": a token file must hold tokens; there are none");
  file_.overwrite_start(detail::npy_header(size_, width_));  // as long for any number
  file_.flush();
}

void TokenFileWriter::finish(const TokenMeta& meta) {
  flush();
  // The old JSON goes first: between the two writes there is a token file that says nothing of
  // itself, never one that says what was true of another.
  std::error_code ignored;
  std::filesystem::remove(detail::path_beside(path_), ignored);
  file_.commit();
  detail::write_meta(path_, size_, width_, meta);
}

void write_token_file(const std::string& path, std::span<const TokenId> ids, const TokenMeta& meta,
                      std::optional<TokenWidth> width) {
  check(!ids.empty(), path, ": a token file must hold tokens; there are none");
  const int64_t vocab =
      meta.vocab_size > 0 ? meta.vocab_size : int64_t{*std::ranges::max_element(ids)} + 1;
  TokenFileWriter writer(path, vocab, width);
  writer.append(ids);
  writer.finish(meta);
}

TokenFileReport inspect_token_file(const std::string& path, const TokenFileOptions& options,
                                   int64_t context) {
  const TokenFile file = TokenFile::open(path, options);
  TokenFileReport report{path, file.format(), file.width(), file.size(), 0,
                         0,    file.meta(),   context,      0,           0};
  if (context != 0) {
    check_window(file.size(), context, path);
    report.starts = file.size() - context;
    report.windows = (file.size() - 1) / context;
  }
  std::vector<bool> seen;
  std::vector<int64_t> block(4096);
  for (int64_t at = 0; at < file.size(); at += static_cast<int64_t>(block.size())) {
    const int64_t count = std::min(file.size() - at, static_cast<int64_t>(block.size()));
    const auto ids = std::span(block).first(static_cast<size_t>(count));
    file.read(at, ids);
    for (const int64_t id : ids) {
      report.max_id = std::max(report.max_id, static_cast<TokenId>(id));
      const auto slot = static_cast<size_t>(id);
      if (slot >= size_t{1} << 26) continue;  // a wrong width: no such vocabulary, no such table
      if (slot >= seen.size()) seen.resize(std::max(slot + 1, seen.size() * 2));
      report.distinct += !seen[slot];
      seen[slot] = true;
    }
  }
  return report;
}

void check_window(int64_t tokens, int64_t context, const std::string& name) {
  check(context > 0, name, ": the context must be at least 1 token; given ", context);
  check(tokens > context, name, ": a window of ", context,
        " inputs and their targets needs at least ", context + 1, " tokens; there are ", tokens,
        "; give more text or a shorter context");
}

}  // namespace tally
