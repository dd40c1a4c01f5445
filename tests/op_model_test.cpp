// The ops of a language model's layers: values, errors, and the faults that programs of this kind had.
#include <catch2/catch.hpp>

#include "autograd/functional.h"
#include "autograd/proof/proof.h"
#include "backends/register_all.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

Tensor f64(std::initializer_list<double> v, const Shape& s, Device d = kReference) {
  return from_host<double>(v, s, d);
}
std::vector<double> numbers(const Tensor& t) { return to_doubles(t); }
Tensor i64(std::initializer_list<int64_t> v, const Shape& s) { return from_host<int64_t>(v, s, kReference); }

// Declared == counted for every choice of wanted gradients, fresh and accumulating, in both widths.
template <class O, size_t N>
void check_every_cost(const typename O::Attrs& attrs, const SampleInput (&inputs)[N]) {
  for (unsigned choice = 0; choice < (4u << N); ++choice) {
    const DType dtype = choice & 1 ? DType::counted_half : DType::counted;
    const bool accumulate = choice & 2;
    std::array<Tensor, N> in;
    Into<N> into;
    for (size_t i = 0; i < N; ++i) {
      in[i] = make_input(inputs[i], dtype, kReference);
      into.skip[i] = !inputs[i].differentiable || (choice >> (2 + i) & 1);
      if (accumulate && !into.skip[i]) into.target[i] = random_like(in[i], 50 + i);
    }
    counted_calls().clear();
    typename O::Saved saved;
    const Tensor y = std::apply([&](const auto&... t) { return O::forward(t..., attrs, &saved); }, in);
    O::backward(random_like(y, 60), std::move(saved), into);
    for (const CountedCall& c : counted_calls()) {
      INFO(c.call << ", choice " << choice << ": declared " << c.declared.flops << " FLOP, " << c.declared.bytes_read
                  << " B, " << c.declared.bytes_written << " B; counted " << c.counted.flops << ", "
                  << c.counted.bytes_read << ", " << c.counted.bytes_written);
      CHECK(c.declared == c.counted);
    }
  }
}

struct Setup {
  Setup() {
    register_all();
    register_proof_kernels();
  }
};

}  // namespace

TEST_CASE_METHOD(Setup, "embedding: refuses an id outside the table, naming position and value", "[op][error]") {
  const Tensor w = f64({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  CHECK_THROWS_WITH(embedding(i64({0, -1}, {2}), w), Contains("ids must be in 0..3; position 1 of (2) holds -1"));
  CHECK_THROWS_WITH(embedding(i64({4}, {1}), w), Contains("position 0") && Contains("holds 4"));
  CHECK_THROWS_WITH(embedding(i64({0, 0, int64_t{1} << 32}, {3, 1}), w), Contains("position 2") && Contains("4294967296"));
}

TEST_CASE_METHOD(Setup, "embedding: adds up the gradients of an id that repeats", "[op]") {
  const Tensor ids = i64({1, 1, 3}, {3}), w = zeros({4, 2}, DType::f64, kReference);
  const Tensor dy = f64({1, 2, 10, 20, 5, 6}, {3, 2});
  const auto gradient = [&](const ops::Embedding::Attrs& a, const Into<2>& into = {}) {
    ops::Embedding::Saved saved;
    ops::Embedding::forward(ids, w, a, &saved);
    return numbers(ops::Embedding::backward(dy, std::move(saved), into)[1]);
  };
  CHECK(gradient({}) == std::vector<double>{0, 0, 11, 22, 0, 0, 5, 6});
  CHECK(gradient({1, 3}) == std::vector<double>{0, 0, 11, 22, 0, 0, 0, 0});
  Into<2> into;
  into.target[1] = f64({1, 1, 1, 1, 1, 1, 1, 1}, {4, 2});
  CHECK(gradient({}, into) == std::vector<double>{1, 1, 12, 23, 1, 1, 6, 7});
}

TEST_CASE_METHOD(Setup, "embedding: takes no ids, a slice of ids, and nothing else but i64", "[op]") {
  const Tensor w = f64({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  CHECK(embedding(i64({}, {0}), w).shape() == Shape{0, 2});
  const Tensor inputs = i64({0, 1, 2, 3, 2, 1}, {2, 3}).narrow(1, 0, 2);
  CHECK(numbers(embedding(inputs, w)) == std::vector<double>{1, 2, 3, 4, 7, 8, 5, 6});
  CHECK_THROWS_WITH(embedding(w, w), Contains("ids must be i64; got f64"));
  CHECK_THROWS_WITH(embedding(i64({0}, {1}), f64({1, 2}, {2})), Contains("weight must be (V, D); got (2)"));
  CHECK_THROWS_WITH(embedding(i64({0}, {1}), i64({0}, {1, 1})), Contains("weight must be floating-point; got i64"));
  CHECK_THROWS_WITH(embedding(inputs.transpose(0, 1), w), Contains("call contiguous(ids) first"));
}

TEST_CASE_METHOD(Setup, "embedding: a bf16 gradient keeps counting past 256", "[op]") {
  const Tensor ids = zeros({5000}, DType::i64, kReference), w = zeros({2, 1}, DType::bf16, kReference);
  ops::Embedding::Saved saved;
  ops::Embedding::forward(ids, w, {}, &saved);
  const Tensor dy = full({5000, 1}, 1, DType::bf16, kReference);
  CHECK(numbers(ops::Embedding::backward(dy, std::move(saved))[1]) == std::vector<double>{4992, 0});
}

TEST_CASE_METHOD(Setup, "model ops: every choice of gradients costs what it declares", "[op]") {
  check_every_cost<ops::Embedding>({}, {indices({5}, {1, 1, 3, 1, 0}), normal({4, 2}, 3)});
  check_every_cost<ops::Embedding>({3}, {indices({0}, {}), normal({4, 2}, 3)});
}
