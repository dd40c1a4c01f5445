#include "models/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "core/error.h"
#include "models/gguf_config.h"
#include "models/hf_names.h"

namespace tally {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

/// Every stored tensor must be there, in its shape, as floating-point values.
std::set<std::string> check_present(const std::vector<WeightSource>& sources,
                                    const WeightFiles& files) {
  std::set<std::string> used;
  for (const WeightSource& source : sources) {
    for (const WeightPart& part : source.parts) {
      const StoredTensor* tensor = files.find(part.stored);
      check(tensor != nullptr, files.path(), ": the tensor ", part.stored, " is missing (it is ",
            source.parameter.name, " of the model)");
      check(tensor->shape == part.stored_shape, files.path(), ": the tensor ", part.stored,
            " has shape ", shape_text(tensor->shape), "; the configuration asks for ",
            shape_text(part.stored_shape));
      const bool floats = tensor->type == StoredType::f32 || tensor->type == StoredType::f64 ||
                          tensor->type == StoredType::f16 || tensor->type == StoredType::bf16 ||
                          block_elements(tensor->type) > 1;
      check(floats, files.path(), ": the tensor ", part.stored, " holds ", name_of(tensor->type),
            "; weights are F32, F64, F16 or BF16");
      used.insert(part.stored);
    }
  }
  return used;
}

/// A tensor that the model has no use for means that this is another model.
void check_unused(const std::set<std::string>& used, const WeightFiles& files,
                  const std::function<bool(const std::string&)>& allowed) {
  for (const std::string& name : files.names()) {
    check(used.contains(name) || allowed(name), files.path(), ": the tensor ", name,
          " has no place in the model that the configuration describes");
  }
}

/// A tied model has no head of its own; a different one in the file is a real head that a reader
/// would lose.
void check_tied_head(const WeightFiles& files, const std::string& name,
                     const std::string& embedding) {
  const StoredTensor* head = files.find(name);
  check(!head || same_content(*head, *files.find(embedding)), files.path(),
        ": tie_word_embeddings is true, but ", name, " differs from ", embedding,
        "; set tie_word_embeddings to false to use it, or remove it");
}

/// The part of a stored tensor that `part` speaks of, as one matrix.
StoredTensor slice_of(const StoredTensor& tensor, const WeightPart& part) {
  if (part.slice < 0) return tensor;
  StoredTensor inner = tensor;
  inner.shape.erase(inner.shape.begin());
  const size_t bytes = stored_bytes(tensor.type, inner.numel());
  inner.data = tensor.data.subspan(size_t(part.slice) * bytes, bytes);
  return inner;
}

/// Rows that lie as they are wanted: all at once where they are neighbours, else one by one.
template <class T>
void read_rows(const StoredTensor& tensor, const WeightPart& part, int64_t columns,
               std::span<T> target) {
  StoredTensor rows = tensor;
  const int64_t at_once = part.step == 1 ? part.rows : 1;
  rows.shape = {at_once, columns};
  const size_t row_bytes = stored_bytes(tensor.type, columns);
  for (int64_t r = 0; r < part.rows; r += at_once) {
    const auto from = static_cast<size_t>(part.from + r * part.step);
    rows.data = tensor.data.subspan(from * row_bytes, size_t(at_once) * row_bytes);
    read_values(rows, target.subspan(size_t(r * columns), size_t(at_once * columns)));
  }
}

/// Copies rows of one stored tensor into the parameter, `columns` values each.
template <class T>
void read_part(const StoredTensor& whole, const WeightPart& part, int64_t columns,
               std::span<T> out) {
  const StoredTensor tensor = slice_of(whole, part);
  const auto target = out.subspan(size_t(part.to * columns), size_t(part.rows * columns));
  if (!part.transposed) return read_rows(tensor, part, columns, target);
  std::vector<T> stored(size_t(tensor.numel()));
  read_values(tensor, std::span<T>(stored));
  const int64_t next_column = tensor.shape.back();
  for (int64_t r = 0; r < part.rows; ++r) {
    const int64_t row = part.from + r * part.step;
    for (int64_t c = 0; c < columns; ++c)
      target[size_t(r * columns + c)] = stored[size_t(row + c * next_column)];
  }
}

template <class T>
void read_all_parts(const WeightSource& source, const FindStored& find, std::span<T> out) {
  const int64_t numel = source.parameter.numel();
  check(int64_t(out.size()) == numel, source.parameter.name, ": has ", numel,
        " values; room was given for ", out.size());
  for (const WeightPart& part : source.parts)
    read_part(find(part.stored), part, source.columns(), out);
}

}  // namespace

void read_source(const WeightSource& source, const FindStored& find, std::span<float> out) {
  read_all_parts(source, find, out);
}
void read_source(const WeightSource& source, const FindStored& find, std::span<double> out) {
  read_all_parts(source, find, out);
}

Checkpoint::Checkpoint(ModelConfig config, std::vector<WeightSource> sources, WeightFiles files)
    : config_(std::move(config)), sources_(std::move(sources)), files_(std::move(files)) {}

Checkpoint Checkpoint::hugging_face(const std::string& folder) {
  HfModel model = read_hf_config((std::filesystem::path(folder) / "config.json").string());
  WeightFiles files(folder);
  auto sources = hf_weights(model.config, *model.family, model.prefix);
  if (!files.find(sources[0].parts[0].stored)) {
    auto bare = hf_weights(model.config, *model.family, "");
    if (files.find(bare[0].parts[0].stored)) sources = std::move(bare);
  }
  const auto used = check_present(sources, files);
  const std::string head = hf_head(*model.family);
  if (model.config.tied_head) check_tied_head(files, head, sources[0].parts[0].stored);
  check_unused(used, files, [&](const std::string& name) {
    return is_hf_buffer(*model.family, name) || (model.config.tied_head && name == head);
  });
  return {std::move(model.config), std::move(sources), std::move(files)};
}

Checkpoint Checkpoint::gguf(const std::string& path) {
  WeightFiles files(path);
  check(files.gguf(), path, ": is not a GGUF file");
  HfModel model = gguf_config(*files.gguf(), path);
  auto sources = hf_weights(model.config, *model.family, "");
  const auto used = check_present(sources, files);
  check_unused(used, files, [&](const std::string& name) {
    const bool repeated = model.config.tied_head && name == hf_head(*model.family);
    return repeated || is_hf_buffer(*model.family, name);
  });
  return {std::move(model.config), std::move(sources), std::move(files)};
}

Checkpoint Checkpoint::own(const ModelConfig& config, const std::string& path) {
  WeightFiles files(path);
  auto sources = own_weights(config);
  check_unused(check_present(sources, files), files, [](const std::string&) { return false; });
  return {config, std::move(sources), std::move(files)};
}

void Checkpoint::read(std::string_view parameter, std::span<float> out) const {
  read_parts(parameter, out);
}

void Checkpoint::read(std::string_view parameter, std::span<double> out) const {
  read_parts(parameter, out);
}

template <class T>
void Checkpoint::read_parts(std::string_view parameter, std::span<T> out) const {
  const auto source = std::ranges::find_if(
      sources_, [&](const WeightSource& s) { return s.parameter.name == parameter; });
  check(source != sources_.end(), files_.path(), ": the model has no parameter ", parameter);
  read_all_parts(
      *source, [&](const std::string& name) -> const StoredTensor& { return *files_.find(name); },
      out);
}

}  // namespace tally
