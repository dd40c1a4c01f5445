// Every family of published checkpoints against a recorded model of its own (tests/data/models):
// a small random one in the public library's format, with what that library computed.
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "cli/verify_model.h"
#include "data/file.h"
#include "data/json.h"
#include "models/checkpoint.h"
#include "models/hf_config.h"
#include "models/hf_export.h"
#include "models/hf_writer.h"
#include "tests/data_helpers.h"
#include "tests/registered.h"

using namespace tally;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> recorded_models() {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(TALLY_TEST_DATA "/models"))
    folders.push_back(entry.path());
  std::ranges::sort(folders);
  return folders;
}

void check_recorded(const std::string& folder, DType dtype, Device device) {
  const auto results = cli::verify_model(folder, dtype, device);
  CHECK(results.size() >= (dtype == DType::bf16 ? 2u : 10u));
  for (const auto& r : results) {
    INFO(folder << " on " << to_text(device) << " in " << to_text(dtype) << ": " << r.what
                << " error " << r.error << ", bound " << r.bound);
    CHECK(r.ok());
  }
}

/// What is said of a recorded model's config.json with one entry changed (null: removed).
std::string refusal(const std::string& name, const std::string& key, const Json& value) {
  Json document =
      parse_json(read_file(std::string(TALLY_TEST_DATA "/models/") + name + "/config.json"), name);
  document[key] = value;
  return test::message_of([&] { hf_config_from_json(document.dump(), "config.json"); });
}

}  // namespace

TEST_CASE("family: recorded models come out: logits, loss, gradients, greedy text",
          "[model][L5][L7][L10][L52][L96]") {
  const auto folders = recorded_models();
  REQUIRE(folders.size() >= 60);
  for (const std::string& folder : folders) {
    for (const Device device : {kReference, kCPU}) {
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
        check_recorded(folder, dtype, device);
    }
  }
}

TEST_CASE("family: what is exported is the file that was imported, bit for bit", "[model]") {
  for (const std::string& folder : recorded_models()) {
    INFO(folder);
    const Checkpoint checkpoint = Checkpoint::hugging_face(folder);
    const HfModel model = read_hf_config(folder + "/config.json");
    const test::TemporaryFolder to;
    export_hugging_face(
        to / "out", model.config, *model.family,
        [&](std::string_view name, std::span<float> out) { checkpoint.read(name, out); },
        StoredType::f32);
    const SafetensorFile before(folder + "/model.safetensors"), after(to / "out/model.safetensors");
    CHECK(after.tensors().size() == before.tensors().size());
    for (const StoredTensor& t : before.tensors()) {
      INFO(t.name);
      const StoredTensor* found = after.find(t.name);
      REQUIRE(found);
      CHECK(same_content(t, *found));
    }
    CHECK(read_hf_config(to / "out/config.json").family == model.family);
  }
}

TEST_CASE("family: one that can say all of the model is found, or what it lacks is said",
          "[model][error]") {
  const auto config_of = [](const char* name) {
    return read_hf_config(std::string(TALLY_TEST_DATA "/models/") + name + "/config.json").config;
  };
  CHECK(hf_family_for(config_of("llama1")).model_type == std::string("llama"));
  CHECK(hf_family_for(config_of("gpt2")).model_type == std::string("gpt2"));
  CHECK(hf_family_for(config_of("gemma2")).model_type == std::string("gemma2"));
  CHECK(hf_family_for(config_of("qwen3")).model_type == std::string("qwen3"));
  CHECK_THROWS_WITH(hf_config_to_json(config_of("qwen3"), hf_family("llama")),
                    Catch::Contains("llama cannot say qk_norm = \"head\""));
  ModelConfig trained = config_of("deepseek_v3_moe");  // choices of training alone are no obstacle
  trained.router_bias_rate = 1e-3, trained.z_loss = 1e-4;
  CHECK(hf_family_for(trained).model_type == std::string("deepseek_v3"));
  ModelConfig odd = config_of("llama1");
  odd.residual_gain = ResidualGain::vector;
  CHECK_THROWS_WITH(hf_family_for(odd), Catch::Contains("no published family") &&
                                            Catch::Contains("cannot say residual_gain"));
  // One that only the writer of a recorded case has a name for.
  CHECK_THROWS_WITH(hf_family_for(config_of("palm_ref")),
                    Catch::Contains("--family palm_ref") && Catch::Contains("no public library"));
}

