#include "models/mup.h"

#include <cmath>

#include "core/error.h"

namespace tally {

double mup_width(const ModelConfig& c) {
  return c.mup_base_width > 0 ? double(c.d_model) / double(c.mup_base_width) : 1;
}

double mup_attention_scale(const ModelConfig& c) {
  if (c.mup_base_width == 0 || c.mup_base_head_dim == 0) return 0;
  return std::sqrt(double(c.mup_base_head_dim)) / double(c.head_dim);
}

void check_mup(const ModelConfig& c, const std::string& where) {
  if (c.mup_base_width == 0) {
    check(c.mup_base_head_dim == 0, where,
          ": mup_base_head_dim has no meaning without mup_base_width; set that, or leave it out");
    return;
  }
  check(
      c.init == Init::normal || c.init == Init::gpt2 || c.init == Init::trunc_normal, where,
      ": mup_base_width divides an init_std that does not know the width; set init to normal, gpt2 "
      "or trunc_normal");
  check(c.mup_base_head_dim == 0 || c.attention_scale == 0, where,
        ": mup_base_head_dim and attention_scale both set the factor of the scores; leave one out");
  // Their inner sizes do not grow with the width as a plain block's do.
  check(c.architecture == Architecture::decoder && c.experts == 0 && c.mixer_pattern.empty() &&
            c.attention == AttentionKind::heads && c.layer_input_dim == 0 && c.embedding_dim == 0,
        where,
        ": mup_base_width is for decoders of plain blocks: attention = heads, without experts, "
        "mixer_pattern, layer_input_dim and embedding_dim");
}

void check_mup(const ModelConfig& c, const TrainConfig& t, const std::string& where) {
  using O = optim::OptimizerKind;
  const bool adams = t.optimizer == O::adamw || t.optimizer == O::adam || t.optimizer == O::nadam ||
                     t.optimizer == O::lion || t.optimizer == O::rmsprop;
  check(c.mup_base_width == 0 || adams, where,
        ": optimizer = ", enum_names(t.optimizer)[static_cast<size_t>(t.optimizer)],
        " is not one whose steps have a length of their own, as model.mup_base_width needs; set it "
        "to adamw, adam, nadam, lion or rmsprop");
}

}  // namespace tally
