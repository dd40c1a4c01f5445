// Published checkpoints onto our parameters, and our own back.
#include "models/checkpoint.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "models/hf_names.h"
#include "models/parameters.h"
#include "tests/message_of.h"

using Catch::Matchers::Contains;
using namespace tally;
using test::message_of;
namespace fs = std::filesystem;

namespace {

const std::string kData = TALLY_TEST_DATA "/", kModels = kData + "models/";

std::vector<float> stored(const SafetensorFile& file, const std::string& name) {
  std::vector<float> out(static_cast<size_t>(file.at(name).numel()));
  read_values(file.at(name), out);
  return out;
}

std::vector<float> ours(const Checkpoint& checkpoint, const std::string& name) {
  for (const WeightSource& source : checkpoint.sources()) {
    if (source.parameter.name != name) continue;
    std::vector<float> out(static_cast<size_t>(source.parameter.numel()));
    checkpoint.read(name, out);
    return out;
  }
  throw Error(name);
}

std::string hf_error(const std::string& change) {
  std::string text =
      R"({"model_type":"llama","vocab_size":16,"hidden_size":8,"intermediate_size":16,
      "num_hidden_layers":1,"num_attention_heads":4)" +
      change + "}";
  return message_of([&] { hf_config_from_json(text, "config.json"); });
}

/// A folder with ck_tied_no_head's weights and one tensor more.
class TiedFolder {
 public:
  explicit TiedFolder(const std::string& extra, float change) {
    std::string name = (fs::temp_directory_path() / "tally-tied-test-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
    const std::string source = kData + "hostile/ck_tied_no_head/";
    fs::copy_file(source + "config.json", path + "/config.json");
    const SafetensorFile file(source + "model.safetensors");
    std::vector<StoredTensor> tensors = file.tensors();
    std::vector<float> head = stored(file, "model.embed_tokens.weight");
    head[3] += change;
    tensors.push_back({extra, StoredType::f32, file.at("model.embed_tokens.weight").shape,
                       std::as_bytes(std::span(head))});
    write_safetensors(path + "/model.safetensors", tensors);
  }
  ~TiedFolder() { fs::remove_all(path); }
  TiedFolder(const TiedFolder&) = delete;
  TiedFolder& operator=(const TiedFolder&) = delete;
  std::string path;
};

}  // namespace

TEST_CASE("checkpoint: GPT-2's matrices are turned, its fused columns are our rows", "[file]") {
  const Checkpoint checkpoint = Checkpoint::hugging_face(kModels + "gpt2");
  const ModelConfig& c = checkpoint.config();
  CHECK(c.norm == Norm::layer_norm);
  CHECK(c.activation == Activation::gelu_tanh);
  CHECK(c.tied_head);
  CHECK(c.norm_eps == 0.002);
  CHECK(parameter_count(c) == 23432);

  const SafetensorFile file(kModels + "gpt2/model.safetensors");
  const auto conv = stored(file, "transformer.h.1.attn.c_attn.weight");  // (36, 108)
  const auto qkv = ours(checkpoint, "blocks.1.attention.qkv.weight");    // (108, 36)
  for (size_t out = 0; out < 108; ++out) {
    for (size_t in = 0; in < 36; ++in) REQUIRE(qkv[out * 36 + in] == conv[in * 108 + out]);
  }
  CHECK(ours(checkpoint, "blocks.1.attention.qkv.bias") ==
        stored(file, "transformer.h.1.attn.c_attn.bias"));
  CHECK(ours(checkpoint, "position.weight") == stored(file, "transformer.wpe.weight"));
  CHECK(ours(checkpoint, "final_norm.bias") == stored(file, "transformer.ln_f.bias"));
}

TEST_CASE("checkpoint: LLaMA's projections lie one after the other in our fused ones", "[file]") {
  const Checkpoint checkpoint = Checkpoint::hugging_face(kModels + "llama1");
  const SafetensorFile file(kModels + "llama1/model.safetensors");
  std::vector<float> qkv, gate_up;
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}) {
    const auto part = stored(file, std::string("model.layers.0.") + name + ".weight");
    qkv.insert(qkv.end(), part.begin(), part.end());
  }
  for (const char* name : {"mlp.gate_proj", "mlp.up_proj"}) {
    const auto part = stored(file, std::string("model.layers.0.") + name + ".weight");
    gate_up.insert(gate_up.end(), part.begin(), part.end());
  }
  CHECK(ours(checkpoint, "blocks.0.attention.qkv.weight") == qkv);
  CHECK(ours(checkpoint, "blocks.0.mlp.gate_up.weight") == gate_up);
  CHECK(ours(checkpoint, "head.weight") == stored(file, "lm_head.weight"));
}

