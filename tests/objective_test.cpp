// Masked tokens, span corruption, prefixes: exact examples, statistics, independence of the batch.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "data/masked_tokens.h"
#include "data/prefix_targets.h"
#include "data/span_corruption.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

using Ids = std::vector<int64_t>;

// Whether `count` of `trials` events of probability p lies where 99 of 100 draws do.
void check_binomial(const char* what, double count, double trials, double p) {
  INFO(what << ": " << count << " of " << trials << ", expected " << trials * p);
  CHECK(std::fabs(count - trials * p) <= 2.576 * std::sqrt(trials * p * (1 - p)));
}

MaskedTokenOptions masking() {
  MaskedTokenOptions o;
  o.vocab = 1000, o.mask_id = 999;
  o.never = {0};
  return o;
}

struct Masked {
  Ids ids, targets;
  bool operator==(const Masked&) const = default;
};
Masked masked(const SequenceKey& key, size_t length, const MaskedTokenOptions& o = masking()) {
  Masked m{Ids(length), Ids(length)};
  for (size_t i = 0; i < length; ++i) m.ids[i] = static_cast<int64_t>(i * 7 % 997);  // not 999
  mask_tokens(o, key, m.ids, m.targets);
  return m;
}

SpanCorruptionOptions t5() {
  SpanCorruptionOptions o;
  o.first_sentinel = 1099;
  return o;
}

}  // namespace

TEST_CASE("masked tokens: of a short text one is chosen where none was, each as likely", "[data]") {
  MaskedTokenOptions o = masking();
  o.at_least_one = true;
  std::map<size_t, double> chosen;
  double alone = 0;
  for (uint64_t sequence = 0; sequence < 4000; ++sequence) {
    const Masked plain = masked({1, 5, sequence}, 5), m = masked({1, 5, sequence}, 5, o);
    const auto asked = [](const Masked& v) {
      return std::ranges::count_if(v.targets, [](int64_t t) { return t != kIgnoredTarget; });
    };
    if (asked(plain) > 0) {
      CHECK(m == plain);
      continue;
    }
    ++alone;
    REQUIRE(asked(m) == 1);
    const auto at = static_cast<size_t>(
        std::ranges::find_if(m.targets, [](int64_t t) { return t != kIgnoredTarget; }) -
        m.targets.begin());
    CHECK((m.ids[at] == o.mask_id && m.targets[at] == plain.ids[at]));
    ++chosen[at];
  }
  CHECK(chosen[0] == 0);  // id 0 is never chosen
  for (size_t i = 1; i < 5; ++i) check_binomial("a place", chosen[i], alone, 0.25);
  check_binomial("texts with none", alone, 4000, std::pow(0.85, 4));
  Masked none{{0, 0}, {1, 1}};  // nothing may be chosen
  mask_tokens(o, {1, 1, 1}, none.ids, none.targets);
  CHECK(none == Masked{{0, 0}, {kIgnoredTarget, kIgnoredTarget}});
}

TEST_CASE("masked tokens: the end of a document is neither hidden nor made", "[data]") {
  MaskedTokenOptions o;
  o.vocab = 4, o.mask_id = 3, o.boundary = 1, o.rate = 1, o.mask_share = 0, o.random_share = 1;
  Ids ids(3000), targets(3000), drawn(3000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i % 3);
  drawn = ids;
  mask_tokens(o, {1, 2, 3}, drawn, targets);
  int changed = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    CHECK((drawn[i] == 1) == (ids[i] == 1));
    CHECK((targets[i] == kIgnoredTarget) == (ids[i] == 1));
    changed += drawn[i] != ids[i];
  }
  CHECK(changed > 500);
  o.boundary = 3;
  CHECK_THROWS_WITH(mask_tokens(o, {1, 2, 3}, drawn, targets),
                    Contains("must not be the token that ends a document"));
}

TEST_CASE("masked tokens: 15 % are chosen, 80, 10 and 10 % of them hidden, changed, left",
          "[data]") {
  double places = 0, special = 0, chosen = 0, hidden = 0, changed = 0, low = 0;
  for (uint64_t sequence = 0; sequence < 300; ++sequence) {
    const Masked m = masked({1, 5, sequence}, 400);
    for (size_t i = 0; i < 400; ++i) {
      const int64_t original = static_cast<int64_t>(i * 7 % 997);
      if (original == 0) {
        ++special;
        CHECK((m.targets[i] == kIgnoredTarget && m.ids[i] == 0));
        continue;
      }
      ++places;
      if (m.targets[i] == kIgnoredTarget) {
        CHECK(m.ids[i] == original);
        continue;
      }
      CHECK(m.targets[i] == original);
      ++chosen;
      hidden += m.ids[i] == 999;
      const bool other = m.ids[i] != 999 && m.ids[i] != original;
      changed += other;
      low += other && m.ids[i] < 500;
    }
  }
  CHECK(special == 300);
  check_binomial("chosen", chosen, places, 0.15);
  // Of the 10 % that get any id, one in a thousand gets the mask's, and one its own.
  check_binomial("hidden", hidden, chosen, 0.8 + 0.1 * 0.001);
  check_binomial("changed", changed, chosen, 0.1 * 0.998);
  check_binomial("changed to the lower half", low, changed, 0.5);
}

