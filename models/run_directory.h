#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace tally {

/// Tensors with their names, in the order they are stored.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// The directory that a training run writes: config.json, env.json, tokenizer.json, metrics.jsonl,
/// checkpoints/step-N/, `latest`, which names the newest whole checkpoint, and `best`, which names
/// that with the lowest loss where a run keeps it.
///
/// A checkpoint is written into a folder under another name, with checksums of all that is in it
/// (models/manifest.h), synced, and renamed; then `latest` is
/// replaced. Whatever moment the process dies at, the previous or the new checkpoint is whole.
class RunDirectory {
 public:
  /// Error when the directory holds a run with a checkpoint. One without was broken off before it
  /// began, and may be begun again.
  static void check_free(const std::string& path);
  /// Makes the directory for a new run. Error when it already holds one.
  static RunDirectory create(const std::string& path);
  /// Makes the directory and lets `fill` write into it. Where that throws, nothing stays that was not
  /// there before: a run that holds a configuration alone would stand in the way of the next try.
  static RunDirectory create_whole(const std::string& path,
                                   const std::function<void(RunDirectory&)>& fill);
  /// Opens a run that is there. Error when it is not one.
  static RunDirectory open(const std::string& path);
  /// True for a directory that a run has written into.
  static bool is_run(const std::string& path);

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  struct State {
    int64_t step = 0;                          // updates done
    std::map<std::string, std::string> facts;  // everything else a resume needs, as text
    int64_t best = -1;  // step of the checkpoint to keep as the best one; -1: none is kept
    /// Where the random streams of dropout stand. Error naming `checkpoint` where it is not said.
    uint64_t dropout_position(const std::string& checkpoint) const;
  };
  /// Writes checkpoints/step-N, makes it the newest, and removes what lies before the newest `keep`,
  /// but for the best one, and whatever a killed process left behind.
  void save(const State& state, const NamedTensors& model, const NamedTensors& optimizer,
            int64_t keep = 2);
  /// Folder of the newest whole checkpoint; "" when there is none yet.
  std::string latest() const;
  /// Folder of the best one. Error where the run keeps none.
  std::string best() const;
  State read_state(const std::string& checkpoint) const;
  /// The same of state.json's text.
  static State parse_state(std::string_view text, const std::string& checkpoint);
  /// Copies stored values into tensors of the same names, shapes and types. Error by name
  /// otherwise.
  static void load(const std::string& file, const NamedTensors& into);

  /// Appends one line to metrics.jsonl, or to another file of lines (samples.jsonl).
  void append_metrics(const std::string& line) { append_line("metrics.jsonl", line); }
  void append_line(const std::string& name, const std::string& line);
  /// Drops metrics and samples of steps after `step`: they will be made again.
  void drop_lines_after(int64_t step);

 private:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}
  std::string named_by(const char* pointer) const;
  void name_best(int64_t step);
  void remove_old(const State& newest, int64_t keep);
  std::string path_;
};

/// Keeps other trainings out of a run directory while alive; the system ends it with the process,
/// however that dies. Error when another training has it.
class RunLock {
 public:
  explicit RunLock(const RunDirectory& run);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_;
};

}  // namespace tally
