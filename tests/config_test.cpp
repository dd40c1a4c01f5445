#include "models/config.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "backends/register_all.h"
#include "core/error.h"
#include "data/file.h"
#include "models/config_json.h"
#include "models/parameters.h"
#include "models/suggest.h"
#include "models/target.h"
#include "models/zoo.h"
#include "tests/message_of.h"

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using namespace tally;
using test::message_of;

namespace {

std::string set_error(const std::string& assignment) {
  RunConfig config = find_preset("demo").config;
  return message_of([&] { apply_override(config, assignment); });
}

/// What resolve_and_check says of tiny-llama with the overrides.
std::string check_error(std::initializer_list<const char*> assignments) {
  RunConfig config = find_preset("tiny-llama").config;
  for (const char* assignment : assignments) apply_override(config, assignment);
  return message_of([&] { config.resolve_and_check("f.json"); });
}

ModelConfig resolved(const char* preset) {
  RunConfig config = find_preset(preset).config;
  config.resolve_and_check(preset);
  return config.model;
}

}  // namespace

TEST_CASE("suggest: edit distance counts insertions, deletions, changes and swaps", "[config]") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("ab", "ba") == 1);
  CHECK(edit_distance("same", "same") == 0);
}

TEST_CASE("suggest: a slip and a part of a name are understood, noise is not", "[config]") {
  const std::vector<std::string> names = {"llama-7b", "llama-3-8b", "gpt2", "rope_base"};
  CHECK(closest("lama-7b", names) == "llama-7b");
  CHECK(closest("llama3", names) == "llama-3-8b");
  CHECK(closest("GTP2", names) == "gpt2");
  CHECK(closest("base", names) == "rope_base");
  CHECK(closest("xyzxyz", names).empty());
  CHECK(closest("", names).empty());
  CHECK(did_you_mean("xyzxyz", names) == "; choose one of llama-7b, llama-3-8b, gpt2, rope_base");
}

TEST_CASE("zoo: every preset has the parameters that other implementations count", "[config]") {
  const std::map<std::string, int64_t> counts = {{"gpt2", 124439808},
                                                 {"gpt2-medium", 354823168},
                                                 {"gpt2-large", 774030080},
                                                 {"gpt2-xl", 1557611200},
                                                 {"llama-7b", 6738415616},
                                                 {"llama-13b", 13015864320},
                                                 {"llama-33b", 32528943616},
                                                 {"llama-65b", 65285660672},
                                                 {"llama-2-7b", 6738415616},
                                                 {"llama-2-13b", 13015864320},
                                                 {"llama-2-70b", 68976648192},
                                                 {"llama-3-8b", 8030261248},
                                                 {"llama-3-70b", 70553706496},
                                                 {"llama-3.1-405b", 405853388800},
                                                 {"llama-3.2-1b", 1235814400},
                                                 {"llama-3.2-3b", 3212749824},
                                                 {"deepseek-llm-7b", 6910365696},
                                                 {"deepseek-llm-67b", 67425001472},
                                                 {"yi-6b", 6061035520},
                                                 {"yi-34b", 34388917248},
                                                 {"smollm-135m", 134515008},
                                                 {"smollm-360m", 361821120},
                                                 {"smollm-1.7b", 1711376384},
                                                 {"smollm2-135m", 134515008},
                                                 {"smollm2-1.7b", 1711376384},
                                                 {"deepseek-v2-lite", 15706484224},
                                                 {"deepseek-v2", 235741434880},
                                                 {"bert-base", 109514298},
                                                 {"bert-large", 335174458},
                                                 {"t5-small", 60506624},
                                                 {"t5-base", 222903552},
                                                 {"t5-large", 737668096},
                                                 {"t5-11b", 11307321344},
                                                 {"t5-v1.1-base", 247577856},
                                                 // torch.nn.Transformer() without its two last
                                                 // norms, and a shared table of 37,000 rows.
                                                 {"transformer-base", 44138496 + 37000 * 512}};
  for (const auto& [name, count] : counts) {
    INFO(name);
    CHECK(parameter_count(resolved(name.c_str())) == count);
  }
}

