// docs/models.md, from the presets' own configurations.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "cli/model_tables.h"
#include "models/axes.h"
#include "models/parameters.h"

namespace tally::cli {
namespace {

const char* const kHead =
    "# Models\n\n"
    "This page is what `tally models --markdown` prints; a test compares them. `tally models` "
    "lists\n"
    "every preset with its source, `tally models NAME` one with all its fields, `tally models "
    "--table\n"
    "NAME` the lecture's tables, `tally compare A B` two models by axis, `tally account NAME` what "
    "one\n"
    "costs. A model is a row of `models/zoo_*.cpp`: a family's block and a few numbers a size.\n\n"
    "Each of the 143 recipes that the lecture names (`tests/data/recipes.json`) is here; its "
    "parameters\n"
    "equal another implementation's count to the last one where there is such a count "
    "(`tests/zoo_test.cpp`).\n\n"
    "## Families\n\n"
    "The last column says where the first model of a row leaves `modern`, the lecture's modern\n"
    "block: pre-norm RMSNorm, RoPE, SwiGLU, no biases, as many key heads as query heads, a tied "
    "head.\n\n"
    "| family | year | models | claims | leaves `modern` in |\n|---|---|---|---|---|\n";

const char* const kScaled =
    "\n## Small ones that train here\n\n"
    "`tally models --small` adds three sizes of most families, in the proportions of their first\n"
    "model, on bytes: `KEY-smoke` costs at most 1e11 FLOPs in all, `KEY-laptop` 1e13, `KEY-lab` "
    "5e15,\n"
    "and so do `gpt-smoke`, `llama-smoke` and their like. KEY is one of\n";

const char* const kRecorded =
    "\n## Recorded with another library\n\n"
    "`tally verify model tests/data/models/NAME` replays a small random model whose logits, loss,\n"
    "gradients and greedy text another library recorded. Where the recording did otherwise than "
    "the\n"
    "model's own code, `verify` follows the recording and says so:\n\n"
    "- **Falcon with ALiBi** (`falcon_rw_alibi`). transformers adds the slopes twice when "
    "attention is\n"
    "  \"eager\": once in the mask, and once to the scores before they are divided by "
    "sqrt(head_dim).\n"
    "  Its other kinds of attention, and the code that the weights come from, add them once. The "
    "case\n"
    "  was recorded with eager attention: a replica in double precision agrees with it to 7e-16 "
    "with\n"
    "  twice the slopes, and is off by 0.1 with once. So `verify model` doubles "
    "`model.alibi_scale`\n"
    "  there; a model that is read for use has them once.\n";

/// Axes on which sizes of one family differ, or that say how and not what it computes.
bool is_a_matter_of_size(std::string_view axis) {
  constexpr std::string_view some[] = {"shape", "vocabulary", "layout", "initial values",
                                       "training"};
  return std::find(std::begin(some), std::end(some), axis) != std::end(some);
}

/// "norm = layer_norm": what the model has.
std::string words_of(const FieldDifference& d) {
  const std::string name = d.field.substr(d.field.find('.') + 1);
  if (d.b == "true") return name;
  if (d.b == "false") return "no " + name;
  std::string value = d.b;
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (*end == '\0' && value.find_first_of(".e") != std::string::npos)
    value = fmt::format("{:.4g}", number);
  std::erase(value, '"');
  for (size_t at = 0; (at = value.find(',', at)) != std::string::npos; at += 2)
    value.replace(at, 1, ", ");
  return name + " = " + value;
}

RunConfig resolved(const Preset& p) {
  RunConfig c = p.config;
  c.resolve_and_check(p.name);
  return c;
}

std::string leaves_modern(const Preset& p) {
  const RunConfig modern = resolved(find_preset("modern")), own = resolved(p);
  std::vector<std::string> words;
  for (const FieldDifference& d : differences(modern, own)) {
    const bool number = d.field.starts_with("model.encoder_") || d.field == "model.padding_id" ||
                        d.field == "model.norm_eps" || d.field == "model.context" ||
                        d.field == "model.kv_heads" || d.field.starts_with("train.");
    if (!is_a_matter_of_size(d.axis) && !number) words.push_back(words_of(d));
  }
  if (own.model.kv_heads < own.model.heads)
    words.push_back(fmt::format("{} query heads a key head", own.model.heads / own.model.kv_heads));
  if (!own.model.tied_head) words.push_back("head of its own");
  std::string text;
  for (const auto& w : words) text += (text.empty() ? "" : "; ") + w;
  return text.empty() ? "nothing" : text;
}

/// The claims of all, each once, by number.
std::string claims_of(const std::vector<const Preset*>& models) {
  std::vector<int> numbers;
  for (const Preset* p : models) {
    for (size_t at = 0; (at = p->shows.find('L', at)) != std::string::npos; ++at)
      numbers.push_back(std::stoi(p->shows.substr(at + 1)));
  }
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string text;
  for (int n : numbers) text += fmt::format("{}L{}", text.empty() ? "" : " ", n);
  return text;
}

std::string family_row(const std::vector<const Preset*>& models) {
  std::string names;
  for (const Preset* p : models) {
    names += fmt::format("{}`{}` ({})", names.empty() ? "" : ", ", p->name,
                         short_number(static_cast<double>(parameter_count(resolved(*p).model))));
  }
  return fmt::format("| {} | {} | {} | {} | {} |\n", models[0]->family, models[0]->year, names,
                     claims_of(models), leaves_modern(*models[0]));
}

}  // namespace

std::string models_page() {
  // Ours have names of published families but other years: a family is both.
  std::vector<std::vector<const Preset*>> families;
  std::string keys;
  for (const Preset& p : presets()) {
    if (p.scaled_down) {
      const std::string end = "-smoke";
      if (p.name.ends_with(end))
        keys += (keys.empty() ? "`" : ", `") + p.name.substr(0, p.name.size() - end.size()) + "`";
      continue;
    }
    const auto family = std::ranges::find_if(families, [&](const auto& f) {
      return f[0]->family == p.family && f[0]->year == p.year && f[0]->source == p.source;
    });
    if (family == families.end())
      families.push_back({&p});
    else
      family->push_back(&p);
  }
  std::string page = kHead;
  for (const auto& family : families) page += family_row(family);
  return page + kScaled + keys + ".\n" + kRecorded;
}

}  // namespace tally::cli
