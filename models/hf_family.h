#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"

namespace tally {

class HfReader;  // models/hf_reader.h
class HfWriter;  // models/hf_writer.h

/// An entry of config.json that fills a field of ours; one that is not required keeps the family's
/// default.
struct HfEntry {
  const char* key;
  const char* field;
  bool required = false;
};

/// An entry whose other values would change the computation in a way that is not supported.
struct HfFixed {
  const char* key;
  const char* value;  // as JSON
};

/// How the pieces that share a stored tensor lie in it.
enum class HfOrder : uint8_t {
  pieces,  ///< one after the other, in the order of the rows: [q | k | v], [gate | up]
  groups,  ///< by group of heads with one key: [q .. q k v] [q .. q k v] ..., or per head [q k v]
  alternate,  ///< taking turns: gate, up, gate, up ... (gpt-oss)
  turned,     ///< heads with their halves exchanged, which turns a rotation round (nanochat)
  paired,     ///< in each head a row of the first half, one of the second, ... (LLaMA in GGUF)
  heads,      ///< by query head: [q gate] [q gate] ... (Qwen3-Next)
  key_heads   ///< by key head of a delta net: [q k v .. z ..] [q k v .. z ..] ... (Qwen3-Next)
};

/// A piece of a parameter under its name within a block (or the model), and the tensor that holds
/// it; "{}" in that is the number of an expert, and "#" that of the layer, where the name says itself
/// where it stands: in encoders and encoder-decoders, whose pieces are "encoder.attention.q" and
/// their like.
struct HfRow {
  std::string_view piece, stored;
  bool transposed = false;  // matrices are stored as (in, out)
  HfOrder order = HfOrder::pieces;
  bool by_head = false;      // vectors are stored as (heads, head_dim)
  bool all_experts = false;  // one tensor (experts, ...), whose name has no ".weight"
  bool (*when)(const ModelConfig&) = nullptr;  // holds for these models alone
  bool underscore = false;                     // "in_proj_weight" in place of "in_proj.weight"
  bool convolution = false;                    // weights are stored as (channels, 1, width)
  bool buffer = false;  // not trained there: stored as (1, n), under this name alone
};

/// One family of published checkpoints: what its config.json says and where its weights lie.
struct HfFamily {
  const char* model_type;
  std::vector<HfEntry> entries;
  std::vector<HfFixed> fixed;
  const char* activation_key;  // "": the activation is not said
  const char* activation;      // where the entry is absent
  /// What the family is where its config.json does not say otherwise.
  void (*defaults)(ModelConfig&);
  /// What a table of entries cannot say; may be null.
  void (*read)(HfReader&, ModelConfig&);
  /// The same the other way; may be null.
  void (*write)(HfWriter&, const ModelConfig&);
  std::string_view prefix, blocks;  // before all names but the head's; before a layer's number
  std::vector<HfRow> rows;
  std::vector<std::string_view> buffers;  // endings, or beginnings with a dot, of tensors left out
  /// The model_type of a model that sees images and has this one inside: its config.json holds ours
  /// under text_config, its weights stand behind `inside`. "": none.
  std::string_view around = "", inside = "";
};

/// Every family that can be read.
const std::vector<const HfFamily*>& hf_families();
/// That of a model_type. Throws Error, beginning with `origin`, if it is not known.
const HfFamily& hf_family(std::string_view model_type, const std::string& origin = "models");

/// Those of a source each.
std::vector<HfFamily> llama_families();
std::vector<HfFamily> gemma_families();
std::vector<HfFamily> phi_families();
std::vector<HfFamily> deepseek_families();
std::vector<HfFamily> encoder_families();
std::vector<HfFamily> t5_families();
std::vector<HfFamily> gpt_families();
std::vector<HfFamily> neox_families();
std::vector<HfFamily> hybrid_families();
std::vector<HfFamily> reference_families();

}  // namespace tally
