#include "cli/model_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "models/parameters.h"
#include "models/suggest.h"

namespace tally::cli {
namespace {

/// A column: its head, the tables that have it, the fields it speaks of and what it says.
struct Column {
  const char* head;
  const char* tables;
  const char* fields;
  std::function<Json(const RunConfig&)> value;
};

template <class E>
std::string enum_text(E value) {
  return std::string(enum_names(E{})[static_cast<size_t>(value)]);
}
double ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }
Json unless(bool absent, Json value) { return absent ? Json("") : std::move(value); }

std::string activation_text(const ModelConfig& m) {
  if (!m.gated) return enum_text(m.activation);
  static const std::map<Activation, const char*> names = {
      {Activation::relu, "ReGLU"},        {Activation::gelu, "GeGLU"},
      {Activation::gelu_tanh, "GeGLU"},   {Activation::silu, "SwiGLU"},
      {Activation::identity, "bilinear"}, {Activation::sigmoid, "GLU"}};
  const auto name = names.find(m.activation);
  return name == names.end() ? enum_text(m.activation) + "-GLU" : name->second;
}

std::string position_text(const ModelConfig& m) {
  std::string text = enum_text(m.position);
  if (m.position == Position::rope) {
    text += fmt::format(" {:g}", m.rope_base);
    if (m.rope_fraction < 1) text += fmt::format(" x{:g}", m.rope_fraction);
  }
  return text;
}

/// "5 local : 1 global"; "" where all layers are alike.
std::string pattern_text(const std::vector<std::string>& pattern) {
  std::string text;
  for (size_t i = 0; i < pattern.size();) {
    const auto next = std::find_if(pattern.begin() + static_cast<std::ptrdiff_t>(i), pattern.end(),
                                   [&](const auto& p) { return p != pattern[i]; });
    const auto end = static_cast<size_t>(next - pattern.begin());
    text += (text.empty() ? "" : " : ") + fmt::format("{} {}", end - i, pattern[i]);
    i = end;
  }
  return text;
}

std::string biases_text(const ModelConfig& m) {
  std::string text;
  const std::pair<bool, const char*> all[] = {{m.norm_bias, "norm"},
                                              {m.qkv_bias, "qkv"},
                                              {m.attention_output_bias, "out"},
                                              {m.mlp_bias, "mlp"},
                                              {m.head_bias, "head"}};
  for (const auto& [has, name] : all) {
    if (has) text += (text.empty() ? "" : " ") + std::string(name);
  }
  return text.empty() ? "none" : text;
}

std::string block_text(const ModelConfig& m) {
  return m.parallel == Parallel::none ? "serial" : "parallel, " + enum_text(m.parallel);
}

double embedding_share(const ModelConfig& m) {
  const ParameterCount n = parameter_counts(m);
  return 100 * ratio(n.embedding + n.head, n.total());
}

double most_dropout(const ModelConfig& m) {
  return std::max({m.embedding_dropout, m.attention_dropout, m.residual_dropout});
}

using C = const RunConfig&;

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
      {"norm", "norm all", "model.norm", [](C c) { return Json(enum_text(c.model.norm)); }},
      {"gain", "norm", "model.norm_gain", [](C c) { return Json(enum_text(c.model.norm_gain)); }},
      {"eps", "norm", "model.norm_eps", [](C c) { return Json(c.model.norm_eps); }},
      {"biases", "norm activation", "", [](C c) { return Json(biases_text(c.model)); }},
      {"where", "placement all", "", [](C c) { return Json(enum_text(c.model.placement)); }},
      {"final norm", "placement", "", [](C c) { return Json(enum_text(c.model.final_norm)); }},
      {"embedding norm", "placement", "",
       [](C c) { return unless(!c.model.embedding_norm, "yes"); }},
      {"positions", "position all", "", [](C c) { return Json(position_text(c.model)); }},
      {"by layer", "position", "",
       [](C c) { return Json(pattern_text(c.model.position_pattern)); }},
      {"scaling", "position", "",
       [](C c) {
         return unless(
             c.model.rope_scaling == RopeScale::none,
             fmt::format("{} x{:g}", enum_text(c.model.rope_scaling), c.model.rope_factor));
       }},
      {"window", "position", "", [](C c) { return unless(c.model.window == 0, c.model.window); }},
      {"attention", "position", "",
       [](C c) { return Json(pattern_text(c.model.attention_pattern)); }},
      {"context", "position vocabulary", "model.context",
       [](C c) { return Json(c.model.context); }},
      {"activation", "activation all", "", [](C c) { return Json(activation_text(c.model)); }},
      {"gated", "activation", "", [](C c) { return Json(c.model.gated ? "yes" : "no"); }},
      {"block", "placement activation all", "", [](C c) { return Json(block_text(c.model)); }},
      {"layers", "aspect all", "", [](C c) { return Json(c.model.layers); }},
      {"d_model", "width heads aspect all", "", [](C c) { return Json(c.model.d_model); }},
      {"d_ff", "width", "", [](C c) { return Json(c.model.d_ff); }},
      {"heads", "heads all", "", [](C c) { return Json(c.model.heads); }},
      {"head_dim", "heads all", "", [](C c) { return Json(c.model.head_dim); }},
      {"kv heads", "heads all", "", [](C c) { return Json(c.model.kv_heads); }},
      {"hd h/d", "heads all", "",
       [](C c) { return Json(ratio(c.model.heads * c.model.head_dim, c.model.d_model)); }},
      {"d_ff/d", "width all", "", [](C c) { return Json(ratio(c.model.d_ff, c.model.d_model)); }},
      {"d/L", "aspect all", "", [](C c) { return Json(ratio(c.model.d_model, c.model.layers)); }},
      {"vocab", "vocabulary all", "", [](C c) { return Json(c.model.vocab); }},
      {"tied", "vocabulary", "", [](C c) { return Json(c.model.tied_head ? "yes" : "no"); }},
      {"ends %", "vocabulary all", "", [](C c) { return Json(embedding_share(c.model)); }},
      {"dropout", "regularisation all", "model.residual_dropout",
       [](C c) { return Json(most_dropout(c.model)); }},
      {"weight decay", "regularisation all", "train.weight_decay",
       [](C c) { return Json(c.train.weight_decay); }},
      {"z-loss", "stability all", "model.z_loss",
       [](C c) { return unless(c.model.z_loss == 0, c.model.z_loss); }},
      {"qk-norm", "stability all", "",
       [](C c) { return unless(c.model.qk_norm == QKNorm::none, enum_text(c.model.qk_norm)); }},
      {"attention cap", "stability all", "",
       [](C c) { return unless(c.model.attention_soft_cap == 0, c.model.attention_soft_cap); }},
      {"logit cap", "stability all", "",
       [](C c) { return unless(c.model.final_soft_cap == 0, c.model.final_soft_cap); }},
      {"clip", "stability", "train.clip", [](C c) { return Json(c.train.clip); }},
  };
  return all;
}

