// Recorded cases of arithmetic, reduction and layout, by the name that the record uses.
#include "autograd/functional.h"
#include "cli/verify_ops.h"

namespace tally::cli {
namespace {

using C = OpCase;

template <Tensor (*F)(const Tensor&)>
OpOutputs unary(const C& c) {
  return {{"y", F(c.in("x"))}};
}
template <Tensor (*F)(const Tensor&, const Tensor&)>
OpOutputs binary(const C& c) {
  return {{"y", F(c.in("a"), c.in("b"))}};
}
template <Tensor (*F)(const Tensor&, const Shape&, bool)>
OpOutputs reduction(const C& c) {
  return {{"y", F(c.in("x"), c.list("axes"), c.flag("keepdim"))}};
}

OpOutputs clamped(const C& c) { return {{"y", clamp(c.in("x"), c.number("lo"), c.number("hi"))}}; }
OpOutputs power(const C& c) { return {{"y", pow(c.in("x"), c.number("exponent"))}}; }
OpOutputs variance(const C& c) {
  return {{"y", var(c.in("x"), c.list("axes"), c.flag("keepdim"), c.flag("unbiased"))}};
}
OpOutputs running_sum(const C& c) { return {{"y", cumsum(c.in("x"), c.integer("axis"))}}; }
OpOutputs chosen(const C& c) { return {{"y", where(c.in("c"), c.in("a"), c.in("b"))}}; }

OpOutputs joined(const C& c) {
  return {{"y", concat({c.in("a"), c.in("b"), c.in("c")}, c.integer("axis"))}};
}
OpOutputs cut(const C& c) {
  const Shape sizes = c.list("sizes");
  std::vector<int64_t> parts;
  for (int i = 0; i < sizes.ndim(); ++i) parts.push_back(sizes[i]);
  const std::vector<Tensor> y = split(c.in("x"), parts, c.integer("axis"));
  return {{"a", y.at(0)}, {"b", y.at(1)}, {"c", y.at(2)}};
}
/// Each key/value head repeated three times in place.
OpOutputs repeated_heads(const C& c) {
  const Tensor& x = c.in("x");
  const int64_t b = x.size(0), g = x.size(1), t = x.size(2), k = x.size(3);
  const Tensor wide = expand(reshape(x, {b, g, 1, t, k}), {b, g, 3, t, k});
  return {{"y", reshape(contiguous(wide), {b, g * 3, t, k})}};
}
OpOutputs gathered(const C& c) { return {{"y", gather(c.in("x"), c.in("i"), c.integer("axis"))}}; }
OpOutputs selected(const C& c) {
  return {{"y", index_select(c.in("x"), c.in("i"), c.integer("axis"))}};
}
OpOutputs permuted(const C& c) { return {{"y", permute(c.in("x"), c.list("axes"))}}; }
OpOutputs reshaped(const C& c) {
  return {{"y", reshape(contiguous(transpose(c.in("x"), 0, 1)), {-1, 2})}};
}
OpOutputs sliced(const C& c) {
  const Tensor rows = slice(c.in("x"), 1, 1, 6, 2);
  return {{"y", slice(rows, 2, -2, rows.size(2))}};
}
OpOutputs largest(const C& c) {
  const auto [values, indices] = top_k(c.in("x"), c.integer("k"));
  return {{"values", values}, {"indices", indices}};
}
/// x, but `fill` above the diagonal.
OpOutputs masked_causal(const C& c) {
  const Tensor& x = c.in("x");
  const int64_t t = x.size(-1);
  std::vector<uint8_t> above;
  for (int64_t i = 0; i < t * t; ++i) above.push_back(i % t > i / t ? 1 : 0);
  const Tensor mask = from_host<uint8_t>(above, {t, t}, c.device);
  return {{"y", where(mask, c.constant(c.number("fill")), x)}};
}

/// Softmax along any axis: it goes to the end and back.
template <class F>
OpOutputs along_axis(const C& c, F&& f) {
  const Tensor& x = c.in("x");
  const int axis = c.has("axis") ? c.integer("axis") : -1;
  const Tensor y = f(contiguous(transpose(x, axis, -1)));
  return {{"y", transpose(y, axis, -1)}};
}
OpOutputs soft_max(const C& c) {
  return along_axis(c, [](const Tensor& x) { return softmax(x); });
}
OpOutputs log_soft_max(const C& c) {
  return along_axis(c, [](const Tensor& x) { return log_softmax(x); });
}
OpOutputs masked_soft_max(const C& c) { return {{"y", softmax(c.in("x"), c.in("mask"))}}; }
OpOutputs scaled_soft_max(const C& c) { return {{"y", softmax(c.in("x"), {}, c.number("scale"))}}; }
OpOutputs soft_max_off_by_one(const C& c) { return {{"y", sink_softmax(c.in("x"))}}; }
/// One sink for each slice of the first axis.
OpOutputs soft_max_sink(const C& c) {
  return {{"y", sink_softmax(c.in("x"), reshape(c.in("sink"), {-1, 1}))}};
}

void add_functions(OpTable& t) {
  t["abs"] = unary<abs>;
  t["neg"] = unary<neg>;
  t["exp"] = unary<exp>;
  t["log"] = unary<log>;
  t["sqrt"] = unary<sqrt>;
  t["rsqrt"] = unary<rsqrt>;
  t["reciprocal"] = unary<reciprocal>;
  t["square"] = unary<square>;
  t["sin"] = unary<sin>;
  t["cos"] = unary<cos>;
  t["erf"] = unary<erf>;
  t["clamp"] = clamped;
  t["pow"] = power;
  t["add"] = binary<add>;
  t["sub"] = binary<sub>;
  t["mul"] = binary<mul>;
  t["div"] = binary<div>;
  t["maximum"] = binary<maximum>;
  t["minimum"] = binary<minimum>;
  t["where"] = chosen;
}

}  // namespace

void add_basic_ops(OpTable& t) {
  add_functions(t);
  t["sum"] = reduction<sum>;
  t["mean"] = reduction<mean>;
  t["amax"] = reduction<amax>;
  t["logsumexp"] = reduction<logsumexp>;
  t["var"] = variance;
  t["cumsum"] = running_sum;
  t["concat"] = joined;
  t["split"] = cut;
  t["expand"] = repeated_heads;
  t["gather"] = gathered;
  t["index_select"] = selected;
  t["permute"] = permuted;
  t["reshape"] = reshaped;
  t["slice"] = sliced;
  t["topk"] = largest;
  t["tril_mask"] = masked_causal;
  t["softmax"] = soft_max;
  t["log_softmax"] = log_soft_max;
  t["masked_softmax"] = masked_soft_max;
  t["softmax_scaled"] = scaled_soft_max;
  t["softmax_off_by_one"] = soft_max_off_by_one;
  t["softmax_sink"] = soft_max_sink;
}

}  // namespace tally::cli
