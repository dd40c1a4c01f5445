// Recorded cases of mixtures of experts and of token mixers other than attention, by the name that
// the record uses.
#include "autograd/functional.h"
#include "cli/verify_ops.h"

namespace tally::cli {
namespace {

using C = OpCase;

OpOutputs only(const Tensor& y) { return {{"y", y}}; }

/// Records keep the experts' weights as (E, in, out); ours are (E, out, in).
Tensor out_in(const Tensor& w) { return transpose(w, 1, 2); }

/// y = sum_e w_e (silu(x g_e) * (x u_e)) d_e over the experts of each token.
OpOutputs moe_topk(const C& c) {
  ops::RouterOptions o;
  o.k = c.integer("k");
  o.renormalise = c.flag("renormalise");
  const auto [weights, chosen] = moe_router(matmul(c.in("x"), c.in("wr")), o);
  const auto [rows, places, offsets] = expert_gather(c.in("x"), chosen, c.integer("experts"));
  const Tensor up = concat({out_in(c.in("wg")), out_in(c.in("wu"))}, 1);
  const Tensor h = gate(expert_linear(rows, up, offsets), {}, ops::ActivationKind::silu);
  const Tensor y = expert_linear(h, contiguous(out_in(c.in("wd"))), offsets);
  return only(expert_combine(y, weights, places));
}
/// E sum_e f_e P_e: f_e the share of tokens whose first choice is e, P_e the mean probability.
OpOutputs balance_loss(const C& c) {
  const Tensor loss = load_balance_loss(c.in("logits"), top_k(c.in("logits").detach(), 1)[1]);
  return only(to(loss, c.dtype));
}
/// Records keep heads before tokens; ours are (B, T, H, ...), and a transposed view serves.
Tensor swapped(const Tensor& x) { return transpose(x, 1, 2); }
OpOutputs delta_rule(const C& c) {
  return only(swapped(gated_delta_rule(swapped(c.in("q")), swapped(c.in("k")), swapped(c.in("v")),
                                       swapped(c.in("g")), swapped(c.in("beta")))[0]));
}
OpOutputs scan(const C& c) {
  return only(
      selective_scan(c.in("x"), c.in("dt"), c.in("A"), c.in("Bm"), c.in("Cm"), c.maybe("D"))[0]);
}

}  // namespace

void add_mixer_ops(OpTable& table) {
  table["gated_delta_rule"] = delta_rule;
  table["moe_balance_switch"] = balance_loss;
  table["moe_topk"] = moe_topk;
  table["selective_scan"] = scan;
}

}  // namespace tally::cli
