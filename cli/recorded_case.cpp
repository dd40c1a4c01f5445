#include "cli/recorded_case.h"

#include <algorithm>
#include <charconv>

#include "cli/loaded_model.h"
#include "models/architecture.h"

namespace tally::cli {

std::vector<double> RecordedCase::numbers(const std::string& name) const {
  const StoredTensor& t = file_.at(name);
  std::vector<double> v(static_cast<size_t>(t.numel()));
  read_values(t, std::span<double>(v));
  return v;
}

Tensor RecordedCase::ids(const std::string& name, Device device) const {
  const StoredTensor& t = file_.at(name);
  check(t.shape.size() == 2 && t.numel() > 0, file_.path(), ": \"", name,
        "\" must be (sequences, tokens), one of each or more; it is ", t.description());
  std::vector<int64_t> v(static_cast<size_t>(t.numel()));
  read_values(t, std::span<int64_t>(v));
  return from_host<int64_t>(v, Shape(std::span<const int64_t>(t.shape)), device);
}

Tensor RecordedCase::mask(const std::string& name, Device device) const {
  const Tensor t = ids(name, kReference);
  std::vector<uint8_t> v;
  for (const int64_t seen : to_host<int64_t>(t)) v.push_back(seen != 0);
  return from_host<uint8_t>(v, t.shape(), device);
}

double RecordedCase::tolerance(const char* name, double otherwise) const {
  const auto it = file_.metadata().find(name);
  if (it == file_.metadata().end()) return otherwise;
  const std::string& text = it->second;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // A bound beyond a tenth lets every model pass.
  check(error == std::errc() && end == text.data() + text.size() && value > 0 && value <= 0.1,
        file_.path(), ": metadata \"", name, "\" must be a number above 0 and up to 0.1; it is \"",
        text, "\"");
  return value;
}

namespace {

/// Targets of a decoder: the label of the next token; the last position has none.
Tensor shifted_labels(const RecordedCase& c, const Tensor& ids) {
  const Tensor stored = c.ids("labels", kReference);
  check(stored.shape() == ids.shape(), c.file().path(),
        ": labels must have the shape of input_ids, ", ids.shape(), "; theirs is ", stored.shape());
  const auto labels = to_host<int64_t>(stored);
  const int64_t b = ids.size(0), t = ids.size(1);
  std::vector<int64_t> targets(labels.size(), -100);
  for (int64_t i = 0; i < b; ++i) {
    std::copy_n(labels.begin() + i * t + 1, t - 1, targets.begin() + i * t);
  }
  return from_host<int64_t>(targets, {b, t}, ids.device());
}

RecordedModel recorded_decoder(const RecordedCase& c, LoadedModel loaded) {
  nn::Decoder& m = decoder_of(loaded, "verify");
  const Tensor ids = c.ids("input_ids", m.device()), targets = shifted_labels(c, ids);
  RecordedModel r{std::move(loaded.model),
                  [&m, ids] { return m.logits(ids); },
                  [&m, ids, targets] { return m.loss(ids, targets); },
                  {},
                  {}};
  r.start = c.ids("prompt", m.device());
  const auto cache = std::make_shared<nn::KVCache>(
      m.make_cache(r.start.size(0), r.start.size(1) + c.ids("greedy", kReference).size(1)));
  r.next = [&m, cache](const Tensor& next) { return m.next_logits(next, *cache); };
  return r;
}

RecordedModel encoder_of(const RecordedCase& c, const Checkpoint& checkpoint, DType dtype,
                         Device device) {
  auto model = build_encoder(checkpoint.config(), dtype, device);
  read_weights(*model, checkpoint);
  nn::Encoder& m = *model;
  const Tensor ids = c.ids("input_ids", device), mask = c.mask("attention_mask", device),
               types = c.ids("token_type_ids", device), targets = c.ids("labels", device);
  return {std::move(model),
          [=, &m] { return m.logits(ids, types, mask); },
          [=, &m] { return m.loss(ids, targets, types, mask); },
          {},
          {}};
}

RecordedModel both_of(const RecordedCase& c, const Checkpoint& checkpoint, DType dtype,
                      Device device) {
  auto model = build_encoder_decoder(checkpoint.config(), dtype, device);
  read_weights(*model, checkpoint);
  nn::EncoderDecoder& m = *model;
  const Tensor source = c.ids("input_ids", device), mask = c.mask("attention_mask", device),
               ids = c.ids("decoder_input_ids", device), targets = c.ids("labels", device);
  RecordedModel r{std::move(model),
                  [=, &m] { return m.logits(m.encode(source, mask), ids); },
                  [=, &m] { return m.loss(m.encode(source, mask), ids, targets); },
                  {},
                  {}};
  // The token that every text begins with.
  r.start = contiguous(ids.narrow(1, 0, 1));
  const int64_t steps = c.ids("greedy", kReference).size(1);
  const Tensor greedy = c.ids("greedy_source", device), seen = c.mask("greedy_source_mask", device);
  r.next = [=, &m, cache = std::shared_ptr<nn::StackCache>()](const Tensor& next) mutable {
    const PauseTape values_only;
    if (!cache)
      cache = std::make_shared<nn::StackCache>(m.make_cache(m.encode(greedy, seen), steps));
    return m.next_logits(next, *cache);
  };
  return r;
}

}  // namespace

RecordedModel load_recorded(const RecordedCase& c, const std::string& folder, DType dtype,
                            Device device, std::span<const std::string> overrides) {
  const Checkpoint checkpoint = Checkpoint::hugging_face(folder);
  switch (checkpoint.config().architecture) {
    case Architecture::encoder:
      return encoder_of(c, checkpoint, dtype, device);
    case Architecture::encoder_decoder:
      return both_of(c, checkpoint, dtype, device);
    case Architecture::decoder:
      break;
  }
  return recorded_decoder(c, load_model(folder, dtype, device, overrides));
}

}  // namespace tally::cli
