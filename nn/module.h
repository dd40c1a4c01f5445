#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/tape.h"

namespace tally::nn {

class Module;

/// Walks a tree of modules. Names and their order stand in one place: each module's visit().
class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual void parameter(std::string_view name, Tensor& value) = 0;
  /// State that is saved beside the parameters and has no gradient: nobody trains it.
  virtual void buffer(std::string_view, Tensor&) {}
  virtual void child(std::string_view name, Module& module) = 0;
};

/// A layer with parameters. It computes through ops with explicit backward passes; see
/// nn/feed_forward.h for the pattern.
class Module {
 public:
  virtual ~Module() = default;
  virtual void visit(Visitor& visitor) = 0;

  /// Every parameter with its path, "blocks.3.attention.qkv.weight", in the order of visit(). A
  /// tensor that is used twice (a tied head) comes once, under its first path.
  std::vector<std::pair<std::string, Tensor>> named_parameters();
  /// Calls f with the path and the slot of each parameter, undefined ones (no bias) left out.
  void for_each_parameter(const std::function<void(const std::string&, Tensor&)>& f);
  /// Every buffer with its path.
  std::vector<std::pair<std::string, Tensor>> named_buffers();
  /// Parameters and then buffers: what a checkpoint holds of a model.
  std::vector<std::pair<std::string, Tensor>> named_state();
  int64_t parameter_count();
  /// Marks every parameter as a leaf that keeps its gradient.
  void requires_grad(bool on = true);
  /// Forgets every gradient; the next backward pass writes fresh ones.
  void zero_grad();
};

}  // namespace tally::nn
