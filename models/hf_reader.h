#pragma once
#include <set>
#include <string>

#include "data/json.h"
#include "models/hf_family.h"

namespace tally {

/// Fills one ModelConfig from one config.json and remembers what it has read: what is left over at
/// the end was not understood and is refused.
class HfReader {
 public:
  HfReader(const Json& document, const HfFamily& family, const std::string& origin)
      : document_(document), family_(family), origin_(origin) {}

  /// Resolved and checked. Throws Error, beginning with `origin`, by the entry's name.
  ModelConfig read();

  // For HfFamily::read, which is called when the table's entries are filled in.

  /// nullptr where the entry is absent or null.
  const Json* find(const std::string& key);
  bool flag(const char* key, bool otherwise);
  double number(const char* key, double otherwise);
  int64_t integer(const char* key, int64_t otherwise);
  /// "config.json: key", for errors.
  std::string where(const std::string& key) const { return origin_ + ": " + key; }
  /// Throws Error unless the entry is absent or has this value.
  void only(const char* key, const Json& value);

  /// An entry of rope_parameters says nothing of texts: `key` is read and left out.
  void pass_over_in_rope(const char* key) { beside_rope_.insert(key); }
  /// Rotary positions: rope_theta, rope_scaling and rope_parameters in any spelling, and the share
  /// of a head that turns under `fraction_key`; "" for a family whose heads always turn whole.
  void read_rope(const char* fraction_key = "", double fraction = 1);
  /// Which layers have a window: layer_types, or, where that is not said, the layers of which
  /// `slides` is true. None have one where sliding_window is not said and `otherwise` is 0.
  void read_windows(bool (*slides)(HfReader&, int64_t layer), int64_t otherwise = 0);

 private:
  void read_entry(const HfEntry& entry);
  void read_one_rope(const Json& rope, const std::string& at);
  void read_rope_by_layer(const Json& rope, const std::string& at);
  std::string key_of(std::string_view field) const;
  void refuse_the_rest() const;

  const Json& document_;
  const HfFamily& family_;
  const std::string& origin_;
  ModelConfig config_;
  bool turns_partly_ = false;
  std::set<std::string> beside_rope_;
  std::set<std::string, std::less<>> read_;
};

/// The shortest list that gives the same when it is begun anew at its end.
std::vector<std::string> shortest_period(const std::vector<std::string>& list);

/// For read_windows: all layers, or none of which nothing is said.
inline bool every_layer(HfReader&, int64_t) { return true; }

}  // namespace tally
