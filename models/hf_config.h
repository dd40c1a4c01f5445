#pragma once
#include <string>
#include <string_view>

#include "models/hf_family.h"

namespace tally {

/// What a Hugging Face config.json describes.
struct HfModel {
  const HfFamily* family;
  ModelConfig config;            // resolved and checked
  std::string_view prefix = "";  // of the names of its weights
};

/// Reads config.json of any family of hf_families(), in the spelling of any release: nulls, the
/// rotary base at the top or inside rope_parameters, scaled rotary positions (models/hf_rope.h),
/// kinds of layers in a list or by a rule. Whatever would change the computation and does not exist
/// here (another model_type, another kind of scaling, an activation, an unknown entry) is refused by
/// name in an Error that begins with `origin`. Of a model that sees images, too, the text model is
/// read where its family is known (HfFamily::around). Dropout entries are left out: they are a
/// choice of training, and published weights are used without.
HfModel hf_config_from_json(std::string_view text, const std::string& origin);

/// hf_config_from_json of a file.
HfModel read_hf_config(const std::string& path);

/// True if the text is a JSON object with a model_type, as every config.json of Hugging Face.
bool looks_like_hf_config(std::string_view text);

}  // namespace tally
