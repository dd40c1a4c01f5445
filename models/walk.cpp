#include "models/walk.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "models/training_step.h"

namespace tally {
namespace {

/// Notes every call: inputs before it runs, since it may work in place, outputs after.
class WalkWatcher : public Watcher {
 public:
  WalkWatcher(nn::LanguageModel& model, int64_t first) : first_(first) {
    for (auto& [name, t] : model.named_parameters()) kept_.insert(&t.storage());
  }

  void before(const WatchedCall& call) override {
    WalkedCall c;
    c.number = static_cast<int64_t>(calls_.size()) + 1;
    c.formula = call.formula;
    places_.clear();
    for (const WatchedView& v : call.views) {
      WalkedView w{v.name, v.view->shape, v.view->dtype, v.output, v.updated, {}};
      if (!v.output) w.values = summarize(*v.view, first_);
      c.views.push_back(std::move(w));
      places_.push_back(v.view->data);
    }
    calls_.push_back(std::move(c));
  }

  void after(const WatchedCall& call, const Entry& entry) override {
    WalkedCall& c = calls_.back();
    c.entry = entry;
    for (size_t i = 0; i < call.views.size(); ++i) {
      if (call.views[i].output) c.views[i].values = summarize(*call.views[i].view, first_);
    }
  }

  void saved(const Tensor& t) override {
    if (calls_.empty()) return;
    WalkedCall& c = calls_.back();
    SavedNote note{"", t.shape(), static_cast<double>(t.nbytes()), false};
    for (size_t i = 0; i < places_.size() && note.name.empty(); ++i) {
      if (places_[i] == t.data() && c.views[i].shape.numel() == t.numel())
        note.name = c.views[i].name;
    }
    note.kept_anyway = !kept_.insert(&t.storage()).second;
    c.saved.push_back(std::move(note));
  }

  std::vector<WalkedCall> take() { return std::move(calls_); }

 private:
  int64_t first_;
  std::vector<WalkedCall> calls_;
  std::vector<const void*> places_;  // of the operands of the last call
  std::set<const Storage*> kept_;
};

std::string call_name(const WalkedCall& c) {
  return std::string(c.entry.op) + (*c.entry.module ? std::string(" in ") + c.entry.module : "");
}

std::string shapes_text(const WalkedCall& c) {
  std::string text;
  for (const WalkedView& v : c.views)
    text += (text.empty() ? ": " : ", ") + v.name + " " + v.shape.to_text();
  return text;
}

bool same_call(const WalkedCall& a, const WalkedCall& b) {
  if (call_name(a) != call_name(b) || a.views.size() != b.views.size()) return false;
  for (size_t i = 0; i < a.views.size(); ++i) {
    if (a.views[i].name != b.views[i].name || a.views[i].shape != b.views[i].shape) return false;
  }
  return true;
}

bool differ(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) != std::isnan(b);
  if (a == b) return false;
  if (std::isinf(a) || std::isinf(b)) return true;  // no tolerance reaches an infinity
  return !(std::abs(a - b) <= tolerance * (1 + std::max(std::abs(a), std::abs(b))));
}

/// Compares one output; true when it differs.
bool compare_output(const WalkedView& a, const WalkedView& b, double tolerance, WalkDifference& d) {
  d.count = a.values.count;
  d.differing = 0;
  d.largest = -1;
  const size_t n = std::min(a.values.first.size(), b.values.first.size());
  for (size_t i = 0; i < n; ++i) {
    const double x = a.values.first[i], y = b.values.first[i];
    if (!differ(x, y, tolerance)) continue;
    ++d.differing;
    const double size = std::abs(x - y);
    if (std::isnan(d.largest) || size <= d.largest) continue;
    d.largest = size;
    d.place = static_cast<int64_t>(i);
    d.value_a = x;
    d.value_b = y;
  }
  if (d.differing > 0) d.output = a.name;
  return d.differing > 0;
}

}  // namespace

double WalkedCall::saved_bytes() const {
  double n = 0;
  for (const SavedNote& s : saved) n += s.kept_anyway ? 0 : s.bytes;
  return n;
}

Walk walk_step(nn::LanguageModel& model, std::span<const nn::ModelBatch> batches,
               const WalkOptions& o, optim::Optimizer* optimizer) {
  Walk walk;
  model.requires_grad();
  model.zero_grad();
  WalkWatcher watcher(model, o.first);
  int64_t tokens = 0, counted = 0;  // what the mean is over
  for (const nn::ModelBatch& b : batches) {
    tokens += b.targets.numel();
    if (o.counts_targets) counted += counted_targets(to_host<int64_t>(b.targets));
  }
  Tensor share;
  if (o.counts_targets) {
    share = empty({}, acc_dtype(model.dtype()), model.device());
    set_share(share, counted);
  }
  for (const nn::ModelBatch& b : batches) {
    const StepPass pass = forward_backward(model, b, tokens, o.dropout, {}, share);
    walk.loss += pass.loss.item();
  }
  if (optimizer) {
    const optim::ClippedNorm clip = optim::clip_factor(optimizer->groups(), o.clip);
    walk.grad_norm = clip.norm.item();
    optimizer->step(o.lr, clip.factor);
    model.after_update();
  }
  model.zero_grad();
  walk.calls = watcher.take();
  return walk;
}

WalkDifference first_difference(const Walk& a, const Walk& b, double tolerance) {
  WalkDifference d;
  const size_t n = std::max(a.calls.size(), b.calls.size());
  for (size_t i = 0; i < n; ++i, ++d.compared) {
    d.number = static_cast<int64_t>(i) + 1;
    d.a = i < a.calls.size() ? call_name(a.calls[i]) : "nothing more";
    d.b = i < b.calls.size() ? call_name(b.calls[i]) : "nothing more";
    if (i >= a.calls.size() || i >= b.calls.size() || !same_call(a.calls[i], b.calls[i])) {
      d.what = WalkDifference::What::ops;
      if (d.a == d.b) {
        d.a += shapes_text(a.calls[i]);
        d.b += shapes_text(b.calls[i]);
      }
      return d;
    }
    for (size_t k = 0; k < a.calls[i].views.size(); ++k) {
      const WalkedView &x = a.calls[i].views[k], &y = b.calls[i].views[k];
      if (!x.output || !compare_output(x, y, tolerance, d)) continue;
      d.what = WalkDifference::What::values;
      return d;
    }
  }
  return d;
}

}  // namespace tally
