// The lecture's tables of the presets, the axes that `compare` names, and docs/models.md.
#include <catch2/catch.hpp>

#include "cli/model_tables.h"
#include "data/file.h"
#include "models/axes.h"
#include "tests/registered.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

std::string cell(const char* column, const char* preset) {
  return cli::model_cell(column, find_preset(preset));
}

RunConfig resolved(const char* preset) {
  RunConfig c = find_preset(preset).config;
  c.resolve_and_check(preset);
  return c;
}

std::vector<std::string> axes_between(const char* a, const char* b) {
  std::vector<std::string> axes;
  for (const FieldDifference& d : differences(resolved(a), resolved(b))) {
    if (axes.empty() || axes.back() != d.axis) axes.emplace_back(d.axis);
  }
  return axes;
}

}  // namespace

TEST_CASE("models: docs/models.md is what the command prints", "[models]") {
  CHECK(read_file(TALLY_TEST_DATA "/../../docs/models.md") == cli::models_page());
}

TEST_CASE("models: ratios are those that the lecture prints, where it prints them right",
          "[models][L53][L54][L58][L59]") {
  CHECK(cell("d_ff/d", "gpt3-175b") == "4");
  CHECK(cell("d_ff/d", "palm-540b") == "4");
  CHECK(cell("d_ff/d", "mistral-7b") == "3.5");
  CHECK(cell("d_ff/d", "llama-2-70b") == "3.5");
  CHECK(cell("d_ff/d", "llama-65b") == "2.688");
  CHECK(cell("d_ff/d", "qwen-14b") == "2.675");
  CHECK(cell("d_ff/d", "yi-34b") == "2.857");
  CHECK(cell("d_ff/d", "gemma-2-27b") == "8");
  CHECK(cell("hd h/d", "gpt3-175b") == "1");
  CHECK(cell("hd h/d", "lamda-137b") == "2");
  CHECK(cell("hd h/d", "palm-540b") == "0.6667");  // the lecture's 1.48 is a misprint of 1.5
  CHECK(cell("d/L", "bloom-176b") == "204.8");
  CHECK(cell("d/L", "palm-540b") == "156.2");
  CHECK(cell("d/L", "gpt3-175b") == "128");
  CHECK(cell("d/L", "llama-65b") == "102.4");
  CHECK(cell("d/L", "gpt2-xl") == "33.33");
}

TEST_CASE("models: who uses what", "[models][L18][L33][L41][L43]") {
  CHECK(cell("norm", "command-r-35b") == "layer_norm");
  CHECK(cell("norm", "chinchilla-70b") == "rms_norm");
  CHECK(cell("activation", "gemma-2-2b") == "GeGLU");
  CHECK(cell("activation", "llama-7b") == "SwiGLU");
  CHECK(cell("activation", "nemotron-4-340b") == "squared_relu");
  CHECK(cell("block", "gpt-j-6b") == "parallel, shared_norm");
  CHECK(cell("block", "gpt-neox-20b") == "parallel, two_norms");
  CHECK(cell("block", "llama-7b") == "serial");
  CHECK(cell("positions", "gpt-j-6b") == "rope 10000 x0.25");
  CHECK(cell("by layer", "command-a-111b") == "3 global : 1 none");
  CHECK(cell("attention", "gemma-3-1b") == "5 window : 1 full");
  CHECK(cell("biases", "qwen2-7b") == "qkv");
  CHECK(cell("biases", "llama-7b") == "none");
  CHECK(cell("scaling", "llama-3.1-8b") == "llama3 x8");
}

TEST_CASE("models: what is not published is no number", "[models]") {
  CHECK(cell("weight decay", "gemma-2-2b") == "?");
  CHECK(cell("weight decay", "llama-7b") == "0.1");
  const Json row = cli::model_table_json("regularisation", {&find_preset("gemma-2-2b")})[0];
  CHECK(row["weight decay"].is_null());
  CHECK(row["dropout"] == 0.0);
}

TEST_CASE("models: every table has a column, and a row for each model", "[models]") {
  for (const std::string& table : cli::model_table_names()) {
    INFO(table);
    const auto rows = cli::model_table(table, {&find_preset("gpt2"), &find_preset("gemma-3-1b")});
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].size() >= 4);
    CHECK(rows[1].size() == rows[0].size());
    CHECK(rows[1] != rows[2]);
  }
}

TEST_CASE("models: an unknown table is refused with a suggestion", "[models][error]") {
  CHECK_THROWS_WITH(cli::model_table("norms", {}),
                    Contains("\"norms\" is not known; did you mean \"norm\"?"));
}

TEST_CASE("axes: the original and the modern Transformer differ as the lecture says",
          "[models][L5][L6]") {
  CHECK(axes_between("original", "modern") ==
        std::vector<std::string>{"norm", "placement", "biases", "activation", "position", "shape",
                                 "regularisation", "residual scale", "training"});
  CHECK(differences(resolved("modern"), resolved("modern")).empty());
}

TEST_CASE("axes: a field lies on one axis", "[models]") {
  CHECK(axis_of("norm_bias") == "biases");
  CHECK(axis_of("norm_eps") == "norm");
  CHECK(axis_of("gated") == "activation");
  CHECK(axis_of("qk_norm") == "stability");
  CHECK(axis_of("attention_dropout") == "regularisation");
  CHECK(axis_of("attention_pattern") == "attention");
  CHECK(axis_of("expert_d_ff") == "experts");
  CHECK(axis_of("beta1") == "training");
  CHECK(axis_of("no_such_field") == "other");
}
