#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "data/sentence_piece.h"
#include "data/tokenizer.h"

/// Writes GGUF files for tests, by the format's description and not by the reader's code.
namespace tally::test {

class GgufBytes {
 public:
  template <class T>
  static void put(std::string& out, T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out.append(bytes, sizeof bytes);
  }
  static void put_text(std::string& out, std::string_view text) {
    put<uint64_t>(out, text.size());
    out += text;
  }

  GgufBytes& number(const std::string& key, uint32_t value) { return entry(key, 4, value); }
  GgufBytes& real(const std::string& key, float value) { return entry(key, 6, value); }
  GgufBytes& flag(const std::string& key, bool value) { return entry(key, 7, uint8_t{value}); }
  GgufBytes& text(const std::string& key, std::string_view value) {
    begin(key, 8);
    put_text(entries_, value);
    return *this;
  }
  GgufBytes& texts(const std::string& key, const std::vector<std::string>& values) {
    begin_list(key, 8, values.size());
    for (const std::string& v : values) put_text(entries_, v);
    return *this;
  }
  GgufBytes& reals(const std::string& key, const std::vector<float>& values) {
    begin_list(key, 6, values.size());
    for (const float v : values) put(entries_, v);
    return *this;
  }
  GgufBytes& integers(const std::string& key, const std::vector<int32_t>& values) {
    begin_list(key, 5, values.size());
    for (const int32_t v : values) put(entries_, v);
    return *this;
  }
  GgufBytes& bytes_list(const std::string& key, std::string_view values) {
    begin_list(key, 0, values.size());
    entries_ += values;
    return *this;
  }
  /// An F32 tensor of a row-major shape.
  GgufBytes& tensor(const std::string& name, const std::vector<int64_t>& shape,
                    const std::vector<float>& values) {
    return raw_tensor(name, shape, 0,
                      {reinterpret_cast<const char*>(values.data()), values.size() * 4});
  }
  GgufBytes& raw_tensor(const std::string& name, const std::vector<int64_t>& shape, uint32_t type,
                        std::string_view bytes) {
    put_text(tensors_, name);
    put(tensors_, uint32_t(shape.size()));
    for (size_t i = shape.size(); i-- > 0;) put(tensors_, uint64_t(shape[i]));
    put(tensors_, type);
    data_.resize((data_.size() + 31) / 32 * 32);
    put(tensors_, uint64_t(data_.size()));
    data_ += bytes;
    ++tensor_count_;
    return *this;
  }
  std::string bytes(uint32_t version = 3) const {
    std::string out = "GGUF";
    put(out, version);
    put(out, tensor_count_);
    put(out, entry_count_);
    out += entries_ + tensors_;
    out.resize((out.size() + 31) / 32 * 32);
    return out + data_;
  }

 private:
  void begin(const std::string& key, uint32_t kind) {
    put_text(entries_, key);
    put(entries_, kind);
    ++entry_count_;
  }
  void begin_list(const std::string& key, uint32_t kind, size_t size) {
    begin(key, 9);
    put(entries_, kind);
    put(entries_, uint64_t(size));
  }
  template <class T>
  GgufBytes& entry(const std::string& key, uint32_t kind, T value) {
    begin(key, kind);
    put(entries_, value);
    return *this;
  }
  std::string entries_, tensors_, data_;
  uint64_t entry_count_ = 0, tensor_count_ = 0;
};

/// The entries of a SentencePiece tokenizer: model "llama" (BPE) or "t5" (unigram).
inline void add_pieces(GgufBytes& file, const SentencePieceSpec& spec) {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> kinds;
  for (const SentencePiece& p : spec.pieces) {
    tokens.push_back(p.text);
    scores.push_back(p.score);
    kinds.push_back(static_cast<int32_t>(p.kind));
  }
  file.text("tokenizer.ggml.model", spec.unigram ? "t5" : "llama");
  file.texts("tokenizer.ggml.tokens", tokens).reals("tokenizer.ggml.scores", scores);
  file.integers("tokenizer.ggml.token_type", kinds);
  file.flag("tokenizer.ggml.add_space_prefix", spec.add_dummy_prefix);
  file.flag("tokenizer.ggml.remove_extra_whitespaces", spec.remove_extra_whitespaces);
  if (!spec.characters.empty())
    file.bytes_list("tokenizer.ggml.precompiled_charsmap", spec.characters);
}

}  // namespace tally::test
