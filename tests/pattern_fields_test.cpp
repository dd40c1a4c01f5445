// The fields that say who sees whom beyond windows: global tokens, a prefix, documents. Lecture
// claim L97.
#include <catch2/catch.hpp>

#include "models/algebra.h"
#include "models/config_attention.h"
#include "models/report.h"
#include "tests/block_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t kTokens = 13;
using Ids = std::vector<int64_t>;

Tensor row(const Ids& v) {
  return from_host<int64_t>(std::span<const int64_t>(v), {1, static_cast<int64_t>(v.size())},
                            kReference);
}
Ids numbers(int64_t count, uint64_t stream = 1) {
  Ids v(static_cast<size_t>(count));
  for (size_t i = 0; i < v.size(); ++i) v[i] = 8 + Philox::word(3, stream, i) % 32;
  return v;
}
std::unique_ptr<nn::Decoder> made(const Assignments& choice) {
  return random_model(with(choice), DType::f64, kReference);
}
/// Logits (T,V) of one text as rows.
std::vector<std::vector<double>> logits_of(nn::Decoder& model, const Ids& v) {
  const PauseTape values_only;
  const auto all = to_doubles(model.logits(row(v)));
  std::vector<std::vector<double>> rows;
  for (size_t t = 0; t < v.size(); ++t)
    rows.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(t * 40),
                      all.begin() + static_cast<std::ptrdiff_t>(t * 40 + 40));
  return rows;
}
void check_rows(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK(largest_difference(a, b) < 1e-9);
}
/// Whether a change of token `from` is seen at token `at`.
bool reaches(nn::Decoder& model, Ids v, size_t from, size_t at) {
  const auto before = logits_of(model, v)[at];
  v[from] = v[from] == 9 ? 10 : 9;
  return logits_of(model, v)[at] != before;
}
}  // namespace

TEST_CASE("documents: tokens behind the end of one text are as if it had never been",
          "[model][L97]") {
  for (const char* position : {"rope", "alibi", "none", "t5_bias", "xl_relative"}) {
    for (const char* more : {"layers=2", "window=3", "fused_qkv=false"}) {
      INFO(position << ", " << more);
      const auto model = made({"document_end=7", std::string("position=") + position, more});
      const Ids second = numbers(5, 2);
      Ids packed = numbers(6);
      packed.push_back(7);
      packed.insert(packed.end(), second.begin(), second.end());
      const auto both = logits_of(*model, packed), alone = logits_of(*model, second);
      for (size_t t = 0; t < second.size(); ++t) check_rows(both[7 + t], alone[t]);
      CHECK(reaches(*model, packed, 4, 6));  // the end belongs to the text that it ends
      CHECK_FALSE(reaches(*model, packed, 4, 7));
      CHECK(reaches(*made({more}), packed, 4, 7));
    }
  }
}

TEST_CASE("documents: decoding in pieces equals the full pass, across their ends", "[model][L97]") {
  Ids v = numbers(kTokens);
  v[3] = v[4] = v[8] = 7;
  for (const Assignments& more :
       {Assignments{}, Assignments{"window=3"}, Assignments{"window=4", "attention_global=2"},
        Assignments{"position=t5_bias"}, Assignments{"position=xl_relative"},
        Assignments{"parallel=shared_norm", "fused_parallel=true"}}) {
    Assignments choice{"document_end=7"};
    choice.insert(choice.end(), more.begin(), more.end());
    const auto model = made(choice);
    const auto full = logits_of(*model, v);
    for (const size_t piece : {1, 2, 5}) {
      nn::KVCache cache = model->make_cache(1, kTokens);
      for (size_t at = 0; at < v.size();) {
        const size_t end = std::min(v.size(), at + piece);
        const Ids part(v.begin() + static_cast<std::ptrdiff_t>(at),
                       v.begin() + static_cast<std::ptrdiff_t>(end));
        check_rows(to_doubles(model->next_logits(row(part), cache)), full[end - 1]);
        at = end;
      }
    }
  }
}

TEST_CASE("prefix: its tokens see each other, the others what came before", "[model][L97]") {
  const auto model = made({"attention_prefix=4"});
  const Ids v = numbers(kTokens);
  CHECK(reaches(*model, v, 3, 0));
  CHECK_FALSE(reaches(*model, v, 4, 3));
  CHECK_FALSE(reaches(*model, v, 6, 5));
  CHECK(reaches(*model, v, 5, 6));
  // A layer with a window sees the prefix however far behind it is.
  const auto near = made({"attention_prefix=2", "window=2", "layers=1"});
  CHECK(reaches(*near, v, 1, 9));
  CHECK_FALSE(reaches(*near, v, 2, 9));
}