TEST_CASE("masked tokens: neighbours, sequences and steps are chosen independently", "[data]") {
  double pairs = 0, both = 0, across = 0, over = 0;
  for (uint64_t sequence = 0; sequence < 300; ++sequence) {
    const Masked m = masked({2, 7, sequence}, 401), next = masked({2, 7, sequence + 1}, 401),
                 later = masked({2, 8, sequence}, 401);
    const auto is = [](const Masked& a, size_t i) { return a.targets[i] != kIgnoredTarget; };
    for (size_t i = 1; i + 1 < 401; i += 2) {
      ++pairs;
      both += is(m, i) && is(m, i + 1);
      across += is(m, i) && is(next, i);
      over += is(m, i) && is(later, i);
    }
  }
  check_binomial("neighbours", both, pairs, 0.15 * 0.15);
  check_binomial("sequences", across, pairs, 0.15 * 0.15);
  check_binomial("steps", over, pairs, 0.15 * 0.15);
}

TEST_CASE("masked tokens: a sequence gets the same bits in any batch and at any length", "[data]") {
  std::map<uint64_t, Masked> forward;
  for (uint64_t i = 0; i < 8; ++i) forward[i] = masked({3, 2, i}, 50);
  for (uint64_t i = 8; i-- > 0;) CHECK(masked({3, 2, i}, 50) == forward[i]);
  const Masked longer = masked({3, 2, 4}, 80);
  CHECK(Ids(longer.targets.begin(), longer.targets.begin() + 50) == forward[4].targets);
  CHECK_FALSE(masked({4, 2, 4}, 50) == forward[4]);
}

TEST_CASE("masked tokens: rates of 0 and 1 do what they say; what has no meaning is an error",
          "[data][error]") {
  MaskedTokenOptions o = masking();
  o.rate = 0;
  CHECK(masked({1, 1, 1}, 20, o).targets == Ids(20, kIgnoredTarget));
  o.rate = o.mask_share = 1, o.random_share = 0;
  const Masked all = masked({1, 1, 1}, 20, o);
  CHECK(all.ids[0] == 0);
  CHECK(Ids(all.ids.begin() + 1, all.ids.end()) == Ids(19, 999));
  CHECK(all.targets[1] == 7);
  o.random_share = 0.1;
  CHECK_THROWS_WITH(masked({1, 1, 1}, 4, o), Contains("at most 1 together; got 1, 1 and 0.1"));
  o = masking(), o.rate = std::nan("");
  CHECK_THROWS_WITH(masked({1, 1, 1}, 4, o), Contains("must be in 0..1"));
  o = masking(), o.mask_id = 1000;
  CHECK_THROWS_WITH(masked({1, 1, 1}, 4, o), Contains("0..999; got 1000"));
  o = masking();
  Ids ids{1, 2, 1000}, targets(3), one(1);
  CHECK_THROWS_WITH(mask_tokens(o, {}, ids, targets), Contains("place 2 holds 1000"));
  CHECK_THROWS_WITH(mask_tokens(o, {}, ids, one), Contains("one length; got 3 and 1"));
}

