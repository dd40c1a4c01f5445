#include "nn/module.h"

namespace tally::nn {
namespace {

class Walker final : public Visitor {
 public:
  explicit Walker(const std::function<void(const std::string&, Tensor&)>& f) : f_(f) {}
  void parameter(std::string_view name, Tensor& value) override {
    if (value.defined()) f_(prefix_ + std::string(name), value);
  }
  void child(std::string_view name, Module& module) override {
    const size_t length = prefix_.size();
    prefix_ += std::string(name) + ".";
    module.visit(*this);
    prefix_.resize(length);
  }

 private:
  const std::function<void(const std::string&, Tensor&)>& f_;
  std::string prefix_;
};

/// Lists the buffers alone.
class BufferWalker final : public Visitor {
 public:
  void parameter(std::string_view, Tensor&) override {}
  void buffer(std::string_view name, Tensor& value) override {
    if (value.defined()) list.emplace_back(prefix_ + std::string(name), value);
  }
  void child(std::string_view name, Module& module) override {
    const size_t length = prefix_.size();
    prefix_ += std::string(name) + ".";
    module.visit(*this);
    prefix_.resize(length);
  }
  std::vector<std::pair<std::string, Tensor>> list;

 private:
  std::string prefix_;
};

}  // namespace

std::vector<std::pair<std::string, Tensor>> Module::named_buffers() {
  BufferWalker walker;
  visit(walker);
  return std::move(walker.list);
}

void Module::for_each_parameter(const std::function<void(const std::string&, Tensor&)>& f) {
  Walker walker(f);
  visit(walker);
}

std::vector<std::pair<std::string, Tensor>> Module::named_parameters() {
  std::vector<std::pair<std::string, Tensor>> list;
  for_each_parameter([&](const std::string& name, Tensor& t) {
    for (const auto& [other, seen] : list) {
      if (seen.is(t)) return;
    }
    list.emplace_back(name, t);
  });
  return list;
}

std::vector<std::pair<std::string, Tensor>> Module::named_state() {
  auto list = named_parameters();
  for (auto& buffer : named_buffers()) list.push_back(std::move(buffer));
  return list;
}

int64_t Module::parameter_count() {
  int64_t n = 0;
  for (const auto& [name, t] : named_parameters()) n += t.numel();
  return n;
}

void Module::requires_grad(bool on) {
  for_each_parameter([on](const std::string&, Tensor& t) { t.requires_grad_(on); });
}

void Module::zero_grad() {
  for_each_parameter([](const std::string&, Tensor& t) { t.set_grad({}); });
}

}  // namespace tally::nn
