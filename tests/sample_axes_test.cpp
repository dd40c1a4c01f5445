// The table of samples has what breaks an op: for each op and layer a sample along each axis, or the
// reason why the axis means nothing to it; and for each of its options two values or more.
#include <map>
#include <set>

#include "tests/samples.h"

using namespace tally;

namespace {

enum Axis { zero, one, odd, tail, extreme, broadcast, strided, kAxes };
const char* const kNames[kAxes] = {
    "size 0",         "size 1",           "an odd size, longer than one", "a tail",
    "extreme values", "broadcast inputs", "an input that is a view"};

using Reasons = std::map<std::string, const char*>;

// Why an op has no sample along an axis.
const Reasons& reasons(Axis axis) {
  static const char* const kShapes = "its inputs have one shape";
  static const char* const kOwned = "parameters and moments are dense: the optimizer owns them";
  static const std::map<Axis, Reasons> all = {
      {broadcast, {{"dropout", kShapes}, {"gate", kShapes}}},
      {strided,
       {{"adafactor_update", kOwned},
        {"adagrad_update", kOwned},
        {"adam_quotient", kOwned},
        {"adamw_update", kOwned},
        {"basis_order", kOwned},
        {"blend", kOwned},
        {"directed_update", kOwned},
        {"eigen_basis", kOwned},
        {"lion_update", kOwned},
        {"momentum_direction", kOwned},
        {"nadam_update", kOwned},
        {"orthonormal_columns", kOwned},
        {"reordered", kOwned},
        {"rmsprop_update", kOwned},
        {"root_columns", kOwned},
        {"scaled_gradient", kOwned},
        {"sgd_update", kOwned},
        {"unit_norm", kOwned},
        {"clip", "gradients are dense: the tape makes them"},
        {"document_ids", "ids of tokens are dense: whoever reads a text makes them"},
        {"selection_bias", "bias and load are dense: a module owns them"}}},
  };
  static const Reasons none;
  const auto found = all.find(axis);
  return found == all.end() ? none : found->second;
}

// Axes that only ops have: a module is made of them, and its parameters are dense.
bool of_ops_alone(Axis a) { return a == tail || a == extreme || a == strided; }

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
    if (in.layout != Layout::dense) found.insert(strided);
  }
  if (!s.smooth) found.insert(extreme);
  if (shapes.size() > 1) found.insert(broadcast);
  return found;
}

// Options that a frame has for others of its ops: fields of Attrs, by their place.
bool is_unused(const std::string& op, size_t option) {
  static const std::set<std::string> no_number{"neg", "abs", "exp", "log",        "sqrt",  "rsqrt",
                                               "sin", "cos", "erf", "reciprocal", "square"};
  static const std::set<std::string> one_number{"scale", "add_scalar", "pow"};
  static const std::set<std::string> no_correction{"sum",  "mean", "amax",
                                                   "amin", "norm", "logsumexp"};
  return no_number.count(op) > 0 || (one_number.count(op) > 0 && option == 1) ||
         (no_correction.count(op) > 0 && option == 2);
}

}  // namespace

TEST_CASE("samples: every op has one along each axis that can break it", "[op]") {
  std::map<std::string, std::set<Axis>> found;
  std::map<std::string, size_t> inputs;
  std::set<std::string> modules;
  for (const Sample& s : all_samples()) {
    for (const Axis a : axes_of(s)) found[s.op].insert(a);
    size_t floating = 0;
    for (const SampleInput& in : s.inputs) floating += in.present && is_floating(in.dtype) ? 1 : 0;
    inputs[s.op] = std::max(inputs[s.op], floating);
    if (s.module) modules.insert(s.op);
  }
  for (const auto& [op, axes] : found) {
    for (int a = 0; a < kAxes; ++a) {
      const auto axis = static_cast<Axis>(a);
      const bool excused = reasons(axis).count(op) > 0;
      if (axis == broadcast && inputs[op] < 2) continue;  // there is one input
      if (modules.count(op) && of_ops_alone(axis)) continue;
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

TEST_CASE("samples: each option of an op has two values or more", "[op]") {
  std::map<std::string, std::vector<std::set<std::string>>> values;
  for (const Sample& s : core_samples()) {
    auto& of = values[s.op];
    of.resize(std::max(of.size(), s.options.size()));
    for (size_t i = 0; i < s.options.size(); ++i) of[i].insert(s.options[i]);
  }
  for (const auto& [op, options] : values) {
    for (size_t i = 0; i < options.size(); ++i) {
      INFO("option " << i << " of " << op << " is " << *options[i].begin() << " in all samples");
      CHECK((options[i].size() > 1) != is_unused(op, i));
    }
  }
}

TEST_CASE("samples: no two have one name", "[op]") {
  std::set<std::string> seen;
  for (const Sample& s : all_samples()) {
    INFO(s.op << " '" << s.name << "'");
    CHECK(seen.insert(s.op + "/" + s.name).second);
  }
  CHECK(seen.size() > 3000);
}
