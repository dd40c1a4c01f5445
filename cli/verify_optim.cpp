#include "cli/verify_optim.h"

#include <algorithm>
#include <cmath>

#include "autograd/proof/run_sample.h"
#include "cli/traced_optimizer.h"
#include "models/safetensor_file.h"
#include "models/weight_files.h"

namespace tally::cli {
namespace {

/// A recorded trace in one element type.
struct Trace {
  const SafetensorFile& file;
  std::string section;  // "f64." or "f32."
  DType dtype;
  Json attributes;
  double tolerance = 0;

  std::vector<double> numbers(const std::string& name) const {
    const StoredTensor* t = find(name);
    check(t, file.path(), ": has no ", section, name);
    std::vector<double> v(static_cast<size_t>(t->numel()));
    read_values(*t, std::span<double>(v));
    return v;
  }
  const StoredTensor* find(const std::string& name) const { return file.find(section + name); }
  double rate(int64_t step, bool own_rates) const {
    const Json& h = attributes.at("hyperparameters");
    if (own_rates) return 1;
    if (h.contains("lr_per_step")) return h["lr_per_step"].at(static_cast<size_t>(step));
    return h.at("lr").is_null() ? 1e-2 : h["lr"].get<double>();  // null: at most 0.01
  }
};

Tensor make_tensor(std::span<const double> v, const Shape& shape, DType dtype, Device device) {
  if (dtype == DType::f64) return from_host<double>(v, shape, device);
  const std::vector<float> narrow(v.begin(), v.end());
  return from_host<float>(std::span<const float>(narrow), shape, device);
}

Comparison compare(std::string what, const std::vector<double>& ours,
                   const std::vector<double>& theirs, double tolerance) {
  Comparison c{std::move(what), 0, tolerance};
  if (ours.size() != theirs.size()) return {c.what + ": another size", INFINITY, tolerance};
  double scale = 0;
  for (double v : theirs) scale = std::max(scale, std::fabs(v));
  for (size_t i = 0; i < ours.size(); ++i) {
    const double d = std::fabs(ours[i] - theirs[i]);
    c.error = std::isfinite(d) ? std::max(c.error, d) : INFINITY;
  }
  if (scale > 0) c.error /= scale;
  return c;
}

/// Parameters after all steps, one after the other, by name; the norms; what is kept at the end.
struct Replayed {
  std::map<std::string, std::vector<double>> parameters;
  std::vector<double> norms;
  std::map<std::string, std::vector<double>> kept;
};

NamedParameters begin(const Trace& t, Device device) {
  NamedParameters list;
  for (const auto& [name, shape] : t.attributes.at("shapes").items()) {
    const auto sizes = shape.get<std::vector<int64_t>>();
    Tensor w = make_tensor(t.numbers("init." + name), Shape(std::span<const int64_t>(sizes)),
                           t.dtype, device);
    list.emplace_back(name, w.requires_grad_());
  }
  return list;
}

Replayed replay(const Trace& t, Device device) {
  Replayed out;
  NamedParameters parameters = begin(t, device);
  const Json& a = t.attributes;
  TracedOptimizer made =
      make_traced(a.at("name").get<std::string>(), a.at("hyperparameters"), parameters, t.dtype);
  const double limit = a.at("clip_max_norm").is_null() ? 0 : a["clip_max_norm"].get<double>();
  std::map<std::string, std::vector<double>> gradients;
  for (const auto& [name, w] : parameters) gradients[name] = t.numbers("grad." + name);
  for (int64_t step = 0; step < a.at("steps").get<int64_t>(); ++step) {
    for (auto& [name, w] : parameters) {
      const auto n = static_cast<size_t>(w.numel());
      const auto g =
          std::span<const double>(gradients[name]).subspan(static_cast<size_t>(step) * n, n);
      w.set_grad(make_tensor(g, w.shape(), t.dtype, device));
    }
    Tensor scale;
    if (limit > 0) {
      const optim::ClippedNorm clip = optim::clip_factor(made.optimizer->groups(), limit);
      out.norms.push_back(clip.norm.item());
      scale = clip.factor;
    }
    made.optimizer->step(t.rate(step, made.own_rates), scale);
    for (const auto& [name, w] : parameters) {
      const std::vector<double> now = to_doubles(w);
      out.parameters[name].insert(out.parameters[name].end(), now.begin(), now.end());
    }
  }
  for (const auto& [name, kept] : made.optimizer->state()) out.kept[name] = to_doubles(kept);
  return out;
}

void compare_trace(const Trace& t, Device device, std::vector<Comparison>& rows) {
  const std::string where = " (" + to_text(t.dtype) + ", " + to_text(device) + ")";
  const Replayed ours = replay(t, device);
  for (const auto& [name, values] : ours.parameters)
    rows.push_back(
        compare("param." + name + where, values, t.numbers("param." + name), t.tolerance));
  if (t.find("total_norm"))
    rows.push_back(compare("total_norm" + where, ours.norms, t.numbers("total_norm"), t.tolerance));
  for (const auto& [name, values] : ours.kept) {  // "exp_avg.W1", recorded as "state.W1.exp_avg"
    const size_t dot = name.find('.');
    const std::string theirs = "state." + name.substr(dot + 1) + "." + name.substr(0, dot);
    if (t.find(theirs))
      rows.push_back(compare(theirs + where, values, t.numbers(theirs), t.tolerance));
  }
}

}  // namespace

std::vector<Comparison> verify_optim(const std::string& path, std::span<const Device> devices) {
  const SafetensorFile file(path);
  const auto found = file.metadata().find("attributes");
  check(found != file.metadata().end(), path, ": is no trace: its metadata has no attributes");
  const Json attributes = parse_json(found->second, path + ": attributes");
  const std::string name = attributes.at("name").get<std::string>();
  // Eigenvectors amplify rounding; a library that rounds to bf16 is met to 2 % alone.
  const bool bases = name.starts_with("soap") || name.starts_with("shampoo");
  const bool rounds = name.ends_with("_bf16");
  std::vector<Comparison> rows;
  for (Device device : devices) {
    for (const char* section : {"f64.", "f32."}) {
      const bool wide = section[1] == '6';
      const double f32 = 2e-6 + 4 * attributes.at("f32_vs_f64").get<double>();
      const double tolerance = rounds ? 2e-2 : !wide ? f32 : bases ? 1e-8 : 1e-10;
      compare_trace({file, section, wide ? DType::f64 : DType::f32, attributes, tolerance}, device,
                    rows);
    }
  }
  return rows;
}

}  // namespace tally::cli
