#pragma once
// One line an op, in the order of core/ops/all.h.
#include "autograd/samples/activation.h"
#include "autograd/samples/adamw_update.h"
#include "autograd/samples/attention.h"
#include "autograd/samples/attention_grid.h"
#include "autograd/samples/attention_keys.h"
#include "autograd/samples/bases.h"
#include "autograd/samples/cast.h"
#include "autograd/samples/clip.h"
#include "autograd/samples/concat.h"
#include "autograd/samples/cross_entropy.h"
#include "autograd/samples/document_ids.h"
#include "autograd/samples/dropout.h"
#include "autograd/samples/elementwise.h"
#include "autograd/samples/embedding.h"
#include "autograd/samples/experts.h"
#include "autograd/samples/functions.h"
#include "autograd/samples/gate.h"
#include "autograd/samples/gather.h"
#include "autograd/samples/layer_norm.h"
#include "autograd/samples/layout.h"
#include "autograd/samples/learned_activations.h"
#include "autograd/samples/linear.h"
#include "autograd/samples/linear_cross_entropy.h"
#include "autograd/samples/matmul.h"
#include "autograd/samples/mixers.h"
#include "autograd/samples/moe_router.h"
#include "autograd/samples/reductions.h"
#include "autograd/samples/relative.h"
#include "autograd/samples/residual_add.h"
#include "autograd/samples/rms_norm.h"
#include "autograd/samples/rope.h"
#include "autograd/samples/selection_bias.h"
#include "autograd/samples/soft_cap.h"
#include "autograd/samples/softmax.h"
#include "autograd/samples/top_k.h"
#include "autograd/samples/updates.h"
#include "autograd/samples/where.h"

namespace tally::samples {

inline std::vector<std::vector<Sample>> all() {
  return {
      activation(),
      adafactor_update(),
      adagrad_update(),
      adam_quotient(),
      adamw_update(),
      attention(),
      attention_grid(),
      attention_keys(),
      basis_order(),
      blend(),
      cast(),
      stochastic_round(),
      causal_conv1d(),
      clip(),
      concat(),
      cross_entropy(),
      cumsum(),
      directed_update(),
      document_ids(),
      dropout(),
      eigen_basis(),
      elementwise(),
      embedding(),
      expert_combine(),
      expert_gather(),
      expert_linear(),
      functions(),
      gate(),
      gated_delta_rule(),
      gather(),
      index_select(),
      layer_norm(),
      layout(),
      learned_swish(),
      linear(),
      linear_cross_entropy(),
      lion_update(),
      load_balance_loss(),
      log_softmax(),
      matmul(),
      moe_router(),
      momentum_direction(),
      nadam_update(),
      orthonormal_columns(),
      reductions(),
      relative_bias(),
      relative_shift(),
      reordered(),
      residual_add(),
      rms_norm(),
      rmsprop_update(),
      root_columns(),
      rope(),
      scaled_gradient(),
      selection_bias(),
      selective_scan(),
      sgd_update(),
      sink_softmax(),
      soft_cap(),
      softmax(),
      split(),
      top_k(),
      unit_norm(),
      where(),
      xielu(),
  };
}

}  // namespace tally::samples
