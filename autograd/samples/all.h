#pragma once
// One line an op, in the order of core/ops/all.h.
#include "autograd/samples/activation.h"
#include "autograd/samples/adamw_update.h"
#include "autograd/samples/attention.h"
#include "autograd/samples/cast.h"
#include "autograd/samples/clip.h"
#include "autograd/samples/concat.h"
#include "autograd/samples/cross_entropy.h"
#include "autograd/samples/dropout.h"
#include "autograd/samples/elementwise.h"
#include "autograd/samples/embedding.h"
#include "autograd/samples/functions.h"
#include "autograd/samples/gate.h"
#include "autograd/samples/gather.h"
#include "autograd/samples/layer_norm.h"
#include "autograd/samples/layout.h"
#include "autograd/samples/linear.h"
#include "autograd/samples/linear_cross_entropy.h"
#include "autograd/samples/matmul.h"
#include "autograd/samples/reductions.h"
#include "autograd/samples/relative.h"
#include "autograd/samples/rms_norm.h"
#include "autograd/samples/rope.h"
#include "autograd/samples/soft_cap.h"
#include "autograd/samples/softmax.h"
#include "autograd/samples/top_k.h"
#include "autograd/samples/where.h"

namespace tally::samples {

inline std::vector<std::vector<Sample>> all() {
  return {
      activation(),
      adamw_update(),
      attention(),
      cast(),
      clip(),
      concat(),
      cross_entropy(),
      cumsum(),
      dropout(),
      elementwise(),
      embedding(),
      functions(),
      gate(),
      gather(),
      index_select(),
      layer_norm(),
      layout(),
      linear(),
      linear_cross_entropy(),
      log_softmax(),
      matmul(),
      reductions(),
      relative_bias(),
      relative_shift(),
      rms_norm(),
      rope(),
      soft_cap(),
      softmax(),
      split(),
      top_k(),
      where(),
  };
}

}  // namespace tally::samples
