// Attention with a sink: one more score of each head in the softmax, without a value.
#include "tests/attention_helpers.h"

using namespace tally;

TEST_CASE_METHOD(Setup, "attention: a sink takes weight and gives nothing", "[op][F01]") {
  for (const Place& place : places()) {
    // One key of score 0 and sinks log 3, 0 (softmax off by one) and -infinity (no sink).
    Tensor sink = given(place, {std::log(3.0), 0, -INFINITY}, {3});
    Tensor q = given(place, {0, 0, 0}, {1, 1, 3, 1}), v = given(place, {8}, {1, 1, 1, 1});
    sink.requires_grad_(), v.requires_grad_();
    const Tensor k = given(place, {1}, {1, 1, 1, 1});
    Tape tape;
    const Tensor y = attention(q, k, v, {}, {}, {}, {}, sink);
    check_close(y, {2, 4, 8}, place.bound);
    tape.backward(y, given(place, {1, 10, 100}, {1, 1, 3, 1}));
    check_close(v.grad(), {0.25 + 5 + 100}, place.bound);
    // dsink = -p_sink y dy: 3/4 of 2, half of 4 times 10, nothing.
    check_close(sink.grad(), {-1.5, -20, 0}, place.bound);
  }
}

TEST_CASE_METHOD(Setup, "attention: a row that sees nothing but a sink gives 0 and no gradient",
                 "[op][F01]") {
  for (const Place& place : places()) {
    const Tensor mask = from_host<uint8_t>({0, 0, 1, 1}, {2, 2}, place.device);
    Tensor x = random({1, 2, 2, 4}, 1, place.dtype, place.device);
    Tensor sink = given(place, {0.5, -40}, {2});
    x.requires_grad_(), sink.requires_grad_();
    ops::AttentionOptions o;
    o.causal = false;
    Tape tape;
    const Tensor y = attention(x, x, x, o, mask, {}, {}, sink);
    const auto values = to_doubles(y);
    for (size_t i = 0; i < 8; ++i) CHECK(values[i] == 0);
    // The upstream of the seen row is 0: only the hidden row could have a gradient.
    tape.backward(y, given(place, {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}, y.shape()));
    CHECK(to_doubles(x.grad()) == std::vector<double>(16, 0.0));
    CHECK(to_doubles(sink.grad()) == std::vector<double>(2, 0.0));
  }
}