TEST_CASE("span corruption: the example of the paper comes out", "[data]") {
  // Thank you for inviting me to your party last week; X, Y, Z = 99, 98, 97.
  const Ids text{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  SpanCorruptionOptions o;
  o.first_sentinel = 99;
  const TokenSpan spans[] = {{2, 2}, {8, 1}};
  CorruptedSequence c = cut_spans(o, text, spans);
  CHECK(c.inputs == Ids{1, 2, 99, 5, 6, 7, 8, 98, 10});
  CHECK(c.targets == Ids{99, 3, 4, 98, 9, 97});
  CHECK(shifted_right(c.targets, 0, 0) == Ids{0, 99, 3, 4, 98, 9});
  o.closing_sentinel = false, o.end_id = 50;
  c = cut_spans(o, text, spans);
  CHECK(c.inputs == Ids{1, 2, 99, 5, 6, 7, 8, 98, 10, 50});
  CHECK(c.targets == Ids{99, 3, 4, 98, 9, 50});
  CHECK(shifted_right(Ids{5, kIgnoredTarget, 7}, 1, 0) == Ids{1, 5, 0});
}

TEST_CASE("span corruption: 15 % of the tokens in spans of 3 are cut, and put together again",
          "[data]") {
  const SpanCorruptionOptions o = t5();
  for (const auto& [length, tokens, spans] :
       {std::array<int64_t, 3>{512, 77, 26}, {10, 2, 1}, {2, 1, 1}, {100, 15, 5}}) {
    const SpanCount n = span_count(o, length);
    CHECK((n.tokens == tokens && n.spans == spans));
    Ids text(static_cast<size_t>(length));
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<int64_t>(i);
    for (uint64_t sequence = 0; sequence < 20; ++sequence) {
      const CorruptedSequence c = corrupt_spans(o, {1, 1, sequence}, text);
      CHECK(static_cast<int64_t>(c.inputs.size()) == length - tokens + spans);
      CHECK(static_cast<int64_t>(c.targets.size()) == tokens + spans + 1);
      std::map<int64_t, Ids> cut;
      int64_t sentinel = 0;
      for (const int64_t id : c.targets)
        id > 999 ? static_cast<void>(sentinel = id) : cut[sentinel].push_back(id);
      Ids whole;
      for (const int64_t id : c.inputs) {
        if (id <= 999)
          whole.push_back(id);
        else
          whole.insert(whole.end(), cut.at(id).begin(), cut.at(id).end());
      }
      CHECK(whole == text);
    }
  }
}

TEST_CASE("span corruption: every way of cutting is as likely", "[data]") {
  // 15 tokens into 5 spans: the first has length 1 with probability 4/14, 2 with 10/14 4/13; of the
  // 85 that stay, the first part likewise 4/84.
  const double trials = 4000;
  double one = 0, two = 0, first = 0, last = 0;
  for (uint64_t sequence = 0; sequence < 4000; ++sequence) {
    const auto spans = draw_spans(t5(), {9, 3, sequence}, 100);
    REQUIRE(spans.size() == 5);
    one += spans[0].length == 1;
    two += spans[0].length == 2;
    last += spans[4].length == 1;
    first += spans[0].begin == 1;
  }
  check_binomial("first span of 1", one, trials, 4.0 / 14);
  check_binomial("first span of 2", two, trials, 10.0 / 14 * 4 / 13);
  check_binomial("last span of 1", last, trials, 4.0 / 14);
  check_binomial("begins behind one token", first, trials, 4.0 / 84);
  CHECK(draw_spans(t5(), {9, 3, 7}, 100) == draw_spans(t5(), {9, 3, 7}, 100));
  CHECK_FALSE(draw_spans(t5(), {9, 3, 7}, 100) == draw_spans(t5(), {9, 4, 7}, 100));
  CHECK_FALSE(draw_spans(t5(), {9, 3, 7}, 100) == draw_spans(t5(), {8, 3, 7}, 100));
}

TEST_CASE("span corruption: what has no meaning is an error", "[data][error]") {
  SpanCorruptionOptions o = t5();
  CHECK_THROWS_WITH(span_count(o, 1), Contains("at least 2 tokens") && Contains("got 1"));
  o.sentinels = 5;
  CHECK_THROWS_WITH(span_count(o, 100), Contains("100 tokens need 6 sentinels; got 5"));
  o = t5(), o.rate = 1;
  CHECK_THROWS_WITH(span_count(o, 100), Contains("rate must be above 0 and below 1; got 1"));
  o = t5(), o.mean_span = 0.5;
  CHECK_THROWS_WITH(span_count(o, 100), Contains("mean_span must be 1 or more; got 0.5"));
  o = t5(), o.first_sentinel = 98;
  CHECK_THROWS_WITH(span_count(o, 100), Contains("first 98 and 100 sentinels"));
  const Ids text{1, 2, 3};
  for (const std::vector<TokenSpan>& spans : std::vector<std::vector<TokenSpan>>{
           {{1, 1}, {1, 1}}, {{2, 2}}, {{0, 0}}, {{4, 1}}, {{-1, 1}}}) {
    CHECK_THROWS_WITH(cut_spans(t5(), text, spans), Contains("in order, apart and inside"));
  }
}

TEST_CASE("prefix: targets inside it are ignored, its length is uniform", "[data][error]") {
  const auto ignored = [](int64_t prefix) {
    Ids targets{11, 12, 13, 14};
    ignore_prefix(prefix, targets);
    return targets;
  };
  const int64_t no = kIgnoredTarget;
  CHECK(ignored(0) == Ids{11, 12, 13, 14});
  CHECK(ignored(1) == Ids{11, 12, 13, 14});
  CHECK(ignored(3) == Ids{no, no, 13, 14});
  CHECK(ignored(4) == Ids{no, no, no, 14});
  CHECK_THROWS_WITH(ignored(5), Contains("must be 0..4 tokens") && Contains("got 5"));
  CHECK_THROWS_WITH(ignored(-1), Contains("got -1"));
  std::map<int64_t, double> counts;
  for (uint64_t sequence = 0; sequence < 5000; ++sequence)
    ++counts[draw_prefix({4, 2, sequence}, 6)];
  CHECK(counts.size() == 5);
  for (const auto& [length, count] : counts) {
    CHECK((length >= 1 && length <= 5));
    check_binomial("length", count, 5000, 0.2);
  }
  CHECK_THROWS_WITH(draw_prefix({}, 1), Contains("at least 2 tokens; got 1"));
}
