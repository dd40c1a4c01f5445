// Routers and the experts' rows: values at the edges and errors.
#include "tests/op_values.h"

using namespace tally;
using Catch::Matchers::Contains;

TEST_CASE_METHOD(Setup, "moe_router: weights of the largest, equal ones in order, NaN first",
                 "[op]") {
  ops::RouterOptions o;
  const Tensor x = f64({std::log(3), 0, std::log(3), std::log(1)}, {1, 4});  // p = 3 1 3 1 over 8
  auto [w, experts] = moe_router(x, o);
  check_close(w, {0.5, 0.5});
  CHECK(numbers(experts) == Numbers{0, 2});
  o.renormalise = false;
  check_close(moe_router(x, o)[0], {0.375, 0.375});
  o.k = 3;
  CHECK(numbers(moe_router(x, o)[1]) == Numbers{0, 2, 1});
  const Tensor bias = f64({0, 0, 0, 1}, {4});
  const auto moved = moe_router(x, o, bias);
  CHECK(numbers(moved[1]) == Numbers{3, 0, 2});
  check_close(moved[0], {0.125, 0.375, 0.375});  // the bias is not in the weights
  o.score = ops::RouterScore::sigmoid;
  const auto nan = moe_router(f64({0, 1, NAN, 2}, {1, 4}), o);
  CHECK(numbers(nan[1]) == Numbers{2, 3, 1});
  check_close(nan[0], {NAN, 1 / (1 + std::exp(-2)), 1 / (1 + std::exp(-1))});
}

TEST_CASE_METHOD(Setup, "moe_router: groups are kept by their best or by the sum of two", "[op]") {
  ops::RouterOptions o;
  o.score = ops::RouterScore::sigmoid;
  o.renormalise = false;
  o.groups = 2;
  const Tensor x = f64({2, -9, 1, 1}, {1, 4});
  CHECK(numbers(moe_router(x, o)[1]) == Numbers{0, 1});
  o.best_of_group = 2;
  CHECK(numbers(moe_router(x, o)[1]) == Numbers{2, 3});
  o.kept_groups = 2;
  CHECK(numbers(moe_router(x, o)[1]) == Numbers{0, 2});
}

TEST_CASE_METHOD(Setup, "moe_router: choices without a meaning are errors", "[op][error]") {
  const Tensor x = ones({2, 6});
  const auto with = [&](auto change) {
    ops::RouterOptions o;
    change(o);
    return moe_router(x, o);
  };
  CHECK_THROWS_WITH(with([](auto& o) { o.k = 0; }), Contains("k must be in 1..6") && Contains("0"));
  CHECK_THROWS_WITH(with([](auto& o) { o.groups = 4; }), Contains("groups = 4, E = 6"));
  CHECK_THROWS_WITH(with([](auto& o) { o.groups = 3, o.kept_groups = 4; }),
                    Contains("kept_groups must be in 1..3"));
  CHECK_THROWS_WITH(with([](auto& o) { o.groups = 3, o.k = 3; }),
                    Contains("k = 3 experts do not fit in 1 groups of 2"));
  CHECK_THROWS_WITH(with([](auto& o) { o.groups = 6, o.k = 1, o.best_of_group = 2; }),
                    Contains("best_of_group must be 1") && Contains("groups of 1"));
  CHECK_THROWS_WITH(with([](auto& o) { o.scale = kInf; }), Contains("scale must be finite"));
  CHECK_THROWS_WITH(moe_router(x, {}, ones({5})), Contains("bias must be (E) with E = 6; got (5)"));
  CHECK_THROWS_WITH(moe_router(ones({}), {}), Contains("they are a scalar"));
}

TEST_CASE_METHOD(Setup, "load_balance_loss: k where the load is even, E where one expert has all",
                 "[op]") {
  const Tensor even = zeros({4, 4}, DType::f64, kReference);
  CHECK(load_balance_loss(even, i64({0, 1, 2, 3}, {4, 1})).item() == Approx(1));
  CHECK(load_balance_loss(even, i64({0, 1, 1, 2, 2, 3, 3, 0}, {4, 2})).item() == Approx(2));
  const Tensor one = f64({90, 0, 0, 0, 90, 0, 0, 0}, {2, 4});
  CHECK(load_balance_loss(one, i64({0, 0}, {2, 1})).item() == Approx(4));
  CHECK(load_balance_loss(zeros({0, 4}, DType::f64, kReference), i64({}, {0, 1})).item() == 0);
  CHECK_THROWS_WITH(load_balance_loss(even, i64({0, 1, 2, 4}, {4, 1})),
                    Contains("indices must be in 0..3; position 3 of (4, 1) holds 4"));
  CHECK_THROWS_WITH(load_balance_loss(even, i64({0, 1}, {2, 1})), Contains("a row for each row"));
}

TEST_CASE_METHOD(Setup, "expert_gather: rows by expert in the order of the tokens", "[op]") {
  const Tensor x = f64({1, 2, 3}, {3, 1}), chosen = i64({2, 0, 0, 2, 2, 0}, {3, 2});
  const auto [rows, places, offsets] = expert_gather(x, chosen, 4);
  CHECK(numbers(rows) == Numbers{1, 2, 3, 1, 2, 3});
  CHECK(numbers(places) == Numbers{3, 0, 1, 4, 5, 2});
  CHECK(numbers(offsets) == Numbers{0, 3, 3, 6, 6});
  const Tensor back = expert_combine(rows, ones({3, 2}), places);
  CHECK(numbers(back) == Numbers{2, 4, 6});
}

TEST_CASE_METHOD(Setup, "experts: plans that are none are errors", "[op][error]") {
  const Tensor x = ones({3, 2}), w = ones({2, 4, 2});
  CHECK_THROWS_WITH(expert_gather(x, i64({0, 1, 2}, {3, 1}), 2),
                    Contains("indices must be in 0..1; position 2 of (3, 1) holds 2"));
  CHECK_THROWS_WITH(expert_gather(x, i64({0, 1}, {2, 1}), 2), Contains("a row for each row of x"));
  CHECK_THROWS_WITH(expert_gather(x, i64({0, 1, 0}, {3, 1}), 0), Contains("1 expert or more"));
  CHECK_THROWS_WITH(expert_combine(x, ones({3, 1}), i64({0, 1, 3}, {3, 1})),
                    Contains("indices must be in 0..2; position 2 of (3, 1) holds 3"));
  CHECK_THROWS_WITH(expert_combine(x, ones({3}), i64({0, 1, 2}, {3, 1})),
                    Contains("a weight for each place"));
  CHECK_THROWS_WITH(expert_linear(x, w, i64({0, 2, 1}, {3})),
                    Contains("offsets must rise from 0 to the 3 rows; got 1 after 2"));
  CHECK_THROWS_WITH(expert_linear(x, w, i64({0, 1, 2}, {3})), Contains("end with the 3 rows"));
  CHECK_THROWS_WITH(expert_linear(x, w, i64({0, 3}, {2})), Contains("(E + 1) with E = 2"));
  CHECK_THROWS_WITH(expert_linear(x, w, i64({0, 1, 3}, {3}), ones({2, 3})),
                    Contains("bias must be (E, O)"));
  CHECK_THROWS_WITH(expert_linear(x, ones({4, 2}), i64({0, 3}, {2})),
                    Contains("weight must be (E, O, I)"));
}