TEST_CASE("family: each has a recorded model", "[model]") {
  std::set<std::string> recorded;
  for (const std::string& folder : recorded_models())
    recorded.insert(read_hf_config(folder + "/config.json").family->model_type);
  for (const HfFamily* family : hf_families()) {
    INFO(family->model_type);
    CHECK(recorded.contains(family->model_type));
  }
}

TEST_CASE("family: encoders' entries that would change the computation are refused by name",
          "[config][error]") {
  using Catch::Matchers::Contains;
  CHECK_THAT(refusal("bert", "position_embedding_type", "relative_key"),
             Contains("position_embedding_type = \"relative_key\" (string) is not supported"));
  CHECK_THAT(refusal("bert", "is_decoder", true), Contains("only false is"));
  CHECK_THAT(refusal("bert", "add_cross_attention", true), Contains("\"add_cross_attention\""));
  CHECK_THAT(refusal("bert", "pad_token_id", 101),
             Contains("padding_id must be below vocab = 101"));
  CHECK(refusal("bert", "pad_token_id", 7) == "accepted");
  CHECK_THAT(refusal("t5_v1_0", "feed_forward_proj", "gated-swish"),
             Contains("feed_forward_proj = \"gated-swish\" is not supported; relu, gelu and silu"));
  CHECK_THAT(refusal("t5_v1_0", "num_layers", Json()), Contains("num_layers is missing"));
  CHECK(refusal("t5_v1_0", "num_decoder_layers", Json()) == "accepted");
  CHECK_THAT(refusal("marian", "decoder_vocab_size", 100), Contains("only 101 is"));
  CHECK_THAT(refusal("marian", "normalize_before", true), Contains("only false is"));
  CHECK_THAT(refusal("marian", "share_encoder_decoder_embeddings", false),
             Contains("only true is"));
  CHECK_THAT(refusal("marian", "encoder_attention_heads", 5), Contains("must divide"));
}

TEST_CASE("family: Gemma 4's entries by layer and of experts are read, or refused by name",
          "[config][error]") {
  using Catch::Matchers::Contains;
  const std::string name = "gemma4_moe", path = TALLY_TEST_DATA "/models/" + name + "/config.json";
  const ModelConfig m = read_hf_config(path).config;
  CHECK((m.global_head_dim == 16 && m.global_kv_heads == 1 && m.shared_kv_layers == 0));
  CHECK((m.experts == 6 && m.experts_per_token == 2 && m.dense_branch && m.router_norm));
  const Json wide = {{"head_dim", 16}}, one = {{"head_dim", 16}, {"num_key_value_heads", 1}};
  const auto layers = [&](const Json& value) { return refusal(name, "per_layer_config", value); };
  CHECK(layers({{"1", wide}, {"2", wide}}) == "accepted");
  CHECK_THAT(layers({{"1", one}}),
             Contains("per_layer_config: layer 2 has no window and is missing"));
  CHECK_THAT(layers({{"0", one}, {"1", one}, {"2", one}}),
             Contains("layer 0 has a window, and heads"));
  CHECK_THAT(layers({{"1", one}, {"2", wide}}), Contains("must be alike"));
  CHECK_THAT(layers({{"1", one}, {"2", one}, {"3", one}}), Contains("not among the 3"));
  CHECK_THAT(layers({{"1", {{"hidden_size", 8}}}, {"2", {{"hidden_size", 8}}}}),
             Contains("\"hidden_size\" of a layer is not supported"));
  CHECK_THAT(layers({{"1", 3}, {"2", 3}}), Contains("must hold an object for each layer"));
  CHECK_THAT(layers(Json::array()), Contains("must be an object of layers"));
  CHECK_THAT(refusal(name, "top_k_experts", Json()),
             Contains("enable_moe_block needs num_experts, top_k_experts"));
  CHECK(refusal(name, "enable_moe_block", false) == "accepted");
}

