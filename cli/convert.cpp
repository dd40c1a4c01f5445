#include "models/convert.h"

#include <cstdio>
#include <filesystem>

#include "cli/common.h"
#include "cli/loaded_model.h"
#include "data/file.h"
#include "models/build.h"
#include "models/config_json.h"
#include "models/run_directory.h"

namespace tally::cli {
namespace {

Conversion conversion_of(const ConvertOptions& o, const ModelConfig& config) {
  check((o.kv_heads > 0) != !o.rope.empty(),
        "convert: say what to change, one thing: --kv-heads N or --rope half|interleaved");
  if (o.kv_heads > 0) return with_kv_heads(config, o.kv_heads);
  return with_rope_layout(config, o.rope == "half" ? RopeLayout::half : RopeLayout::interleaved);
}

}  // namespace

int convert(const ConvertOptions& o) {
  LoadedModel loaded = load_model(o.path, DType::f32, kCPU);
  decoder_of(loaded, "convert");
  const Conversion conversion = conversion_of(o, loaded.config.model);
  RunConfig config = loaded.config;
  config.model = conversion.config;
  config.resolve_and_check(o.path);
  const auto model = build_model(config.model, DType::f32, kCPU);
  const auto before = loaded.model->named_state();
  auto after = model->named_state();
  for (size_t i = 0; i < after.size(); ++i) {
    auto& [name, t] = after[i];
    const auto values = conversion.parameter(name, to_host<float>(before[i].second));
    check(static_cast<int64_t>(values.size()) == t.numel(), "convert: ", name, " would have ",
          values.size(), " values for ", t.shape());
    backend(kCPU).copy_from_host(t.data(), values.data(), t.nbytes());
    t.storage().note_write("convert");
  }
  RunDirectory::create_whole(o.out, [&](RunDirectory& run) {
    write_file_atomic(run.file("config.json"), to_json_text(config));
    copy_tokenizer(loaded.folder, run.path());
    run.save({0, {{"converted from", std::filesystem::path(o.path).filename().string()}}}, after,
             {});
  });
  if (o.json)
    print_json({{"run", o.out}, {"parameters", model->parameter_count()}});
  else
    std::printf("%s: %lld parameters, %lld before\n", o.out.c_str(),
                static_cast<long long>(model->parameter_count()),
                static_cast<long long>(loaded.model->parameter_count()));
  return 0;
}

}  // namespace tally::cli