TEST_CASE("checkpoint: separate and fused forms name the same rows", "[file]") {
  for (const std::string folder : {"gpt2", "llama1"}) {
    const bool fused = folder == "gpt2";
    const HfFamily& family = hf_family(fused ? "gpt2" : "llama");
    ModelConfig c = read_hf_config(kModels + folder + "/config.json").config;
    c.fused_qkv = false;
    const auto sources = hf_weights(c, family, family.prefix);
    for (const WeightSource& source : sources) {
      if (source.parameter.name != "blocks.0.attention.k.weight") continue;
      REQUIRE(source.parts.size() == 1);
      const WeightPart& part = source.parts[0];
      CHECK(part.from == (fused ? 36 : 0));
      CHECK(part.to == 0);
      CHECK(part.rows == 36);
      CHECK(part.transposed == fused);
    }
    for (const WeightSource& source : sources) {
      int64_t rows = 0;
      for (const WeightPart& part : source.parts) {
        CHECK(part.to == rows);
        rows += part.rows;
      }
      CHECK(rows == source.parameter.shape[0]);
    }
  }
}

TEST_CASE("checkpoint: a tied head may be stored twice, not differently", "[file][error][F50]") {
  const TiedFolder same("lm_head.weight", 0), other("lm_head.weight", 1), extra("what.is.this", 0);
  CHECK(message_of([&] { Checkpoint::hugging_face(same.path); }) == "accepted");
  CHECK_THAT(message_of([&] { Checkpoint::hugging_face(other.path); }),
             Contains("lm_head.weight differs from model.embed_tokens.weight"));
  CHECK_THAT(message_of([&] { Checkpoint::hugging_face(extra.path); }),
             Contains("what.is.this has no place"));
}

TEST_CASE("checkpoint: buffers that hold no weights are passed over", "[file]") {
  const TiedFolder folder("model.layers.0.self_attn.rotary_emb.inv_freq", 0);
  CHECK(message_of([&] { Checkpoint::hugging_face(folder.path); }) == "accepted");
  CHECK(is_hf_buffer(hf_family("gpt2"), "h.0.attn.bias"));
  CHECK_FALSE(is_hf_buffer(hf_family("gpt2"), "h.0.attn.c_attn.bias"));
}

TEST_CASE("checkpoint: our own weights are read back under our names", "[file][error]") {
  const Checkpoint source = Checkpoint::hugging_face(kModels + "llama1");
  std::vector<std::vector<float>> data;
  std::vector<StoredTensor> tensors;
  for (const WeightSource& s : source.sources()) {
    data.push_back(ours(source, s.parameter.name));
    tensors.push_back({s.parameter.name, StoredType::f32, s.parameter.shape,
                       std::as_bytes(std::span(data.back()))});
  }
  std::string folder = (fs::temp_directory_path() / "tally-own-test-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/model.safetensors";
  write_safetensors(path, tensors);
  const Checkpoint own = Checkpoint::own(source.config(), path);
  for (size_t i = 0; i < tensors.size(); ++i) CHECK(ours(own, tensors[i].name) == data[i]);

  std::vector<float> small(1);
  CHECK_THAT(message_of([&] { own.read("final_norm.weight", small); }), Contains("has 36 values"));
  CHECK_THAT(message_of([&] { own.read("none", small); }), Contains("no parameter none"));
  tensors.pop_back();
  write_safetensors(path, tensors);
  CHECK_THAT(message_of([&] { Checkpoint::own(source.config(), path); }),
             Contains("head.weight is missing"));
  fs::remove_all(folder);
}

TEST_CASE("hf_config: the rotary base is found in every spelling", "[config][F25]") {
  const auto base = [](const std::string& change) {
    const std::string text =
        R"({"model_type":"llama","vocab_size":16,"hidden_size":8,"intermediate_size":16,
        "num_hidden_layers":1,"num_attention_heads":4)" +
        change + "}";
    return hf_config_from_json(text, "config.json").config.rope_base;
  };
  CHECK(base("") == 10000);
  CHECK(base(R"(,"rope_theta":5e5)") == 5e5);
  CHECK(base(R"(,"rope_theta":500000,"rope_scaling":null)") == 5e5);
  CHECK(base(R"(,"rope_parameters":{"rope_theta":5e5})") == 5e5);
  CHECK(base(R"(,"rope_parameters":{"rope_type":"default","rope_theta":5e5},"rope_theta":5e5)") ==
        5e5);
  CHECK(base(R"(,"rope_theta":5e5,"rope_scaling":{"type":"default"})") == 5e5);
}

