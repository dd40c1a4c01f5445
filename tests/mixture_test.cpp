// Mixtures of experts: the dense composition they must equal, their work, and a pass played again.
#include "core/program.h"
#include "nn/mixture_of_experts.h"
#include "tests/op_values.h"
#include "tests/worse.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t kTokens = 7, kWidth = 6, kInner = 5, kExperts = 4;

Tensor random(const Shape& shape, uint64_t seed, Device device) {
  return make_input(normal(shape, seed, 0.7), DType::f64, device);
}

nn::MixtureOptions options(int64_t k, bool renormalise) {
  nn::MixtureOptions o;
  o.d_model = kWidth, o.d_ff = kInner, o.experts = kExperts;
  o.router.k = k, o.router.renormalise = renormalise;
  return o;
}

nn::MixtureOfExperts layer_of(const nn::MixtureOptions& o, Device device) {
  nn::MixtureOfExperts layer(o, DType::f64, device);
  uint64_t seed = 10;
  layer.for_each_parameter(
      [&](const std::string&, Tensor& p) { p = random(p.shape(), seed++, device); });
  layer.requires_grad();
  return layer;
}

// One number for each element of (N, E): the weight of an expert for a token, 0 where not chosen.
Tensor dense_weights(const nn::MixtureOptions& o, const Tensor& logits, const Tensor& chosen) {
  const int64_t n = logits.size(0);
  std::vector<uint8_t> mask(static_cast<size_t>(n * o.experts), 0);
  const auto experts = to_host<int64_t>(chosen);
  for (size_t i = 0; i < experts.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / o.router.k;
    mask[static_cast<size_t>(row * o.experts + experts[i])] = 1;
  }
  const Tensor allowed =
      from_host<uint8_t>(std::span<const uint8_t>(mask), {n, o.experts}, logits.device());
  if (o.router.renormalise) return softmax(logits, allowed);
  const Tensor zero = full({}, 0, logits.dtype(), logits.device());
  return where(allowed, softmax(logits), zero);
}

Tensor row_of(const Tensor& t, int64_t e) {
  return t.defined() ? reshape(narrow(t, 0, e, 1), t.shape().drop_last().ndim() == 1
                                                       ? Shape{t.size(1)}
                                                       : Shape{t.size(1), t.size(2)})
                     : Tensor();
}

// Every expert on every token, the outputs multiplied by the weights.
Tensor dense(const nn::MixtureOfExperts& layer, const nn::MixtureOptions& o, const Tensor& x,
             const Tensor& chosen) {
  const Tensor logits = linear(x, layer.router.weight, layer.router.bias);
  const Tensor weights = dense_weights(o, logits, chosen);
  Tensor y;
  for (int64_t e = 0; e < o.experts; ++e) {
    const Tensor wide = linear(x, row_of(layer.up.weight, e), row_of(layer.up.bias, e));
    Tensor h = activation(o.gated ? narrow(wide, 1, 0, o.d_ff) : wide, o.activation);
    if (o.gated) h = mul(h, narrow(wide, 1, o.d_ff, o.d_ff));
    const Tensor out = linear(h, row_of(layer.down.weight, e), row_of(layer.down.bias, e));
    const Tensor part = mul(out, narrow(weights, 1, e, 1));
    y = y.defined() ? add(y, part) : part;
  }
  if (layer.shared) {
    Tensor common = layer.shared->forward(x);
    if (layer.shared_gate.defined()) {
      common = mul(common, activation(linear(x, layer.shared_gate), ops::ActivationKind::sigmoid));
    }
    y = add(y, common);
  }
  return y;
}

struct Run {
  Numbers y;
  std::vector<Numbers> gradients;  // of x, then of each parameter
};

