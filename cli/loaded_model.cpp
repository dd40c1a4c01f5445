#include "cli/loaded_model.h"

#include <filesystem>

#include "cli/run_inputs.h"
#include "data/file.h"
#include "data/gguf.h"
#include "data/tokenizer_io.h"
#include "models/architecture.h"
#include "models/checkpoint.h"
#include "models/gguf_file.h"
#include "models/manifest.h"
#include "models/run_directory.h"

namespace tally::cli {

void read_weights(nn::Module& model, const Checkpoint& checkpoint) {
  for (auto& [name, t] : model.named_state()) {
    const auto fill = [&, &n = name, &p = t]<class Stored, class T>(Stored, T) {
      std::vector<Stored> values(static_cast<size_t>(p.numel()));
      checkpoint.read(n, std::span<Stored>(values));
      if constexpr (std::is_same_v<Stored, T>) {
        backend(p.device()).copy_from_host(p.data(), values.data(), p.nbytes());
      } else {
        const std::vector<T> narrow(values.begin(), values.end());
        backend(p.device()).copy_from_host(p.data(), narrow.data(), p.nbytes());
      }
      p.storage().note_write("load");
    };
    if (t.dtype() == DType::f64)
      fill(double{}, double{});
    else if (t.dtype() == DType::f32)
      fill(float{}, float{});
    else
      fill(float{}, bf16{});
  }
}

LoadedModel load_model(const std::string& name, DType dtype, Device device,
                       std::span<const std::string> overrides) {
  Target target = resolve_target(name, overrides);
  check(!target.folder.empty(), name,
        ": has no weights; name a run directory (tally train), a Hugging Face directory or a GGUF "
        "file");
  LoadedModel loaded{target.config, build_language_model(target.config.model, dtype, device),
                     target.folder};
  if (target.kind == TargetKind::run) {
    check(dtype == DType::f64 || read_run_inputs(target.folder).dtype != "f64", name,
          ": was trained in f64, more than ", dtype, " holds; give --dtype f64");
    const std::string latest =
        target.checkpoint.empty() ? RunDirectory::open(target.folder).latest() : target.checkpoint;
    check(!latest.empty(), target.folder, ": has no checkpoint yet");
    check_manifest(latest, {"model.safetensors"});
    read_weights(*loaded.model,
                 Checkpoint::own(target.config.model, latest + "/model.safetensors"));
  } else if (target.kind == TargetKind::gguf) {
    read_weights(*loaded.model, Checkpoint::gguf(target.folder));
  } else {
    read_weights(*loaded.model, Checkpoint::hugging_face(target.folder));
  }
  return loaded;
}

nn::Decoder& decoder_of(const LoadedModel& loaded, const char* verb) {
  const ModelConfig& c = loaded.config.model;
  check(c.architecture == Architecture::decoder, verb, ": ", c.name,
        " has model.architecture = ", architecture_name(c), ", and this is for decoders");
  return static_cast<nn::Decoder&>(*loaded.model);
}

Tokenizer load_model_tokenizer(const LoadedModel& loaded) { return load_tokenizer(loaded.folder); }

void copy_tokenizer(const std::string& from, const std::string& to) {
  if (is_gguf_file(from)) {
    const GgufFile file(from);
    if (file.content().find("tokenizer.ggml.model"))
      save_tokenizer(parse_gguf_tokenizer(file.content(), from), to);
    return;
  }
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt",
                           "tokenizer.model", "source.spm", "target.spm"}) {
    if (std::filesystem::is_regular_file(from + "/" + name))
      write_file_atomic(to + "/" + name, read_file(from + "/" + name));
  }
}

}  // namespace tally::cli
