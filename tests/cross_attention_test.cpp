// Attention over a memory.
#include "nn/cross_attention.h"
#include "tests/layer_values.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

nn::CrossAttentionOptions cross_options(bool fused) {
  nn::CrossAttentionOptions o;
  o.d_model = 6, o.d_memory = 5, o.heads = 4, o.kv_heads = 2, o.head_dim = 3;
  o.qkv_bias = o.out_bias = true;
  o.fused = fused;
  return o;
}

}  // namespace

TEST_CASE_METHOD(Setup, "cross attention: keys and values kept from the memory give the full pass",
                 "[layer]") {
  for (Device device : {kReference, kCPU}) {
    for (bool fused : {false, true}) {
      nn::CrossAttention layer(cross_options(fused), DType::f64, device);
      randomise(layer, device);
      const Tensor x = random({2, 7, 6}, 1, device), memory = random({2, 5, 5}, 2, device),
                   mask = mask_of({1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, {2, 5}, device);
      const Tensor whole = layer.forward(x, memory, mask, {}, nullptr);
      const auto kept = layer.remember(memory);
      for (int64_t t = 0; t < 7; ++t) {
        const Tensor one = layer.recall(copy(x.narrow(1, t, 1)), kept, mask, {});
        CHECK(largest_difference(one, copy(whole.narrow(1, t, 1))) <= 1e-14);
      }
    }
  }
}

TEST_CASE_METHOD(Setup,
                 "cross attention: what is padding does not reach the output, nor gets a "
                 "gradient",
                 "[layer]") {
  for (Device device : {kReference, kCPU}) {
    nn::CrossAttention layer(cross_options(true), DType::f64, device);
    randomise(layer, device);
    const Tensor x = random({1, 3, 6}, 1, device), mask = mask_of({1, 1, 0, 0}, {1, 4}, device);
    Numbers outputs[2];
    for (int i : {0, 1}) {
      Numbers values = numbers(random({1, 4, 5}, 2, device));
      if (i == 1)
        for (size_t k = 10; k < 20; ++k) values[k] = 1e3 * static_cast<double>(k);
      Tensor memory = from_host<double>(std::span<const double>(values), {1, 4, 5}, device);
      memory.requires_grad_();
      Tape tape;
      const Tensor y = layer.forward(x, memory, mask, {}, nullptr);
      tape.backward(sum(y));
      outputs[i] = numbers(y);
      const Numbers gradient = numbers(memory.grad());
      double seen = 0, hidden = 0;
      for (size_t k = 0; k < 20; ++k) (k < 10 ? seen : hidden) += std::fabs(gradient[k]);
      CHECK(seen > 0);
      CHECK(hidden == 0);
    }
    CHECK(outputs[0] == outputs[1]);
  }
}

TEST_CASE_METHOD(Setup, "cross attention: over itself, both ways to the input get their gradient",
                 "[layer]") {
  nn::CrossAttentionOptions o = cross_options(false);
  o.d_memory = 0;
  nn::CrossAttention layer(o, DType::f64, kReference);
  randomise(layer, kReference);
  Tensor x = random({2, 4, 6}, 1, kReference), q = copy(x), m = copy(x);
  for (Tensor* t : {&x, &q, &m}) t->requires_grad_();
  Tape tape;
  tape.backward(sum(layer.forward(x, x, {}, {}, nullptr)));
  tape.backward(sum(layer.forward(q, m, {}, {}, nullptr)));
  CHECK(largest_difference(x.grad(), add(q.grad().detach(), m.grad().detach())) <= 1e-14);
}

TEST_CASE_METHOD(Setup, "cross attention: tokens of a causal one from the cache give the full pass",
                 "[layer]") {
  nn::CrossAttentionOptions o = cross_options(true);
  o.d_memory = 0, o.causal = true;
  nn::CrossAttention layer(o, DType::f64, kCPU);
  randomise(layer, kCPU);
  const Tensor x = random({2, 6, 6}, 1, kCPU), bias = random({4, 6, 6}, 2, kCPU);
  const Tensor whole = layer.forward(x, x, {}, bias, nullptr);
  nn::KVCache cache(1, 2, 6, o.kv_heads, o.head_dim, DType::f64, kCPU);
  for (int64_t t = 0; t < 6; ++t) {
    const Tensor row = copy(bias.narrow(1, t, 1).narrow(2, 0, t + 1));
    const Tensor one = layer.forward_cached(copy(x.narrow(1, t, 1)), row, cache.layer(0));
    CHECK(largest_difference(one, copy(whole.narrow(1, t, 1))) <= 1e-14);
  }
}

TEST_CASE_METHOD(Setup, "cross attention: what does not fit is an error", "[layer][error]") {
  nn::CrossAttention layer(cross_options(false), DType::f64, kReference);
  randomise(layer, kReference);
  const Tensor x = random({2, 3, 6}, 1, kReference), memory = random({2, 4, 5}, 2, kReference);
  const auto run = [&](const Tensor& a, const Tensor& b, const Tensor& mask) {
    layer.forward(a, b, mask, {}, nullptr);
  };
  CHECK_THROWS_WITH(run(x, {}, {}), Contains("memory is missing"));
  CHECK_THROWS_WITH(run(x, random({4, 5}, 3, kReference), {}),
                    Contains("memory must be (B, S, E)"));
  CHECK_THROWS_WITH(run(random({3, 3, 6}, 4, kReference), memory, {}),
                    Contains("one batch") && Contains("B = 3 and 2"));
  CHECK_THROWS_WITH(run(x, memory, mask_of({1, 1, 0}, {1, 3}, kReference)),
                    Contains("mask must be (B, S) = (2, 4)"));
  nn::CrossAttentionOptions o = cross_options(false);
  o.head_dim = 0;
  CHECK_THROWS_WITH(nn::CrossAttention(o, DType::f64, kReference), Contains("must be 1 or more"));
  layer.q.weight = random({5, 6}, 5, kReference);
  CHECK_THROWS_WITH(run(x, memory, {}), Contains("weight of q must have 12 rows"));
}