TEST_CASE("hf_config: what would change the computation is refused by name",
          "[config][error][F12][F25][F27]") {
  CHECK(hf_error("") == "accepted");
  CHECK_THAT(hf_error(R"(,"rope_scaling":{"type":"linaer","factor":2.0})"),
             Contains("did you mean \"linear\"?"));
  CHECK_THAT(hf_error(R"(,"rope_scaling":{"type":"linear"})"), Contains("factor is missing"));
  CHECK_THAT(hf_error(R"(,"rope_scaling":{"type":"linear","factor":2.0,"beta_fast":32})"),
             Contains("\"beta_fast\"") && Contains("not supported for the type linear"));
  CHECK_THAT(hf_error(R"(,"rope_scaling":{"rope_type":"llama3","factor":8.0})"),
             Contains("rope_scaling") && Contains("llama3"));
  CHECK_THAT(hf_error(R"(,"rope_parameters":{"rope_type":"yarn"})"), Contains("yarn"));
  CHECK_THAT(hf_error(R"(,"rope_parameters":{"factor":2.0})"), Contains("factor"));
  CHECK_THAT(hf_error(R"(,"rope_parameters":{"full_attention":{"rope_theta":1e6}})"),
             Contains("full_attention"));
  CHECK_THAT(hf_error(R"(,"rope_parameters":{"rope_theta":5e5},"rope_theta":1e4)"),
             Contains("which one holds?"));
  CHECK_THAT(hf_error(R"(,"rope_parameters":5)"), Contains("must be an object"));
  CHECK_THAT(hf_error(R"(,"partial_rotary_factor":0.5)"), Contains("partial_rotary_factor"));
  CHECK_THAT(hf_error(R"(,"sliding_window":4096)"), Contains("\"sliding_window\""));
  CHECK_THAT(hf_error(R"(,"quantization_config":{"bits":4})"), Contains("quantization_config"));
  CHECK_THAT(hf_error(R"(,"num_key_value_head":2)"),
             Contains("did you mean \"num_key_value_heads\"?"));
  CHECK_THAT(hf_error(R"(,"num_key_value_heads":3)"),
             Contains("num_attention_heads = 4 must be a multiple of num_key_value_heads = 3"));
  CHECK_THAT(hf_error(R"(,"num_key_value_heads":0)"), Contains("num_key_value_heads"));
  CHECK_THAT(hf_error(R"(,"head_dim":0)"), Contains("head_dim must not be 0"));
  CHECK_THAT(hf_error(R"(,"tie_word_embeddings":"yes")"), Contains("tie_word_embeddings"));
  CHECK_THAT(hf_error(R"(,"hidden_act":"geluu")"), Contains("did you mean \"gelu\"?"));
  CHECK(hf_error(R"(,"sliding_window":null,"use_sliding_window":false,"_x":1)") == "accepted");
  CHECK_THAT(message_of([] { hf_config_from_json(R"({"model_type":"gpt2"})", "config.json"); }),
             Contains("config.json: n_layer is missing"));
  CHECK_THAT(message_of([] { hf_config_from_json("{}", "config.json"); }), Contains("model_type"));
}

