#include "models/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "data/file.h"
#include "data/json.h"
#include "models/manifest.h"
#include "models/safetensor_file.h"

namespace tally {
namespace {

namespace fs = std::filesystem;

StoredType stored_type_of(DType t) {
  switch (t) {
    case DType::f32:
      return StoredType::f32;
    case DType::f64:
      return StoredType::f64;
    case DType::bf16:
      return StoredType::bf16;
    case DType::f16:
      return StoredType::f16;
    case DType::i64:
      return StoredType::i64;
    case DType::u8:
      return StoredType::u8;
    default:
      break;
  }
  fail("checkpoint: ", t, " is not an element type of files");
}

std::vector<int64_t> sizes_of(const Tensor& t) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < t.ndim(); ++i) sizes.push_back(t.size(i));
  return sizes;
}

void write_tensors(const std::string& path, const NamedTensors& tensors) {
  std::vector<StoredTensor> stored;
  for (const auto& [name, t] : tensors) {
    check(backend(t.device()).host_memory() && t.is_contiguous(), "checkpoint: ", name,
          " must be contiguous in host memory");
    stored.push_back({name,
                      stored_type_of(t.dtype()),
                      sizes_of(t),
                      {static_cast<const std::byte*>(t.data()), t.nbytes()}});
  }
  write_safetensors(path, stored);
}

void sync_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  // Some file systems cannot flush a folder (EINVAL): its names are then as durable as they go.
  const int error = ::fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
  ::close(fd);
  check(error == 0, path, ": cannot flush the folder to disk: ", std::strerror(error));
}

// The N of a finished checkpoint's name, -1 for another name.
int64_t step_of(const std::string& name) {
  if (!name.starts_with("step-") || name.size() == 5) return -1;
  int64_t n = 0;
  for (char c : name.substr(5)) {
    if (c < '0' || c > '9' || n > (int64_t{1} << 50)) return -1;
    n = n * 10 + (c - '0');
  }
  return n;
}

constexpr const char *kModelFile = "model.safetensors", *kOptimizerFile = "optimizer.safetensors",
                     *kStateFile = "state.json";

// Where the newest checkpoint lies while another one of the same step takes its place.
constexpr const char* kReplaced = "checkpoints/replaced";

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  check(!error, path, ": cannot make this folder: ", error.message());
}

}  // namespace

bool RunDirectory::is_run(const std::string& path) {
  std::error_code unreadable;
  return fs::is_regular_file(path + "/config.json", unreadable) &&
         fs::is_directory(path + "/checkpoints", unreadable);
}

void RunDirectory::check_free(const std::string& path) {
  std::error_code unreadable;
  check(!is_run(path) || !fs::exists(path + "/latest", unreadable), path,
        ": holds a run already; go on with it (--resume ", path, "), or choose another --out");
}

RunDirectory RunDirectory::create(const std::string& path) {
  check(!path.empty(), "train: name the run directory to write with --out");
  check_free(path);
  make_folder(path + "/checkpoints");
  return RunDirectory(path);
}

RunDirectory RunDirectory::create_whole(const std::string& path,
                                        const std::function<void(RunDirectory&)>& fill) {
  std::error_code ignored;
  const bool is_new = !fs::exists(path, ignored);
  std::set<fs::path> before;
  for (const auto& entry : fs::directory_iterator(path, ignored)) before.insert(entry.path());
  try {
    RunDirectory run = create(path);
    fill(run);
    return run;
  } catch (...) {
    std::vector<fs::path> written;
    for (const auto& entry : fs::directory_iterator(path, ignored))
      if (!before.contains(entry.path())) written.push_back(entry.path());
    for (const fs::path& entry : written) fs::remove_all(entry, ignored);
    if (is_new) fs::remove(path, ignored);
    throw;
  }
}

RunDirectory RunDirectory::open(const std::string& path) {
  std::error_code unreadable;
  check(fs::exists(path, unreadable), path, ": there is no such run directory");
  check(is_run(path), path, ": is not a run directory (config.json and checkpoints/ are missing)");
  return RunDirectory(path);
}

void RunDirectory::save(const State& state, const NamedTensors& model,
                        const NamedTensors& optimizer, int64_t keep) {
  const std::string name = "step-" + std::to_string(state.step),
                    folder = file("checkpoints/" + name);
  const std::string unfinished = file("checkpoints/unfinished");
  std::error_code ignored;
  // What a process that was killed has left, the newest checkpoint in the worst case.
  const std::string named = fs::exists(file(kReplaced)) ? named_by("latest") : "";
  if (!named.empty() && !fs::exists(named))
    fs::rename(file(kReplaced), named, ignored);
  else
    fs::remove_all(file(kReplaced), ignored);
  fs::remove_all(unfinished, ignored);
  remove_stray_temporaries(file("latest"));
  try {
    make_folder(unfinished);
    write_tensors(unfinished + "/" + kModelFile, model);
    write_tensors(unfinished + "/" + kOptimizerFile, optimizer);
    Json json = {{"step", state.step}, {"facts", state.facts}};
    write_file_atomic(unfinished + "/" + kStateFile, json.dump(2) + "\n");
    write_manifest(unfinished, {kModelFile, kOptimizerFile, kStateFile});
    sync_folder(unfinished);
    // The same step saved again, which `latest` may name: the old one stays until the new is there.
    if (fs::exists(folder)) fs::rename(folder, file(kReplaced));
    fs::rename(unfinished, folder);
    fs::remove_all(file(kReplaced), ignored);
  } catch (const fs::filesystem_error& e) {
    fs::remove_all(unfinished, ignored);
    fail(folder, ": cannot be written: ", e.code().message(),
         "; the checkpoint before it is untouched");
  } catch (...) {
    fs::remove_all(unfinished, ignored);
    throw;
  }
  sync_folder(file("checkpoints"));
  write_file_atomic(file("latest"), "checkpoints/" + name + "\n");
  name_best(state.best);
  remove_old(state, keep);
}

