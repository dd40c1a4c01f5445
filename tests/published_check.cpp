// A published model in a GGUF file beside what another framework recorded of it:
//   published_check MODEL.gguf RECORD.json
// ids of a text, the loss of each token, the last logits, a greedy continuation and its text. Exits
// with 1 where something is further off than float32 arithmetic explains.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "backends/register_all.h"
#include "cli/loaded_model.h"
#include "data/json.h"
#include "models/generate.h"
#include "tests/worse.h"

using namespace tally;

namespace {

int failures = 0;

void report(const char* what, double error, double bound) {
  const bool ok = error <= bound;
  failures += ok ? 0 : 1;
  std::printf("%-36s %.3g (bound %.3g) %s\n", what, error, bound, ok ? "ok" : "BEYOND");
}

/// -log p of what follows each position.
std::vector<double> losses_of(const std::vector<float>& logits, const std::vector<int64_t>& ids) {
  const size_t vocab = logits.size() / ids.size();
  std::vector<double> losses;
  for (size_t t = 0; t + 1 < ids.size(); ++t) {
    const float* row = logits.data() + t * vocab;
    const double top = *std::max_element(row, row + vocab);
    double sum = 0;
    for (size_t v = 0; v < vocab; ++v) sum += std::exp(row[v] - top);
    losses.push_back(top + std::log(sum) - row[ids[t + 1]]);
  }
  return losses;
}

void check_text(nn::Decoder& model, const Json& record) {
  const auto ids = record["ids"].get<std::vector<int64_t>>();
  const auto logits = to_host<float>(
      model.logits(from_host<int64_t>(ids, {1, static_cast<int64_t>(ids.size())}, kCPU)));
  const auto losses = losses_of(logits, ids);
  const auto wanted = record["nll_per_token"].get<std::vector<double>>();
  double worst = wanted.size() == losses.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(losses.size(), wanted.size()); ++i)
    worst = test::worse(worst, losses[i], wanted[i]);
  report("largest difference of a token's loss", worst, 1e-3);
  const float* last = logits.data() + logits.size() - logits.size() / ids.size();
  worst = 0;
  for (const Json& pair : record["last_top10"])
    worst = test::worse(worst, last[pair[0].get<size_t>()], pair[1].get<double>());
  for (size_t i = 0; i < record["logits_last_first16"].size(); ++i)
    worst = test::worse(worst, last[i], record["logits_last_first16"][i].get<double>());
  report("largest difference of a last logit", worst, 2e-3);
}

void check_greedy(nn::Decoder& model, const Tokenizer& tokenizer, const Json& greedy) {
  const auto prompt = greedy["prompt_ids"].get<std::vector<int64_t>>();
  std::vector<int64_t> ids = prompt;
  GenerateOptions options;
  const auto wanted = greedy["ids"].get<std::vector<int64_t>>();
  options.max_new_tokens = static_cast<int64_t>(wanted.size() - prompt.size());
  options.sampling.temperature = 0;
  generate_ids(model, prompt, options, std::nullopt, [&](int64_t id) {
    ids.push_back(id);
    return true;
  });
  report("greedy continuation differs", ids == wanted ? 0 : 1, 0);
  const bool same = tokenizer.decode(std::span<const int64_t>(ids)) == greedy["text"];
  report("its text differs", same ? 0 : 1, 0);
}

}  // namespace

int main(int count, char** words) {
  try {
    check(count == 3, "published_check: two words are needed, MODEL.gguf and RECORD.json");
    register_all();
    const Json record = read_json(words[2]);
    const cli::LoadedModel loaded = cli::load_model(words[1], DType::f32, kCPU);
    const Tokenizer tokenizer = cli::load_model_tokenizer(loaded);
    report("parameters more or fewer",
           std::abs(double(loaded.model->parameter_count()) - record["n_params"].get<double>()), 0);
    const auto ids = tokenizer.encode(record["text"].get<std::string>());
    report("ids of the text differ", ids == record["ids"].get<std::vector<TokenId>>() ? 0 : 1, 0);
    nn::Decoder& model = cli::decoder_of(loaded, "published_check");
    check_text(model, record);
    check_greedy(model, tokenizer, record["greedy"]);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return failures == 0 ? 0 : 1;
}
