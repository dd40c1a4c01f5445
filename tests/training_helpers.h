#pragma once
// Runs small enough to train a hundred steps in a second, and what is in them.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "backends/register_all.h"
#include "models/trainer.h"
#include "models/zoo.h"

namespace tally::test {

namespace fs = std::filesystem;

/// A folder of its own that goes away.
struct Scratch {
  Scratch()
      : path((fs::temp_directory_path() /
              ("tally_training_" + std::to_string(::getpid()) + "_" + std::to_string(++count)))
                 .string()) {}
  ~Scratch() { fs::remove_all(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path;
  static inline int count = 0;
};

inline std::string some_text(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i)
    text += "verse " + std::to_string(i * i % 97) + " of the " + std::to_string(i) +
            "th chapter\n" + (i % 5 == 4 ? "\n" : "");
  return text;
}

/// The model of a preset, checked.
inline ModelConfig preset_model(const char* preset) {
  register_all();
  RunConfig c = find_preset(preset).config;
  c.resolve_and_check(preset);
  return c.model;
}

/// One layer with dropout, 4 sequences of 32 tokens, 12 steps.
inline RunConfig small(int64_t accumulation = 1) {
  RunConfig c = find_preset("llama-smoke").config;
  c.model.layers = 1;
  c.model.residual_dropout = c.model.attention_dropout = 0.1;
  c.model.context = 32;
  c.train.batch = 4;
  c.train.steps = 12;
  c.train.warmup = 2;
  c.train.accumulation = accumulation;
  c.resolve_and_check("small");
  return c;
}

/// The same in 16 numbers a token, 2 sequences of 8 tokens, 100 steps.
inline RunConfig tiny(int64_t accumulation = 1) {
  RunConfig c = small(accumulation);
  c.model.d_model = 16;
  c.model.d_ff = 32;
  c.model.head_dim = 8;
  c.model.context = c.train.seq = 8;
  c.train.batch = 2;
  c.train.steps = 100;
  c.resolve_and_check("tiny");
  return c;
}

struct Made {
  explicit Made(const RunConfig& c, int lines = 400, DType dtype = DType::f32)
      : tokenizer(Tokenizer::bytes()) {
    register_all();
    fs::create_directories(folder.path);
    std::ofstream(folder.path + "/text.txt") << some_text(lines);
    DataOptions o;
    o.text.val_fraction = 0.1;
    trainer = std::make_unique<Trainer>(c, open_data(folder.path + "/text.txt", tokenizer, o),
                                        tokenizer.byte_lengths(), dtype, kCPU);
  }
  Scratch folder;
  Tokenizer tokenizer;
  std::unique_ptr<Trainer> trainer;
};

/// A run directory as `tally train` makes one.
inline RunDirectory new_run(const Scratch& folder) {
  RunDirectory run = RunDirectory::create(folder.path);
  std::ofstream(run.file("config.json")) << "{}";
  return run;
}

inline std::vector<double> losses(Trainer& t, int64_t until) {
  std::vector<double> out;
  while (t.steps_done() < until) out.push_back(t.step().loss);
  return out;
}

inline std::vector<std::vector<float>> weights(Trainer& t) {
  std::vector<std::vector<float>> out;
  for (auto& [name, w] : t.model().named_parameters()) out.push_back(to_host<float>(w));
  return out;
}

}  // namespace tally::test
