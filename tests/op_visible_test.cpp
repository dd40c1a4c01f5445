// Which keys a query sees: windows, sparse patterns, global tokens, prefixes, documents; and that
// work follows what is seen. Lecture claim L97.
#include "core/ledger.h"
#include "tests/attention_helpers.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

using ops::KeyPattern;
using ops::VisibleKeys;

// The definition, pair by pair.
bool sees(const ops::AttentionOptions& o, int64_t i, int64_t j) {
  const bool before = j <= i;
  if (o.causal && !before && j >= o.prefix) return false;
  if (j < o.prefix || j < o.global || (!o.causal && i < o.global)) return true;
  const int64_t distance = std::abs(i - j);
  if (o.pattern == KeyPattern::strided) return distance < o.stride || distance % o.stride == 0;
  if (o.pattern == KeyPattern::fixed)
    return i / o.stride == j / o.stride || j % o.stride >= o.stride - o.summary;
  return !o.window || distance < *o.window;
}
ops::AttentionOptions pattern(KeyPattern p, int64_t stride, int64_t summary = 1) {
  ops::AttentionOptions o;
  o.pattern = p, o.stride = stride, o.summary = summary;
  return o;
}
// Every kind of choice, alone and together.
std::vector<ops::AttentionOptions> choices() {
  std::vector<ops::AttentionOptions> all{
      {},
      window_of(1),
      window_of(3),
      window_of(20),
      pattern(KeyPattern::strided, 1),
      pattern(KeyPattern::strided, 4),
      pattern(KeyPattern::strided, 30),
      pattern(KeyPattern::fixed, 1),
      pattern(KeyPattern::fixed, 5, 2),
      pattern(KeyPattern::fixed, 5, 5),
      pattern(KeyPattern::fixed, 17, 3),
  };
  for (size_t i = 0, n = all.size(); i < n; ++i) {
    for (const auto& [global, prefix] : {std::pair{2, 0}, {0, 4}, {3, 1}, {1, 40}}) {
      all.push_back(all[i]);
      all.back().global = global, all.back().prefix = prefix;
    }
  }
  for (const int64_t window : {0, 1, 4}) {
    for (const int64_t global : {0, 2}) {
      all.emplace_back();
      all.back().causal = false, all.back().global = global;
      if (window) all.back().window = window;
    }
  }
  return all;
}
std::vector<int64_t> listed(const ops::KeySet& set) {
  std::vector<int64_t> list;
  set.each([&](int64_t j) { list.push_back(j); });
  return list;
}
SeenKeys defined_keys(const ops::AttentionOptions& o, int64_t queries, int64_t keys) {
  SeenKeys rows(static_cast<size_t>(queries));
  for (int64_t t = 0; t < queries; ++t)
    for (int64_t j = 0; j < keys; ++j)
      if (sees(o, keys - queries + t, j)) rows[static_cast<size_t>(t)].push_back(j);
  return rows;
}
// The rows one by one, their number of pairs, and the keys that any sees.
void check_rows(const VisibleKeys& v, const SeenKeys& rows) {
  double pairs = 0;
  std::vector<bool> any(static_cast<size_t>(v.keys), false);
  for (int64_t t = 0; t < v.queries; ++t) {
    const auto& row = rows[static_cast<size_t>(t)];
    CHECK(listed(v.of(t)) == row);
    CHECK(v.of(t).count() == static_cast<int64_t>(row.size()));
    pairs += static_cast<double>(row.size());
    for (int64_t j : row) any[static_cast<size_t>(j)] = true;
  }
  CHECK(v.pairs() == pairs);
  CHECK(v.seen() == std::count(any.begin(), any.end(), true));
}
// What the kernels ask about queries [t, t + n): which tiles of keys are seen, and by all.
void check_tiles(const VisibleKeys& v, const SeenKeys& rows, int64_t t, int64_t n) {
  const auto holds = [&](int64_t query, int64_t j) {
    const auto& row = rows[static_cast<size_t>(query)];
    return std::binary_search(row.begin(), row.end(), j);
  };
  for (int64_t from = 0; from < v.keys; ++from) {
    for (const int64_t to : {from + 1, from + 3, v.keys}) {
      if (to > v.keys) continue;
      bool some = false, all = true;
      for (int64_t query = t; query < t + n; ++query)
        for (int64_t j = from; j < to; ++j)
          some = some || holds(query, j), all = all && holds(query, j);
      CHECK(v.of(t, n).meets(from, to) == some);
      if (v.all_see(t, n, from, to)) CHECK(all);
    }
  }
}

}  // namespace

