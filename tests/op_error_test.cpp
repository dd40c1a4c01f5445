// Wrong arguments, made from every sample: an Error that names the op, or a result; never a crash,
// and never memory that is not the op's (AddressSanitizer watches).
#include <set>

#include "tests/samples.h"

using namespace tally;

namespace {

// A change of one argument; false where it does not apply.
struct Damage {
  std::string name;
  std::function<bool(Tensor&)> apply;
};

std::vector<Damage> shape_damages() {
  std::vector<Damage> list;
  for (int axis = 0; axis < 4; ++axis) {
    for (int change : {-1, 1}) {
      list.push_back(
          {(change < 0 ? "axis shorter: " : "axis longer: ") + to_text(axis), [=](Tensor& t) {
             if (!t.defined() || axis >= t.ndim() || t.size(axis) + change < 0) return false;
             Shape shape = t.shape();
             shape[axis] += change;
             t = zeros(shape, t.dtype(), t.device());
             return true;
           }});
    }
  }
  list.push_back({"an axis in front", [](Tensor& t) {
                    if (!t.defined() || t.ndim() == Shape::kMaxAxes) return false;
                    Shape shape{2};
                    for (int i = 0; i < t.ndim(); ++i) shape = shape.append(t.shape()[i]);
                    t = zeros(shape, t.dtype(), t.device());
                    return true;
                  }});
  list.push_back({"no axes", [](Tensor& t) {
                    if (!t.defined() || t.ndim() == 0) return false;
                    t = zeros({}, t.dtype(), t.device());
                    return true;
                  }});
  return list;
}

std::vector<Damage> type_damages() {
  const auto of_type = [](DType dtype) {
    return Damage{"in " + to_text(dtype), [=](Tensor& t) {
                    if (!t.defined() || t.dtype() == dtype) return false;
                    t = zeros(t.shape(), dtype, t.device());
                    return true;
                  }};
  };
  return {of_type(DType::f64),
          of_type(DType::i64),
          of_type(DType::u8),
          {"on meta",
           [](Tensor& t) {
             if (!t.defined()) return false;
             t = zeros(t.shape(), t.dtype(), kMeta);
             return true;
           }},
          {"undefined", [](Tensor& t) {
             const bool was = t.defined();
             t = Tensor();
             return was;
           }}};
}

// What a message must begin with: the op or, for a layer, some op.
bool names_an_op(const Sample& s, const std::string& text) {
  static const std::set<std::string> ops = [] {
    std::set<std::string> names{"embedding", "linear", "to", "cast", "backward", "accumulate"};
    for (const Sample& core : core_samples()) names.insert(core.op);
    return names;
  }();
  const std::string head = text.substr(0, text.find_first_of(".:"));
  if (s.op == "clip") return head == "clip_global_norm" || head == "square_sum";
  return head == s.op || (ops.count(s.op) == 0 && ops.count(head) == 1);
}

void check_error(const Sample& s, const std::string& what, const std::string& text) {
  INFO(s.op << " '" << s.name << "', " << what << ": " << text);
  CHECK((names_an_op(s, text) || text.rfind("backward: the target", 0) == 0));
  CHECK(text.size() > 20);
}

// Runs forward and backward; true when it came through.
bool survives(const Sample& s, const std::string& what, const std::vector<Tensor>& inputs) {
  try {
    run_sample(s, inputs);
    return true;
  } catch (const Error& e) {
    check_error(s, what, e.what());
    return false;
  }
}

// An op's own samples: products of shapes, layouts and numbers (autograd/samples/grid.h) show
// nothing new once an argument is wrong, and a module is made of ops.
bool is_small(const Sample& s) {
  if (s.derived || s.module) return false;
  int64_t n = 0;
  for (const SampleInput& i : s.inputs) n += i.shape.numel();
  return n <= 600;
}

int floating_inputs(const Sample& s) {
  int n = 0;
  for (const SampleInput& i : s.inputs) n += i.present && is_floating(i.dtype) ? 1 : 0;
  return n;
}

}  // namespace

