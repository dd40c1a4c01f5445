#include "cli/run_inputs.h"

#include <filesystem>

#include "core/error.h"

namespace tally::cli {
namespace {

std::string text_of(const Json& env, const char* key) {
  const auto it = env.find(key);
  return it != env.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace

const std::vector<std::string>& RunInputs::files(const std::string& advice) const {
  check(!data.empty(), path, ": does not say what the run was trained on; ", advice);
  return data;
}

RunInputs read_run_inputs(const std::string& run) {
  RunInputs r;
  r.path = run + "/env.json";
  if (!std::filesystem::exists(r.path)) return r;
  r.environment = read_json(r.path);
  check(r.environment.is_object(), r.path, ": must be an object");
  r.device = text_of(r.environment, "device");
  r.dtype = text_of(r.environment, "dtype");
  r.data_hash = text_of(r.environment, "data_hash");
  const Json data = r.environment.value("data", Json::array());
  check(data.is_array(), r.path, ": data must be a list of file names");
  for (const Json& file : data) {
    check(file.is_string(), r.path, ": data must be a list of file names");
    r.data.push_back(file.get<std::string>());
  }
  r.evaluation = evaluation_inputs_from(r.environment.value("eval", Json::array()), r.path);
  return r;
}

}  // namespace tally::cli
