// What the lecture says of scores that grow (L72, L73), and of windows between full layers (L98): by a
// layer's numbers, and by training.
#include <catch2/catch.hpp>
#include <cstdio>

#include "autograd/functional.h"
#include "autograd/proof/run_sample.h"
#include "core/ops/position.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;

namespace {

// Queries, keys and values of T tokens, as far out as weights that grew for long take them.
struct Grown {
  Tensor q, k, v;
  double largest = 0, one_hot = 0, gradient = 0;  // score; share of rows; largest of dq
};

// One head of K numbers, every query seeing every key. `norm`: the layer's, on q and k.
Grown attend(double growth, bool norm) {
  register_all();
  const int64_t t = 24, size = 16;
  const auto random = [&](uint64_t seed, double scale) {
    return make_input(normal({1, t, 1, size}, seed, scale), DType::f32, kCPU);
  };
  Grown g{random(1, growth), random(2, growth), random(3, 1)};
  ops::AttentionOptions o;
  o.causal = false;
  g.q.requires_grad_();
  Tape tape;
  const Tensor q = norm ? rms_norm(g.q) : g.q, k = norm ? rms_norm(g.k) : g.k;
  const Tensor y = attention(q, k, g.v, o);
  tape.backward(y, random(4, 1));
  const auto a = to_doubles(q), b = to_doubles(k);
  for (size_t i = 0; i < static_cast<size_t>(t); ++i) {
    double most = -INFINITY, sum = 0;
    std::vector<double> scores;
    for (size_t j = 0; j < static_cast<size_t>(t); ++j) {
      double s = 0;
      for (size_t d = 0; d < static_cast<size_t>(size); ++d) s += a[i * 16 + d] * b[j * 16 + d];
      scores.push_back(s / 4);  // sqrt(K)
      most = std::max(most, scores.back());
      g.largest = std::max(g.largest, std::fabs(scores.back()));
    }
    for (const double s : scores) sum += std::exp(s - most);
    g.one_hot += (1 / sum > 0.999) / static_cast<double>(t);
  }
  for (const double d : to_doubles(g.q.grad())) g.gradient = std::max(g.gradient, std::fabs(d));
  return g;
}

// Words of a letter and "abc": sixteen of one letter, then of another of ten. What comes next is
// known from the letter before it alone, but for the letter, which is four bytes back.
std::string words_of_letters(int runs) {
  std::string text;
  uint64_t x = 1;
  for (int i = 0; i < runs; ++i) {
    x = x * 16807 % 2147483647;
    for (int word = 0; word < 16; ++word)
      text += static_cast<char>('A' + x % 10) + std::string("abc");
    if (i % 16 == 15) text += "\n\n";
  }
  return text;
}

// Validation loss, nats a byte, of two layers that see `pattern` of attention and positions.
double trained(int64_t window, std::vector<std::string> pattern,
               std::vector<std::string> positions = {}) {
  register_all();
  RunConfig c = find_preset("llama-smoke").config;
  c.model.layers = 2, c.model.d_model = 48, c.model.head_dim = 0, c.model.d_ff = 0;
  c.model.context = 64;
  c.model.window = window, c.model.attention_pattern = std::move(pattern);
  c.model.position_pattern = std::move(positions);
  c.train.batch = 8, c.train.steps = 450, c.train.warmup = 20, c.train.lr = 5e-3;
  c.resolve_and_check("words");
  const Scratch folder;
  fs::create_directories(folder.path);
  std::ofstream(folder.path + "/text.txt") << words_of_letters(2000);
  DataOptions o;
  o.text.val_fraction = 0.1;
  const Tokenizer bytes = Tokenizer::bytes();
  Trainer trainer(c, open_data(folder.path + "/text.txt", bytes, o), bytes.byte_lengths(),
                  DType::f32, kCPU);
  losses(trainer, c.train.steps);
  return trainer.evaluate(40).loss;
}

}  // namespace

TEST_CASE("attention: scores that grew leave one key and no gradient; norms of q and k prevent it",
          "[layer][L69][L72][L73]") {
  const Grown young = attend(1, false), old = attend(300, false), held = attend(300, true);
  CHECK(young.one_hot < 0.1);
  CHECK(old.largest > 5e4);  // what ViT-22B met
  CHECK(old.one_hot == Approx(1));
  CHECK(old.gradient < 1e-3 * young.gradient);  // though keys are 300 times as long
  // |q| = |k| = sqrt(K), so no score is above sqrt(K) = 4, however far the weights have gone.
  CHECK(held.largest <= 4 * (1 + 1e-5));
  CHECK(held.one_hot < 0.1);
  CHECK(held.gradient * 300 > 0.01 * young.gradient);  // of the direction; the length has none
}

TEST_CASE("loss: a shift of all logits costs bf16 its digits, though the formula does not see it",
          "[layer][L69][L70][L78]") {
  register_all();
  const int64_t rows = 64, classes = 50;
  const Tensor targets =
      from_host<int64_t>(std::vector<int64_t>(static_cast<size_t>(rows), 7), {rows}, kCPU);
  const auto error_at = [&](double shift, DType dtype) {
    const SampleInput x = normal({rows, classes}, 1, 2, shift);
    const double exact = cross_entropy(make_input(x, DType::f64, kCPU), targets).item();
    return std::fabs(cross_entropy(make_input(x, dtype, kCPU), targets).item() - exact);
  };
  std::printf("|error| of the cross entropy, logits N(shift, 2)\n");
  for (const double shift : {0.0, 10.0, 100.0, 300.0, 1000.0}) {
    const double wide = error_at(shift, DType::f32), narrow = error_at(shift, DType::bf16);
    std::printf("| %g | %.1e | %.1e |\n", shift, wide, narrow);
    CHECK(wide < 1e-4);
  }
  // Neighbours of 300 in bf16 are 2 apart: sums in f32 do not bring back what storage took.
  CHECK(error_at(0, DType::bf16) < 3e-3);
  CHECK(error_at(300, DType::bf16) > 10 * error_at(0, DType::bf16));
  CHECK(error_at(300, DType::bf16) > error_at(100, DType::bf16));
}

TEST_CASE("window: what lies beyond the reach of windows is learned with a full layer among them",
          "[model][L97][L98]") {
  // Two layers of window 2 see 2 tokens back from the one before the letter; it is 3 further.
  const double letter = std::log(10.0) / 4;
  const double windows = trained(2, {"window"}), full = trained(0, {}),
               mixed = trained(2, {"window", "full"}),
               command = trained(2, {"window", "full"}, {"global", "none"});
  INFO("windows " << windows << ", full " << full << ", mixed " << mixed
                  << ", mixed without positions in the full layer " << command);
  CHECK(windows > 0.95 * letter);  // they cannot know it
  for (const double loss : {full, mixed}) CHECK(loss < 0.5 * letter);
  CHECK(command < 0.8 * letter);  // which has to learn by what, not where
}
