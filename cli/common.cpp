#include "cli/common.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "backends/cpu/features.h"
#include "backends/cpu/gemm.h"
#include "core/parallel.h"

namespace tally::cli {
namespace {

std::atomic<int> interrupts{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void on_interrupt(int signal) {
  if (++interrupts > 1) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

DType dtype_of_options(const Common& options) {
  const DType t = parse_dtype(options.dtype);
  check(t == DType::f32 || t == DType::f64 || t == DType::bf16,
        "--dtype: computes in f32, f64 or bf16; got ", options.dtype);
  return t;
}

Device device_of_options(const Common& options) { return parse_device(options.device); }

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  check(!error && std::filesystem::is_directory(path, error), path,
        ": cannot make this folder: ", error ? error.message() : "a file is in its place");
}

void print_json(const Json& json) {
  // A prompt or a file's name may hold bytes that are not UTF-8; JSON cannot.
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

ProgressLine::ProgressLine(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressLine::show(const std::string& text, bool force) {
  if (quiet_) return;
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> passed = now - last_;
  if (!force && passed.count() < (terminal_ ? 0.1 : 5.0)) return;
  last_ = now;
  if (terminal_)
    std::fprintf(stderr, "\r\x1b[K%s", text.c_str());
  else
    std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
  open_ = terminal_;
}

void ProgressLine::finish() {
  if (open_) std::fputc('\n', stderr);
  open_ = false;
}

Progress::Progress(std::string verb, std::string unit, bool quiet)
    : verb_(std::move(verb)),
      unit_(std::move(unit)),
      line_(std::make_shared<ProgressLine>(quiet)) {}

void Progress::operator()(int64_t done, int64_t all) const {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  if (passed.count() < 1) return;
  const double rate = static_cast<double>(done) / passed.count();
  line_->show(fmt::format("{} {} of {} {}  {}/s  ETA {}", verb_,
                          short_number(static_cast<double>(done)),
                          short_number(static_cast<double>(all)), unit_, short_number(rate),
                          duration_text(static_cast<double>(all - done) / rate)));
}

std::string duration_text(double seconds) {
  if (!(seconds < 360000)) return "long";
  const auto s = static_cast<int>(std::lround(seconds));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
}

std::string short_number(double value) {
  const char* units[] = {"", " k", " M", " G", " T", " P", " E"};
  int unit = 0;
  while (value >= 999.5 && unit < 6) value /= 1000, ++unit;
  return fmt::format("{:.3g}{}", value, units[unit]);
}

std::string bytes_text(double bytes) {
  const std::string n = short_number(bytes);
  return n + (n.find(' ') == std::string::npos ? " B" : "B");
}

void check_writable_folder(const std::string& file) {
  const std::string folder = std::filesystem::absolute(file).parent_path().string();
  check(::access(folder.c_str(), W_OK | X_OK) == 0, file, ": the folder ", folder,
        " is not there or may not be written to; make it, or name another file");
}

void check_memory(const char* verb, double bytes) {
  const double there =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  check(bytes <= there, verb, ": this step takes ", bytes_text(bytes), ", the machine has ",
        bytes_text(there), "; use a smaller --batch, --seq or model");
}

namespace {
bool begins_a_number(const std::string& cell) {
  return std::isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '-';
}
}  // namespace

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width;
  std::vector<bool> numbers;  // columns whose cells all are, or are empty
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    numbers.resize(width.size(), rows.size() > 1);
    for (size_t i = 0; i < row.size(); ++i) {
      width[i] = std::max(width[i], row[i].size());
      if (&row != &rows[0] && !row[i].empty() && !begins_a_number(row[i])) numbers[i] = false;
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += numbers[i] ? fmt::format("{:>{}}", row[i], width[i])
                         : fmt::format("{:<{}}", row[i], width[i]);
      line += i + 1 < row.size() ? "  " : "";
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

bool interrupted() { return interrupts > 0; }

void install_interrupt() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

Json environment() {
  return {{"cpu", cpu::cpu_name()},
          {"isa", std::string(cpu::name(cpu::selected_isa()))},
          {"blas", cpu::openblas_core_name()},
          {"gemm", cpu::gemm_provider_name()},
          {"threads", num_threads()},
          {"compiler", __VERSION__},
          {"tally", TALLY_VERSION}};
}

}  // namespace tally::cli