TEST_CASE("hf_config: scaled rotary positions are read with all that they need", "[config][F25]") {
  const auto read = [](const std::string& rope) {
    const std::string text =
        R"({"model_type":"llama","vocab_size":16,"hidden_size":32,"intermediate_size":16,
        "num_hidden_layers":1,"num_attention_heads":4,"max_position_embeddings":64,)" +
        rope + "}";
    return hf_config_from_json(text, "config.json").config;
  };
  const ModelConfig llama3 = read(
      R"("rope_parameters":{"rope_type":"llama3","rope_theta":5e5,"factor":8.0,
      "low_freq_factor":1.5,"high_freq_factor":3.0,"original_max_position_embeddings":16})");
  CHECK(llama3.rope_scaling == RopeScale::llama3);
  CHECK(llama3.rope_base == 5e5);
  CHECK(llama3.rope_factor == 8);
  CHECK(llama3.rope_low_frequency == 1.5);
  CHECK(llama3.rope_high_frequency == 3);
  CHECK(llama3.rope_original_context == 16);
  CHECK(llama3.context == 64);
  const ModelConfig linear =
      read(R"("rope_theta":1e4,"rope_scaling":{"type":"linear","factor":2.5})");
  CHECK(linear.rope_scaling == RopeScale::linear);
  CHECK(linear.rope_factor == 2.5);
  const ModelConfig dynamic = read(R"("rope_scaling":{"type":"dynamic","factor":3.0})");
  CHECK(dynamic.rope_scaling == RopeScale::dynamic_ntk);
  CHECK(dynamic.rope_original_context == 64);
  CHECK(dynamic.context == 192);
  const ModelConfig yarn = read(
      R"("rope_parameters":{"rope_type":"yarn","factor":4.0,"beta_fast":16,"truncate":false})");
  CHECK(yarn.rope_scaling == RopeScale::yarn);
  CHECK(yarn.rope_original_context == 64);
  CHECK(yarn.rope_beta_fast == 16);
  CHECK_FALSE(yarn.rope_truncate);
  const ModelConfig longrope = read(
      R"("rope_parameters":{"rope_type":"longrope","original_max_position_embeddings":16,
      "short_factor":[1,1,1,1],"long_factor":[1,2,3,4]})");
  CHECK(longrope.rope_scaling == RopeScale::longrope);
  CHECK(longrope.rope_factor == 4);
  CHECK(longrope.rope_long_factors == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("hf_config: every name of GELU means its own form", "[config][F12]") {
  const auto activation = [](const std::string& name) {
    const std::string text =
        R"({"model_type":"llama","vocab_size":16,"hidden_size":8,"intermediate_size":16,
        "num_hidden_layers":1,"num_attention_heads":4,"hidden_act":")" +
        name + "\"}";
    return hf_config_from_json(text, "config.json").config.activation;
  };
  CHECK(activation("gelu") == Activation::gelu);
  for (const char* name : {"gelu_new", "gelu_fast", "gelu_pytorch_tanh"})
    CHECK(activation(name) == Activation::gelu_tanh);
  CHECK_THAT(message_of([&] { activation("quick_gelu"); }), Contains("quick_gelu"));
}

TEST_CASE("hf_config: GPT-2's variants of the scores are refused by name", "[config][error]") {
  for (const char* change :
       {"\"scale_attn_weights\":false", "\"reorder_and_upcast_attn\":true",
        "\"scale_attn_by_inverse_layer_idx\":true", "\"add_cross_attention\":true"}) {
    const std::string text = R"({"model_type":"gpt2","n_layer":1,"n_embd":8,"n_head":2,
        "vocab_size":16,"n_positions":4,)" +
                             std::string(change) + "}";
    const std::string key = std::string(change).substr(1, std::string(change).find(':') - 2);
    CHECK_THAT(message_of([&] { hf_config_from_json(text, "config.json"); }), Contains(key));
  }
}

TEST_CASE("hf_config: biases of LLaMA's relatives reach every projection", "[config]") {
  const std::string text =
      R"({"model_type":"llama","vocab_size":16,"hidden_size":8,"intermediate_size":16,
      "num_hidden_layers":1,"num_attention_heads":4,"attention_bias":true,"mlp_bias":true})";
  const ModelConfig c = hf_config_from_json(text, "config.json").config;
  CHECK((c.qkv_bias && c.attention_output_bias && c.mlp_bias));
  CHECK_FALSE(c.head_bias);
}
