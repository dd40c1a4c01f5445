#include "data/dataset.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace tally {
namespace {

/// SplitMix64's finaliser (Steele, Lea and Flood 2014): every bit of the result depends on all.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

}  // namespace

int64_t keyed_permutation(int64_t index, int64_t size, uint64_t key) {
  const int half = (std::bit_width(static_cast<uint64_t>(size - 1)) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  auto x = static_cast<uint64_t>(index);
  if (half == 0) return index;
  do {  // the network permutes up to four times `size` numbers; those too large are walked over
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      const uint64_t next = left ^ (mix(mix(key + round) ^ right) & mask);
      left = right;
      right = next;
    }
    x = left << half | right;
  } while (x >= static_cast<uint64_t>(size));
  return static_cast<int64_t>(x);
}

Dataset::Dataset(TokenFile tokens, int64_t context, uint64_t seed)
    : tokens_(std::move(tokens)), context_(context), seed_(seed) {
  check_window(tokens_.size(), context_, tokens_.name());
  windows_ = (tokens_.size() - 1) / context_;
}

int64_t Dataset::start(int64_t index) const {
  check(index >= 0, "dataset: samples are numbered from 0; given ", index);
  const auto epoch = static_cast<uint64_t>(index / windows_);
  const uint64_t key = mix(mix(seed_) + epoch);
  const auto spare = static_cast<uint64_t>((tokens_.size() - 1) % context_);
  const auto shift = static_cast<int64_t>(mix(key ^ spare) % (spare + 1));
  return shift + keyed_permutation(index % windows_, windows_, key) * context_;
}

void Dataset::read(int64_t start, std::span<int64_t> inputs, std::span<int64_t> targets) const {
  tokens_.read(start, inputs);
  tokens_.read(start + 1, targets);
}

void Dataset::sample(int64_t index, std::span<int64_t> inputs, std::span<int64_t> targets) const {
  check(rows(inputs, targets) == 1, "dataset: a sample has ", context_, " tokens; given room for ",
        inputs.size());
  read(start(index), inputs, targets);
}

void Dataset::batch(int64_t step, std::span<int64_t> inputs, std::span<int64_t> targets) const {
  const int64_t count = rows(inputs, targets);
  const auto width = static_cast<size_t>(context_);
  for (int64_t row = 0; row < count; ++row) {
    const size_t at = static_cast<size_t>(row) * width;
    read(start(step * count + row), inputs.subspan(at, width), targets.subspan(at, width));
  }
}

void Dataset::will_read(int64_t step, int64_t count, int64_t rows) const {
  for (int64_t row = 0; row < count * rows; ++row)
    tokens_.will_read(start(step * rows + row), context_ + 1);
}

void Dataset::windows_in_order(int64_t number, std::span<int64_t> inputs,
                               std::span<int64_t> targets) const {
  const int64_t count = rows(inputs, targets);
  check(number >= 0 && number + count <= windows_, "dataset: windows ", number, " to ",
        number + count, " must be among the ", windows_, " of ", tokens_.name());
  const auto width = static_cast<size_t>(context_);
  for (int64_t row = 0; row < count; ++row) {
    const size_t at = static_cast<size_t>(row) * width;
    read((number + row) * context_, inputs.subspan(at, width), targets.subspan(at, width));
  }
}

int64_t Dataset::rows(std::span<int64_t> inputs, std::span<int64_t> targets) const {
  const auto size = static_cast<int64_t>(inputs.size());
  check(inputs.size() == targets.size() && size > 0 && size % context_ == 0,
        "dataset: inputs and targets must have room for the same whole rows of ", context_,
        " tokens; given ", inputs.size(), " and ", targets.size());
  return size / context_;
}

int64_t source_bytes(std::span<const int64_t> targets, std::span<const uint32_t> byte_lengths) {
  int64_t bytes = 0;
  for (const int64_t id : targets) {
    if (id < 0) continue;
    check(static_cast<size_t>(id) < byte_lengths.size(), "dataset: targets must be below the ",
          "vocabulary's ", byte_lengths.size(), "; given ", id);
    bytes += byte_lengths[static_cast<size_t>(id)];
  }
  return bytes;
}

double bits_per_byte(double total_nats, int64_t bytes) {
  check(bytes > 0, "bits per byte: there must be at least one byte of text; given ", bytes);
  return total_nats / (std::numbers::ln2 * static_cast<double>(bytes));
}

}  // namespace tally
