// The table of samples has what breaks an op: for each op a sample along each axis, or the reason
// why the axis means nothing to it.
#include <map>
#include <set>

#include "tests/samples.h"

using namespace tally;

namespace {

enum Axis { zero, one, odd, tail, extreme, broadcast, kAxes };
const char* const kNames[kAxes] = {"size 0", "size 1",         "an odd size, longer than one",
                                   "a tail", "extreme values", "broadcast inputs"};

// Why an op has no sample along an axis.
const std::map<std::string, std::map<Axis, const char*>>& reasons() {
  static const std::map<std::string, std::map<Axis, const char*>> all = {
      {"dropout", {{broadcast, "x and residual have one shape"}}},
      {"gate", {{broadcast, "gate and up have one shape"}}},
  };
  return all;
}

bool any_size(const Shape& s, bool (*is)(int64_t)) {
  for (int i = 0; i < s.ndim(); ++i) {
    if (is(s[i])) return true;
  }
  return false;
}

std::set<Axis> axes_of(const Sample& s) {
  std::set<Axis> found;
  std::set<std::string> shapes;
  for (const SampleInput& in : s.inputs) {
    if (!in.present) continue;
    shapes.insert(to_text(in.shape));
    if (in.shape.numel() == 0) found.insert(zero);
    if (any_size(in.shape, [](int64_t n) { return n == 1; }) || in.shape.ndim() == 0)
      found.insert(one);
    if (any_size(in.shape, [](int64_t n) { return n > 1 && n % 2 == 1; })) found.insert(odd);
    // More than a vector of any instruction set, and not a multiple of one.
    if (any_size(in.shape, [](int64_t n) { return n > 16 && n % 4 != 0; })) found.insert(tail);
    for (const double v : in.values) {
      if (is_floating(in.dtype) && (v == 0 || std::fabs(v) >= 20)) found.insert(extreme);
    }
  }
  if (!s.smooth) found.insert(extreme);
  if (shapes.size() > 1) found.insert(broadcast);
  return found;
}

}  // namespace

TEST_CASE("samples: every op has one along each axis that can break it", "[op]") {
  std::map<std::string, std::set<Axis>> found;
  std::map<std::string, size_t> inputs;
  for (const Sample& s : core_samples()) {
    for (const Axis a : axes_of(s)) found[s.op].insert(a);
    size_t floating = 0;
    for (const SampleInput& in : s.inputs) floating += in.present && is_floating(in.dtype) ? 1 : 0;
    inputs[s.op] = std::max(inputs[s.op], floating);
  }
  for (const auto& [op, axes] : found) {
    for (int a = 0; a < kAxes; ++a) {
      const auto axis = static_cast<Axis>(a);
      const auto why = reasons().find(op);
      const bool excused = why != reasons().end() && why->second.count(axis) > 0;
      if (axis == broadcast && inputs[op] < 2) continue;  // there is one input
      INFO(op << " has " << (axes.count(axis) ? "" : "no ") << "sample with " << kNames[a]);
      CHECK(axes.count(axis) != excused);
    }
  }
}

TEST_CASE("samples: each input that may be absent is there in one sample and absent in another",
          "[op]") {
  std::map<std::string, std::array<bool, 2>> seen;
  for (const Sample& s : core_samples()) {
    for (size_t i = 0; i < s.inputs.size(); ++i)
      seen[s.op + ", input " + to_text(i)][s.inputs[i].present ? 1 : 0] = true;
  }
  for (const auto& [input, of] : seen) {
    INFO(input);
    CHECK(of[1]);
  }
}
