#pragma once
// Every kernel header, and the table of what they define. Included by the isa_*.cpp alone, each of
// which is compiled for its own instruction set.
#include "backends/cpu/activation_kernels.h"
#include "backends/cpu/attention_backward_kernels.h"
#include "backends/cpu/attention_kernels.h"
#include "backends/cpu/ceiling_kernels.h"
#include "backends/cpu/curve_kernels.h"
#include "backends/cpu/dropout_kernels.h"
#include "backends/cpu/elementwise_kernels.h"
#include "backends/cpu/few_rows_kernels.h"
#include "backends/cpu/gemm_kernels.h"
#include "backends/cpu/half_kernels.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/loss_kernels.h"
#include "backends/cpu/map.h"
#include "backends/cpu/norm_kernels.h"
#include "backends/cpu/optimizer_kernels.h"
#include "backends/cpu/reduce_kernels.h"
#include "backends/cpu/rope_kernels.h"
#include "backends/cpu/softmax_kernels.h"

namespace tally::cpu {
namespace {

constexpr IsaTable make_table(Isa which) {
  return {
      .isa = which,
      .map = map,
      .fma_chains = fma_chains,
      .read_all = read_all,
      .copy_all = copy_all,
      .gemm_f32 = {gemm_pack_a<float>, gemm_pack_b<float>, gemm_multiply<float>, kTileRows},
      .gemm_f64 = {gemm_pack_a<double>, gemm_pack_b<double>, gemm_multiply<double>, kTileRows},
      .few_rows = few_rows<float>,
      .few_rows_half = few_rows<uint16_t>,
      .norm_forward = norm_forward,
      .norm_backward = norm_backward,
      .column_sums = column_sums,
      .attention_forward = attention_forward,
      .attention_backward = attention_backward,
      .attention_half = attention_half,
      .widen = widen,
      .narrow = narrow,
      .add = add,
      .scale = scale,
      .dropout = dropout,
      .activation_forward = activation_forward,
      .activation_backward = activation_backward,
      .gate_forward = gate_forward,
      .gate_backward = gate_backward,
      .soft_cap = soft_cap,
      .learned_swish = learned_swish,
      .xielu = xielu,
      .adamw = adamw,
      .square_sum_f64 = square_sum_f64,
      .loss_sums = loss_sums,
      .loss_gradient = loss_gradient,
      .loss_largest = loss_largest,
      .fold_row = fold_row,
      .fold_rows = fold_rows,
      .spread_row = spread_row,
      .softmax_forward = softmax_forward,
      .softmax_backward = softmax_backward,
      .rope_turn = rope_turn,
  };
}

}  // namespace
}  // namespace tally::cpu
