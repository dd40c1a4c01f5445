// A model of one's own: each character is guessed from the one before it through a small network,
// trained with AdamW on a few lines of text. Prints the loss, the bits a character takes and a
// sample; exit code 1 unless it has learned more than how often each character comes.
#include <cmath>
#include <cstdio>
#include <map>

#include "autograd/functional.h"
#include "backends/register_all.h"
#include "core/random.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "optim/adamw.h"

using namespace tally;

namespace {

constexpr const char* kText =
    "the sun also ariseth, and the sun goeth down, and hasteth to his place where he arose. the "
    "wind goeth toward the south, and turneth about unto the north; it whirleth about continually, "
    "and the wind returneth again according to his circuits. all the rivers run into the sea; yet "
    "the sea is not full; unto the place from whence the rivers come, thither they return again. ";

/// x = E[id];  logits = H silu(W norm(x))
class Guess : public nn::Module {
 public:
  Guess(int64_t vocab, int64_t width)
      : table(vocab, width, DType::f32, kCPU),
        norm({nn::NormKind::rms_norm, 1e-6}, width, DType::f32, kCPU),
        hidden(width, 2 * width, false, DType::f32, kCPU),
        head(2 * width, vocab, false, DType::f32, kCPU) {
    uint64_t stream = 0;
    for_each_parameter([&](const std::string&, Tensor& t) {
      std::span<float> values = t.host<float>();
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = t.ndim() == 1 ? 1 : static_cast<float>(0.1 * normal_at(1, stream, i));
      ++stream;
    });
    requires_grad();
  }
  Tensor features(const Tensor& ids) const {
    return activation(hidden.forward(norm.forward(table.forward(ids))), ops::ActivationKind::silu);
  }
  Tensor loss(const Tensor& ids, const Tensor& targets) const {
    return linear_cross_entropy(features(ids), head.weight, targets);
  }
  void visit(nn::Visitor& v) override {
    v.child("table", table);
    v.child("norm", norm);
    v.child("hidden", hidden);
    v.child("head", head);
  }

  nn::Embedding table;
  nn::Norm norm;
  nn::Linear hidden, head;
};

/// Bits a character would take if each came as often as it does, whatever stood before it.
double bits_of_frequencies(const std::string& text) {
  std::map<char, double> count;
  for (char c : text) ++count[c];
  double bits = 0;
  for (const auto& [c, n] : count) bits -= n * std::log2(n / static_cast<double>(text.size()));
  return bits / static_cast<double>(text.size());
}

}  // namespace

int main() {
  register_all();
  const std::string text = kText;
  const auto n = static_cast<int64_t>(text.size()) - 1;
  std::vector<int64_t> ids(text.begin(), text.end() - 1), targets(text.begin() + 1, text.end());
  const Tensor x = from_host<int64_t>(ids, {n}, kCPU), y = from_host<int64_t>(targets, {n}, kCPU);

  Guess model(128, 32);
  optim::AdamW adamw(optim::decay_groups(model, 0.01), {});
  double bits = 0;
  for (int step = 0; step <= 200; ++step) {
    Tape tape;
    const Tensor loss = model.loss(x, y);
    tape.backward(loss);
    adamw.step(1e-2, optim::clip_factor(adamw.groups(), 1).factor);
    adamw.zero_grad();
    bits = loss.item() / std::log(2);
    if (step % 50 == 0) std::printf("step %3d: %.3f bits a character\n", step, bits);
  }
  std::string said = "t";
  while (said.size() < 60) {
    const Tensor id = from_host<int64_t>(std::vector<int64_t>{said.back()}, {1}, kCPU);
    const Tensor logits = linear(model.features(id), model.head.weight);
    double best = -1e30;
    int64_t next = 0;
    for (int64_t v = 0; v < 128; ++v) {  // the likeliest with a little noise (Gumbel)
      const double u = uniform_at(7, said.size(), static_cast<uint64_t>(v)) + 1e-12;
      const double score = logits.host<float>()[static_cast<size_t>(v)] - std::log(-std::log(u));
      if (score > best) best = score, next = v;
    }
    said += static_cast<char>(next);
  }
  const double simple = bits_of_frequencies(text);
  std::printf("%s\nfrequencies alone: %.3f bits\n", said.c_str(), simple);
  return bits < 0.75 * simple ? 0 : 1;
}
