#pragma once
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/cost.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/recorder.h"
#include "core/shape.h"

namespace tally {

/// One call that ran (or, on meta, would have run).
struct Entry {
  const char* op;  // name of the call, e.g. "linear.backward"
  Kind kind;
  Phase phase;
  Device device;
  DType dtype;
  Cost cost;
  ModelFlops model;           // none for a call that is computed again
  const char* module;         // path of the layer, "" outside of one
  double seconds;             // 0 on meta
  double start;               // seconds from the ledger's beginning; 0 on meta
  double live;                // bytes of live storages on the device while the call ran
  const char* provider;       // which implementation a kernel with several chose, else ""
  bool fallback;              // the reference loops stood in for a missing kernel
  std::vector<Shape> shapes;  // of the call's views, absent ones left out
};

/// Sums of entries that share a key.
struct LedgerTotal {
  std::string key;
  Cost cost;
  ModelFlops model;
  double seconds = 0;
  int64_t calls = 0;
};

/// Lists every call of its thread while in scope; the innermost ledger listens.
class Ledger {
 public:
  Ledger();
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  void add(Entry entry) { entries_.push_back(std::move(entry)); }
  std::span<const Entry> entries() const { return entries_; }
  void clear() { entries_.clear(); }
  std::chrono::steady_clock::time_point began() const { return began_; }
  Cost total() const;
  ModelFlops model_total() const;
  enum class By { op, layer, kind, phase };
  /// Totals by a key, in the order of first appearance.
  std::vector<LedgerTotal> totals(By by) const;
  /// The same by any key that the caller makes of an entry.
  std::vector<LedgerTotal> totals(const std::function<std::string(const Entry&)>& key) const;
  /// One line an entry, for people and for diffs; `timing` adds seconds and provider.
  std::string text(bool timing = false) const;
  /// The same as comma-separated values with a header line.
  std::string csv() const;
  /// The same as a JSON array with an object for each entry.
  std::string json() const;

 private:
  std::vector<Entry> entries_;
  Ledger* outer_;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace tally
