#include "cli/evaluation_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace tally::cli {
namespace {

constexpr const char* kHeldOut = "val";

void check_set_name(const std::string& name, const std::string& option,
                    const std::vector<EvaluationInput>& before) {
  const bool plain = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_';
  });
  check(plain, "--eval ", option,
        ": needs a name of letters, digits, - and _, and a file, such as ", "--eval news=news.txt");
  check(name != kHeldOut, "--eval ", option, ": val is what is held out; choose another name");
  check(std::ranges::none_of(before, [&](const auto& i) { return i.name == name; }), "--eval ",
        option, ": the name ", name, " is there already; give each set its own");
}

}  // namespace

std::vector<EvaluationInput> parse_evaluation_inputs(const std::vector<std::string>& options) {
  std::vector<EvaluationInput> inputs;
  for (const std::string& option : options) {
    const size_t equals = option.find('=');
    const bool whole = equals != std::string::npos && equals + 1 < option.size();
    check_set_name(whole ? option.substr(0, equals) : "", option, inputs);
    const auto path = std::filesystem::absolute(option.substr(equals + 1)).lexically_normal();
    inputs.push_back({option.substr(0, equals), path.string()});
  }
  return inputs;
}

Json to_json(const std::vector<EvaluationInput>& inputs) {
  Json list = Json::array();
  for (const EvaluationInput& i : inputs) list.push_back({{"name", i.name}, {"data", i.path}});
  return list;
}

std::vector<EvaluationInput> evaluation_inputs_from(const Json& json, const std::string& where) {
  std::vector<EvaluationInput> inputs;
  check(json.is_array(), where, ": eval must be a list of sets");
  for (const Json& item : json) {
    const bool whole = item.is_object() && item.contains("name") && item["name"].is_string() &&
                       item.contains("data") && item["data"].is_string();
    check(whole, where, ": eval must be a list of sets, each with its name and data");
    inputs.push_back({item["name"].get<std::string>(), item["data"].get<std::string>()});
  }
  return inputs;
}

void Evaluator::run(int64_t batches) {
  found_.clear();
  if (trainer_.has_validation()) found_.emplace_back(kHeldOut, trainer_.evaluate(batches));
  for (const EvaluationSet& set : sets_)
    found_.emplace_back(set.name, trainer_.evaluate(set.tokens, batches));
}

void Evaluator::add_to(Json& line) const {
  for (const auto& [name, e] : found_) {
    const bool held_out = name == kHeldOut;
    const std::string prefix = held_out ? "val_" : "eval/" + name + "/";
    line[prefix + "loss"] = e.loss;
    line[prefix + "bits_per_byte"] = e.bits_per_byte;
  }
}

std::string Evaluator::short_text() const {
  std::string text;
  for (const auto& [name, e] : found_) {
    text += fmt::format("  {} {:.4f}", name, e.loss);
    if (&found_.front().second == &e) text += fmt::format(" ({:.3f} bits/byte)", e.bits_per_byte);
  }
  return text;
}

std::string Evaluator::long_text() const {
  std::string text;
  for (const auto& [name, e] : found_) {
    const bool held_out = name == kHeldOut;
    text += fmt::format(", {} loss {:.4f} nats/token, {:.4f} bits per byte ({} {}tokens)",
                        held_out ? "validation" : name, e.loss, e.bits_per_byte, e.tokens,
                        held_out ? "held-out " : "");
  }
  return text;
}

}  // namespace tally::cli