template <class Forward>
Run run_of(nn::MixtureOfExperts& layer, Device device, Forward&& forward) {
  layer.zero_grad();
  Tensor x = random({kTokens, kWidth}, 1, device);
  x.requires_grad_();
  const Tape tape;
  const Tensor y = forward(x);
  backward(y, random(y.shape(), 2, device));
  Run r{numbers(y), {numbers(x.grad())}};
  for (const auto& [name, p] : layer.named_parameters()) r.gradients.push_back(numbers(p.grad()));
  return r;
}

void check_equal(const Numbers& a, const Numbers& b, const std::string& what) {
  REQUIRE(a.size() == b.size());
  double size = 1e-3, error = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    size = std::max(size, std::fabs(b[i]));
    error = test::worse(error, a[i], b[i]);
  }
  INFO(what << ": error " << error << ", largest " << size);
  CHECK(error <= 1e-12 * size);
}

void compare_with_dense(const nn::MixtureOptions& o, Device device) {
  nn::MixtureOfExperts layer = layer_of(o, device);
  Tensor chosen;
  const Run sparse = run_of(layer, device, [&](const Tensor& x) {
    const nn::MixtureOutput out = layer.route(x);
    chosen = out.chosen;
    return out.y;
  });
  const Run whole =
      run_of(layer, device, [&](const Tensor& x) { return dense(layer, o, x, chosen); });
  check_equal(sparse.y, whole.y, "y");
  REQUIRE(sparse.gradients.size() == whole.gradients.size());
  for (size_t i = 0; i < whole.gradients.size(); ++i)
    check_equal(sparse.gradients[i], whole.gradients[i], "gradient " + to_text(i));
}

double flops_of(const nn::MixtureOptions& o, const char* op) {
  const nn::MixtureOfExperts layer = layer_of(o, kCPU);
  const Ledger ledger;
  layer.forward(random({kTokens, kWidth}, 1, kCPU));
  double sum = 0;
  for (const Entry& e : ledger.entries()) sum += std::string(e.op) == op ? e.cost.flops : 0;
  return sum;
}

}  // namespace

TEST_CASE_METHOD(Setup, "mixture of experts: equals the dense composition in value and gradient",
                 "[op]") {
  for (Device device : {kReference, kCPU}) {
    for (bool renormalise : {true, false}) {
      for (int64_t k : {1, 2, 4}) {
        compare_with_dense(options(k, renormalise), device);
        nn::MixtureOptions all = options(k, renormalise);
        all.bias = all.router_bias = all.selection_bias = all.shared_gate = true;
        all.shared_ff = 3;
        all.activation = ops::ActivationKind::gelu;
        compare_with_dense(all, device);
        all.gated = all.shared_gate = false;
        compare_with_dense(all, device);
      }
    }
  }
}

TEST_CASE_METHOD(Setup, "mixture of experts: the work grows with k, not with the number of experts",
                 "[op]") {
  nn::MixtureOptions few = options(2, true), many = few, more = few;
  many.experts = 64;
  more.router.k = 4;
  const double work = flops_of(few, "expert_linear.forward");
  CHECK(work == 6.0 * kTokens * 2 * kWidth * kInner);
  CHECK(flops_of(many, "expert_linear.forward") == work);
  CHECK(flops_of(more, "expert_linear.forward") == 2 * work);
}

TEST_CASE_METHOD(Setup, "mixture of experts: one token reads the weights of the experts it uses",
                 "[op]") {
  nn::MixtureOptions o = options(2, true);
  o.experts = 16;
  const auto bytes_of = [&](int64_t tokens, Device device) {
    const nn::MixtureOfExperts layer(o, DType::f64, device);
    const Ledger ledger;
    layer.forward(empty({tokens, kWidth}, DType::f64, device));
    double sum = 0;
    for (const Entry& e : ledger.entries())
      sum += std::string(e.op) == "expert_linear.forward" ? e.cost.bytes_read : 0;
    return sum;
  };
  const double expert = 8.0 * 3 * kInner * kWidth, rows = 8.0 * (kWidth + kInner),
               plan = 2.0 * 8 * (16 + 1);
  CHECK(bytes_of(1, kMeta) == 2 * expert + 2 * rows + plan);
  CHECK(bytes_of(3, kMeta) == 6 * expert + 6 * rows + plan);
  CHECK(bytes_of(100, kMeta) == 16 * expert + 200 * rows + plan);  // all of them at most
}

