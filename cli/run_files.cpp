#include "cli/run_files.h"

#include <filesystem>

#include "core/recorder.h"
#include "data/file.h"
#include "models/run_directory.h"

namespace tally::cli {
namespace {

namespace fs = std::filesystem;

// The lines of a JSONL file; the last one may be torn, when the process died while writing it.
std::vector<Json> read_lines(const std::string& file) {
  std::vector<Json> lines;
  if (!fs::exists(file)) return lines;
  const std::string text = read_file(file);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    lines.push_back(parse_json(text.substr(at, end - at), file));
    check(lines.back().is_object(), file, ": every line must be an object; line ", lines.size(),
          " is not");
    at = end + 1;
  }
  return lines;
}

template <class E>
E by_name(const std::string& name, std::initializer_list<E> all) {
  for (E e : all) {
    if (to_text(e) == name) return e;
  }
  return *all.begin();
}

Entry entry_from(const Json& j) {
  Entry e{};
  e.op = intern(j.value("op", "?"));
  e.module = intern(j.value("module", ""));
  e.provider = intern(j.value("provider", ""));
  e.kind = by_name(j.value("kind", ""),
                   {Kind::elementwise, Kind::contraction, Kind::normalization, Kind::movement});
  e.phase = by_name(j.value("phase", ""),
                    {Phase::forward, Phase::backward, Phase::optimizer, Phase::recompute});
  e.cost = {j.value("flops", 0.0), j.value("bytes_read", 0.0), j.value("bytes_written", 0.0)};
  e.model = {j.value("model_flops_full", 0.0), j.value("model_flops_causal", 0.0)};
  e.seconds = j.value("seconds", 0.0);
  e.start = j.value("start", 0.0);
  e.live = j.value("live_bytes", 0.0);
  e.fallback = j.value("fallback", false);
  return e;
}

StepLedger read_ledger(const std::string& file) {
  StepLedger l;
  if (!fs::exists(file)) return l;
  const Json json = read_json(file);
  check(json.is_object() && json.contains("calls") && json["calls"].is_array(), file,
        ": must hold an object with calls");
  l.step_seconds = json.value("step_seconds", 0.0);
  l.ceilings.flops = json.value("peak_flops_per_s", 0.0);
  for (const Json& level : json.value("levels", Json::array()))
    l.ceilings.levels.push_back({level.value("name", ""), level.value("bytes_per_s", 0.0)});
  for (const Json& call : json["calls"]) l.calls.push_back(entry_from(call));
  return l;
}

void flatten(const Json& json, const std::string& path,
             std::vector<std::pair<std::string, std::string>>& out) {
  if (json.is_object() && !json.empty()) {
    for (const auto& [key, value] : json.items())
      flatten(value, path.empty() ? key : path + "." + key, out);
  } else {
    out.push_back({path, json.is_string() ? json.get<std::string>() : json.dump()});
  }
}

}  // namespace

void save_ledger(const std::string& run, const StepLedger& l) {
  Json calls = Json::array();
  for (const Entry& e : l.calls)
    calls.push_back({{"op", e.op},
                     {"kind", to_text(e.kind)},
                     {"phase", to_text(e.phase)},
                     {"module", e.module},
                     {"provider", e.provider},
                     {"flops", e.cost.flops},
                     {"bytes_read", e.cost.bytes_read},
                     {"bytes_written", e.cost.bytes_written},
                     {"model_flops_full", e.model.full},
                     {"model_flops_causal", e.model.causal},
                     {"seconds", e.seconds},
                     {"start", e.start},
                     {"live_bytes", e.live},
                     {"fallback", e.fallback}});
  Json levels = Json::array();
  for (const Ceilings::Level& level : l.ceilings.levels)
    levels.push_back({{"name", level.name}, {"bytes_per_s", level.read}});
  write_file_atomic(run + "/ledger.json", Json{{"step_seconds", l.step_seconds},
                                               {"peak_flops_per_s", l.ceilings.flops},
                                               {"levels", levels},
                                               {"calls", calls}}
                                              .dump());
}

RunFiles read_run(const std::string& path) {
  check(RunDirectory::is_run(path), path,
        ": is not the directory of a run (it has no config.json)");
  RunFiles r;
  r.path = path;
  r.config = read_json(path + "/config.json");
  if (fs::exists(path + "/env.json")) r.environment = read_json(path + "/env.json");
  r.metrics = read_lines(path + "/metrics.jsonl");
  for (const Json& line : read_lines(path + "/samples.jsonl"))
    r.samples.push_back({line.value("step", int64_t{0}), line.value("text", "")});
  r.ledger = read_ledger(path + "/ledger.json");
  return r;
}

Curve curve(const RunFiles& run, const std::string& field) {
  Curve c;
  for (const Json& line : run.metrics) {
    if (!line.contains(field) || !line[field].is_number() || !line.contains("step")) continue;
    c.step.push_back(line["step"].get<double>());
    c.value.push_back(line[field].get<double>());
  }
  return c;
}

std::vector<std::pair<std::string, std::string>> flattened(const Json& json) {
  std::vector<std::pair<std::string, std::string>> out;
  flatten(json, "", out);
  return out;
}

}  // namespace tally::cli
