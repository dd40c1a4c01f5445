// What making the batches of a training costs: token files on disk, mapped and read as one, cold
// (the system has forgotten them) and warm, beside a step of the model.
//   build/batches [PRESET] [STEPS] [MILLION TOKENS]
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "backends/register_all.h"
#include "core/random.h"
#include "data/text_data.h"
#include "models/trainer.h"
#include "models/zoo.h"

using namespace tally;
namespace fs = std::filesystem;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::string> write_files(const fs::path& folder, int64_t tokens, int64_t vocab) {
  constexpr int64_t kFiles = 4;
  std::vector<std::string> names;
  std::vector<TokenId> ids(static_cast<size_t>(tokens / kFiles));
  for (int64_t file = 0; file < kFiles; ++file) {
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = Philox::word(1, static_cast<uint64_t>(file), i) % static_cast<uint32_t>(vocab);
    names.push_back((folder / fmt::format("part-{}.npy", file)).string());
    write_token_file(names.back(), ids, {"", vocab, {}, 0, 0});
  }
  return names;
}

void forget(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const int fd = ::open(file.c_str(), O_RDONLY);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
}

TokenFile open_all(const std::vector<std::string>& files) {
  std::vector<TokenFile> parts;
  for (const std::string& file : files) parts.push_back(TokenFile::open(file));
  return TokenFile::joined(parts);
}

/// Seconds a batch. `ahead`: each is announced before the one before it is made, and `pause` seconds
/// pass between, as a step does.
double make_batches(const Dataset& data, int64_t rows, int64_t steps, bool ahead, double pause) {
  std::vector<int64_t> ids(static_cast<size_t>(rows * data.context())), targets(ids.size());
  double spent = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const double start = now();
    data.batch(step, ids, targets);
    if (ahead) data.will_read(step + 1, 1, rows);
    spent += now() - start;
    if (pause > 0) usleep(static_cast<useconds_t>(pause * 1e6));
  }
  return spent / static_cast<double>(steps);
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  RunConfig c = find_preset(argc > 1 ? argv[1] : "llama-smoke").config;
  c.resolve_and_check("batches");
  const int64_t steps = argc > 2 ? std::stoll(argv[2]) : 50;
  const int64_t tokens = 1000000 * (argc > 3 ? std::stoll(argv[3]) : 200);
  const fs::path folder = fs::temp_directory_path() / fmt::format("tally_batches_{}", ::getpid());
  fs::create_directories(folder);
  const auto files = write_files(folder, tokens, c.model.vocab);
  const std::vector<uint32_t> bytes(static_cast<size_t>(c.model.vocab), 1);
  Trainer trainer(c, {open_all(files), {}}, bytes, DType::f32, kCPU);
  for (int i = 0; i < 3; ++i) trainer.step();
  const double start = now();
  for (int64_t i = 0; i < steps; ++i) trainer.step();
  const double step = (now() - start) / static_cast<double>(steps);
  fmt::print("{}: {} x {} tokens a step, {:.3g} ms a step\n", c.model.name, c.train.batch,
             c.train.seq, 1e3 * step);
  const Dataset data(open_all(files), c.train.seq, 1);
  const auto show = [&](const char* what, double seconds) {
    fmt::print("{:40} {:8.1f} us a batch, {:.3f} % of a step\n", what, 1e6 * seconds,
               100 * seconds / step);
  };
  show("in memory", (make_batches(data, c.train.batch, steps, false, 0),
                     make_batches(data, c.train.batch, steps, false, 0)));
  forget(files);
  {
    const Dataset cold(open_all(files), c.train.seq, 2);
    show("cold", make_batches(cold, c.train.batch, steps, false, step));
  }
  forget(files);
  {
    const Dataset cold(open_all(files), c.train.seq, 3);
    show("cold, announced a step before", make_batches(cold, c.train.batch, steps, true, step));
  }
  fs::remove_all(folder);
  return 0;
}
