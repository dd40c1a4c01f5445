#include "data/data_files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"

namespace tally {
namespace {

bool holds_tokens(const std::filesystem::path& file) {
  return file.extension() == ".npy" || file.extension() == ".bin";
}

/// The files of a folder that `wanted` takes, by name.
template <class F>
std::vector<std::string> sorted_files(const std::string& folder, F&& wanted) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (wanted(entry.path())) files.push_back(entry.path().string());
  }
  check(!error, folder, ": cannot list the folder: ", error.message());
  std::ranges::sort(files);
  return files;
}

DataFiles files_in(const std::string& folder) {
  std::error_code ignored;
  const std::filesystem::path train = std::filesystem::path(folder) / "train.npy",
                              val = std::filesystem::path(folder) / "val.npy";
  if (std::filesystem::exists(train, ignored)) {
    DataFiles found{true, {train.string()}, {}};
    if (std::filesystem::exists(val, ignored)) found.val = {val.string()};
    return found;
  }
  DataFiles found{true, {}, {}};
  for (std::string& file : sorted_files(folder, holds_tokens)) {
    const bool set_apart = std::filesystem::path(file).filename().string().starts_with("val");
    (set_apart ? found.val : found.train).push_back(std::move(file));
  }
  if (!found.train.empty()) return found;
  check(found.val.empty(), folder, ": all token files are set apart for validation (their names ",
        "begin with \"val\"); add files to train on, or name the files themselves");
  found.tokens = false;
  found.train =
      sorted_files(folder, [](const std::filesystem::path& f) { return f.extension() == ".txt"; });
  check(!found.train.empty(), folder, ": a data folder must hold train.npy, other token files or ",
        ".txt files; it has none; run `tally data prepare` or name a text file");
  return found;
}

bool is_pattern(const std::string& path) {
  std::error_code ignored;
  return path.find_first_of("*?[") != std::string::npos && !std::filesystem::exists(path, ignored);
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> files;
  if (result == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  check(!files.empty(), pattern, ": no file has a name of this pattern; look at the folder, or ",
        "name a file");
  std::ranges::sort(files);
  return files;
}

void add_file(const std::string& file, DataFiles& all) {
  const bool tokens = holds_tokens(file);
  if (!all.train.empty())
    check(tokens == all.tokens, file, ": is ", tokens ? "a token file" : "text", ", and ",
          all.train.front(), " is ", tokens ? "text" : "a token file",
          "; train on one kind: `tally data prepare` makes token files of texts");
  all.tokens = tokens;
  all.train.push_back(file);
}

}  // namespace

DataFiles find_data_files(const std::vector<std::string>& paths) {
  DataFiles all;
  std::error_code ignored;
  for (const std::string& path : paths) {
    if (std::filesystem::is_directory(path, ignored)) {
      const DataFiles found = files_in(path);
      for (const std::string& file : found.train) add_file(file, all);
      all.val.insert(all.val.end(), found.val.begin(), found.val.end());
    } else if (is_pattern(path)) {
      for (const std::string& file : matches(path)) add_file(file, all);
    } else {
      add_file(path, all);
    }
  }
  return all;
}

}  // namespace tally