TEST_CASE("every op: a wrong shape of an argument is an error by name, or has a meaning",
          "[op][error]") {
  for (const Sample& s : all_samples()) {
    if (!is_small(s)) continue;
    for (Device device : {kReference, kCPU}) {
      for (size_t i = 0; i < s.inputs.size(); ++i) {
        for (const Damage& damage : shape_damages()) {
          auto inputs = make_inputs(s, DType::f32, device);
          if (damage.apply(inputs[i]))
            survives(s, "input " + to_text(i) + ", " + damage.name, inputs);
        }
      }
    }
  }
}

TEST_CASE("every op: a wrong type or device of an argument, or a missing one, is an error by name",
          "[op][error]") {
  for (const Sample& s : all_samples()) {
    if (!is_small(s)) continue;
    int64_t present = 0;
    for (const SampleInput& i : s.inputs) present += i.present ? 1 : 0;
    for (size_t i = 0; i < s.inputs.size(); ++i) {
      for (const Damage& damage : type_damages()) {
        auto inputs = make_inputs(s, DType::f32, kCPU);
        if (!damage.apply(inputs[i])) continue;
        const std::string what = "input " + to_text(i) + ", " + damage.name;
        const bool came_through = survives(s, what, inputs);
        INFO(s.op << " '" << s.name << "', " << what);
        if (damage.name == "on meta" && present > 1) CHECK_FALSE(came_through);
        // Of two floating-point arguments one in f64 is no silent cast.
        if (damage.name == "in f64" && floating_inputs(s) > 1 && is_floating(s.inputs[i].dtype))
          CHECK_FALSE(came_through);
      }
    }
  }
}

TEST_CASE("every op: its backward refuses an upstream gradient that is not like the output",
          "[op][error]") {
  std::vector<Damage> damages = shape_damages();
  for (const Damage& d : type_damages()) {
    if (d.name != "undefined") damages.push_back(d);  // an output without a gradient is fine
  }
  for (const Sample& s : all_samples()) {
    if (!is_small(s) || !s.by_hand) continue;
    const auto inputs = make_inputs(s, DType::f32, kCPU);
    const size_t outputs = s.by_hand(inputs).outputs.size();
    for (size_t o = 0; o < outputs; ++o) {
      for (const Damage& damage : damages) {
        const Sample::Explicit e = s.by_hand(inputs);
        auto dy = random_upstream(e.outputs);
        if (!damage.apply(dy[o])) continue;
        const std::string what = "upstream " + to_text(o) + ", " + damage.name;
        bool refused = false;
        try {
          e.backward(dy);
        } catch (const Error& error) {
          refused = true;
          check_error(s, what, error.what());
        }
        INFO(s.op << " '" << s.name << "', " << what);
        CHECK(refused);
      }
    }
  }
}

TEST_CASE("every op: its backward refuses a target that is not like the gradient", "[op][error]") {
  std::vector<Damage> damages = shape_damages();
  for (const Damage& d : type_damages()) {
    if (d.name != "undefined") damages.push_back(d);
  }
  for (const Sample& s : all_samples()) {
    if (!is_small(s) || !s.by_hand) continue;
    const auto inputs = make_inputs(s, DType::f32, kCPU);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!s.inputs[i].differentiable) continue;
      for (const Damage& damage : damages) {
        const Sample::Explicit e = s.by_hand(inputs);
        std::vector<Tensor> targets(inputs.size());
        targets[i] = zeros(inputs[i].shape(), inputs[i].dtype(), inputs[i].device());
        if (!damage.apply(targets[i])) continue;
        const std::string what = "target " + to_text(i) + ", " + damage.name;
        bool refused = false;
        try {
          e.backward(random_upstream(e.outputs), targets);
        } catch (const Error& error) {
          refused = true;
          check_error(s, what, error.what());
        }
        INFO(s.op << " '" << s.name << "', " << what);
        CHECK(refused);
      }
    }
  }
}

TEST_CASE("every op: refuses absent upstream gradients instead of reading them", "[op][error]") {
  for (const Sample& s : all_samples()) {
    if (!is_small(s) || !s.by_hand) continue;
    const Sample::Explicit e = s.by_hand(make_inputs(s, DType::f32, kCPU));
    try {
      const auto dx = e.backward(std::vector<Tensor>(e.outputs.size()));
      for (const Tensor& t : dx) CHECK_FALSE(t.defined());
    } catch (const Error& error) {
      INFO(s.op << ": " << error.what());
      CHECK(std::string(error.what()).size() > 20);
    }
  }
}