TEST_CASE("zoo: every preset resolves, and its parameters add up to the closed form", "[config]") {
  register_all();  // encoders name their parameters on meta
  for (const Preset& preset : presets()) {
    INFO(preset.name);
    const ModelConfig config = resolved(preset.name.c_str());
    int64_t sum = 0;
    for (const ParameterSpec& p : parameter_specs(config)) sum += p.numel();
    CHECK(sum == parameter_count(config));
    CHECK_FALSE(preset.source.empty());
    CHECK(preset.shows.starts_with('L'));
    CHECK(config.name == preset.name);
  }
}

TEST_CASE("zoo: an unknown preset is refused with a suggestion", "[config][error]") {
  CHECK(message_of([] { find_preset("lama-7b"); }) ==
        "there is no preset \"lama-7b\"; did you mean \"llama-7b\"?");
  CHECK_THAT(message_of([] { find_preset("xyzxyz"); }), Contains("`tally models` lists them"));
  CHECK_THAT(message_of([] { resolve_target("gpt2-mediun"); }), Contains("\"gpt2-medium\""));
}

TEST_CASE("config: the closed form holds for every choice", "[config]") {
  for (int bits = 0; bits < 512; ++bits) {
    ModelConfig c = resolved("demo");
    c.qkv_bias = bits & 1, c.attention_output_bias = bits & 2, c.mlp_bias = bits & 4;
    c.head_bias = bits & 8, c.tied_head = bits & 16, c.gated = bits & 32;
    c.fused_qkv = bits & 64, c.fused_gate_up = bits & 128;
    if (bits & 256) c.norm = Norm::layer_norm, c.norm_bias = true, c.position = Position::learned;
    c.head_dim = 6;
    int64_t sum = 0;
    for (const ParameterSpec& p : parameter_specs(c)) sum += p.numel();
    REQUIRE(sum == parameter_count(c));
  }
}

TEST_CASE("config: fused and separate projections hold the same parameters", "[config]") {
  ModelConfig c = resolved("demo");
  c.fused_qkv = c.fused_gate_up = false;
  CHECK(parameter_count(c) == parameter_count(resolved("demo")));
  CHECK(parameter_specs(c).size() == parameter_specs(resolved("demo")).size() + 3 * 4);
}

TEST_CASE("config: a document written is the document read", "[config]") {
  for (const Preset& preset : presets()) {
    INFO(preset.name);
    CHECK(run_config_from_json(to_json_text(preset.config), "f.json") == preset.config);
    RunConfig full = preset.config;
    full.resolve_and_check();
    CHECK(run_config_from_json(to_json_text(full), "f.json") == full);
  }
}

TEST_CASE("config: derived fields are filled in", "[config]") {
  ModelConfig c;
  c.layers = 2, c.d_model = 512, c.heads = 8, c.vocab = 10, c.context = 4;
  c.resolve();
  CHECK(c.kv_heads == 8);
  CHECK(c.head_dim == 64);
  CHECK(c.d_ff == 1408);  // 8/3 of 512, up to a multiple of 64
  c.gated = false, c.d_ff = 0;
  c.resolve();
  CHECK(c.d_ff == 2048);
}

