#pragma once
#include <string>

#include "models/gguf_file.h"
#include "models/hf_config.h"

namespace tally {

/// What a GGUF file describes: a configuration, and the family that says where its weights lie.
/// general.architecture is llama (Mistral, Mixtral and SmolLM are that too), gemma, gemma2, gpt2,
/// qwen2, qwen3 or qwen3moe; its entries (llama.block_count, ...) and which tensors are there make the configuration.
/// Whatever would change the computation and is not known here is refused by name in an Error that
/// begins with `origin`.
HfModel gguf_config(const GgufFile&, const std::string& origin);

/// Families whose names and entries are those of GGUF files; `model_type` is the architecture.
const std::vector<HfFamily>& gguf_families();

}  // namespace tally