TEST_CASE("family: DeepSeek's entries that would change the computation are refused by name",
          "[config][error]") {
  using Catch::Matchers::Contains;
  CHECK_THAT(refusal("deepseek_v2_dense", "attention_bias", true), Contains("only false is"));
  CHECK_THAT(refusal("deepseek_v2_dense", "qk_head_dim", 15), Contains("it should be 16"));
  CHECK_THAT(refusal("deepseek_v2_dense", "head_dim", 16), Contains("it should be 6"));
  CHECK_THAT(refusal("deepseek_v2_dense", "v_head_dim", 0), Contains("v_head_dim must not be 0"));
  CHECK_THAT(refusal("deepseek_v2_moe", "topk_method", "noaux_tc"),
             Contains("greedy and group_limited_greedy are"));
  CHECK_THAT(refusal("deepseek_v3_moe", "topk_method", "greedy"), Contains("only \"noaux_tc\" is"));
  CHECK_THAT(refusal("deepseek_v3_dense", "num_nextn_predict_layers", 1), Contains("only 0 is"));
  CHECK_THAT(refusal("deepseek_v3_dense", "scoring_func", "softmax"), Contains("sigmoid"));
}

TEST_CASE("family: hybrids' entries that would change the computation are refused by name",
          "[config][error]") {
  using Catch::Matchers::Contains;
  const Json sliding = {"linear_attention", "sliding_attention"}, one = {"linear_attention"},
             full = {"full_attention", "full_attention"};
  for (const char* name : {"qwen3_5", "qwen3_next"}) {
    CHECK_THAT(refusal(name, "layer_types", sliding),
               Contains("layer_types: \"sliding_attention\"") && Contains("linear_attention are"));
    CHECK_THAT(refusal(name, "layer_types", one), Contains("each of the 2 layers"));
    CHECK(refusal(name, "layer_types", full) == "accepted");
    CHECK(refusal(name, "layer_types", Json()) == "accepted");
    CHECK_THAT(refusal(name, "full_attention_interval", 0), Contains("must be above 0"));
    CHECK_THAT(refusal(name, "attention_bias", true), Contains("only false is"));
    CHECK_THAT(refusal(name, "linear_num_value_heads", 3),
               Contains("linear_num_value_heads = 3 must be a multiple of linear_num_key_heads"));
  }
  CHECK_THAT(refusal("qwen3_5", "attn_output_gate", false), Contains("only true is"));
  CHECK_THAT(refusal("qwen3_next", "mlp_only_layers", Json::array({0})), Contains("only [] is"));
  CHECK_THAT(refusal("qwen3_next", "decoder_sparse_step", 0), Contains("must be above 0"));
  for (const int step : {2, 3})
    CHECK(refusal("qwen3_next", "decoder_sparse_step", step) == "accepted");
  CHECK(refusal("qwen3_next", "num_experts", 0) == "accepted");
  CHECK_THAT(refusal("jamba", "attn_layer_offset", 2),
             Contains("attn_layer_offset = 2 must lie between 0 and attn_layer_period - 1 = 1"));
  CHECK_THAT(refusal("jamba", "mamba_proj_bias", true), Contains("only false is"));
  CHECK_THAT(refusal("jamba", "sliding_window", 4), Contains("only null is"));
  CHECK_THAT(refusal("jamba", "mamba_dt_rank", "all"),
             Contains("mamba_dt_rank must be an integer"));
  CHECK(refusal("jamba", "mamba_dt_rank", "auto") == "accepted");
  CHECK(refusal("jamba", "num_experts", 1) == "accepted");
}

