// SentencePiece's .model files: one protocol buffer message.
#include <filesystem>

#include "core/error.h"
#include "data/file.h"
#include "data/gguf.h"
#include "data/json.h"
#include "data/protobuf.h"
#include "data/sentence_piece.h"
#include "data/tokenizer_io.h"
#include "data/utf8.h"

namespace tally {
namespace {

using ModelField = ProtobufReader::Field;

// Numbers of fields in sentencepiece_model.proto.
struct InModel {
  enum : uint64_t { piece = 1, trainer = 2, normalizer = 3 };
};
struct InPiece {
  enum : uint64_t { text = 1, score = 2, kind = 3 };
};
struct InTrainer {
  enum : uint64_t { model_type = 3, as_suffix = 24, byte_fallback = 35, unknown_surface = 44 };
};
struct InNormalizer {
  enum : uint64_t { characters = 2, dummy_prefix = 3, remove_extra = 4, escape = 5 };
};
constexpr uint64_t kUnigram = 1, kBpe = 2;

SentencePiece read_piece(std::string_view message, const std::string& origin) {
  SentencePiece piece;
  ProtobufReader reader(message, origin);
  for (ModelField f; reader.next(f);) {
    if (f.number == InPiece::text) piece.text = f.bytes;
    if (f.number == InPiece::score) piece.score = f.as_float();
    if (f.number == InPiece::kind) {
      check(f.value >= 1 && f.value <= 6, origin, ": ", f.value,
            " is no kind of piece; 1 to 6 are");
      piece.kind = static_cast<PieceKind>(f.value);
    }
  }
  check(well_formed_prefix(piece.text) == piece.text.size(), origin, ": the piece ",
        quoted_name(piece.text), " is not UTF-8");
  return piece;
}

void read_trainer(std::string_view message, const std::string& origin, SentencePieceSpec& spec) {
  ProtobufReader reader(message, origin);
  for (ModelField f; reader.next(f);) {
    if (f.number == InTrainer::model_type) {
      check(f.value == kUnigram || f.value == kBpe, origin, ": a model of the type ", f.value,
            " is not supported; unigram (1) and BPE (2) are");
      spec.unigram = f.value == kUnigram;
    }
    if (f.number == InTrainer::as_suffix) spec.whitespace_as_suffix = f.value != 0;
    if (f.number == InTrainer::byte_fallback) spec.byte_fallback = f.value != 0;
    if (f.number == InTrainer::unknown_surface) spec.unknown_surface = f.bytes;
  }
}

void read_normalizer(std::string_view message, const std::string& origin, SentencePieceSpec& spec) {
  ProtobufReader reader(message, origin);
  for (ModelField f; reader.next(f);) {
    if (f.number == InNormalizer::characters) spec.characters = f.bytes;
    if (f.number == InNormalizer::dummy_prefix) spec.add_dummy_prefix = f.value != 0;
    if (f.number == InNormalizer::remove_extra) spec.remove_extra_whitespaces = f.value != 0;
    if (f.number == InNormalizer::escape) spec.escape_whitespaces = f.value != 0;
  }
}

/// What tokenizer_config.json beside the model says of begin and end; a .model file does not.
void read_config_beside(const std::string& path, TokenizerSpec& spec) {
  namespace fs = std::filesystem;
  const fs::path config_path = fs::path(path).parent_path() / "tokenizer_config.json";
  std::error_code ignored;
  std::string eos = "</s>", bos = "<s>";
  Json config = Json::object();
  if (fs::exists(config_path, ignored)) config = read_json(config_path);
  const auto name = [&](const char* key, std::string& text) {
    const Json value = config.is_object() ? config.value(key, Json()) : Json();
    const Json content = value.is_object() ? value.value("content", Json()) : value;
    if (content.is_string()) text = content.get<std::string>();
  };
  name("eos_token", eos), name("bos_token", bos);
  for (const AddedToken& t : spec.added) {
    const auto wants = [&](const char* key) {
      return config.is_object() && config.value(key, Json()) == true;
    };
    if (t.text == bos && wants("add_bos_token")) spec.prefix.push_back(t.id);
    if (t.text == eos && wants("add_eos_token")) spec.suffix.push_back(t.id);
    if (t.text == eos) spec.eot = t.id;
  }
  if (!spec.eot) spec.eot = detail::guess_eot(spec.added);
}

}  // namespace

namespace detail {

TokenizerSpec sentence_piece_tokens(SentencePieceSpec model) {
  TokenizerSpec spec;
  check(model.pieces.size() <= static_cast<size_t>(kMaxVocabulary),
        "sentencepiece: a vocabulary has at most ", kMaxVocabulary, " pieces; this has ",
        model.pieces.size());
  spec.pieces = std::make_shared<const SentencePieces>(std::move(model));
  for (TokenId id = 0; id < spec.pieces->spec().pieces.size(); ++id) {
    spec.tokens.push_back(spec.pieces->surface(id));
    if (spec.pieces->kind(id) == PieceKind::control)
      spec.added.push_back({spec.tokens.back(), id, true});
  }
  return spec;
}

}  // namespace detail

bool looks_like_sentence_piece(std::string_view bytes) {
  // The first field is a piece, a message whose first field is a text.
  return bytes.size() >= 4 && bytes[0] == '\x0A' && bytes[2] == '\x0A' && bytes[3] > 0 &&
         bytes[3] + 2 <= bytes[1];
}

SentencePieceSpec parse_sentence_piece(std::string_view bytes, const std::string& origin) {
  SentencePieceSpec spec;
  ProtobufReader reader(bytes, origin);
  for (ModelField f; reader.next(f);) {
    if (f.number == InModel::piece) {
      check(spec.pieces.size() < static_cast<size_t>(detail::kMaxVocabulary), origin,
            ": a vocabulary has at most ", detail::kMaxVocabulary, " pieces");
      spec.pieces.push_back(read_piece(f.bytes, origin));
    }
    if (f.number == InModel::trainer) read_trainer(f.bytes, origin, spec);
    if (f.number == InModel::normalizer) read_normalizer(f.bytes, origin, spec);
  }
  check(!spec.pieces.empty(), origin, ": a SentencePiece model must have pieces; it has none");
  return spec;
}

Tokenizer load_sentence_piece(const std::string& path) {
  const std::string bytes = read_file(path, size_t{1} << 28);
  const std::string where = path + " (a SentencePiece model)";
  SentencePieceSpec model = parse_sentence_piece(bytes, where);
  try {
    TokenizerSpec spec = detail::sentence_piece_tokens(std::move(model));
    read_config_beside(path, spec);
    return Tokenizer(std::move(spec));
  } catch (const Error& e) {
    fail(where, ": ", e.what());
  }
}

void save_sentence_piece(const Tokenizer& tokenizer, const std::string& path) {
  const auto& pieces = tokenizer.spec().pieces;
  check(pieces != nullptr, path, ": only a SentencePiece tokenizer can be written as such a model");
  check(pieces->spec().without_id.empty() && !tokenizer.spec().target_pieces, path,
        ": Marian's tokenizer has two models and a vocabulary; write a folder");
  write_file_atomic(path, sentence_piece_bytes(pieces->spec()));
}

std::string sentence_piece_bytes(const SentencePieceSpec& spec) {
  ProtobufWriter model, trainer, normalizer;
  for (const SentencePiece& p : spec.pieces) {
    ProtobufWriter piece;
    piece.text(InPiece::text, p.text);
    piece.real(InPiece::score, p.score);
    piece.number(InPiece::kind, static_cast<uint64_t>(p.kind));
    model.text(InModel::piece, piece.message());
  }
  trainer.number(InTrainer::model_type, spec.unigram ? kUnigram : kBpe);
  trainer.number(InTrainer::as_suffix, spec.whitespace_as_suffix ? 1 : 0);
  trainer.number(InTrainer::byte_fallback, spec.byte_fallback ? 1 : 0);
  trainer.text(InTrainer::unknown_surface, spec.unknown_surface);
  normalizer.text(InNormalizer::characters, spec.characters);
  normalizer.number(InNormalizer::dummy_prefix, spec.add_dummy_prefix ? 1 : 0);
  normalizer.number(InNormalizer::remove_extra, spec.remove_extra_whitespaces ? 1 : 0);
  normalizer.number(InNormalizer::escape, spec.escape_whitespaces ? 1 : 0);
  model.text(InModel::trainer, trainer.message());
  model.text(InModel::normalizer, normalizer.message());
  return model.message();
}

}  // namespace tally
