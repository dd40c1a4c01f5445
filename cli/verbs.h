#pragma once
#include <cstdint>
#include <string>
#include <vector>

// What each verb takes, as main.cpp parsed it, and the function that does it. A verb returns the
// exit code (0 done, 1 a failed check) and throws Error for bad input, which main.cpp turns into 1.
namespace tally::cli {

/// Options that every verb has.
struct Common {
  bool json = false, quiet = false;
  std::string device = "cpu", dtype = "f32";
  int threads = 0;  // 0: all
  uint64_t seed = 1;
  bool seed_given = false;
};

/// A model or run by name, and changes to its configuration.
struct TargetOptions {
  std::string name;  // a preset, a JSON file, a run directory or a Hugging Face directory
  std::vector<std::string> set;  // dotted.path=value
  bool print_config = false;
};

struct DoctorOptions : Common {};
int doctor(const DoctorOptions& options);

struct ModelsOptions : Common {
  std::string name, table, family;
  bool small = false, markdown = false;
};
int models(const ModelsOptions& options);

struct TrainOptions : Common {
  TargetOptions target;
  std::vector<std::string> data;
  std::vector<std::string> eval;  // NAME=PATH
  std::string out, resume, branch, tokenizer;
  std::string program = "tally";  // as it was called
  int64_t steps = 0;              // 0: as configured
  double max_minutes = 0, val_fraction = -1;
  bool tensorboard = false;
};
int train(const TrainOptions& options);

struct EvalOptions : Common {
  std::string run;
  std::vector<std::string> data;
};
int eval(const EvalOptions& options);

struct GenerateOptions : Common {
  std::string run, prompt;
  int64_t max_new_tokens = 100;
  double temperature = 0.8, top_p = 1, min_p = 0;
  int64_t top_k = 0;
  bool greedy = false, stats = false;
  std::vector<std::string> stop;
};
int generate(const GenerateOptions& options);

struct TokenizerOptions : Common {
  std::string verb;  // train, encode, decode, info
  std::vector<std::string> files;
  std::string tokenizer, out, pattern = "gpt2", ties = "bytes-greater", text, special = "plain";
  std::vector<std::string> special_tokens;
  int64_t vocab_size = 0;
};
int tokenizer(const TokenizerOptions& options);

struct DataOptions : Common {
  std::string verb;  // prepare, inspect
  std::vector<std::string> files;
  std::string tokenizer, out, element_type;
  double val_fraction = 0;
  int64_t vocab_size = 0, context = 0;
};
int data(const DataOptions& options);

struct GradcheckOptions : Common {
  std::string what = "all";
  int64_t cases = 0;  // 0: all
  std::vector<std::string> set;
};
int gradcheck(const GradcheckOptions& options);

struct AccountOptions : Common {
  TargetOptions target;
  int64_t batch = 1, seq = 0;
  bool train = false, decode = false, algebra = false;
  std::string optimizer, by = "op", fit;
  double train_tokens = 0, flops_per_s = 0, mfu = 0.4;  // how long a training takes
  int64_t devices = 1;
};
int account(const AccountOptions& options);

struct ProfileVerbOptions : Common {
  TargetOptions target;
  int64_t batch = 0, seq = 0, steps = 5;  // 0: as the target trains
  bool decode = false;
  std::string by = "op", out = "profile";
};
int profile(const ProfileVerbOptions& options);

struct StepOptions : Common {
  TargetOptions target;
  std::vector<std::string> data;
  std::string text, op, module, html;
  int64_t batch = 0, seq = 0;  // 0: as the target trains
  int64_t index = -1;          // which batch of the data; -1: the one that comes next
  int64_t from = 1, to = 0;    // calls shown; 0: to the last
  int64_t values = 4;          // first values of each operand
};
int step(const StepOptions& options);

struct CoordinatesOptions : Common {
  TargetOptions target;
  std::vector<int64_t> widths{64, 128, 256, 512};
  int64_t steps = 4;
};
int coordinates(const CoordinatesOptions& options);

struct ReportVerbOptions : Common {
  std::string run;
};
int report(const ReportVerbOptions& options);

struct CompareOptions : Common {
  std::string a, b, out = "compare.html", text;
  bool values = false;  // the same batch through both models instead
  double tolerance = 0;
  int64_t batch = 1, seq = 0;
};
int compare(const CompareOptions& options);

struct VerifyOptions : Common {
  std::string verb;  // model, ops, optim, tokenizer
  std::vector<std::string> files;
  std::string tokenizer;
  bool known = false;
};
int verify(const VerifyOptions& options);

struct ImportOptions : Common {
  std::string path, out;
  bool inspect = false;
};
int import(const ImportOptions& options);

struct ExportOptions : Common {
  std::string path, out, to = "hf", family;
  bool verify = false;
};
int export_model(const ExportOptions& options);

struct ConvertOptions : Common {
  std::string path, out, rope;
  int64_t kv_heads = 0;
};
int convert(const ConvertOptions& options);

}  // namespace tally::cli
