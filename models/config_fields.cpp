// What a configuration document may say of a model. A row is all there is to a field: parsing,
// printing, ranges, did-you-mean and docs/config.md read it here.
#include "models/field_rows.h"

namespace tally {
namespace {

using detail::flag;
using detail::number;
using M = ModelConfig;

std::vector<Field<M>> all_fields() {
  std::vector<Field<M>> fields = {
      Field<M>{"name", &M::name, 0, 0, "what reports call the model"},
      number("layers", &M::layers, 1, 10000, "number of blocks"),
      number("d_model", &M::d_model, 1, 1 << 20, "width of the residual stream"),
      number("heads", &M::heads, 1, 1 << 16, "query heads"),
      number("kv_heads", &M::kv_heads, 0, 1 << 16,
             "key and value heads: a divisor of heads; 0: as many as heads (Ainslie et al. 2023, "
             "arXiv:2305.13245)"),
      number("head_dim", &M::head_dim, 0, 1 << 16, "width of one head; 0: d_model / heads"),
      number("d_ff", &M::d_ff, 0, 1 << 22,
             "width of the feed-forward layer, of one branch if gated; 0: 4 d_model, gated: 8/3 "
             "d_model rounded up to a multiple of 64"),
      number("embedding_dim", &M::embedding_dim, 0, 1 << 20,
             "width of the embedding and the head, which two products make d_model and back "
             "(OPT-350M, arXiv:2205.01068); 0: d_model, without products"),
      number("vocab", &M::vocab, 1, 1 << 24, "number of token ids"),
      number("context", &M::context, 1, 1 << 30, "longest sequence, in tokens"),
      enum_field<&M::architecture>(
          "architecture",
          "decoder (a token sees what came before), encoder (BERT: every token sees all; Devlin et "
          "al. 2018, arXiv:1810.04805) or encoder_decoder (T5: a decoder that reads an encoder's "
          "output; Vaswani et al. 2017, arXiv:1706.03762)"),
      number("encoder_layers", &M::encoder_layers, 0, 10000,
             "encoder_decoder: layers of the encoder; 0: as many as layers"),
      number("encoder_heads", &M::encoder_heads, 0, 1 << 16,
             "encoder_decoder: heads of the encoder, together as wide as the decoder's; 0: heads"),
      number("encoder_d_ff", &M::encoder_d_ff, 0, 1 << 22,
             "encoder_decoder: d_ff of the encoder; 0: d_ff"),
      number("segment_types", &M::segment_types, 0, 1 << 20,
             "encoder: kinds of segments that have a row each, added to the embedding"),
      number("padding_id", &M::padding_id, -1, 1 << 24,
             "encoder, encoder_decoder: the id whose row gets no gradient; -1: none"),
      enum_field<&M::attention>(
          "attention",
          "heads (keys and values of each group of heads), latent (of all heads from one small "
          "latent, which is all that a cache keeps; DeepSeek-AI 2024, arXiv:2405.04434) or shared "
          "(heads, whose keys and values later layers may take; Brandon et al. 2024, "
          "arXiv:2405.12981)"),
      number("q_lora_rank", &M::q_lora_rank, 0, 1 << 20,
             "latent: rank of the queries' product; 0: queries straight from the stream"),
      number("kv_lora_rank", &M::kv_lora_rank, 0, 1 << 20, "latent: width of the latent"),
      number("qk_nope_head_dim", &M::qk_nope_head_dim, 0, 1 << 16,
             "latent: part of a head that does not turn; head_dim is this and the next"),
      number("qk_rope_head_dim", &M::qk_rope_head_dim, 0, 1 << 16,
             "latent: part of a head that turns, whose one key serves all heads"),
      number("v_head_dim", &M::v_head_dim, 0, 1 << 16, "latent: width of a head's values"),
      number("latent_norm_eps", &M::latent_norm_eps, 0, 1, "latent: norm_eps of its two norms"),
      number("global_head_dim", &M::global_head_dim, 0, 1 << 16,
             "shared: head_dim of layers without a window (Gemma 4); 0: head_dim"),
      number("global_kv_heads", &M::global_kv_heads, 0, 1 << 16,
             "shared: kv_heads of layers without a window; 0: kv_heads"),
      number(
          "shared_kv_layers", &M::shared_kv_layers, 0, 10000,
          "shared: so many last layers take keys and values of the last one before them that has "
          "a window as they do, or none"),
      number(
          "shared_kv_d_ff", &M::shared_kv_d_ff, 0, 1 << 22,
          "shared: d_ff of the layers that take keys and values (Gemma 4 E2B: twice the others'); "
          "0: d_ff"),
      flag("keys_as_values", &M::keys_as_values,
           "shared: layers without a window have one product for keys and values"),
      flag("value_norm", &M::value_norm,
           "shared: each head's values are normalised, without a gain"),
      number(
          "layer_input_dim", &M::layer_input_dim, 0, 1 << 16,
          "width of an embedding of every layer's own, which a gate of the stream lets in behind "
          "its branches (Gemma 3n, 4: 256); 0: none"),
      flag("layer_scale", &M::layer_scale,
           "a layer's output times a number that is kept beside the weights and not trained "
           "(Gemma 4)"),
      Field<M>{"mixer_pattern", &M::mixer_pattern, 0, 0,
               "what mixes the tokens of the layers, from the first again when the list ends: "
               "attention, delta (a gated delta net: Yang et al. 2024, arXiv:2412.06464) or mamba "
               "(Gu and Dao 2023, arXiv:2312.00752); empty: all attention"},
      number("delta_key_heads", &M::delta_key_heads, 0, 1 << 16,
             "delta: heads of queries and keys; 0: heads"),
      number("delta_value_heads", &M::delta_value_heads, 0, 1 << 16,
             "delta: heads of values, a multiple of these; 0: as many"),
      number("delta_key_dim", &M::delta_key_dim, 0, 1 << 16,
             "delta: width of a head's queries and keys; 0: head_dim"),
      number("delta_value_dim", &M::delta_value_dim, 0, 1 << 16,
             "delta: width of a head's values; 0: delta_key_dim"),
      number("mamba_inner", &M::mamba_inner, 0, 1 << 22, "mamba: channels; 0: 2 d_model"),
      number("mamba_state", &M::mamba_state, 0, 1 << 16,
             "mamba: numbers of state a channel; 0: 16"),
      number("mamba_dt_rank", &M::mamba_dt_rank, 0, 1 << 20,
             "mamba: rank of the step's product; 0: d_model / 16, rounded up"),
      flag("mamba_norms", &M::mamba_norms,
           "mamba: an RMSNorm each of what the step, B and C are made from (Jamba: Lieber et al. "
           "2024, arXiv:2403.19887)"),
      flag("mamba_conv_bias", &M::mamba_conv_bias, "mamba: a bias in its convolution"),
      number("conv_width", &M::conv_width, 0, 1 << 10,
             "delta, mamba: tokens that the convolution in front sees; 0: 4"),
  };
  for (const auto& part : {detail::block_fields(), detail::position_fields()})
    fields.insert(fields.end(), part.begin(), part.end());
  return fields;
}

}  // namespace

std::span<const Field<ModelConfig>> model_fields() {
  static const std::vector<Field<M>> fields = all_fields();
  return fields;
}

}  // namespace tally