// Behind `latest`: a process that is killed between the two finds the step in the state of the newest
// checkpoint, and names it with its next save.
void RunDirectory::name_best(int64_t step) {
  const std::string name = "checkpoints/step-" + std::to_string(step);
  std::error_code ignored;
  if (step < 0)
    fs::remove(file("best"), ignored);
  else if (fs::is_directory(file(name)))
    write_file_atomic(file("best"), name + "\n");
}

void RunDirectory::remove_old(const State& newest, int64_t keep) {
  std::vector<int64_t> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(file("checkpoints"), ignored)) {
    const int64_t step = step_of(entry.path().filename().string());
    if (step >= 0) steps.push_back(step);
  }
  std::sort(steps.rbegin(), steps.rend());
  int64_t kept = 0;
  for (int64_t step : steps) {
    // A higher number than the newest was written by a run that was rolled back: it goes too.
    if (step <= newest.step && kept < keep)
      ++kept;
    else if (step != newest.best)
      fs::remove_all(file("checkpoints/step-" + std::to_string(step)), ignored);
  }
}

// The folder that `latest` or `best` names, whether it is there or not; "" without such a file.
std::string RunDirectory::named_by(const char* pointer) const {
  if (!fs::exists(file(pointer))) return "";
  std::string name = read_file(file(pointer), 4096);
  while (!name.empty() && std::isspace(static_cast<unsigned char>(name.back()))) name.pop_back();
  check(name.starts_with("checkpoints/") && step_of(name.substr(12)) >= 0, file(pointer),
        ": must name a checkpoint as checkpoints/step-N; it says '", name, "'");
  return file(name);
}

std::string RunDirectory::latest() const {
  const std::string named = named_by("latest");
  if (named.empty() || fs::is_directory(named)) return named;
  check(fs::is_directory(file(kReplaced)), file("latest"), ": names ", named,
        ", which is not there");
  return file(kReplaced);  // the process was killed while it saved this step a second time
}

std::string RunDirectory::best() const {
  const std::string named = named_by("best");
  check(!named.empty() && fs::is_directory(named), path_,
        ": keeps no best checkpoint; train with --set train.keep_best=true, or use the newest");
  return named;
}

uint64_t RunDirectory::State::dropout_position(const std::string& checkpoint) const {
  const auto it = facts.find("dropout_position");
  check(it != facts.end(), checkpoint, "/state.json: dropout_position is missing");
  const std::string& text = it->second;
  uint64_t position = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), position);
  check(error == std::errc() && end == text.data() + text.size(), checkpoint,
        "/state.json: dropout_position must be a whole number; got '", text, "'");
  return position;
}

RunDirectory::State RunDirectory::read_state(const std::string& checkpoint) const {
  return parse_state(read_file(checkpoint + "/state.json"), checkpoint);
}

RunDirectory::State RunDirectory::parse_state(std::string_view text,
                                              const std::string& checkpoint) {
  const Json json = parse_json(text, checkpoint + "/state.json");
  check(json.is_object() && json.contains("step") && json.contains("facts") &&
            json["facts"].is_object(),
        checkpoint, "/state.json: must hold `step` and `facts`");
  check(json["step"].is_number_unsigned() && json["step"].get<uint64_t>() <= INT64_MAX, checkpoint,
        "/state.json: step must be a whole number, 0 or more; it is ", json["step"].dump());
  State state;
  state.step = json["step"].get<int64_t>();
  for (const auto& [key, value] : json["facts"].items()) {
    check(value.is_string(), checkpoint, "/state.json: ", key, " must be text");
    state.facts[key] = value.get<std::string>();
  }
  return state;
}

void RunDirectory::load(const std::string& path, const NamedTensors& into) {
  const SafetensorFile stored(path);
  check(stored.tensors().size() == into.size(), path, ": holds ", stored.tensors().size(),
        " tensors, the model has ", into.size());
  for (const auto& [name, t] : into) {
    const StoredTensor& s = stored.at(name);
    check(s.type == stored_type_of(t.dtype()) && s.shape == sizes_of(t), path, ": ", name,
          " is stored as ", s.description(), ", the model has ", t.dtype(), " ", t.shape());
    backend(t.device()).copy_from_host(t.data(), s.data.data(), s.data.size());
    t.storage().note_write("load");
  }
}

void RunDirectory::append_line(const std::string& name, const std::string& line) {
  std::ofstream out(file(name), std::ios::app);
  out << line << '\n';
  out.flush();
  check(out.good(), file(name), ": cannot be written: ", std::strerror(errno));
}

void RunDirectory::drop_lines_after(int64_t step) {
  for (const char* name : {"metrics.jsonl", "samples.jsonl"}) {
    if (!fs::exists(file(name))) continue;
    const std::string text = read_file(file(name));
    std::string kept;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      if (end == std::string::npos) break;  // half a line: the process died while writing it
      const std::string line = text.substr(at, end - at);
      at = end + 1;
      const Json json = parse_json(line, file(name));
      if (json.is_object() && json.value("step", int64_t{0}) <= step) kept += line + "\n";
    }
    write_file_atomic(file(name), kept);
  }
}

RunLock::RunLock(const RunDirectory& run)
    : file_(::open(run.file("lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
  check(file_ >= 0, run.file("lock"), ": cannot be opened: ", std::strerror(errno));
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(file_);
  fail(run.path(),
       ": another training writes into this run; wait for it, or choose another directory");
}
RunLock::~RunLock() { ::close(file_); }

}  // namespace tally
