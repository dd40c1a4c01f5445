// Conversions of a configuration together with its weights.
#include "models/convert.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "autograd/functional.h"
#include "core/random.h"
#include "models/build.h"
#include "models/zoo.h"
#include "tests/registered.h"
#include "tests/worse.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

using Model = std::unique_ptr<nn::Decoder>;

ModelConfig smoke(const std::function<void(ModelConfig&)>& change) {
  RunConfig c = find_preset("llama-smoke").config;
  change(c.model);
  c.resolve_and_check("llama-smoke");
  return c.model;
}

void put(Tensor& t, const std::vector<float>& values) {
  REQUIRE(static_cast<int64_t>(values.size()) == t.numel());
  backend(kCPU).copy_from_host(t.data(), values.data(), t.nbytes());
  t.storage().note_write("test");
}

Model original(const ModelConfig& c) {
  auto model = build_model(c, DType::f32, kCPU);
  initialise(*model, c, 1);
  return model;
}

Model converted(const nn::Decoder& model, const Conversion& conversion) {
  auto result = build_model(conversion.config, DType::f32, kCPU);
  const auto before = const_cast<nn::Decoder&>(model).named_parameters();
  auto after = result->named_parameters();
  REQUIRE(after.size() == before.size());
  for (size_t i = 0; i < after.size(); ++i)
    put(after[i].second, conversion.parameter(after[i].first, to_host<float>(before[i].second)));
  return result;
}

double difference(nn::Decoder& a, nn::Decoder& b) {
  std::vector<int64_t> ids(24);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int64_t>(Philox::word(1, 2, i) % 200);
  const Tensor text = from_host<int64_t>(ids, {2, 12}, kCPU);
  const auto x = to_host<float>(a.logits(text)), y = to_host<float>(b.logits(text));
  double worst = 0, largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    worst = test::worse(worst, double(x[i]), double(y[i]));
    largest = std::max(largest, std::fabs(double(x[i])));
  }
  return worst / largest;
}

}  // namespace

TEST_CASE("convert: rotary pairs in the other order are the same model", "[L49]") {
  for (const bool fused : {true, false}) {
    for (const double fraction : {1.0, 0.5}) {
      const ModelConfig c = smoke([&](ModelConfig& m) {
        m.heads = 4, m.kv_heads = 2, m.head_dim = 16, m.fused_qkv = fused;
        m.rope_fraction = fraction, m.qkv_bias = true, m.qk_norm = QKNorm::head;
      });
      const Model model = original(c);
      const Conversion there = with_rope_layout(c, RopeLayout::interleaved);
      const Model turned = converted(*model, there);
      CHECK(difference(*model, *turned) <= 1e-6);
      const Model back = converted(*turned, with_rope_layout(there.config, RopeLayout::half));
      CHECK(difference(*model, *back) == 0);
    }
  }
}

TEST_CASE("convert: heads of keys and values become means of those they stand for", "[L95]") {
  for (const bool fused : {true, false}) {
    const ModelConfig c = smoke([&](ModelConfig& m) {
      m.heads = 4, m.kv_heads = 4, m.head_dim = 4, m.d_model = 16, m.layers = 1;
      m.fused_qkv = fused, m.qkv_bias = true;
    });
    const Conversion to_two = with_kv_heads(c, 2);
    CHECK(to_two.config.kv_heads == 2);
    const std::string key = fused ? "blocks.0.attention.qkv.bias" : "blocks.0.attention.k.bias";
    std::vector<float> before(fused ? 48 : 16);
    for (size_t i = 0; i < before.size(); ++i) before[i] = static_cast<float>(i);
    const auto after = to_two.parameter(key, before);
    REQUIRE(after.size() == (fused ? 32u : 8u));
    const size_t first = fused ? 16 : 0;  // behind the queries
    for (size_t i = 0; i < 8; ++i) {
      const size_t group = i / 4, at = first + group * 8 + i % 4;
      CHECK(after[first + i] == (before[at] + before[at + 4]) / 2);
    }
    // Heads that are equal lose nothing.
    const Model model = original(c);
    const Model pooled = converted(*model, with_kv_heads(c, 1));
    const ModelConfig repeated_config = c;
    Model repeated = build_model(repeated_config, DType::f32, kCPU);
    auto from = pooled->named_parameters();
    auto to = repeated->named_parameters();
    for (size_t i = 0; i < to.size(); ++i) {
      auto values = to_host<float>(from[i].second);
      const bool whole = static_cast<int64_t>(values.size()) == to[i].second.numel();
      if (!whole) {  // [q | k | v] or k or v: repeat each head of k and v four times
        const int64_t rows = to[i].second.size(0), columns = to[i].second.numel() / rows;
        const int64_t q = fused ? 16 : 0;
        std::vector<float> all(values.begin(), values.begin() + q * columns);
        for (int64_t part = q; part < static_cast<int64_t>(values.size()) / columns; part += 4) {
          for (int copy = 0; copy < 4; ++copy)
            all.insert(all.end(), values.begin() + part * columns,
                       values.begin() + (part + 4) * columns);
        }
        values = all;
      }
      put(to[i].second, values);
    }
    CHECK(difference(*pooled, *repeated) <= 1e-6);
  }
}

TEST_CASE("convert: what cannot be converted is said", "[error]") {
  const ModelConfig c = smoke([](ModelConfig& m) { m.heads = m.kv_heads = 4, m.head_dim = 4; });
  CHECK_THROWS_WITH(with_kv_heads(c, 3), Contains("kv_heads = 3 must divide the 4 heads"));
  CHECK_THROWS_WITH(with_kv_heads(c, 0), Contains("must divide"));
  CHECK_THROWS_WITH(with_rope_layout(c, RopeLayout::half), Contains("is half already"));
  const ModelConfig learned = smoke([](ModelConfig& m) { m.position = Position::learned; });
  CHECK_THROWS_WITH(with_rope_layout(learned, RopeLayout::interleaved), Contains("only rotary"));
  const ModelConfig full = smoke([](ModelConfig& m) { m.qk_norm = QKNorm::full; });
  CHECK_THROWS_WITH(with_kv_heads(full, 1), Contains("cannot be pooled"));
}
