// Latent attention: the absorbed path against the plain one, gradients, what a cache holds. Recorded
// values and gradients of a public implementation are in tests/op_fixture_test.cpp (mla_layer).
#include "nn/latent_attention.h"

#include "core/ops/position.h"
#include "tests/layer_checks.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t kBatch = 2, kTokens = 6;

nn::LatentAttentionOptions options(int64_t q_rank) {
  nn::LatentAttentionOptions o;
  o.d_model = 7, o.heads = 3, o.kv_lora_rank = 5, o.q_lora_rank = q_rank;
  o.qk_nope_head_dim = 4, o.qk_rope_head_dim = 2, o.v_head_dim = 3;
  return o;
}

Tensor random(const Shape& shape, uint64_t seed, Device device) {
  return make_input(normal(shape, seed, 0.7), DType::f64, device);
}

nn::LatentAttention layer_of(const nn::LatentAttentionOptions& o, Device device) {
  nn::LatentAttention layer(o, DType::f64, device);
  uint64_t seed = 10;
  layer.for_each_parameter(
      [&](const std::string&, Tensor& p) { p = random(p.shape(), seed++, device); });
  return layer;
}

nn::Positions positions_of(const nn::LatentAttentionOptions& o, Device device) {
  nn::Positions p;
  p.table = rope_table(kTokens, o.qk_rope_head_dim, 10000, DType::f64, device);
  return p;
}

}  // namespace

TEST_CASE_METHOD(Setup, "latent attention: decoding equals the full pass at every position",
                 "[layer]") {
  for (Device device : {kReference, kCPU}) {
    for (int64_t q_rank : {0, 3}) {
      const auto o = options(q_rank);
      const nn::LatentAttention layer = layer_of(o, device);
      nn::Positions positions = positions_of(o, device);
      const Tensor x = random({kBatch, kTokens, o.d_model}, 1, device);
      const Tensor whole = layer.forward(x, positions);
      for (int64_t prompt = 1; prompt <= kTokens; ++prompt) {
        nn::KVCache::Layer cache = layer.make_cache(kBatch, kTokens);
        for (int64_t at = 0; at < kTokens;) {
          const int64_t count = at == 0 ? prompt : 1;
          positions.offset = at;
          const Tensor y =
              layer.forward_cached(contiguous(x.narrow(1, at, count)), positions, cache);
          INFO("prompt " << prompt << ", position " << at << ", q_lora_rank " << q_rank);
          CHECK(test::error_of(y, whole, at) <= 1e-13);
          at += count;
          CHECK(cache.length() == at);
        }
      }
    }
  }
}

TEST_CASE_METHOD(Setup, "latent attention: gradients equal differences", "[layer]") {
  for (int64_t q_rank : {0, 3}) {
    const auto o = options(q_rank);
    nn::LatentAttention layer = layer_of(o, kReference);
    const nn::Positions positions = positions_of(o, kReference);
    test::check_gradients(layer, random({kBatch, 3, o.d_model}, 1, kReference),
                          [&](const Tensor& x) { return layer.forward(x, positions); });
  }
}

TEST_CASE_METHOD(Setup, "L96: a token takes 576 numbers of a latent cache at DeepSeek-V2's sizes",
                 "[claim]") {
  nn::LatentAttentionOptions o;
  o.d_model = 5120, o.heads = 128, o.kv_lora_rank = 512, o.q_lora_rank = 1536;
  o.qk_nope_head_dim = 128, o.qk_rope_head_dim = 64, o.v_head_dim = 128;
  const nn::LatentAttention layer(o, DType::bf16, kMeta);
  nn::KVCache::Layer cache = layer.make_cache(1, 4096);
  nn::Positions positions;
  positions.table = rope_table(4096, o.qk_rope_head_dim, 10000, DType::f32, kMeta);
  layer.forward_cached(empty({1, 4095, 5120}, DType::bf16, kMeta), positions, cache);
  positions.offset = 4095;
  const Ledger ledger;
  layer.forward_cached(empty({1, 1, 5120}, DType::bf16, kMeta), positions, cache);
  CHECK(cache.nbytes() == size_t{4096 * 576 * 2});
  double read = 0;
  for (const Entry& e : ledger.entries()) {
    if (std::string(e.op) == "attention.forward") read += e.cost.bytes_read;
  }
  const double q = 128.0 * 576 * 2;  // one query of all heads, in bytes
  // Keys and values are the same memory, which the operand list names twice.
  CHECK(read == q + 4096.0 * (576 + 512) * 2);
  CHECK(2 * 128 * 128 / 576.0 == Approx(56.9).epsilon(1e-3));  // against 2 H 128 of plain heads
}

TEST_CASE_METHOD(Setup, "latent attention: says what does not fit", "[error]") {
  auto o = options(3);
  o.qk_rope_head_dim = 3;
  CHECK_THROWS_WITH(nn::LatentAttention(o, DType::f32, kCPU),
                    Contains("must be even and 2 or more"));
  o = options(-1);
  CHECK_THROWS_WITH(nn::LatentAttention(o, DType::f32, kCPU), Contains("q_lora_rank must not be"));
  o = options(3);
  o.heads = 0;
  CHECK_THROWS_WITH(nn::LatentAttention(o, DType::f32, kCPU), Contains("must be 1 or more"));
  o = options(3);
  const nn::LatentAttention layer = layer_of(o, kCPU);
  nn::KVCache::Layer cache = layer.make_cache(1, 2);
  CHECK_THROWS_WITH(
      layer.forward_cached(random({1, 3, o.d_model}, 1, kCPU), positions_of(o, kCPU), cache),
      Contains("3 tokens do not fit the capacity of 2"));
}