TEST_CASE("config: unknown and ill-typed fields are refused by name", "[config][error]") {
  const auto read = [](const char* text) {
    return message_of([&] { run_config_from_json(text, "f.json"); });
  };
  CHECK(read(R"({"model":{"layrs":1}})") ==
        "f.json: model: there is no field \"layrs\"; did you mean \"layers\"?");
  CHECK_THAT(read(R"({"train":{"learning_rate":1},"model":{}})"), Contains("learning_rate"));
  CHECK(read(R"({"model":{"layers":"1"}})") ==
        "f.json: model.layers must be an integer; it is \"1\" (string)");
  CHECK_THAT(read(R"({"model":{"layers":1.5}})"), Contains("must be an integer; it is 1.5"));
  CHECK_THAT(read(R"({"model":{"layers":null}})"), Contains("must be an integer"));
  CHECK_THAT(read(R"({"model":{"layers":9223372036854775808}})"), Contains("63 bits"));
  CHECK_THAT(read(R"({"model":{"gated":1}})"), Contains("must be true or false"));
  CHECK_THAT(read(R"({"model":{"norm_eps":"x"}})"), Contains("must be a number"));
  CHECK_THAT(read(R"({"model":{"name":1}})"), Contains("must be a text"));
  CHECK_THAT(read(R"({"model":{"norm":"rmsnorm"}})"), Contains("did you mean \"rms_norm\"?"));
  CHECK_THAT(read(R"({"model":{"norm":3}})"), Contains("choose one of layer_norm, rms_norm"));
  CHECK_THAT(read(R"({"model":{"placement":"sandwich"}})"), Contains("\"sandwich\" is not known"));
  CHECK_THAT(read(R"({"modle":{}})"), Contains("did you mean \"model\"?"));
  CHECK_THAT(read(R"({"train":{}})"), Contains("\"model\" is missing"));
  CHECK_THAT(read(R"({"model":[]})"), Contains("must be an object"));
  CHECK_THAT(read("[]"), Contains("must be an object"));
  CHECK_THAT(read("{\"model\":{\n\"layers\":1,\n\"layers\":2}}"), StartsWith("f.json: line 3"));
  CHECK(read("// a comment\n{\"model\":{}}") == "accepted");
}

TEST_CASE("config: --set changes one field, whatever its type", "[config]") {
  RunConfig c = find_preset("demo").config;
  for (const char* assignment : {"model.d_model=256", "model.norm=layer_norm", "train.lr=3e-4",
                                 "model.tied_head=false", "model.name=12", "train.steps=7"}) {
    apply_override(c, assignment);
  }
  CHECK(c.model.d_model == 256);
  CHECK(c.model.norm == Norm::layer_norm);
  CHECK(c.train.lr == 3e-4);
  CHECK_FALSE(c.model.tied_head);
  CHECK(c.model.name == "12");
  CHECK(c.train.steps == 7);
}

TEST_CASE("config: --set refuses by name what it cannot apply", "[config][error]") {
  CHECK_THAT(set_error("model.d_modl=3"), Contains("did you mean \"d_model\"?"));
  CHECK_THAT(set_error("d_model=3"), Contains("did you mean \"model.d_model\"?"));
  CHECK_THAT(set_error("trian.lr=1"), Contains("did you mean \"train.lr\"?"));
  CHECK_THAT(set_error("model.d_model=big"), Contains("must be an integer; it is \"big\""));
  CHECK_THAT(set_error("model.d_model=1.5"), Contains("must be an integer"));
  CHECK_THAT(set_error("model.d_model="), Contains("must be an integer"));
  CHECK_THAT(set_error("model.d_model"), Contains("a field and its value are needed"));
  CHECK_THAT(set_error("model.norm=rmsnorm"), Contains("did you mean \"rms_norm\"?"));
  CHECK_THAT(set_error("model.tied_head=yes"), Contains("must be true or false"));
}

TEST_CASE("config: what does not fit together says what to set", "[config][error]") {
  CHECK(check_error({"model.heads=12", "model.kv_heads=5"}) ==
        "f.json: model: heads = 12 must be a multiple of kv_heads = 5; set kv_heads to 1, 2, 3, 4, "
        "6 or 12");
  CHECK_THAT(check_error({"model.heads=5"}),
             Contains("d_model = 384 must be a multiple of heads = 5") &&
                 Contains("set heads to 1, 2, 3, 4, 6, 8,"));
  CHECK_THAT(check_error({"model.head_dim=31"}), Contains("head_dim = 31 must be even"));
  CHECK(check_error({"model.head_dim=31", "model.position=none"}) == "accepted");
  CHECK_THAT(check_error({"model.norm_bias=true"}), Contains("needs norm = layer_norm"));
  CHECK_THAT(check_error({"train.seq=1000"}), Contains("must not exceed model.context = 256"));
  CHECK_THAT(check_error({"train.seq=8", "model.attention_prefix=8"}),  // F06: no target counts
             Contains("train: seq = 8 must be above model.attention_prefix = 8"));
  CHECK(check_error({"train.seq=9", "model.attention_prefix=8"}) == "accepted");
  CHECK_THAT(check_error({"train.warmup=100000"}), Contains("must not exceed steps"));
}

