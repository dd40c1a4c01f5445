#include "models/target.h"

#include <filesystem>
#include <optional>
#include <vector>

#include "core/error.h"
#include "data/file.h"
#include "models/config_json.h"
#include "models/config_unused.h"
#include "models/gguf_config.h"
#include "models/hf_config.h"
#include "models/run_directory.h"
#include "models/suggest.h"
#include "models/zoo.h"

namespace tally {
namespace fs = std::filesystem;
namespace {

Target from_folder(const std::string& folder) {
  const std::string path = (fs::path(folder) / "config.json").string();
  std::error_code error;
  check(fs::exists(path, error), folder,
        ": this folder has no config.json; a run directory or a Hugging Face directory is needed");
  const std::string text = read_file(path, size_t{1} << 24);
  Target target;
  target.folder = folder;
  if (looks_like_hf_config(text)) {
    target.kind = TargetKind::hugging_face;
    target.config.model = hf_config_from_json(text, path).config;
    target.config.model.name = fs::path(folder).filename().string();
  } else {
    target.kind = TargetKind::run;
    target.config = run_config_from_json(text, path);
  }
  return target;
}

[[noreturn]] void refuse(const std::string& name) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  const std::string best = closest(name, names);
  if (best.empty() && name.find('/') != std::string::npos)
    fail(name,
         ": there is no file or folder of that name; a run directory is what `tally train "
         "... --out ",
         name, "` writes (./demo.sh writes runs/demo)");
  fail(name, ": there is no preset, file or folder of that name; ",
       best.empty() ? "`tally models` lists the presets" : "did you mean \"" + best + "\"?");
}

/// The config.json of a Hugging Face directory: who names it means the directory.
bool is_hf_config(const std::string& name) {
  std::error_code error;
  return fs::path(name).filename() == "config.json" && fs::is_regular_file(name, error) &&
         looks_like_hf_config(read_file(name, size_t{1} << 24));
}

/// A checkpoint of a run: RUN/checkpoints/step-N, or what RUN/best or RUN/latest names.
std::optional<Target> find_checkpoint(const std::string& name) {
  const fs::path path = fs::path(name).lexically_normal();
  const fs::path named = path.has_filename() ? path : path.parent_path();
  const std::string last = named.filename().string(), above = named.parent_path().string();
  const bool pointer = last == "best" || last == "latest";
  const fs::path run = pointer ? fs::path(above) : fs::path(above).parent_path();
  if (!pointer && !(last.starts_with("step-") && fs::path(above).filename() == "checkpoints"))
    return {};
  const std::string folder = run.empty() ? "." : run.string();
  if (!RunDirectory::is_run(folder)) return {};
  const RunDirectory directory = RunDirectory::open(folder);
  Target target = from_folder(folder);
  target.checkpoint = last == "best"     ? directory.best()
                      : last == "latest" ? directory.latest()
                                         : named.string();
  std::error_code error;
  check(fs::is_directory(target.checkpoint, error), name,
        ": there is no such checkpoint; the run keeps the newest train.keep_checkpoints");
  return target;
}

Target find(const std::string& name) {
  Target target;
  std::error_code error;
  if (auto checkpoint = find_checkpoint(name)) return *checkpoint;
  if (const Preset* preset = find_preset_or_null(name)) {
    target.config = preset->config;
  } else if (fs::is_directory(name, error)) {
    target = from_folder(name);
  } else if (fs::exists(name, error) && is_gguf_file(name)) {
    target.kind = TargetKind::gguf;
    target.folder = name;
    target.config.model = gguf_config(GgufFile(name), name).config;
    target.config.model.name = fs::path(name).stem().string();
  } else if (is_hf_config(name)) {
    const std::string folder = fs::path(name).parent_path().string();
    target = from_folder(folder.empty() ? "." : folder);
  } else if (fs::exists(name, error)) {
    target.kind = TargetKind::file;
    target.config = load_run_config(name);
  } else {
    refuse(name);
  }
  return target;
}

// The fields that "train.FIELD=VALUE" names.
std::vector<std::string> set_train_fields(std::span<const std::string> overrides) {
  std::vector<std::string> fields;
  for (const std::string& assignment : overrides) {
    const std::string path = assignment.substr(0, assignment.find('='));
    if (path.starts_with("train.")) fields.push_back(path.substr(6));
  }
  return fields;
}

}  // namespace

Target resolve_target(const std::string& name, std::span<const std::string> overrides) {
  Target target = find(name);
  for (const std::string& assignment : overrides) apply_override(target.config, assignment);
  target.config.resolve_and_check(name);
  if (target.kind == TargetKind::file)
    check_set_fields(target.config.train,
                     changed_train_fields(read_file(name, size_t{1} << 24), name), name);
  check_set_fields(target.config.train, set_train_fields(overrides), "--set");
  return target;
}

}  // namespace tally