TEST_CASE_METHOD(Setup, "mixture of experts: a step on meta has the ledger of a real one", "[op]") {
  const auto text = [](Device device) {
    nn::MixtureOfExperts layer(options(2, true), DType::f64, device);
    layer.for_each_parameter(
        [&](const std::string&, Tensor& p) { p = full(p.shape(), 0.1, p.dtype(), device); });
    layer.requires_grad();
    const Ledger ledger;
    const Tape tape;
    const nn::MixtureOutput out = layer.route(full({2, 3, kWidth}, 0.5, DType::f64, device));
    backward(add(sum(out.y), out.balance_loss()));
    return ledger.text();
  };
  CHECK(text(kCPU) == text(kMeta));
}

TEST_CASE_METHOD(Setup, "mixture of experts: a recorded pass is played again with another choice",
                 "[op]") {
  const nn::MixtureOfExperts layer = layer_of(options(2, true), kCPU);
  const Tensor x = random({kTokens, kWidth}, 1, kCPU), other = random(x.shape(), 3, kCPU);
  Program program;
  nn::MixtureOutput out;
  {
    Program::Capture capture(program, {});
    out = layer.route(x);
    capture.finish(0);
  }
  const Numbers before = numbers(out.chosen);
  backend(kCPU).copy(x.data(), other.data(), x.nbytes());
  program.run({});
  const nn::MixtureOutput plain = layer.route(other);
  CHECK(numbers(out.chosen) != before);
  CHECK(numbers(out.chosen) == numbers(plain.chosen));
  CHECK(numbers(out.y) == numbers(plain.y));
}

TEST_CASE_METHOD(Setup, "mixture of experts: the bias of the choice is a buffer, not a parameter",
                 "[op]") {
  nn::MixtureOptions o = options(2, true);
  o.selection_bias = true;
  nn::MixtureOfExperts layer = layer_of(o, kReference);
  for (const auto& [name, p] : layer.named_parameters()) CHECK(name != "router.selection_bias");
  const auto buffers = layer.named_buffers();
  REQUIRE(buffers.size() == 1);
  CHECK(buffers[0].first == "router.selection_bias");
  CHECK(buffers[0].second.is(layer.selection_bias));
  CHECK_FALSE(buffers[0].second.requires_grad());
  // It moves the choice: what it favours is chosen for every token.
  const Tensor favour = full({}, 100, DType::f64, kReference);
  backend(kReference).copy(layer.selection_bias.narrow(0, 3, 1).data(), favour.data(), 8);
  const auto chosen =
      to_host<int64_t>(layer.route(random({kTokens, kWidth}, 1, kReference)).chosen);
  for (size_t i = 0; i < chosen.size(); i += 2) CHECK(chosen[i] == 3);
}

TEST_CASE_METHOD(Setup, "mixture of experts: sizes and choices without a meaning are errors",
                 "[op][error]") {
  const auto make = [](const nn::MixtureOptions& o) {
    return nn::MixtureOfExperts(o, DType::f32, kReference);
  };
  nn::MixtureOptions o = options(5, true);
  CHECK_THROWS_WITH(make(o), Contains("moe_router: k must be in 1..4") && Contains("got 5"));
  o = options(2, true);
  o.d_ff = 0;
  CHECK_THROWS_WITH(make(o), Contains("must be 1 or more; got 6, 0 and 4"));
  o = options(2, true);
  o.shared_gate = true;
  CHECK_THROWS_WITH(make(o), Contains("set shared_ff"));
}
