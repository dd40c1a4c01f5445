#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "data/bpe_alphabet.h"
#include "data/gguf.h"
#include "data/tokenizer_io.h"

namespace tally {
namespace fs = std::filesystem;
namespace {

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_sentence_piece_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  char begin[4] = {};
  return file.read(begin, sizeof begin) &&
         looks_like_sentence_piece(std::string_view(begin, sizeof begin));
}

Tokenizer load_folder(const fs::path& folder, const TokenizerLoadOptions& options) {
  const fs::path model = folder / "tokenizer.model";
  if (is_there(folder / "tokenizer.json")) {
    try {
      return load_tokenizer_json(folder / "tokenizer.json");
    } catch (const Error&) {
      if (!is_sentence_piece_file(model)) throw;
    }
  }
  if (is_sentence_piece_file(model)) return load_sentence_piece(model);
  if (is_there(folder / "source.spm")) return load_marian(folder);
  for (const auto& [vocab, merges] :
       {std::pair{"vocab.json", "merges.txt"}, std::pair{"encoder.json", "vocab.bpe"}}) {
    if (is_there(folder / vocab)) {
      return load_vocab_merges(folder / vocab, folder / merges, options);
    }
  }
  std::vector<fs::path> ranks;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".tiktoken" || entry.path().filename() == "tokenizer.model") {
      ranks.push_back(entry.path());
    }
  }
  check(!error, folder.string(), ": cannot list the folder: ", error.message());
  check(ranks.size() == 1, folder.string(), ": a tokenizer's folder must hold tokenizer.json, ",
        "vocab.json and merges.txt or source.spm, or one .tiktoken file; it has ",
        ranks.empty() ? "none of these" : "several .tiktoken files",
        "; name the file itself or another folder");
  return load_tiktoken(ranks[0], options);
}

}  // namespace

Tokenizer load_tokenizer(const std::string& name, const TokenizerLoadOptions& options) {
  const fs::path path = name;
  if (name == "bytes" && !is_there(path)) return Tokenizer::bytes(true);
  check(is_there(path), name, ": there is no such file or folder; give a tokenizer.json, a folder ",
        "that holds one, vocab.json with merges.txt, a .tiktoken file, or the word bytes");
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return load_folder(path, options);
  if (is_gguf_file(name)) return load_gguf_tokenizer(name);
  if (is_sentence_piece_file(path)) return load_sentence_piece(name);
  const fs::path folder = path.parent_path();
  if (path.extension() == ".json") {
    const bool encoder = path.filename() == "encoder.json";
    if (!encoder && path.filename() != "vocab.json") return load_tokenizer_json(name);
    return load_vocab_merges(name, folder / (encoder ? "vocab.bpe" : "merges.txt"), options);
  }
  if (path.extension() == ".bpe") return load_vocab_merges(folder / "encoder.json", name, options);
  if (path.extension() == ".txt") return load_vocab_merges(folder / "vocab.json", name, options);
  return load_tiktoken(name, options);
}

namespace detail {

void place_token(std::vector<std::string>& tokens, int64_t id, std::string bytes,
                 const std::string& where) {
  check(id >= 0 && id < kMaxVocabulary, where, ": ids must be from 0 to ", kMaxVocabulary - 1,
        "; given ", id);
  check(!bytes.empty(), where, ": a token must have at least one byte; id ", id, " has none");
  if (tokens.size() <= static_cast<size_t>(id)) tokens.resize(static_cast<size_t>(id) + 1);
  check(tokens[static_cast<size_t>(id)].empty(), where, ": every id must be used once; id ", id,
        " is used twice");
  tokens[static_cast<size_t>(id)] = std::move(bytes);
}

std::optional<TokenId> guess_eot(const std::vector<AddedToken>& added) {
  for (const std::string_view name : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"}) {
    for (const AddedToken& t : added) {
      if (t.text == name && t.special) return t.id;
    }
  }
  return std::nullopt;
}

Merge make_merge(const TokenIndex& index, std::string_view left, std::string_view right,
                 const std::string& where) {
  const auto l = from_alphabet(left), r = from_alphabet(right);
  check(l && r && !l->empty() && !r->empty(), where,
        ": a merge must have two sides in GPT-2's alphabet of bytes; given \"", left, "\" and \"",
        right, "\"");
  const Merge merge{index.find(*l), index.find(*r), index.find(*l + *r)};
  const bool known = merge.left != kNoToken && merge.right != kNoToken && merge.result != kNoToken;
  check(known, where, ": a merge's sides and result must be in the vocabulary; \"", left,
        "\" and \"", right, "\" are not all there");
  return merge;
}

}  // namespace detail
}  // namespace tally