bool has_word(std::string_view words, std::string_view word) {
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

std::vector<const Column*> columns_of(const std::string& table) {
  const auto& names = model_table_names();
  check(std::find(names.begin(), names.end(), table) != names.end(), "--table: \"", table,
        "\" is not known", did_you_mean(table, names));
  std::vector<const Column*> found;
  for (const Column& c : columns()) {
    if (has_word(c.tables, table)) found.push_back(&c);
  }
  return found;
}

/// Null where the model's value is not published.
Json value_of(const Column& column, const Preset& p, const RunConfig& resolved) {
  return has_word(p.unpublished, column.fields) ? Json() : column.value(resolved);
}

std::string cell_text(const Json& value) {
  if (value.is_null()) return "?";
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

RunConfig resolved_config(const Preset& p) {
  RunConfig c = p.config;
  c.resolve_and_check(p.name);
  return c;
}

}  // namespace

const std::vector<std::string>& model_table_names() {
  static const std::vector<std::string> names = {
      "norm",   "placement",  "position",       "activation", "width", "heads",
      "aspect", "vocabulary", "regularisation", "stability",  "all"};
  return names;
}

std::vector<std::vector<std::string>> model_table(const std::string& table,
                                                  const std::vector<const Preset*>& presets) {
  const auto shown = columns_of(table);
  std::vector<std::vector<std::string>> rows = {{"preset", "year"}};
  for (const Column* c : shown) rows[0].push_back(c->head);
  for (const Preset* p : presets) {
    const RunConfig config = resolved_config(*p);
    std::vector<std::string>& row = rows.emplace_back();
    row = {p->name, fmt::format("{}", p->year)};
    for (const Column* c : shown) row.push_back(cell_text(value_of(*c, *p, config)));
  }
  return rows;
}

Json model_table_json(const std::string& table, const std::vector<const Preset*>& presets) {
  const auto shown = columns_of(table);
  Json list = Json::array();
  for (const Preset* p : presets) {
    const RunConfig config = resolved_config(*p);
    Json row = {{"name", p->name}, {"family", p->family}, {"year", p->year}};
    for (const Column* c : shown) row[c->head] = value_of(*c, *p, config);
    list.push_back(std::move(row));
  }
  return list;
}

std::string model_cell(const std::string& column, const Preset& p) {
  for (const Column& c : columns()) {
    if (c.head == column) return cell_text(value_of(c, p, resolved_config(p)));
  }
  fail("there is no column \"", column, "\"");
}

}  // namespace tally::cli
