#pragma once
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "cli/verbs.h"
#include "core/device.h"
#include "core/dtype.h"
#include "data/json.h"
#include "models/target.h"

namespace tally::cli {

/// The element type and device that the options name. Error for one that cannot compute.
DType dtype_of_options(const Common& options);
Device device_of_options(const Common& options);

/// Makes a folder and those above it. Error, with the reason, where that cannot be.
void make_folder(const std::string& path);

/// Prints JSON on stdout, whole; bytes that are not UTF-8 become U+FFFD.
void print_json(const Json& json);

/// One line that renews itself on a terminal; elsewhere a plain line every few seconds.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine() { finish(); }
  /// Shows a text now or drops it, as the clock says; `force` always shows.
  void show(const std::string& text, bool force = false);
  /// Ends the line, so that other output begins on a fresh one.
  void finish();

 private:
  bool quiet_, terminal_, open_ = false;
  std::chrono::steady_clock::time_point last_{};
};

/// Such a line with rate and time left, for work of known size: "eval 10 k of 2 M tokens  5 k/s  ETA 7 min".
/// Says nothing in the first second. Copies share one line.
class Progress {
 public:
  Progress(std::string verb, std::string unit, bool quiet);
  void operator()(int64_t done, int64_t all) const;

 private:
  std::string verb_, unit_;
  std::shared_ptr<ProgressLine> line_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// "2 min 05 s", "1 h 12 min".
std::string duration_text(double seconds);
/// "12.3 M", "8.03 G": three figures and a power of a thousand.
std::string short_number(double value);
/// "64.2 MB" in powers of 1000.
std::string bytes_text(double bytes);

/// Refuses a file whose folder is not there or may not be written to, before the work whose result
/// it is to hold.
void check_writable_folder(const std::string& file);

/// Refuses what takes more than the machine's memory before the first byte of it is taken: the
/// system would grant it and end the program later.
void check_memory(const char* verb, double bytes);

/// Columns of text, aligned; the first row is the head. Columns of numbers (every cell begins with
/// a digit) stand to the right.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

/// Set by the first Ctrl-C or SIGTERM after install_interrupt(); a second one ends the program.
bool interrupted();
void install_interrupt();

/// The machine, its instruction set, BLAS, threads and versions: what env.json and doctor say.
Json environment();

}  // namespace tally::cli
