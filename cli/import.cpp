#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "cli/common.h"
#include "cli/loaded_model.h"
#include "data/file.h"
#include "data/gguf.h"
#include "models/checkpoint.h"
#include "models/config_json.h"
#include "models/run_directory.h"
#include "models/safetensor_file.h"

namespace tally::cli {
namespace {

namespace fs = std::filesystem;

/// Metadata as texts: of a GGUF file's lists their number of elements.
std::map<std::string, std::string> metadata_of(const Gguf& file) {
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : file.metadata) {
    metadata[key] = std::visit(
        [](const auto& v) -> std::string {
          using T = std::remove_cvref_t<decltype(v)>;
          if constexpr (std::is_same_v<T, std::string_view>)
            return quoted_name(v);
          else if constexpr (std::is_arithmetic_v<T>)
            return to_text(v);
          else
            return to_text(v.size()) + " elements";
        },
        value);
  }
  return metadata;
}

int inspect(const std::string& path, const std::vector<StoredTensor>& tensors,
            const std::map<std::string, std::string>& metadata, bool json) {
  std::vector<std::vector<std::string>> rows = {{"tensor", "type and shape", "bytes"}};
  Json list = Json::array();
  for (const StoredTensor& t : tensors) {
    rows.push_back({t.name, t.description(), to_text(t.data.size())});
    list.push_back({{"name", t.name},
                    {"dtype", std::string(name_of(t.type))},
                    {"shape", t.shape},
                    {"bytes", t.data.size()}});
  }
  if (json) {
    print_json({{"path", path}, {"tensors", list}, {"metadata", metadata}});
    return 0;
  }
  std::fputs(table_text(rows).c_str(), stdout);
  for (const auto& [key, value] : metadata)
    std::printf("metadata %s: %s\n", key.c_str(), value.c_str());
  return 0;
}

int inspect_file(const ImportOptions& o) {
  if (is_gguf_file(o.path)) {
    const GgufFile file(o.path);
    return inspect(o.path, file.tensors(), metadata_of(file.content()), o.json);
  }
  const SafetensorFile file(o.path);
  return inspect(o.path, file.tensors(), file.metadata(), o.json);
}

int inspect_folder(const ImportOptions& o) {
  const Checkpoint checkpoint = Checkpoint::hugging_face(o.path);
  const std::string config = to_json_text({checkpoint.config(), {}});
  if (o.json)
    print_json({{"path", o.path}, {"config", parse_json(config, o.path)}});
  else
    std::printf("%s: %s\n", o.path.c_str(), config.c_str());
  return 0;
}

}  // namespace

int import(const ImportOptions& o) {
  if (o.inspect) return fs::is_directory(o.path) ? inspect_folder(o) : inspect_file(o);
  check(fs::exists(o.path), o.path, ": there is no file or folder of that name");
  check(fs::is_directory(o.path) || is_gguf_file(o.path), o.path,
        ": is neither a Hugging Face directory nor a GGUF file");
  check(!o.out.empty(),
        "import: name the run directory to write with --out, or look only with --inspect");
  LoadedModel loaded = load_model(o.path, dtype_of_options(o), kCPU);
  RunDirectory::create_whole(o.out, [&](RunDirectory& run) {
    write_file_atomic(run.file("config.json"), to_json_text(loaded.config));
    copy_tokenizer(o.path, run.path());
    run.save({0, {{"imported from", fs::path(o.path).filename().string()}}},
             loaded.model->named_state(), {});
  });
  const int64_t parameters = loaded.model->parameter_count();
  if (o.json)
    print_json({{"run", o.out}, {"parameters", parameters}});
  else
    std::printf("%s: %lld parameters as a run directory\n", o.out.c_str(),
                static_cast<long long>(parameters));
  return 0;
}

}  // namespace tally::cli
