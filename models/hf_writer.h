#pragma once
#include "data/json.h"
#include "models/hf_family.h"

namespace tally {

/// Writes one ModelConfig as the config.json of a family: the mirror of HfReader. What the family
/// cannot say is left out; whoever writes reads the document back to see what is missing.
class HfWriter {
 public:
  HfWriter(const ModelConfig& config, const HfFamily& family) : config_(config), family_(family) {}
  Json write();

  // For HfFamily::write, which is called when the table's entries are written.

  Json& operator[](const std::string& key) { return document_[key]; }
  /// Rotary positions: the base under `base_key` ("": an entry of the table holds it), rope_scaling,
  /// and the share of a head that turns under `fraction_key`.
  void rope(const char* fraction_key = "", const char* base_key = "rope_theta");
  /// sliding_window, the kinds of all layers, and rotary positions of their own for each kind.
  void rope_by_layer();
  /// An integer where the number is one to rounding: some readers insist.
  static Json whole_or_real(double v);
  /// sliding_window and the kinds of all layers.
  void windows();

 private:
  void entries();
  const ModelConfig& config_;
  const HfFamily& family_;
  Json document_ = Json::object();
};

/// What HfWriter writes for the family. Throws Error, naming the fields, unless the family reads it
/// as the same model.
Json hf_config_to_json(const ModelConfig& config, const HfFamily& family);
/// The first published family that can say all of the model. Throws Error if there is none.
const HfFamily& hf_family_for(const ModelConfig& config);

}  // namespace tally