TEST_CASE("prefix: decoding from any prompt equals the full pass behind it", "[model]") {
  const Ids v = numbers(kTokens);
  for (const char* more : {"layers=2", "window=3", "position=alibi"}) {
    const auto model = made({"attention_prefix=4", more});
    const auto full = logits_of(*model, v);
    for (const size_t prompt : {1, 3, 4, 6}) {
      nn::KVCache cache = model->make_cache(1, kTokens);
      size_t at = 0;
      for (size_t count : {prompt, size_t{1}, size_t{2}, size_t{1}, size_t{1}, size_t{1}}) {
        const Ids part(v.begin() + static_cast<std::ptrdiff_t>(at),
                       v.begin() + static_cast<std::ptrdiff_t>(at + count));
        const auto got = to_doubles(model->next_logits(row(part), cache));
        at += count;
        const Ids so_far(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(at));
        check_rows(got, at >= 4 ? full[at - 1] : logits_of(*model, so_far).back());
        CHECK(cache.length() == static_cast<int64_t>(at));
      }
    }
  }
}

TEST_CASE("prefix: what it shows is no target", "[model]") {
  const auto model = made({"attention_prefix=4"});
  const PauseTape values_only;
  const Tensor text = ids(1, kReference), targets = ids(2, kReference);
  std::vector<int64_t> left = to_host<int64_t>(targets);
  for (size_t b = 0; b < 3; ++b) std::fill_n(left.begin() + static_cast<int64_t>(8 * b), 3, -100);
  const double want =
      cross_entropy(model->logits(text), from_host<int64_t>(left, {3, 8}, kReference)).item();
  Tensor stats;
  CHECK(model->loss(text, targets, 0, nullptr, &stats).item() == Approx(want).epsilon(1e-12));
  CHECK(stats.narrow(0, ops::LossStats::kCount, 1).item() == 3 * 5);
  // The count that micro-batches share is of all their tokens; the share of a prefix leaves it.
  CHECK(model->loss(text, targets, 2 * 3 * 8).item() == Approx(want / 2).epsilon(1e-12));
}

TEST_CASE("global tokens: layers with a window see them, and keep them", "[model][L97]") {
  const auto model = made({"window=2", "attention_global=2", "layers=1"});
  const Ids v = numbers(kTokens);
  CHECK(reaches(*model, v, 1, 11));
  CHECK_FALSE(reaches(*model, v, 2, 11));
  const auto full = logits_of(*model, v);
  nn::KVCache cache = model->make_cache(1, kTokens);
  for (size_t t = 0; t < v.size(); ++t)
    check_rows(to_doubles(model->next_logits(row({v[t]}), cache)), full[t]);
  const ModelConfig c = with({"window=2", "attention_global=2"}), ring = with({"window=2"});
  CHECK(cached_tokens(c, 9) == 2 * 9);
  CHECK(cached_tokens(ring, 9) == 2 * 2);
  CHECK(visible_pairs(c, 9, 9) == 2 * (1 + 2 + 3 + 6 * 4));  // two near ones and the first two
}

TEST_CASE("patterns: fields that would do nothing are refused", "[model][error]") {
  CHECK_THAT(refusal({"attention_global=2"}), Contains("needs layers that do not see all"));
  CHECK_THAT(refusal({"attention_prefix=16"}), Contains("must be below context = 16"));
  CHECK_THAT(refusal({"attention_prefix=2", "position=xl_relative"}),
             Contains("needs distances ahead"));
  CHECK_THAT(refusal({"document_end=40"}), Contains("must be a token, 0..39, or -1"));
  CHECK_THAT(refusal({"document_end=-2"}), Contains("must lie between -1"));
  CHECK_THAT(refusal({"attention_prefix=-1"}), Contains("must lie between 0"));
  for (const char* cap : {"attention_soft_cap", "final_soft_cap"})
    CHECK_THAT(refusal({std::string(cap) + "=1e-40"}),
               Contains(std::string(cap) + " = 1e-40 must be 0, for none, or a normal number"));
}
