#include "cli/run_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "core/recorder.h"
#include "data/file.h"
#include "models/run_directory.h"

namespace tally::cli {
namespace {

namespace fs = std::filesystem;

// Calls use(line, number from 1, its text) for the lines of a JSONL file; the last one may be torn, when the
// process died while writing it.
template <class F>
void for_each_line(const std::string& file, F&& use) {
  if (!fs::exists(file)) return;
  const MappedFile mapped(file);
  const std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()),
                              mapped.bytes().size());
  size_t number = 0;
  for (size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = end + 1) {
    const std::string_view written = text.substr(at, end - at);
    const std::string where = file + ": line " + to_text(++number);
    const Json line = parse_json(std::string(written), where);
    check(line.is_object(), where, ": every line must be an object; it is ", line.type_name());
    use(line, number, written);
  }
}

template <class E>
E by_name(const std::string& name, std::initializer_list<E> all) {
  for (E e : all) {
    if (to_text(e) == name) return e;
  }
  return *all.begin();
}

// The fields of one object of a file; a complaint names the file and the field. A field that is
// missing, or null (as JSON writes a number that is not finite), takes the given value.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    check(object_.is_object(), where_, ": must be an object {...}; it is ", object_.type_name());
  }
  double number(const char* name, double otherwise = 0) const {
    const Json* v = find(name);
    if (v) require(v->is_number(), name, "a number", *v);
    return v ? v->get<double>() : otherwise;
  }
  int64_t integer(const char* name) const {
    const Json* v = find(name);
    if (v) require(v->is_number_integer(), name, "a whole number", *v);
    return v ? v->get<int64_t>() : 0;
  }
  std::string text(const char* name, const char* otherwise = "") const {
    const Json* v = find(name);
    if (v) require(v->is_string(), name, "a text", *v);
    return v ? v->get<std::string>() : otherwise;
  }
  bool flag(const char* name) const {
    const Json* v = find(name);
    if (v) require(v->is_boolean(), name, "true or false", *v);
    return v && v->get<bool>();
  }
  const Json& list(const char* name) const {
    static const Json none = Json::array();
    const Json* v = find(name);
    if (v) require(v->is_array(), name, "a list [...]", *v);
    return v ? *v : none;
  }
  Fields object(const char* name) const {
    static const Json none = Json::object();
    const Json* v = find(name);
    return {v ? *v : none, where_ + ": " + name};
  }

 private:
  const Json* find(const char* name) const {
    const auto it = object_.find(name);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  void require(bool ok, const char* name, const char* what, const Json& v) const {
    check(ok, where_, ": ", name, " must be ", what, "; it is ",
          v.is_number() ? v.dump() : v.type_name());
  }
  const Json& object_;
  std::string where_;
};

double loss_of(const Json& line) {
  const auto loss = line.find("loss");
  return loss != line.end() && loss->is_number() ? loss->get<double>() : -INFINITY;
}

// Lines of a run of any length in bounded memory: the first and then every second, fourth, ... one, so
// that at most so many are kept, and between two of them the one with the highest loss.
class ThinnedLines {
 public:
  struct Line {
    size_t index;  // which of them
    size_t order;  // its place in the file
    double loss;
    std::string text;
  };
  void add(size_t order, const Json& json, std::string_view text) {
    if (last_.order > 0) place(std::move(last_));
    last_ = {count_++, order, loss_of(json), std::string(text)};
    if (kept_.size() <= kMost) return;
    each_ *= 2;
    for (Line& line : std::exchange(kept_, {})) place(std::move(line));
  }
  /// Those kept and the last one.
  std::vector<Line> lines() && {
    if (last_.order > 0) kept_.push_back(std::move(last_));
    return std::move(kept_);
  }

 private:
  static constexpr size_t kMost = 1024;  // more than a picture has pixels
  bool in_step(const Line& line) const { return line.index % each_ == 0; }
  void place(Line line) {
    if (in_step(line) || kept_.empty() || in_step(kept_.back()))
      kept_.push_back(std::move(line));
    else if (line.loss > kept_.back().loss)
      kept_.back() = std::move(line);
  }
  size_t count_ = 0, each_ = 1;
  std::vector<Line> kept_;
  Line last_{};
};

// Those with a validation are few, and thinned out by themselves.
std::vector<std::string> read_metrics(const std::string& file) {
  ThinnedLines training, validated;
  for_each_line(file, [&](const Json& line, size_t number, std::string_view text) {
    Fields(line, file + ": line " + to_text(number)).integer("step");
    (line.contains("val_loss") ? validated : training).add(number, line, text);
  });
  auto all = std::move(training).lines();
  std::ranges::move(std::move(validated).lines(), std::back_inserter(all));
  std::ranges::sort(all, {}, &ThinnedLines::Line::order);
  std::vector<std::string> lines;
  for (auto& line : all) lines.push_back(std::move(line.text));
  return lines;
}

Entry entry_from(const Fields& f) {
  Entry e{};
  e.op = intern(f.text("op", "?"));
  e.module = intern(f.text("module"));
  e.provider = intern(f.text("provider"));
  e.kind = by_name(f.text("kind"),
                   {Kind::elementwise, Kind::contraction, Kind::normalization, Kind::movement});
  e.phase = by_name(f.text("phase"),
                    {Phase::forward, Phase::backward, Phase::optimizer, Phase::recompute});
  e.cost = {f.number("flops"), f.number("bytes_read"), f.number("bytes_written")};
  e.model = {f.number("model_flops_full"), f.number("model_flops_causal")};
  e.seconds = f.number("seconds");
  e.start = f.number("start");
  e.live = f.number("live_bytes");
  e.fallback = f.flag("fallback");
  return e;
}

StepLedger read_ledger(const std::string& file) {
  StepLedger l;
  if (!fs::exists(file)) return l;
  const Json json = read_json(file);
  const Fields fields(json, file);
  l.step_seconds = fields.number("step_seconds");
  l.ceilings.flops = fields.number("peak_flops_per_s");
  const auto each = [&](const char* name, const auto& use) {
    size_t i = 0;
    for (const Json& item : fields.list(name))
      use(Fields(item, file + ": " + name + "[" + to_text(i++) + "]"));
  };
  each("levels", [&](const Fields& level) {
    l.ceilings.levels.push_back({level.text("name"), level.number("bytes_per_s")});
  });
  each("calls", [&](const Fields& call) { l.calls.push_back(entry_from(call)); });
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
  Fields(r.config, path + "/config.json").object("model").text("name");
  if (fs::exists(path + "/env.json")) r.environment = read_json(path + "/env.json");
  Fields(r.environment, path + "/env.json");
  r.metrics = read_metrics(path + "/metrics.jsonl");
  for_each_line(path + "/samples.jsonl", [&](const Json& line, size_t number, std::string_view) {
    const Fields f(line, path + "/samples.jsonl: line " + to_text(number));
    r.samples.push_back({f.integer("step"), f.text("source"), f.text("text")});
  });
  r.ledger = read_ledger(path + "/ledger.json");
  return r;
}

Curve curve(const RunFiles& run, const std::string& field) {
  Curve c;
  for (const std::string& text : run.metrics) {
    const Json line = Json::parse(text);
    if (line.contains("final")) continue;  // over all held-out tokens: not a point of this curve
    if (!line.contains(field) || !line[field].is_number() || !line.contains("step") ||
        !line["step"].is_number())
      continue;
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