TEST_CASE("family: hybrids are exported as they are read", "[config]") {
  const auto again = [](const char* name, const std::function<void(ModelConfig&)>& change) {
    const HfModel model =
        read_hf_config(std::string(TALLY_TEST_DATA "/models/") + name + "/config.json");
    ModelConfig c = model.config;
    change(c);
    c.resolve();
    c.check();
    return test::message_of([&] { hf_config_to_json(c, *model.family); });
  };
  for (const char* name : {"qwen3_5", "qwen3_next"}) {
    CHECK(again(name, [](ModelConfig& c) {
            c.layers = 7, c.mixer_pattern = {"delta", "attention", "delta"};
          }) == "accepted");
    CHECK(again(name, [](ModelConfig& c) {
            c.mixer_pattern = {};
            c.delta_key_heads = c.delta_value_heads = c.delta_key_dim = c.delta_value_dim = 0;
            c.conv_width = 0;
          }) == "accepted");
    // What attention alone has a use for is not there where no layer has it.
    CHECK(again(name, [](ModelConfig& c) {
            const ModelConfig plain;
            c.mixer_pattern = {"delta"}, c.kv_heads = c.heads, c.qk_norm = QKNorm::none;
            c.attention_gate = false, c.position = Position::none;
            c.rope_base = plain.rope_base, c.rope_fraction = 1;
          }) == "accepted");
    CHECK_THAT(again(name,
                     [](ModelConfig& c) {
                       c.mixer_pattern = {"delta", "mamba", "attention"};
                       c.layers = 3;
                     }),
               Catch::Contains("cannot say"));
  }
  CHECK(again("jamba", [](ModelConfig& c) {
          c.layers = 8, c.mixer_pattern = {"mamba", "mamba", "attention", "mamba"};
        }) == "accepted");
  CHECK(again("jamba", [](ModelConfig& c) {
          c.kv_heads = c.heads, c.mixer_pattern = {"mamba", "mamba"};
        }) == "accepted");
  CHECK_THAT(again("jamba", [](ModelConfig& c) { c.mamba_inner = 65; }),
             Catch::Contains("cannot say mamba_inner = 65"));
  CHECK_THAT(again("jamba",
                   [](ModelConfig& c) {
                     c.layers = 6, c.mixer_pattern = {"attention", "mamba", "attention",
                                                      "mamba",     "mamba", "attention"};
                   }),
             Catch::Contains("cannot say mixer_pattern"));
}

namespace {

std::string recorded(const char* name) { return std::string(TALLY_TEST_DATA "/models/") + name; }

/// The recorded Qwen3.5 as it is published: the text model of one that sees images.
void write_inside(const std::string& to, const std::function<void(Json&)>& change) {
  const std::string from = recorded("qwen3_5");
  Json outer = {{"model_type", "qwen3_5"},
                {"text_config", parse_json(read_file(from + "/config.json"), "config")},
                {"vision_config", {{"depth", 1}}},
                {"image_token_id", 90}};
  change(outer);
  const SafetensorFile file(from + "/model.safetensors");
  std::vector<StoredTensor> tensors;
  for (StoredTensor t : file.tensors()) {
    if (t.name.starts_with("model.")) t.name.insert(6, "language_model.");
    tensors.push_back(t);
  }
  for (const char* beside : {"model.visual.pos_embed.weight", "mtp.norm.weight"}) {
    StoredTensor& t = tensors.emplace_back(tensors[0]);
    t.name = beside;
  }
  fs::create_directory(to);
  write_safetensors(to + "/model.safetensors", tensors, {});
  write_file_atomic(to + "/config.json", outer.dump());
}

}  // namespace

TEST_CASE("family: the text model inside one that sees images is read", "[model]") {
  using Catch::Matchers::Contains;
  const test::TemporaryFolder folder;
  const auto untied_outside = [](Json& c) {
    c["text_config"].erase("tie_word_embeddings");
    c["tie_word_embeddings"] = false;
  };
  write_inside(folder / "out", untied_outside);
  const Checkpoint inside = Checkpoint::hugging_face(folder / "out"),
                   alone = Checkpoint::hugging_face(recorded("qwen3_5"));
  CHECK(inside.config() == alone.config());
  for (const WeightSource& source : alone.sources()) {
    INFO(source.parameter.name);
    std::vector<float> a(static_cast<size_t>(source.parameter.numel())), b = a;
    alone.read(source.parameter.name, a), inside.read(source.parameter.name, b);
    CHECK(a == b);
  }
  const auto refused = [&](const char* to, const std::function<void(Json&)>& change) {
    write_inside(folder / to, change);
    return test::message_of([&] { Checkpoint::hugging_face(folder / to); });
  };
  CHECK_THAT(refused("a", [](Json& c) { c["text_config"] = 1; }),
             Contains("text_config must be an object"));
  CHECK_THAT(refused("b", [](Json& c) { c["text_config"]["model_type"] = "llama"; }),
             Contains("\"llama\"") && Contains("only \"qwen3_5_text\" is"));
  CHECK_THAT(refused("c", [](Json& c) { c["text_config"]["wide"] = 2; }),
             Contains("text_config: the entry \"wide\""));
}
