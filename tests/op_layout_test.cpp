// Each operand and upstream gradient of every op as a transposed, stepped, shifted or expanded
// view: the numbers of a dense copy, or a refusal that says what to do. Never dense indexing.
#include <cstring>
#include <set>

#include "core/ops/all.h"
#include "core/sanitizers.h"
#include "tests/representative_samples.h"
#include "tests/worse.h"

using namespace tally;

namespace {

// Visits the elements of equal places of two tensors of one shape, whatever their strides.
template <class F>
void each_pair(const Tensor& a, const Tensor& b, F&& f) {
  std::array<int64_t, Shape::kMaxAxes> at{};
  for (int64_t n = 0; n < a.numel(); ++n) {
    int64_t x = 0, y = 0;
    for (int i = 0; i < a.ndim(); ++i) {
      x += at[static_cast<size_t>(i)] * a.strides()[i];
      y += at[static_cast<size_t>(i)] * b.strides()[i];
    }
    f(x, y);
    for (int i = a.ndim() - 1; i >= 0 && ++at[static_cast<size_t>(i)] == a.shape()[i]; --i)
      at[static_cast<size_t>(i)] = 0;
  }
}

// The numbers of `t` written into `view`, a view of memory where everything else is NaN or -1.
Tensor same_numbers(const Tensor& t, const Tensor& view) {
  const size_t size = size_of(t.dtype());
  const auto* from = static_cast<const char*>(t.data());
  auto* to = static_cast<char*>(view.data());
  each_pair(t, view, [&](int64_t x, int64_t y) {
    std::memcpy(to + static_cast<size_t>(y) * size, from + static_cast<size_t>(x) * size, size);
  });
  return view;
}

Tensor filled(const Shape& shape, const Tensor& like) {
  Tensor base = empty(shape, like.dtype(), like.device());
  if (base.numel() > 0) std::memset(base.data(), 0xff, base.nbytes());
  return base;
}

Shape swapped(Shape s, int a, int b) {
  std::swap(s[a], s[b]);
  return s;
}

Shape resized(Shape s, int axis, int64_t size) {
  s[axis] = size;
  return s;
}

/// A way to lay out a tensor; undefined where the shape does not allow it.
struct NamedLayout {
  std::string name;
  std::function<Tensor(const Tensor&)> of;
};

std::vector<NamedLayout> layouts() {
  const auto transposed = [](int a, int b, int axes) {
    return [=](const Tensor& t) {
      if (t.ndim() < axes) return Tensor();
      return same_numbers(t, filled(swapped(t.shape(), a, b), t).transpose(a, b));
    };
  };
  const auto stepped = [](int axis) {
    return [=](const Tensor& t) {
      if (t.ndim() < 1) return Tensor();
      const int64_t n = t.size(axis);
      return same_numbers(t, filled(resized(t.shape(), axis, 2 * n), t).narrow(axis, 0, n, 2));
    };
  };
  const auto shifted = [](int axis) {
    return [=](const Tensor& t) {
      if (t.ndim() < 1) return Tensor();
      const int64_t n = t.size(axis);
      return same_numbers(t, filled(resized(t.shape(), axis, n + 3), t).narrow(axis, 2, n));
    };
  };
  return {{"transposed", transposed(-1, -2, 2)},  {"first axes transposed", transposed(0, 1, 3)},
          {"every second element", stepped(-1)},  {"every second row", stepped(0)},
          {"elements at an offset", shifted(-1)}, {"rows at an offset", shifted(0)}};
}

// The sample with input `i` the same along `axis`: what an expanded tensor holds.
Sample repeated(Sample s, size_t i, int axis) {
  SampleInput& in = s.inputs[i];
  const int64_t n = in.shape[axis];
  int64_t inner = 1;
  for (int a = axis + 1; a < in.shape.ndim(); ++a) inner *= in.shape[a];
  for (size_t k = 0; k < in.values.size(); ++k) {
    const int64_t at = static_cast<int64_t>(k);
    in.values[k] = in.values[static_cast<size_t>(at / (inner * n) * inner * n + at % inner)];
  }
  return s;
}

Tensor expanded(const Tensor& t, int axis) {
  return same_numbers(t, filled(resized(t.shape(), axis, 1), t).expand(t.shape()));
}

// Whether numbers that are the same along an axis mean something: offsets that never rise are no
// plan, however they lie.
bool has_meaning(const Sample& s) {
  try {
    run_sample(s, make_inputs(s, DType::f32, kReference));
    return true;
  } catch (const Error& e) {
    return std::string(e.what()).find("offsets") == std::string::npos;
  }
}

bool is_layer(const Sample& s) {    // the part of it that refuses then gives its own name
  if (s.op == "clip") return true;  // a sample of several calls
  static const std::set<std::string> ops = [] {
    std::set<std::string> names;
    for (const Sample& core : core_samples()) names.insert(core.op);
    return names;
  }();
  return ops.count(s.op) == 0;
}

void check_layout(const Sample& s, Device device, const std::string& what, int place,
                  const std::function<Tensor(const Tensor&)>& layout) {
  INFO(s.op << " '" << s.name << "' on " << to_text(device) << ", operand " << place << " "
            << what);
  bool applies = true;
  const auto arrange = [&](const Tensor& t, int k) {
    if (k != place) return t;
    Tensor view = layout(t);
    applies = view.defined();
    return applies ? view : t;
  };
  try {
    const ProofResult r = prove_backend(s, device, DType::f32, arrange);
    INFO(r.note);
    CHECK((!applies || r.ok()));
  } catch (const Error& e) {
    INFO(e.what());
    CHECK(std::string(e.what()).find("contiguous(") != std::string::npos);
    CHECK((is_layer(s) || std::string(e.what()).rfind(s.op, 0) == 0));
  }
}

// An upstream gradient and its dense copy give the same gradients, but for the order of sums.
void check_upstream_view(const Sample& s, const std::vector<Tensor>& inputs, size_t output,
                         const Tensor& view) {
  INFO(s.op << " '" << s.name << "' on " << to_text(view.device()) << ", output " << output
            << " with strides " << to_text(view.strides()));
  const auto gradients = [&](const Tensor& upstream) {
    const Sample::Explicit e = s.by_hand(inputs);
    auto dy = random_upstream(e.outputs);
    dy[output] = upstream;
    return e.backward(dy);
  };
  const auto dense = gradients(ops::Copy::forward(view, {}, nullptr));
  std::vector<Tensor> strided;
  try {
    strided = gradients(view);
  } catch (const Error& e) {
    INFO(e.what());
    CHECK(std::string(e.what()).find("contiguous(") != std::string::npos);
    return;
  }
  // Of the largest gradient: a layer's small ones are differences of numbers of that size, and
  // rounding differs by the order of sums (attention with dropout: 4e-5 of dWq against f64).
  double size = 0;
  for (const Tensor& g : dense) {
    if (!g.defined()) continue;
    for (const double v : to_doubles(g)) size = std::max(size, std::fabs(v));
  }
  for (size_t i = 0; i < dense.size(); ++i) {
    REQUIRE(dense[i].defined() == strided[i].defined());
    if (!dense[i].defined()) continue;
    const auto a = to_doubles(dense[i]), b = to_doubles(strided[i]);
    double error = 0;
    for (size_t k = 0; k < a.size(); ++k) error = test::worse(error, a[k], b[k]);
    INFO("gradient of input " << i);
    CHECK(error <= (view.dtype() == DType::f64 ? 1e-12 : 1e-5) * size);
  }
}

constexpr int64_t kMost = 1000;

// Under the sanitizers, ten times as slow, one sample in eight.
constexpr size_t kEvery = kSanitized ? 8 : 1;

// Layouts multiply the runs: samples of many numbers, other shapes and other numbers show nothing
// that small ones do not. Every option of every op is among these, and every module.
const std::vector<const Sample*>& few() {
  static const std::vector<const Sample*> list = [] {
    std::vector<const Sample*> small;
    size_t number = 0;
    for (const Sample* s : representative_samples(600)) {
      if (numel_of(*s) <= kMost && number++ % kEvery == 0) small.push_back(s);
    }
    return small;
  }();
  return list;
}

}  // namespace