TEST_CASE("visible keys: rows, counts and tiles agree with the definition", "[op][L97][F03][F04]") {
  for (const auto& o : choices()) {
    INFO("causal " << o.causal << " window " << o.window.value_or(0) << " stride " << o.stride
                   << " summary " << o.summary << " global " << o.global << " prefix " << o.prefix);
    for (const auto& [queries, keys] :
         {std::pair{0, 3}, {1, 1}, {6, 6}, {1, 23}, {5, 19}, {23, 23}}) {
      const VisibleKeys v = ops::visible_keys(o, queries, keys);
      const SeenKeys rows = defined_keys(o, queries, keys);
      check_rows(v, rows);
      for (const auto& [t, n] : {std::pair{0, 1}, {0, 3}, {2, 3}, {0, 5}})
        if (t + n <= queries) check_tiles(v, rows, t, n);
    }
  }
}

TEST_CASE_METHOD(Setup, "attention: loops and kernels see the defined keys", "[op][L97]") {
  for (const Place& place : places()) {
    for (const auto& o : choices()) {
      INFO(to_text(place.device) << " causal " << o.causal << " window " << o.window.value_or(0)
                                 << " stride " << o.stride << " summary " << o.summary << " global "
                                 << o.global << " prefix " << o.prefix);
      for (const auto& [queries, keys] : {std::pair{2, 60}, {70, 77}})
        CHECK(seen_keys(place, queries, keys, o) == defined_keys(o, queries, keys));
    }
  }
}

TEST_CASE_METHOD(Setup, "attention: a token sees its own document alone", "[op][L97]") {
  const std::vector<int64_t> ids{7, 7, 7, -1, -1, 7, 2, 2, 2, 2};
  const int64_t keys = static_cast<int64_t>(ids.size());
  for (const Place& place : places()) {
    const Tensor documents =
        from_host<int64_t>(std::span<const int64_t>(ids), {1, keys}, place.device);
    for (const auto& o : choices()) {
      for (const int64_t queries : {keys, int64_t{3}}) {
        SeenKeys expected = defined_keys(o, queries, keys);
        for (size_t t = 0; t < expected.size(); ++t) {
          const int64_t own = ids[ids.size() - expected.size() + t];
          std::erase_if(expected[t], [&](int64_t j) { return ids[static_cast<size_t>(j)] != own; });
        }
        CHECK(seen_keys(place, queries, keys, o, documents) == expected);
      }
    }
  }
}

TEST_CASE_METHOD(Setup, "attention: packed documents equal each document alone", "[op][L97]") {
  const Device device = GENERATE(kReference, kCPU);
  const int64_t first = 40, tokens = 75;
  std::vector<int64_t> ids(static_cast<size_t>(tokens), 0);
  std::fill(ids.begin() + first, ids.end(), 1);
  const Tensor documents = from_host<int64_t>(std::span<const int64_t>(ids), {1, tokens}, device);
  const Shape s{1, tokens, 2, 4};
  Tensor packed[3], alone[3];
  for (uint64_t i = 0; i < 3; ++i) {
    packed[i] = random(s, i, DType::f32, device), alone[i] = random(s, i, DType::f32, device);
    packed[i].requires_grad_(), alone[i].requires_grad_();
  }
  const auto part = [&](const Tensor& x, int64_t from, int64_t count) {
    return narrow(x, 1, from, count);
  };
  const Tensor dy = random(s, 9, DType::f32, device);
  Tape tape;
  const Tensor y = attention(packed[0], packed[1], packed[2], {}, {}, {}, documents);
  std::vector<Tensor> parts;
  for (const auto& [from, count] : {std::pair{int64_t{0}, first}, {first, tokens - first}})
    parts.push_back(attention(part(alone[0], from, count), part(alone[1], from, count),
                              part(alone[2], from, count)));
  const Tensor expected = concat(parts, 1);
  check_close(y, expected, 1e-6);
  tape.backward(concat({y, expected}, 1), concat({dy, dy}, 1));
  for (size_t i = 0; i < 3; ++i) check_close(packed[i].grad(), alone[i].grad(), 2e-6);
}

