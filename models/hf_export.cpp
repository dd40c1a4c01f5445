#include "models/hf_export.h"

#include <filesystem>
#include <map>

#include "core/dtype.h"
#include "core/error.h"
#include "data/file.h"
#include "models/hf_names.h"
#include "models/hf_writer.h"

namespace tally {
namespace fs = std::filesystem;
namespace {

struct Stored {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using StoredTensors = std::map<std::string, Stored>;

/// Puts the rows of `part` where they lie in the stored tensor.
void write_part(const WeightPart& part, int64_t columns, std::span<const float> values,
                Stored& stored) {
  int64_t numel = 1;
  for (const int64_t size : part.stored_shape) numel *= size;
  if (stored.values.empty())
    stored.shape = part.stored_shape, stored.values.resize(static_cast<size_t>(numel));
  const int64_t slices = part.slice < 0 ? 1 : part.stored_shape[0];
  const int64_t first = part.slice < 0 ? 0 : part.slice * (numel / slices);
  const int64_t next_row = part.transposed ? 1 : columns,
                next_column = part.transposed ? part.stored_shape.back() : 1;
  for (int64_t r = 0; r < part.rows; ++r) {
    const int64_t row = first + (part.from + r * part.step) * next_row;
    for (int64_t c = 0; c < columns; ++c)
      stored.values[static_cast<size_t>(row + c * next_column)] =
          values[static_cast<size_t>((part.to + r) * columns + c)];
  }
}

StoredTensors stored_tensors(const ModelConfig& config, const HfFamily& family,
                             const ReadParameter& read) {
  StoredTensors all;
  for (const WeightSource& source : hf_weights(config, family, family.prefix)) {
    std::vector<float> values(static_cast<size_t>(source.parameter.numel()));
    read(source.parameter.name, values);
    for (const WeightPart& part : source.parts)
      write_part(part, source.columns(), values, all[part.stored]);
  }
  return all;
}

}  // namespace

void export_hugging_face(const std::string& folder, const ModelConfig& config,
                         const HfFamily& family, const ReadParameter& read, StoredType type) {
  check(type == StoredType::f32 || type == StoredType::bf16,
        "export: weights are written as f32 or bf16; got ", name_of(type));
  Json document = hf_config_to_json(config, family);
  document["torch_dtype"] = type == StoredType::f32 ? "float32" : "bfloat16";
  std::error_code error;
  check(!fs::exists(folder, error), folder, ": exists already; name a new folder with --out");
  const StoredTensors all = stored_tensors(config, family, read);
  std::vector<StoredTensor> tensors;
  std::vector<std::vector<bf16>> narrow;
  narrow.reserve(all.size());
  for (const auto& [name, stored] : all) {
    auto bytes = std::as_bytes(std::span(stored.values));
    if (type == StoredType::bf16)
      bytes =
          std::as_bytes(std::span(narrow.emplace_back(stored.values.begin(), stored.values.end())));
    tensors.push_back({name, type, stored.shape, bytes});
  }
  check(fs::create_directories(folder, error), "--out \"", folder, "\": cannot be made",
        error ? ": " + error.message() : "", "; name a new folder where one can be");
  try {
    write_safetensors(folder + "/model.safetensors", tensors, {{"format", "pt"}});
    write_file_atomic(folder + "/config.json", document.dump(2) + "\n");
  } catch (const Error&) {
    fs::remove_all(folder, error);  // half of it would stand in the way of the next try
    throw;
  }
}

}  // namespace tally