TEST_CASE("layouts: the only samples left out are attention's over several blocks", "[op]") {
  CHECK(few().size() > 1000 / kEvery);
  for (const Sample* s : representative_samples(600)) {
    INFO(s->op << " '" << s->name << "'");
    // Their options are those of smaller ones with other numbers.
    const bool blocks = s->op == "attention" && s->name.find("several blocks") != s->name.npos;
    CHECK((numel_of(*s) <= kMost) != blocks);
  }
}

TEST_CASE("every op: serves or refuses views of its operands and of the upstream gradient",
          "[op][F37]") {
  for (const Sample* each : few()) {
    const Sample& s = *each;
    const size_t outputs =
        s.by_hand ? s.by_hand(make_inputs(s, DType::f32, kReference)).outputs.size() : 0;
    for (Device device : {kReference, kCPU}) {
      for (size_t i = 0; i < s.inputs.size() + outputs; ++i) {
        for (const NamedLayout& layout : layouts())
          check_layout(s, device, layout.name, static_cast<int>(i), layout.of);
      }
    }
  }
}

TEST_CASE("every op: serves or refuses expanded operands", "[op][F37]") {
  for (const Sample* each : few()) {
    const Sample& s = *each;
    if (s.module || s.derived) continue;  // those of its ops; views of their own
    for (size_t i = 0; i < s.inputs.size(); ++i) {
      const Shape& shape = s.inputs[i].shape;
      for (int axis = 0; axis < shape.ndim(); ++axis) {
        if (!s.inputs[i].present || shape[axis] < 2 || shape.numel() == 0) continue;
        const Sample same = repeated(s, i, axis);
        if (!has_meaning(same)) continue;
        for (Device device : {kReference, kCPU}) {
          check_layout(same, device, "expanded along axis " + to_text(axis), static_cast<int>(i),
                       [&](const Tensor& t) { return expanded(t, axis); });
        }
      }
    }
  }
}

