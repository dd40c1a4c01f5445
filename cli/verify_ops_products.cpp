// Recorded cases of products, by the name that the record uses.
#include "autograd/functional.h"
#include "cli/verify_ops.h"

namespace tally::cli {
namespace {

OpOutputs linear_layer(const OpCase& c) {
  return {{"y", linear(c.in("x"), c.in("weight"), c.maybe("bias"))}};
}
/// GPT-2's Conv1D: weights stored (in, out).
OpOutputs conv1d_gpt2(const OpCase& c) {
  return {{"y", add(matmul(c.in("x"), c.in("weight")), c.in("bias"))}};
}
/// Rows of the weight divided by their length (Baichuan 2).
OpOutputs norm_head(const OpCase& c) {
  const Tensor& w = c.in("weight");
  const Tensor length = maximum(norm(w, {-1}, true), c.constant(1e-12));
  return {{"y", linear(c.in("x"), div(w, length))}};
}
OpOutputs product(const OpCase& c) { return {{"y", matmul(c.in("a"), c.in("b"))}}; }
OpOutputs transposed_product(const OpCase& c) {
  return {{"y", matmul(c.in("a"), c.in("b"), c.flag("trans_a"), c.flag("trans_b"))}};
}
OpOutputs depthwise_causal_conv(const OpCase& c) {
  return {{"y", causal_conv1d(c.in("x"), c.in("weight"), c.maybe("bias"))}};
}

}  // namespace

void add_product_ops(OpTable& t) {
  t["linear"] = linear_layer;
  t["linear_normhead"] = norm_head;
  t["matmul"] = product;
  t["matmul_t"] = transposed_product;
  t["conv1d_gpt2"] = conv1d_gpt2;
  t["depthwise_causal_conv"] = depthwise_causal_conv;
}

}  // namespace tally::cli
