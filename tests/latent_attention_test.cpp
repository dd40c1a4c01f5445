// Latent attention: the absorbed path against the plain one, gradients, what a cache holds. Recorded
// values and gradients of a public implementation are in tests/op_fixture_test.cpp (mla_layer).
#include "nn/latent_attention.h"

#include "core/ops/position.h"
#include "tests/op_values.h"

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

// The largest difference of the tokens `first`.. of y from those of `whole`, over its largest.
double error_of(const Tensor& y, const Tensor& whole, int64_t first) {
  const Numbers a = numbers(y), b = numbers(contiguous(whole.narrow(1, first, y.size(1))));
  REQUIRE(a.size() == b.size());
  double error = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error = std::max(error, std::fabs(a[i] - b[i]));
    size = std::max(size, std::fabs(b[i]));
  }
  return error / size;
}

double loss_of(const nn::LatentAttention& layer, const nn::Positions& positions, const Tensor& x,
               const Tensor& dy) {
  const PauseTape values_only;
  return sum(mul(layer.forward(x, positions), dy)).item();
}

// Central differences of every number of `t` against its gradient.
void check_gradient(const std::string& what, Tensor& t, const std::function<double()>& loss) {
  const Numbers gradient = numbers(t.grad());
  Numbers v = numbers(t);
  const auto put = [&] {
    backend(t.device()).copy_from_host(t.data(), v.data(), t.nbytes());
    t.storage().note_write("test");
  };
  double size = 1e-3;
  for (const double g : gradient) size = std::max(size, std::fabs(g));
  for (size_t i = 0; i < v.size(); ++i) {
    const double h = 1e-5, was = v[i];
    v[i] = was + h, put();
    const double up = loss();
    v[i] = was - h, put();
    const double slope = (up - loss()) / (2 * h);
    v[i] = was, put();
    INFO(what << "[" << i << "]: " << gradient[i] << ", differences " << slope);
    CHECK(std::fabs(gradient[i] - slope) <= 1e-7 * size);
  }
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
          CHECK(error_of(y, whole, at) <= 1e-13);
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
    layer.requires_grad();
    const nn::Positions positions = positions_of(o, kReference);
    Tensor x = random({kBatch, 3, o.d_model}, 1, kReference);
    x.requires_grad_();
    const Tensor dy = random(x.shape(), 2, kReference);
    {
      const Tape tape;
      backward(layer.forward(x, positions), dy);
    }
    const auto loss = [&] { return loss_of(layer, positions, x, dy); };
    check_gradient("x", x, loss);
    for (auto& [name, p] : layer.named_parameters()) check_gradient(name, p, loss);
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