TEST_CASE("config: every number has a range, and the message gives it", "[config][error]") {
  CHECK_THAT(check_error({"model.layers=0"}), Contains("layers must lie between 1 and 10000"));
  CHECK_THAT(check_error({"model.vocab=1099511627776"}), Contains("vocab must lie between"));
  CHECK_THAT(check_error({"model.norm_eps=-1"}), Contains("norm_eps must lie between 0 and 1"));
  CHECK_THAT(check_error({"model.attention_dropout=1"}), Contains("attention_dropout"));
  CHECK_THAT(check_error({"train.batch=0"}), Contains("train: batch must lie between"));
  CHECK_THAT(check_error({"train.beta2=1"}), Contains("beta2"));
  CHECK_THAT(check_error({"model.heads=-12"}), Contains("heads must lie between"));
  CHECK_THAT(check_error({"model.layers=10000", "model.d_model=1048576", "model.heads=65536",
                          "model.head_dim=65536", "model.d_ff=4194304"}),
             Contains("parameters; at most"));
}

TEST_CASE("config: initial values follow the named scheme", "[config]") {
  ModelConfig c = resolved("gpt2");
  const auto at = [&](const char* name) {
    for (const ParameterSpec& p : parameter_specs(c)) {
      if (p.name == name) return initial_values(c, p);
    }
    throw Error(name);
  };
  CHECK(at("blocks.0.attention.qkv.weight").std == 0.02);
  CHECK(at("blocks.0.mlp.down.weight").std == Approx(0.02 / std::sqrt(24.0)));
  CHECK(at("final_norm.weight").mean == 1);
  CHECK(at("final_norm.weight").std == 0);
  CHECK(at("blocks.3.mlp.up.bias").std == 0);
  c.init = Init::normal;
  CHECK(at("blocks.0.mlp.down.weight").std == 0.02);
  c.init = Init::trunc_normal;
  CHECK(at("embedding.weight").cutoff == Approx(0.06));
  c.init = Init::xavier;
  CHECK(at("blocks.0.mlp.up.weight").std == Approx(std::sqrt(2.0 / (768 + 3072))));
  CHECK(at("embedding.weight").std == 1);
  c.init = Init::mitchell;
  CHECK(at("blocks.2.mlp.down.weight").std == Approx(1 / std::sqrt(2.0 * 3072 * 3)));
  CHECK(at("blocks.2.mlp.up.weight").std == Approx(1 / std::sqrt(768.0)));
}

TEST_CASE("config: docs/config.md holds the table of fields as it is", "[config]") {
  const std::string page = read_file(TALLY_TEST_DATA "/../../docs/config.md");
  CHECK_THAT(page, Contains(field_reference()));
}

TEST_CASE("target: a file, a run directory and a Hugging Face directory are found", "[config]") {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "tally-target-test-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  RunConfig config = find_preset("llama-smoke").config;
  write_file_atomic(folder + "/config.json", to_json_text(config));
  config.resolve_and_check();
  CHECK(resolve_target(folder).config == config);
  CHECK(resolve_target(folder).kind == TargetKind::run);
  CHECK(resolve_target(folder + "/config.json").kind == TargetKind::file);
  CHECK_THAT(message_of([&] { resolve_target(folder + "/none"); }),
             Contains("there is no file or folder of that name"));
  fs::remove(folder + "/config.json");
  CHECK_THAT(message_of([&] { resolve_target(folder); }), Contains("has no config.json"));
  fs::remove_all(folder);

  const std::string checkpoint = std::string(TALLY_TEST_DATA) + "/models" + "/gpt2";
  for (const std::string& name : {checkpoint, checkpoint + "/config.json"}) {
    const Target gpt2 = resolve_target(name);
    CHECK(gpt2.kind == TargetKind::hugging_face);
    CHECK(gpt2.config.model.d_ff == 52);
  }
  const std::vector<std::string> overrides = {"model.kv_heads=2"};
  CHECK(resolve_target("tiny-llama", overrides).config.model.kv_heads == 2);
}
