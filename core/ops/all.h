#pragma once
// Every op of core, and the one list of their calls.
#include "core/ops/accumulate.h"
#include "core/ops/activation.h"
#include "core/ops/adafactor_update.h"
#include "core/ops/adamw_update.h"
#include "core/ops/adaptive_update.h"
#include "core/ops/attention/attention.h"
#include "core/ops/basis.h"
#include "core/ops/cast.h"
#include "core/ops/causal_conv1d.h"
#include "core/ops/clip.h"
#include "core/ops/concat.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/cumsum.h"
#include "core/ops/direction.h"
#include "core/ops/document_ids.h"
#include "core/ops/dropout.h"
#include "core/ops/eigen_basis.h"
#include "core/ops/elementwise.h"
#include "core/ops/embedding.h"
#include "core/ops/expert_combine.h"
#include "core/ops/expert_gather.h"
#include "core/ops/expert_linear.h"
#include "core/ops/functions.h"
#include "core/ops/gate.h"
#include "core/ops/gated_delta_rule.h"
#include "core/ops/gather.h"
#include "core/ops/layer_norm.h"
#include "core/ops/layout.h"
#include "core/ops/learned_swish.h"
#include "core/ops/linear.h"
#include "core/ops/linear_cross_entropy.h"
#include "core/ops/lion_update.h"
#include "core/ops/load_balance_loss.h"
#include "core/ops/matmul.h"
#include "core/ops/moe_router.h"
#include "core/ops/reductions.h"
#include "core/ops/relative_bias.h"
#include "core/ops/relative_shift.h"
#include "core/ops/residual_add.h"
#include "core/ops/rms_norm.h"
#include "core/ops/rope.h"
#include "core/ops/selection_bias.h"
#include "core/ops/selective_scan.h"
#include "core/ops/sgd_update.h"
#include "core/ops/sink_softmax.h"
#include "core/ops/soft_cap.h"
#include "core/ops/softmax.h"
#include "core/ops/stochastic_round.h"
#include "core/ops/top_k.h"
#include "core/ops/view_ops.h"
#include "core/ops/where.h"
#include "core/ops/xielu.h"

namespace tally {

using AllCalls = TypeList<
    // clang-format off
    ops::Abs::Forward, ops::Abs::Backward,
    ops::Accumulate::Call, ops::Accumulate::Sum,
    ops::Activation::Forward, ops::Activation::Backward,
    ops::AdafactorUpdate::Call,
    ops::AdagradUpdate::Call,
    ops::AdamQuotient::Call,
    ops::AdamWUpdate::Call,
    ops::Add::Forward,
    ops::AddScalar::Forward,
    ops::AMax::Forward, ops::AMax::Backward,
    ops::AMin::Forward, ops::AMin::Backward,
    ops::Attention::Forward, ops::Attention::Backward,
    ops::BasisOrder::Call,
    ops::Blend::Call,
    ops::Cast::Call,
    ops::CausalConv1d::Forward, ops::CausalConv1d::Backward,
    ops::Clamp::Forward, ops::Clamp::Backward,
    ops::ClipFactor::Call,
    ops::Copy::Call,
    ops::Cos::Forward, ops::Cos::Backward,
    ops::CrossEntropy::Forward, ops::CrossEntropy::Backward,
    ops::CumSum::Call,
    ops::DirectedUpdate::Call,
    ops::Div::Forward, ops::Div::Backward,
    ops::DocumentIds::Call,
    ops::Dropout::Call,
    ops::EigenBasis::Call,
    ops::Embedding::Forward, ops::Embedding::Backward,
    ops::Erf::Forward, ops::Erf::Backward,
    ops::Exp::Forward, ops::Exp::Backward,
    ops::ExpertCombine::Forward, ops::ExpertCombine::Backward,
    ops::ExpertGather::Forward, ops::ExpertGather::Backward,
    ops::ExpertLinear::Forward, ops::ExpertLinear::Backward,
    ops::Gate::Forward, ops::Gate::Backward,
    ops::GatedDeltaRule::Forward, ops::GatedDeltaRule::Backward,
    ops::GatherCalls::Forward, ops::GatherCalls::Backward,
    ops::LayerNorm::Forward, ops::LayerNorm::Backward,
    ops::LearnedSwish::Forward, ops::LearnedSwish::Backward,
    ops::Linear::Forward, ops::Linear::Backward,
    ops::LinearCrossEntropy::Forward, ops::LinearCrossEntropy::Backward,
    ops::LionUpdate::Call,
    ops::LoadBalanceLoss::Forward, ops::LoadBalanceLoss::Backward,
    ops::Log::Forward, ops::Log::Backward,
    ops::LogSoftmax::Forward, ops::LogSoftmax::Backward,
    ops::LogSumExp::Forward, ops::LogSumExp::Backward,
    ops::MatMul::Call,
    ops::Maximum::Forward, ops::Maximum::Backward,
    ops::Mean::Forward, ops::Mean::Backward,
    ops::Minimum::Forward, ops::Minimum::Backward,
    ops::MoeRouter::Forward, ops::MoeRouter::Backward,
    ops::MomentumDirection::Call,
    ops::Mul::Forward, ops::Mul::Backward,
    ops::NadamUpdate::Call,
    ops::Narrow::Backward,
    ops::Neg::Forward, ops::Neg::Backward,
    ops::Norm::Forward, ops::Norm::Backward,
    ops::OrthonormalColumns::Call,
    ops::Pow::Forward, ops::Pow::Backward,
    ops::Reciprocal::Forward, ops::Reciprocal::Backward,
    ops::RelativeBias::Forward, ops::RelativeBias::Backward,
    ops::RelativeShift::Forward, ops::RelativeShift::Backward,
    ops::Reordered::Call,
    ops::ResidualAdd::Forward, ops::ResidualAdd::Backward,
    ops::RMSNorm::Forward, ops::RMSNorm::Backward,
    ops::RmspropUpdate::Call,
    ops::RootColumns::Call,
    ops::Rope::Forward, ops::Rope::Backward,
    ops::Rsqrt::Forward, ops::Rsqrt::Backward,
    ops::Scale::Forward, ops::Scale::Backward,
    ops::ScaledGradient::Call,
    ops::SelectionBias::Count, ops::SelectionBias::Update,
    ops::SelectiveScan::Forward, ops::SelectiveScan::Backward,
    ops::SgdUpdate::Call,
    ops::Sin::Forward, ops::Sin::Backward,
    ops::SinkSoftmax::Forward, ops::SinkSoftmax::Backward,
    ops::SoftCap::Forward, ops::SoftCap::Backward,
    ops::Softmax::Forward, ops::Softmax::Backward,
    ops::Sqrt::Forward, ops::Sqrt::Backward,
    ops::Square::Forward, ops::Square::Backward,
    ops::SquareSum::Call,
    ops::Sub::Forward, ops::Sub::Backward,
    ops::Sum::Forward, ops::Sum::Backward,
    ops::StochasticRound::Call,
    ops::TopK::Forward, ops::TopK::Backward,
    ops::UnitNorm::Call,
    ops::Var::Forward, ops::Var::Backward,
    ops::Where::Forward, ops::Where::Backward,
    ops::Xielu::Forward, ops::Xielu::Backward
    // clang-format on
    >;

}  // namespace tally
