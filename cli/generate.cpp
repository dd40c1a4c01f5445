// generate: what a trained model writes.
#include "models/generate.h"

#include <algorithm>
#include <cstdio>

#include "cli/common.h"
#include "cli/loaded_model.h"
#include "models/infill.h"

namespace tally::cli {
namespace {

tally::GenerateOptions options_of(const GenerateOptions& o) {
  tally::GenerateOptions g;
  g.max_new_tokens = o.max_new_tokens;
  g.sampling = {o.greedy ? 0 : o.temperature, o.top_k, o.top_p, o.min_p};
  g.stop = o.stop;
  g.seed = o.seed;
  return g;
}

double weight_bytes(nn::Module& model) {
  double n = 0;
  for (const auto& [name, t] : model.named_parameters()) n += static_cast<double>(t.nbytes());
  return n;
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// What is said of a generation beside its text, which `json` holds.
int finish(const GenerateOptions& o, const LoadedModel& loaded, const GenerateStats& stats,
           Json json) {
  const double decode =
      stats.new_tokens > 1 ? static_cast<double>(stats.new_tokens - 1) / stats.decode_seconds : 0;
  const double prefill =
      static_cast<double>(stats.prompt_tokens) / std::max(stats.prefill_seconds, 1e-9);
  if (o.json) {
    json["new_tokens"] = stats.new_tokens;
    json["ended_by"] = stats.why;
    json["prefill_tokens_per_s"] = prefill;
    json["decode_tokens_per_s"] = decode;
    json["weight_bytes_per_token"] = weight_bytes(*loaded.model);
    print_json(json);
    return 0;
  }
  std::fputc('\n', stdout);
  std::fflush(stdout);  // before what is said of it on the other stream
  if (stats.why == "context" && !o.quiet) {
    std::fprintf(stderr, "note: ended at the model's context of %lld tokens\n",
                 static_cast<long long>(loaded.config.model.context));
  }
  if (o.stats) {
    std::fprintf(stderr,
                 "prefill %lld tokens at %s tokens/s, decode %lld tokens at %s tokens/s, %s of "
                 "weights read a token\n",
                 static_cast<long long>(stats.prompt_tokens), short_number(prefill).c_str(),
                 static_cast<long long>(stats.new_tokens), short_number(decode).c_str(),
                 bytes_text(weight_bytes(*loaded.model)).c_str());
  }
  return 0;
}

int go_on(const GenerateOptions& o, const LoadedModel& loaded, const Tokenizer& tokenizer) {
  std::string text;
  if (!o.json) print(o.prompt);
  const GenerateStats stats = generate_text(decoder_of(loaded, "generate"), tokenizer, o.prompt,
                                            options_of(o), [&](std::string_view piece) {
                                              text += piece;
                                              if (!o.json) print(piece);
                                            });
  return finish(o, loaded, stats, {{"prompt", o.prompt}, {"text", text}});
}

/// A text for a text, as it is written; or, where the prompt has holes, the prompt with them filled.
int write(const GenerateOptions& o, const LoadedModel& loaded, const Tokenizer& tokenizer) {
  const ObjectiveTokens tokens = find_objective_tokens(loaded.config.model, tokenizer);
  const bool holes = o.prompt.find("<extra_id_") != std::string::npos;
  const Written written =
      generate_text(static_cast<nn::EncoderDecoder&>(*loaded.model), tokenizer, tokens, o.prompt,
                    options_of(o), [&](std::string_view piece) {
                      if (!o.json && !holes) print(piece);
                    });
  if (!o.json && holes) print(written.filled.empty() ? written.text : written.filled);
  Json json = {{"prompt", o.prompt}, {"text", written.text}};
  if (!written.filled.empty()) json["filled"] = written.filled;
  return finish(o, loaded, written.stats, json);
}

int unmask(const GenerateOptions& o, const LoadedModel& loaded, const Tokenizer& tokenizer) {
  check(o.stop.empty() && !o.stats,
        "generate: an encoder fills in all masks in one pass; leave --stop and --stats away");
  const Unmasked filled =
      fill_masks(static_cast<nn::Encoder&>(*loaded.model), tokenizer,
                 find_objective_tokens(loaded.config.model, tokenizer), o.prompt, options_of(o));
  if (o.json)
    print_json({{"prompt", o.prompt}, {"text", filled.text}, {"tokens", filled.tokens}});
  else
    print(filled.text + "\n");
  return 0;
}

}  // namespace

int generate(const GenerateOptions& o) {
  const LoadedModel loaded = load_model(o.run, dtype_of_options(o), device_of_options(o));
  const Tokenizer tokenizer = load_model_tokenizer(loaded);
  switch (loaded.config.model.architecture) {
    case Architecture::encoder:
      return unmask(o, loaded, tokenizer);
    case Architecture::encoder_decoder:
      return write(o, loaded, tokenizer);
    case Architecture::decoder:
      break;
  }
  return go_on(o, loaded, tokenizer);
}

}  // namespace tally::cli
