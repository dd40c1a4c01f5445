// Marian's folders: source.spm and target.spm make pieces, and vocab.json, which both share, ids of
// them. Junczys-Dowmunt et al. 2018, arXiv:1804.00344; Tiedemann & Thottingal 2020 (OPUS-MT).
#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "core/error.h"
#include "data/file.h"
#include "data/json.h"
#include "data/sentence_piece.h"
#include "data/tokenizer_io.h"

namespace tally {
namespace {

constexpr std::string_view kUnknownText = "<unk>", kEndText = "</s>", kPadText = "<pad>";

std::string file_in(const std::string& folder, const char* name) { return folder + "/" + name; }

std::vector<std::string> texts_by_id(const Json& vocab, const std::string& path) {
  check(vocab.is_object() && !vocab.empty(), path,
        ": an object of pieces and their ids is needed; given ",
        vocab.is_object() ? "an empty one" : vocab.type_name());
  std::vector<std::string> texts;
  for (const auto& [text, id] : vocab.items()) {
    check(id.is_number_integer(), path, ": an id must be a whole number; \"", text, "\" has ",
          id.dump());
    detail::place_token(texts, id.get<int64_t>(), text, path);
  }
  for (size_t id = 0; id < texts.size(); ++id)
    check(!texts[id].empty(), path, ": every id must have a piece; ", id, " has none");
  for (const std::string_view needed : {kUnknownText, kEndText, kPadText})
    check(vocab.contains(needed), path, ": Marian's vocabulary needs ", needed);
  return texts;
}

/// A model whose pieces have the ids of the vocabulary. Those that it alone has are found in a text
/// still, and stand for the unknown; those that it lacks are never made.
SentencePieceSpec with_ids(SentencePieceSpec model, const std::vector<std::string>& texts,
                           const std::string& path) {
  check(model.unigram && !model.byte_fallback, path,
        ": of Marian's models unigram ones without byte fallback are supported; this is ",
        model.unigram ? "one with it" : "byte-pair encoding");
  std::unordered_map<std::string, SentencePiece> own;
  for (SentencePiece& piece : model.pieces) {
    if (piece.kind == PieceKind::normal || piece.kind == PieceKind::user_defined)
      own.try_emplace(piece.text, piece);
  }
  model.pieces.clear();
  size_t made = 0;
  for (const std::string& text : texts) {
    const auto found = own.extract(text);
    SentencePiece piece{text, 0, PieceKind::unused};
    if (text == kUnknownText)
      piece.kind = PieceKind::unknown;
    else if (text == kEndText || text == kPadText)
      piece.kind = PieceKind::control;
    else if (!found.empty())
      piece = found.mapped(), ++made;
    model.pieces.push_back(std::move(piece));
  }
  check(made > 0, path, ": vocab.json has none of its pieces; the two are of different models");
  for (auto& [text, piece] : own) model.without_id.push_back(std::move(piece));
  std::ranges::sort(model.without_id, {}, &SentencePiece::text);
  model.unknown_surface = kUnknownText;
  model.unknown_by_text = true;
  return model;
}

/// A model as its own file has it: the unknown, then the pieces that it makes.
SentencePieceSpec without_ids(const SentencePieceSpec& model) {
  SentencePieceSpec own = model;
  own.pieces = {{std::string(kUnknownText), 0, PieceKind::unknown}};
  const auto keep = [&](const SentencePiece& piece) {
    if (piece.kind == PieceKind::normal || piece.kind == PieceKind::user_defined)
      own.pieces.push_back(piece);
  };
  std::ranges::for_each(model.pieces, keep);
  std::ranges::for_each(model.without_id, keep);
  return own;
}

SentencePieceSpec read_side(const std::string& path, const std::vector<std::string>& texts) {
  return with_ids(parse_sentence_piece(read_file(path, size_t{1} << 28), path), texts, path);
}

/// ">>fra<<": which language a text is to be put into.
bool is_language(std::string_view text) { return text.starts_with(">>") && text.ends_with("<<"); }

}  // namespace

Tokenizer load_marian(const std::string& folder) {
  const std::string config = file_in(folder, "tokenizer_config.json");
  if (std::filesystem::exists(config)) {
    const Json json = read_json(config);
    check(!json.is_object() || json.value("separate_vocabs", Json(false)) == false, config,
          ": separate_vocabs other than false is not supported: one table serves both sides here");
  }
  const std::string path = file_in(folder, "vocab.json");
  const std::vector<std::string> texts = texts_by_id(read_json(path), path);
  try {
    TokenizerSpec spec =
        detail::sentence_piece_tokens(read_side(file_in(folder, "source.spm"), texts));
    spec.target_pieces =
        std::make_shared<const SentencePieces>(read_side(file_in(folder, "target.spm"), texts));
    for (TokenId id = 0; id < texts.size(); ++id) {
      const bool unknown = texts[id] == kUnknownText;
      if (unknown || is_language(texts[id])) {
        spec.tokens[id] = texts[id];
        spec.added.push_back({texts[id], id, unknown});
      }
      if (texts[id] == kEndText) spec.eot = id;
    }
    spec.suffix = {*spec.eot};
    return Tokenizer(std::move(spec));
  } catch (const Error& e) {
    fail(folder, " (Marian's source.spm, target.spm and vocab.json): ", e.what());
  }
}

void save_marian(const Tokenizer& tokenizer, const std::string& folder) {
  const TokenizerSpec& spec = tokenizer.spec();
  check(spec.pieces && spec.target_pieces, folder,
        ": only a tokenizer with two SentencePiece models can be written as Marian's");
  Json vocab = Json::object();
  const std::vector<SentencePiece>& pieces = spec.pieces->spec().pieces;
  for (size_t id = 0; id < pieces.size(); ++id) vocab[pieces[id].text] = id;
  write_file_atomic(file_in(folder, "source.spm"),
                    sentence_piece_bytes(without_ids(spec.pieces->spec())));
  write_file_atomic(file_in(folder, "target.spm"),
                    sentence_piece_bytes(without_ids(spec.target_pieces->spec())));
  write_file_atomic(file_in(folder, "vocab.json"), vocab.dump(1) + "\n");
}

}  // namespace tally
