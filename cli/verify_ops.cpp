#include "cli/verify_ops.h"

#include <algorithm>
#include <cmath>

#include "autograd/functional.h"
#include "autograd/proof/run_sample.h"
#include "autograd/tape.h"
#include "models/safetensor_file.h"
#include "models/weight_files.h"

namespace tally::cli {
namespace {

/// The record of one case.
struct OpFixture {
  std::string op, name;
  Json attributes;
  std::map<std::string, const StoredTensor*> in, out, gradout, gradin;
  std::string title() const { return op + "." + name; }
};

std::vector<OpFixture> read_fixtures(const SafetensorFile& file) {
  std::map<std::string, OpFixture> cases;
  for (const StoredTensor& t : file.tensors()) {
    std::vector<std::string> part(1);
    for (char c : t.name) {
      if (c == '.' && part.size() < 4)
        part.emplace_back();
      else
        part.back() += c;
    }
    check(part.size() == 4, file.path(), ": names must be op.case.role.name; got '", t.name, "'");
    OpFixture& f = cases[part[0] + "." + part[1]];
    f.op = part[0];
    f.name = part[1];
    std::map<std::string, std::map<std::string, const StoredTensor*>*> roles{
        {"in", &f.in}, {"out", &f.out}, {"gradout", &f.gradout}, {"gradin", &f.gradin}};
    check(roles.contains(part[2]), file.path(), ": roles are in, out, gradout and gradin; got '",
          t.name, "'");
    (*roles[part[2]])[part[3]] = &t;
  }
  std::vector<OpFixture> list;
  for (auto& [title, f] : cases) {
    const auto it = file.metadata().find(title);
    f.attributes = it == file.metadata().end() ? Json::object()
                                               : parse_json(it->second, file.path() + ": " + title);
    list.push_back(std::move(f));
  }
  return list;
}

Shape shape_of(const StoredTensor& t) { return Shape(std::span<const int64_t>(t.shape)); }

std::vector<double> recorded(const StoredTensor& t) {
  std::vector<double> v(static_cast<size_t>(t.numel()));
  if (t.type == StoredType::i64 || t.type == StoredType::u8) {
    std::vector<int64_t> whole(v.size());
    read_values(t, std::span<int64_t>(whole));
    std::copy(whole.begin(), whole.end(), v.begin());
  } else {
    read_values(t, std::span<double>(v));
  }
  return v;
}

/// Whether a case says how far float32 strays and has inputs that float32 can hold.
bool has_float32(const OpFixture& f) {
  if (!f.attributes.contains("float32_error")) return false;
  for (const auto& [name, stored] : f.in) {
    for (double v : recorded(*stored)) {
      if (std::isfinite(v) && !std::isfinite(static_cast<float>(v))) return false;
    }
  }
  return true;
}

/// A recorded tensor: integers and masks as they are, numbers in the type of the case.
Tensor make_tensor(const StoredTensor& t, DType dtype, Device device) {
  const std::vector<double> v = recorded(t);
  const auto as = [&]<class T>(std::type_identity<T>) {
    const std::vector<T> values(v.begin(), v.end());
    return from_host<T>(values, shape_of(t), device);
  };
  if (t.type == StoredType::i64) return as(std::type_identity<int64_t>{});
  if (t.type == StoredType::u8) return as(std::type_identity<uint8_t>{});
  if (dtype == DType::f32) return as(std::type_identity<float>{});
  return as(std::type_identity<double>{});
}

/// Our tensor beside the recorded one; an undefined gradient is zeros. What is not finite must be
/// the same.
Comparison compare(const std::string& what, const Tensor& ours, const StoredTensor& theirs,
                   double tolerance, double absolute) {
  Comparison c{what, 0, tolerance};
  const std::vector<double> b = recorded(theirs);
  if (ours.defined() && ours.shape() != shape_of(theirs)) {
    c.what += ": shape " + to_text(ours.shape()) + ", recorded " + to_text(shape_of(theirs));
    c.error = INFINITY;
    return c;
  }
  const std::vector<double> a = ours.defined() ? to_doubles(ours) : std::vector<double>(b.size());
  double scale = 0;
  for (double v : b) scale = std::isfinite(v) ? std::max(scale, std::fabs(v)) : scale;
  for (size_t i = 0; i < b.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    const double d = std::fabs(a[i] - b[i]);
    c.error = std::isfinite(d) ? std::max(c.error, d) : INFINITY;
  }
  if (scale == 0)
    c.bound = absolute;
  else
    c.error /= scale;
  return c;
}

/// Starts the backward pass from the recorded gradients of the outputs.
void play_back(const OpFixture& f, const OpCase& c, const OpOutputs& outputs) {
  std::vector<std::pair<Tensor, Tensor>> seeds;
  for (const auto& [name, stored] : f.gradout) {
    const auto it = outputs.find(name);
    check(it != outputs.end(), f.title(), ": the op gives no output '", name, "'");
    seeds.emplace_back(it->second, make_tensor(*stored, c.dtype, c.device));
  }
  if (seeds.size() == 1) return backward(seeds[0].first, seeds[0].second);
  Tensor loss;  // d loss / d y = the seed of y
  for (const auto& [y, seed] : seeds) {
    const Tensor part = sum(mul(y, seed));
    loss = loss.defined() ? add(loss, part) : part;
  }
  backward(loss);
}

void replay(const OpFixture& f, OpFunction function, DType dtype, Device device, OpReport& report) {
  OpCase c{f.attributes, {}, dtype, device, f.name};
  const double float32 = f.attributes.value("float32_error", 0.0);
  const double tolerance = dtype == DType::f64 ? 1e-10 : 2e-6 + 8 * float32;
  const double absolute = dtype == DType::f64 ? 1e-12 : 1e-6;
  const std::string where = " (" + to_text(dtype) + ", " + to_text(device) + ")";
  try {
    for (const auto& [name, stored] : f.in) {
      Tensor t = make_tensor(*stored, dtype, device);
      if (f.gradin.contains(name)) t.requires_grad_();
      c.inputs[name] = t;
    }
    const Tape tape;
    const OpOutputs outputs = function(c);
    if (outputs.empty()) {
      report.not_built.push_back(f.title() + where);
      return;
    }
    for (const auto& [name, stored] : f.out) {
      const auto it = outputs.find(name);
      check(it != outputs.end(), "the op gives no output '", name, "'");
      report.rows.push_back(
          compare(f.title() + " out." + name + where, it->second, *stored, tolerance, absolute));
    }
    if (f.gradin.empty()) return;
    check(!f.gradout.empty(), "gradients of the inputs are recorded, and none of an output");
    play_back(f, c, outputs);
    for (const auto& [name, stored] : f.gradin) {
      report.rows.push_back(compare(f.title() + " gradin." + name + where, c.in(name).grad(),
                                    *stored, tolerance, absolute));
    }
  } catch (const std::exception& e) {
    report.rows.push_back({f.title() + where + ": " + e.what(), INFINITY, tolerance});
  }
}

const Json& attribute(const Json& attributes, const char* name) {
  const auto it = attributes.find(name);
  check(it != attributes.end(), "the case has no attribute '", name, "'");
  return *it;
}

}  // namespace

const Tensor& OpCase::in(const std::string& name) const {
  const auto it = inputs.find(name);
  check(it != inputs.end(), "the case has no input '", name, "'");
  return it->second;
}
Tensor OpCase::maybe(const std::string& name) const {
  const auto it = inputs.find(name);
  return it == inputs.end() ? Tensor() : it->second;
}
double OpCase::number(const char* name) const { return attribute(attributes, name).get<double>(); }
int OpCase::integer(const char* name) const { return attribute(attributes, name).get<int>(); }
bool OpCase::flag(const char* name) const { return attribute(attributes, name).get<bool>(); }
std::string OpCase::text(const char* name) const {
  return attribute(attributes, name).get<std::string>();
}
Shape OpCase::list(const char* name) const {
  const auto v = attribute(attributes, name).get<std::vector<int64_t>>();
  return Shape(std::span<const int64_t>(v));
}
Tensor OpCase::constant(double value, const Shape& shape) const {
  return full(shape, value, dtype, device);
}

OpTable op_table() {
  OpTable table;
  add_attention_ops(table);
  add_basic_ops(table);
  add_loss_ops(table);
  add_mixer_ops(table);
  add_model_ops(table);
  add_position_ops(table);
  add_product_ops(table);
  add_schedule_ops(table);
  return table;
}

OpReport verify_ops(const std::string& path, std::span<const Device> devices) {
  const SafetensorFile file(path);
  const OpTable table = op_table();
  OpReport report;
  const std::vector<OpFixture> fixtures = read_fixtures(file);
  check(!fixtures.empty(), path, ": holds no case of an op");
  for (const OpFixture& f : fixtures) {
    check(!f.out.empty(), path, ": ", f.title(), " records no output to compare with");
    const auto it = table.find(f.op);
    if (it == table.end()) {
      report.not_built.push_back(f.title());
      continue;
    }
    for (Device device : devices) {
      replay(f, it->second, DType::f64, device, report);
      if (has_float32(f)) replay(f, it->second, DType::f32, device, report);
    }
  }
  return report;
}

}  // namespace tally::cli
