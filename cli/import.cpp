#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "cli/common.h"
#include "cli/loaded_model.h"
#include "data/file.h"
#include "models/checkpoint.h"
#include "models/config_json.h"
#include "models/run_directory.h"
#include "models/safetensor_file.h"

namespace tally::cli {
namespace {

int inspect(const ImportOptions& o) {
  const SafetensorFile file(o.path);
  std::vector<std::vector<std::string>> rows = {{"tensor", "type and shape", "bytes"}};
  Json list = Json::array();
  for (const StoredTensor& t : file.tensors()) {
    rows.push_back({t.name, t.description(), to_text(t.data.size())});
    list.push_back({{"name", t.name},
                    {"dtype", std::string(name_of(t.type))},
                    {"shape", t.shape},
                    {"bytes", t.data.size()}});
  }
  if (o.json) {
    print_json({{"path", o.path}, {"tensors", list}, {"metadata", file.metadata()}});
    return 0;
  }
  std::fputs(table_text(rows).c_str(), stdout);
  for (const auto& [key, value] : file.metadata())
    std::printf("metadata %s: %s\n", key.c_str(), value.c_str());
  return 0;
}

}  // namespace

int import(const ImportOptions& o) {
  namespace fs = std::filesystem;
  if (o.inspect && !fs::is_directory(o.path)) return inspect(o);
  const Checkpoint checkpoint = Checkpoint::hugging_face(o.path);
  if (o.inspect) {
    const std::string config = to_json_text({checkpoint.config(), {}});
    if (o.json)
      print_json({{"path", o.path}, {"config", parse_json(config, o.path)}});
    else
      std::printf("%s: %s\n", o.path.c_str(), config.c_str());
    return 0;
  }
  check(!o.out.empty(),
        "import: name the run directory to write with --out, or look only with --inspect");
  const DType dtype = dtype_of_options(o);
  LoadedModel loaded = load_model(o.path, dtype, kCPU);
  RunDirectory run = RunDirectory::create(o.out);
  write_file_atomic(run.file("config.json"), to_json_text(loaded.config));
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt"}) {
    if (fs::is_regular_file(o.path + "/" + name))
      write_file_atomic(run.file(name), read_file(o.path + "/" + name));
  }
  run.save({0, {{"imported from", fs::path(o.path).filename().string()}}},
           loaded.model->named_state(), {});
  const int64_t parameters = loaded.model->parameter_count();
  if (o.json)
    print_json({{"run", o.out}, {"parameters", parameters}});
  else
    std::printf("%s: %lld parameters as a run directory\n", o.out.c_str(),
                static_cast<long long>(parameters));
  return 0;
}

}  // namespace tally::cli
