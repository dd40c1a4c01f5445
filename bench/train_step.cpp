// The Tally side of compare_training.py: a training step (forward, backward, AdamW) driven over
// stdin and stdout, one line a command, one JSON line an answer; the commands are those of
// train_torch.py, as far as they make sense here: load DIR, run N, rss, quit.
// usage: train_step MODEL [--threads N]     MODEL: a preset, as tiny-llama
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "autograd/tape.h"
#include "backends/register_all.h"
#include "core/error.h"
#include "core/parallel.h"
#include "models/build.h"
#include "models/checkpoint.h"
#include "models/target.h"
#include "optim/adamw.h"

namespace tally {
namespace {

constexpr double kLearningRate = 3e-4, kWeightDecay = 0.1;

/// Id of place `index` in the stream of all batches (splitmix64); train_torch.py has the same.
int64_t token_at(uint64_t index, int64_t vocab) {
  uint64_t z = (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<int64_t>((z ^ (z >> 31)) % static_cast<uint64_t>(vocab));
}

class Peer {
 public:
  explicit Peer(const RunConfig& config)
      : config_(config), model_(build_model(config.model, DType::f32, kCPU)) {
    initialise(*model_, config.model, 1);
    model_->requires_grad();
    const optim::AdamW::Options options{0.9, 0.95, 1e-8};
    optimizer_ =
        std::make_unique<optim::AdamW>(optim::decay_groups(*model_, kWeightDecay), options);
  }

  int64_t tokens_per_step() const { return config_.train.batch * config_.model.context; }
  int64_t parameters() const { return model_->parameter_count(); }

  void load(const std::string& folder) {
    const Checkpoint weights = Checkpoint::hugging_face(folder);
    for (auto& [name, parameter] : model_->named_parameters()) {
      weights.read(name, parameter.host<float>());
    }
  }

  double step() {
    make_batch();
    const Shape shape{config_.train.batch, config_.model.context};
    Tape tape;
    const Tensor loss = model_->loss(from_host<int64_t>(ids_, shape, kCPU),
                                     from_host<int64_t>(targets_, shape, kCPU));
    tape.backward(loss);
    optimizer_->step(kLearningRate);
    optimizer_->zero_grad();
    return loss.item();
  }

 private:
  void make_batch() {
    const int64_t rows = config_.train.batch, columns = config_.model.context;
    ids_.clear(), targets_.clear();
    for (int64_t row = 0; row < rows; ++row) {
      const auto first = static_cast<uint64_t>((steps_ * rows + row) * (columns + 1));
      for (int64_t t = 0; t < columns; ++t) {
        const uint64_t index = first + static_cast<uint64_t>(t);
        ids_.push_back(token_at(index, config_.model.vocab));
        targets_.push_back(token_at(index + 1, config_.model.vocab));
      }
    }
    ++steps_;
  }

  RunConfig config_;
  std::unique_ptr<nn::Decoder> model_;
  std::unique_ptr<optim::AdamW> optimizer_;
  std::vector<int64_t> ids_, targets_;
  int64_t steps_ = 0;
};

std::string run_steps(Peer& peer, int count) {
  std::string seconds, losses;
  for (int i = 0; i < count; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const double loss = peer.step();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    seconds += fmt::format("{}{:.6f}", i ? ", " : "", elapsed.count());
    losses += fmt::format("{}{:.9g}", i ? ", " : "", loss);
  }
  return fmt::format(R"({{"seconds": [{}], "losses": [{}]}})", seconds, losses);
}

double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::string answer(Peer& peer, const std::string& command, const std::string& argument) {
  if (command == "run") return run_steps(peer, std::stoi(argument));
  if (command == "rss") return fmt::format(R"({{"peak_rss_mb": {:.1f}}})", peak_rss_mb());
  check(command == "load", "train_step: unknown command ", command);
  peer.load(argument);
  return "{}";
}

void serve(const std::vector<std::string>& arguments) {
  check(arguments.size() == 1 || (arguments.size() == 3 && arguments[1] == "--threads"),
        "usage: train_step MODEL [--threads N]");
  if (arguments.size() == 3) set_num_threads(std::stoi(arguments[2]));
  register_all();
  Peer peer(resolve_target(arguments[0]).config);
  std::cout << fmt::format(R"({{"ready": true, "peer": "tally", "parameters": {}, )",
                           peer.parameters())
            << fmt::format(R"("tokens_per_step": {}}})", peer.tokens_per_step()) << std::endl;
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    const size_t blank = line.find(' ');
    const std::string argument = blank == std::string::npos ? "" : line.substr(blank + 1);
    std::cout << answer(peer, line.substr(0, blank), argument) << std::endl;
  }
}

}  // namespace
}  // namespace tally

int main(int argc, char** argv) {
  try {
    tally::serve({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
  return 0;
}