TEST_CASE("every op: serves or refuses an expanded upstream gradient", "[op][F37]") {
  for (const Sample* each : few()) {
    const Sample& s = *each;
    if (!s.by_hand) continue;
    for (Device device : {kReference, kCPU}) {
      const DType dtype = device == kCPU ? DType::f32 : DType::f64;
      const auto inputs = make_inputs(s, dtype, device);
      const auto outputs = s.by_hand(inputs).outputs;
      for (size_t o = 0; o < outputs.size(); ++o) {
        for (int axis = -1; axis < outputs[o].ndim(); ++axis) {
          Shape one = outputs[o].shape();
          for (int a = 0; a < one.ndim(); ++a)
            if (axis < 0 || a == axis) one[a] = std::min<int64_t>(one[a], 1);
          if (one == outputs[o].shape() || !is_floating(outputs[o].dtype())) continue;
          const Tensor base = random_like(empty(one, outputs[o].dtype(), device), 7);
          check_upstream_view(s, inputs, o, base.expand(outputs[o].shape()));
        }
      }
    }
  }
}

TEST_CASE("tensor: views step, shift and expand without a copy", "[tensor]") {
  set_up_proofs();
  const Tensor t = from_host<double>({0, 1, 2, 3, 4, 5}, {2, 3}, kReference);
  CHECK(to_doubles(t.transpose(0, 1)) == std::vector<double>{0, 3, 1, 4, 2, 5});
  CHECK(to_doubles(t.narrow(1, 0, 2, 2)) == std::vector<double>{0, 2, 3, 5});
  CHECK(to_doubles(t.narrow(0, 1, 1)) == std::vector<double>{3, 4, 5});
  CHECK(to_doubles(t.narrow(0, 1, 1).expand({2, 3})) == std::vector<double>{3, 4, 5, 3, 4, 5});
  CHECK(&t.narrow(0, 1, 1).storage() == &t.storage());
}
