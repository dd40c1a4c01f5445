#include <cmath>
#include <cstdio>

#include "autograd/proof/run_sample.h"
#include "cli/common.h"
#include "cli/loaded_model.h"
#include "models/hf_export.h"
#include "models/hf_writer.h"
#include "models/profile.h"

namespace tally::cli {
namespace {

/// Largest difference of the logits of both, over the largest logit.
double difference(nn::LanguageModel& a, nn::LanguageModel& b, Architecture architecture) {
  const int64_t tokens = std::min<int64_t>(a.context(), 32);
  nn::ModelBatch batch{random_ids({2, tokens}, a.vocab(), 1, kCPU), {}, {}, {}};
  if (architecture == Architecture::encoder_decoder)
    batch.source = random_ids({2, tokens}, a.vocab(), 2, kCPU);
  const auto ours = to_doubles(a.batch_logits(batch)), theirs = to_doubles(b.batch_logits(batch));
  double worst = 0, largest = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double d = std::fabs(ours[i] - theirs[i]);
    worst = std::isfinite(d) ? std::max(worst, d) : INFINITY;
    largest = std::max(largest, std::fabs(ours[i]));
  }
  return worst == 0 ? 0 : worst / largest;
}

}  // namespace

int export_model(const ExportOptions& o) {
  LoadedModel loaded = load_model(o.path, DType::f32, kCPU);
  const ModelConfig& config = loaded.config.model;
  const HfFamily& family =
      o.family.empty() ? hf_family_for(config) : hf_family(o.family, "export: --family");
  const DType dtype = dtype_of_options(o);
  check(dtype != DType::f64, "export: writes f32 or bf16, not f64; leave out --dtype");
  const bool narrow = dtype == DType::bf16;
  const auto state = loaded.model->named_state();
  const ReadParameter read = [&](std::string_view name, std::span<float> out) {
    for (const auto& [own, t] : state) {
      if (own == name) std::ranges::copy(to_host<float>(t), out.begin());
    }
  };
  export_hugging_face(o.out, config, family, read, narrow ? StoredType::bf16 : StoredType::f32);
  copy_tokenizer(loaded.folder, o.out);
  double error = 0;
  if (o.verify) {
    error =
        difference(*loaded.model, *load_model(o.out, DType::f32, kCPU).model, config.architecture);
    const double bound = narrow ? 4e-2 : 1e-6;  // rounding the weights to bf16 moves them
    check(error <= bound, o.out, ": the logits differ by ", error, " of the largest, more than ",
          bound, "; do not use this folder");
  }
  if (o.json) {
    Json result = {{"folder", o.out}, {"family", family.model_type}};
    if (o.verify) result["logits_error"] = error;
    print_json(result);
  } else {
    std::printf("%s: %lld parameters as %s\n", o.out.c_str(),
                static_cast<long long>(loaded.model->parameter_count()), family.model_type);
    if (o.verify) std::printf("loaded again: logits differ by %.1e of the largest\n", error);
  }
  return 0;
}

}  // namespace tally::cli