TEST_CASE_METHOD(Setup, "attention: work and bytes follow what is seen, not the square",
                 "[op][L97]") {
  const auto cost = [](int64_t n, const ops::AttentionOptions& o) {
    const Tensor q = empty({1, n, 1, 8}, DType::f32, kMeta);
    const Ledger ledger;
    attention(q, q, q, o);
    return ledger.total();
  };
  CHECK(cost(2048, {}).flops == Approx(4 * cost(1024, {}).flops).epsilon(0.01));
  for (const int64_t w : {16, 128})  // O(n w)
    CHECK(cost(4096, window_of(w)).flops ==
          Approx(4 * cost(1024, window_of(w)).flops).epsilon(0.07));
  CHECK(cost(2048, window_of(32)).flops ==
        Approx(2 * cost(2048, window_of(16)).flops).epsilon(0.1));
  // Strides of sqrt(n): O(n sqrt(n)), 4 times the tokens are 8 times the pairs (Child et al. 2019).
  const auto square_root = [&](int64_t n, KeyPattern p) {
    return cost(n, pattern(p, static_cast<int64_t>(std::sqrt(double(n))))).flops;
  };
  for (const KeyPattern p : {KeyPattern::strided, KeyPattern::fixed})
    CHECK(square_root(16384, p) == Approx(8 * square_root(4096, p)).epsilon(0.05));
  // One token behind 4096 reads the keys that it sees: 64, or 64 near and 63 far.
  const auto bytes = [](const ops::AttentionOptions& o) {
    const Tensor q = empty({1, 1, 1, 8}, DType::f32, kMeta),
                 k = empty({1, 4096, 1, 8}, DType::f32, kMeta);
    const Ledger ledger;
    attention(q, k, k, o);
    return ledger.total().bytes_read - 32;
  };
  CHECK(bytes({}) == 4096 * 64);
  CHECK(bytes(window_of(64)) == 64 * 64);
  CHECK(bytes(pattern(KeyPattern::strided, 64)) == (64 + 63) * 64);
  CHECK(bytes(pattern(KeyPattern::fixed, 64, 2)) == (64 + 63 * 2) * 64);
}

TEST_CASE_METHOD(Setup, "attention: says what is wrong with a choice of keys", "[op][error]") {
  const Tensor x = random({1, 4, 2, 4}, 1);
  const auto error = [&](const ops::AttentionOptions& o, const char* text) {
    CHECK_THROWS_WITH(attention(x, x, x, o), Contains(text));
  };
  ops::AttentionOptions o = pattern(KeyPattern::strided, 0);
  error(o, "a stride of at least 1 and no window; got stride = 0");
  o = pattern(KeyPattern::fixed, 4), o.window = 2;
  error(o, "got stride = 4, a window");
  o = pattern(KeyPattern::fixed, 4), o.causal = false;
  error(o, "got stride = 4, not causal");
  error(pattern(KeyPattern::all, 4), "stride = 4 needs the pattern strided or fixed");
  error(pattern(KeyPattern::fixed, 4, 5), "summary must be 1 to stride = 4");
  error(pattern(KeyPattern::fixed, 4, 0), "got 0");
  error(window_of(0), "at least 1; got 0");
  o = {}, o.global = -1;
  error(o, "global must be a number of tokens");
  o = {}, o.prefix = -2;
  error(o, "prefix must be a number of keys");
  o = {}, o.prefix = 2, o.causal = false;
  error(o, "got 2 without causal");
  o = window_of(2), o.causal = false;
  const Tensor few = random({1, 3, 2, 4}, 2);
  CHECK_THROWS_WITH(attention(x, few, few, o), Contains("a window or global tokens are the last"));
  const auto documents = [&](const Tensor& q, const Tensor& ids, const char* text) {
    o = {}, o.causal = false;
    CHECK_THROWS_WITH(attention(q, few, few, o, {}, {}, ids), Contains(text));
  };
  documents(few, from_host<int64_t>({1, 2}, {1, 2}, kReference), "documents must be i64");
  documents(few, few, "documents must be i64");
  documents(x, from_host<int64_t>({1, 2, 3}, {1, 3}, kReference), "queries with documents");
  for (const Tensor& sink : {random({3}, 1), random({2}, 1, DType::f32), random({1, 2}, 1)})
    CHECK_THROWS_WITH(attention(x, x, x, {}, {}, {}, {}, sink),
                      Contains("sink must be a number for each head"));
}
