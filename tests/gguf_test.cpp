// GGUF files: the container, quantised types, configurations and weights.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "data/file.h"
#include "data/gguf.h"
#include "models/checkpoint.h"
#include "models/config_json.h"
#include "models/gguf_config.h"
#include "models/target.h"
#include "tests/data_helpers.h"
#include "tests/gguf_convert.h"

using namespace tally;
using Catch::Matchers::Contains;
using test::converted;
using test::floats_of;
using test::GgufBytes;
using test::message_of;
using test::TemporaryFolder;

namespace {

const std::string kTypes = TALLY_TEST_DATA
    "/gguf/"
    "types.gguf";

std::string fixture(const std::string& name) {
  return std::string(TALLY_TEST_DATA) + "/models/" + name;
}

/// The message on reading a file of these bytes as a model.
std::string refused(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file_atomic(folder / "x.gguf", bytes);
  return message_of([&] { Checkpoint::gguf(folder / "x.gguf"); });
}

/// A file of one tensor after `spoil`.
std::string parse_refusal(const std::function<void(std::string&)>& spoil) {
  GgufBytes file;
  file.text("general.architecture", "llama").tensor("a", {2, 4}, std::vector<float>(8));
  std::string bytes = file.bytes();
  spoil(bytes);
  return message_of(
      [&] { gguf_tensors(parse_gguf(std::as_bytes(std::span(bytes)), "x.gguf"), "x.gguf"); });
}

template <class T>
void poke(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

}  // namespace

TEST_CASE("gguf: every element type gives the values that ggml's own reader gave") {
  const GgufFile file(kTypes);
  int types = 0;
  for (const StoredTensor& tensor : file.tensors()) {
    const StoredTensor* values = file.find(tensor.name + ".values");
    if (!values) continue;
    ++types;
    INFO(tensor.name);
    CHECK(floats_of(tensor) == floats_of(*values));
    std::vector<double> wide(static_cast<size_t>(tensor.numel()));
    read_values(tensor, std::span<double>(wide));
    CHECK(std::vector<float>(wide.begin(), wide.end()) == floats_of(*values));
  }
  CHECK(types == 11);
}

TEST_CASE("gguf: metadata come as they were written") {
  const GgufFile file(kTypes);
  const Gguf& content = file.content();
  CHECK(content.version == 3);
  CHECK(std::get<int64_t>(*content.find("llama.block_count")) == 7);
  CHECK(std::get<double>(*content.find("llama.attention.layer_norm_rms_epsilon")) == 1e-5);
  CHECK(std::get<bool>(*content.find("flag")));
  CHECK(std::get<std::vector<std::string_view>>(*content.find("list.texts"))[1] == "b c");
  CHECK(std::get<std::vector<int64_t>>(*content.find("list.integers"))[1] == -2);
  CHECK(std::get<std::vector<double>>(*content.find("list.numbers"))[1] == 1.25);
  CHECK(content.find("nothing") == nullptr);
}

TEST_CASE("gguf: a converted model has the configuration and weights of the published one") {
  const std::vector<std::pair<std::string, std::string>> models = {
      {"llama1", "llama"}, {"llama2_gqa_linear", "llama"},
      {"smollm", "llama"}, {"gpt2", "gpt2"},
      {"gemma1", "gemma"}, {"gemma2", "gemma2"},
      {"qwen3", "qwen3"},  {"mixtral", "llama"}};
  for (const auto& [name, family] : models) {
    INFO(name);
    const TemporaryFolder folder;
    write_file_atomic(folder / "model.gguf", converted(fixture(name), family).bytes());
    const Checkpoint theirs = Checkpoint::hugging_face(fixture(name));
    const Checkpoint ours = Checkpoint::gguf(folder / "model.gguf");
    ModelConfig wanted = theirs.config();
    const bool gemma = family.starts_with("gemma");
    if (gemma) wanted.norm_gain = NormGain::gamma;  // the 1 is in the file
    wanted.init_std = ours.config().init_std;       // how training began is not
    if (name == "qwen3") {                          // its YaRN is left out
      wanted.rope_scaling = RopeScale::none;
      wanted.rope_factor = 1;
      wanted.rope_original_context = 0;
      wanted.rope_beta_fast = 32;
      wanted.rope_beta_slow = 1;
    }
    if (name == "gemma2") wanted.attention_scale = 0;  // of the 9B model: by head_dim
    wanted.attention_pattern = ours.config().attention_pattern;
    CHECK(to_json_text({ours.config(), {}}) == to_json_text({wanted, {}}));
    for (const WeightSource& source : theirs.sources()) {
      const std::string& parameter = source.parameter.name;
      std::vector<float> a(size_t(source.parameter.numel())), b(a.size());
      theirs.read(parameter, std::span<float>(a));
      ours.read(parameter, std::span<float>(b));
      if (gemma && parameter.find("norm") != std::string::npos)
        for (float& v : a) v += 1;
      INFO(parameter);
      CHECK(a == b);
    }
  }
}

TEST_CASE("gguf: a head that repeats the embedding is tied, another is a head") {
  const GgufBytes plain = converted(fixture("smollm"), "llama");
  const WeightFiles weights(fixture("smollm"));
  const StoredTensor& table = *weights.find("model.embed_tokens.weight");
  std::vector<float> values = floats_of(table);
  const TemporaryFolder folder;
  write_file_atomic(folder / "a.gguf",
                    GgufBytes(plain).tensor("output.weight", table.shape, values).bytes());
  CHECK(Checkpoint::gguf(folder / "a.gguf").config().tied_head);
  values[0] += 1;
  write_file_atomic(folder / "b.gguf",
                    GgufBytes(plain).tensor("output.weight", table.shape, values).bytes());
  CHECK_FALSE(Checkpoint::gguf(folder / "b.gguf").config().tied_head);
}

TEST_CASE("gguf: factors of frequencies become a scaling with these factors") {
  const ModelConfig m = Checkpoint::hugging_face(fixture("llama1")).config();
  std::vector<float> factors(size_t(m.head_dim / 2), 1);
  factors.back() = 8;
  GgufBytes file = converted(fixture("llama1"), "llama");
  file.tensor("rope_freqs.weight", {m.head_dim / 2}, factors);
  const TemporaryFolder folder;
  write_file_atomic(folder / "x.gguf", file.bytes());
  const ModelConfig read = Checkpoint::gguf(folder / "x.gguf").config();
  CHECK(read.rope_scaling == RopeScale::longrope);
  CHECK(read.rope_long_factors == std::vector<double>(factors.begin(), factors.end()));
  CHECK(read.rope_short_factors == read.rope_long_factors);
  CHECK(read.rope_attention_factor == 1);
}

TEST_CASE("gguf: a file is a target under its own name") {
  const TemporaryFolder folder;
  write_file_atomic(folder / "tiny.gguf", converted(fixture("llama1"), "llama").bytes());
  const Target target = resolve_target(folder / "tiny.gguf");
  CHECK(target.kind == TargetKind::gguf);
  CHECK(target.folder == folder / "tiny.gguf");
  CHECK(target.config.model.name == "tiny");
}

TEST_CASE("gguf: models that are not read are refused by name") {
  const auto with = [](const std::function<void(GgufBytes&)>& add) {
    GgufBytes file = converted(fixture("llama1"), "llama");
    add(file);
    return refused(file.bytes());
  };
  CHECK(with([](GgufBytes&) {}) == "accepted");
  CHECK_THAT(with([](GgufBytes& f) {
               f.number("llama.expert_count", 8).number("llama.expert_used_count", 2);
             }),
             Contains("blk.0.ffn_gate_inp.weight"));
  CHECK_THAT(with([](GgufBytes& f) { f.number("llama.expert_shared_count", 1); }),
             Contains("expert_shared_count") && Contains("not supported for llama"));
  CHECK_THAT(with([](GgufBytes& f) { f.number("llama.logit_scale", 2); }),
             Contains("logit_scale") && Contains("not supported for llama"));
  CHECK_THAT(with([](GgufBytes& f) { f.integers("llama.list", std::vector<int32_t>(5000)); }),
             Contains("llama.list is a list of 5000 elements"));
  CHECK_THAT(with([](GgufBytes& f) { f.text("general.type", "adapter"); }), Contains("adapter"));
  CHECK_THAT(with([](GgufBytes& f) { f.number("llama.vocab_size", 5); }),
             Contains("vocab_size is 5"));
  CHECK_THAT(with([](GgufBytes& f) { f.tensor("blk.9.attn_q.weight", {1}, {1}); }),
             Contains("blk.9.attn_q.weight has no place"));
  CHECK_THAT(with([](GgufBytes& f) { f.raw_tensor("i", {4}, 26, std::string(16, '\0')); }),
             Contains("tensor i has no place"));
  GgufBytes mamba;
  mamba.text("general.architecture", "mamba").tensor("a", {1}, {1});
  CHECK_THAT(refused(mamba.bytes()), Contains("\"mamba\" is not supported"));
  GgufBytes bare;
  bare.text("general.architecture", "llama")
      .tensor("token_embd.weight", {4, 8}, std::vector<float>(32));
  CHECK_THAT(refused(bare.bytes()), Contains("block_count is missing"));
}

TEST_CASE("gguf: a mixture of Qwen3's block has the matrices of its experts") {
  // Values that say where they stand: layer, kind, expert, row and column.
  GgufBytes file;
  file.text("general.architecture", "qwen3moe");
  const std::string q = "qwen3moe.";
  file.number(q + "block_count", 1).number(q + "context_length", 8);
  file.number(q + "embedding_length", 8).number(q + "feed_forward_length", 5);
  file.number(q + "attention.head_count", 2).number(q + "attention.head_count_kv", 1);
  file.number(q + "attention.key_length", 4).number(q + "attention.value_length", 4);
  file.number(q + "expert_count", 3).number(q + "expert_used_count", 2);
  file.number(q + "expert_feed_forward_length", 2);
  file.real(q + "attention.layer_norm_rms_epsilon", 1e-6F);
  float next = 0;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape) {
    int64_t n = 1;
    for (const int64_t size : shape) n *= size;
    std::vector<float> values(static_cast<size_t>(n));
    for (float& v : values) v = next++;
    file.tensor(name, shape, values);
  };
  add("blk.0.ffn_gate_exps.weight", {3, 2, 8});  // 0 .. 47
  add("blk.0.ffn_up_exps.weight", {3, 2, 8});    // 48 .. 95
  add("blk.0.ffn_down_exps.weight", {3, 8, 2});  // 96 .. 143
  add("blk.0.ffn_gate_inp.weight", {3, 8});      // 144 .. 167
  add("token_embd.weight", {7, 8});
  add("output_norm.weight", {8});
  for (const char* norm : {"attn_norm", "ffn_norm"})
    add(std::string("blk.0.") + norm + ".weight", {8});
  for (const char* norm : {"attn_q_norm", "attn_k_norm"})
    add(std::string("blk.0.") + norm + ".weight", {4});
  for (const char* m : {"attn_q", "attn_output"})
    add(std::string("blk.0.") + m + ".weight", {8, 8});
  for (const char* m : {"attn_k", "attn_v"}) add(std::string("blk.0.") + m + ".weight", {4, 8});
  const TemporaryFolder folder;
  write_file_atomic(folder / "x.gguf", file.bytes());
  const Checkpoint model = Checkpoint::gguf(folder / "x.gguf");
  CHECK(model.config().experts == 3);
  CHECK(model.config().experts_per_token == 2);
  CHECK(model.config().expert_d_ff == 2);
  CHECK(model.config().router_renormalise);
  std::vector<float> wide(3 * 4 * 8), down(3 * 8 * 2), router(3 * 8);
  model.read("blocks.0.mlp.experts.gate_up.weight", std::span<float>(wide));
  CHECK(wide[0] == 0);
  CHECK(wide[2 * 8] == 48);            // up of the first expert behind its gate
  CHECK(wide[4 * 8] == 16);            // gate of the second expert
  CHECK(wide[(2 * 4 + 3) * 8] == 88);  // last row of the last expert's up
  model.read("blocks.0.mlp.experts.down.weight", std::span<float>(down));
  CHECK(down[8 * 2] == 112);
  model.read("blocks.0.mlp.router.weight", std::span<float>(router));
  CHECK(router[8] == 152);
}

TEST_CASE("gguf: a model in parts is read as the model in one file") {
  const TemporaryFolder folder;
  const auto part = [&](int number) {
    return folder / ("model-0000" + std::to_string(number) + "-of-00003.gguf");
  };
  const auto numbered = [](GgufBytes& file, int number) -> GgufBytes& {
    return file.number("split.no", uint32_t(number)).number("split.count", 3);
  };
  write_file_atomic(folder / "whole.gguf", converted(fixture("llama1"), "llama").bytes());
  const GgufFile whole(folder / "whole.gguf");
  GgufBytes files[3];
  test::put_config(files[0], "llama", Checkpoint::hugging_face(fixture("llama1")).config());
  int at = 0;
  for (const StoredTensor& t : whole.tensors())
    files[at++ % 3].tensor(t.name, t.shape, floats_of(t));
  files[0].number("split.tensors.count", uint32_t(at));
  for (int i = 0; i < 3; ++i) write_file_atomic(part(i + 1), numbered(files[i], i).bytes());
  const Checkpoint one = Checkpoint::gguf(folder / "whole.gguf"), three = Checkpoint::gguf(part(1));
  CHECK(one.config().layers == three.config().layers);
  CHECK(one.sources().size() == three.sources().size());
  for (const WeightSource& source : one.sources()) {
    std::vector<float> a(size_t(source.parameter.numel())), b(a.size());
    one.read(source.parameter.name, std::span<float>(a));
    three.read(source.parameter.name, std::span<float>(b));
    INFO(source.parameter.name);
    CHECK(a == b);
  }

  const auto refusal = [&](const std::string& path) {
    return message_of([&] { Checkpoint::gguf(path); });
  };
  CHECK_THAT(refusal(part(2)),
             Contains("is part 2 of 3; name the first") && Contains("-00001-of-00003.gguf"));
  write_file_atomic(folder / "renamed.gguf", read_file(part(1)));
  CHECK_THAT(refusal(folder / "renamed.gguf"), Contains("its name must end in"));
  const std::string last = read_file(part(3));
  write_file_atomic(part(3), read_file(part(2)));
  CHECK_THAT(refusal(part(1)), Contains("does not say that it is part 3 of 3"));
  std::filesystem::remove(part(3));
  CHECK_THAT(refusal(part(1)), Contains("part 3 of 3") && Contains("is missing"));
  GgufBytes again;
  again.tensor(whole.tensors()[0].name, {1}, {1});
  write_file_atomic(part(3), numbered(again, 2).bytes());
  CHECK_THAT(refusal(part(1)), Contains("split.tensors.count is"));
  GgufBytes first;
  first.tensor("a", {1}, {1}).number("split.no", 0).number("split.count", 3);
  GgufBytes twice[2];
  for (int i = 0; i < 2; ++i) twice[i].tensor("a", {1}, {1});
  write_file_atomic(part(1), first.bytes());
  for (int i = 0; i < 2; ++i) write_file_atomic(part(i + 2), numbered(twice[i], i + 1).bytes());
  CHECK_THAT(refusal(part(1)), Contains("two of its parts hold the tensor \"a\""));
}

TEST_CASE("gguf: hostile files are refused by name, with no memory taken on their word") {
  // Header: magic 0, version 4, tensors 8, entries 16; the entry: length 24, key 32, kind 52,
  // length 56, text 64; the tensor: length 69, name 77, dims 78, sizes 82 and 90, type 98,
  // offset 102.
  CHECK(parse_refusal([](std::string&) {}) == "accepted");
  const auto set = [](auto value, size_t at) {
    return parse_refusal([=](std::string& b) { poke(b, at, value); });
  };
  CHECK_THAT(set('X', 0), Contains("begins with the letters GGUF"));
  CHECK_THAT(set(uint32_t{1}, 4), Contains("version is 1"));
  CHECK_THAT(set(uint32_t{9}, 4), Contains("version is 9"));
  CHECK_THAT(set(uint32_t{0x03000000}, 4), Contains("big-endian"));
  CHECK_THAT(set(UINT64_MAX, 8), Contains("18446744073709551615 tensors"));
  CHECK_THAT(set(uint64_t{60000}, 8), Contains("more than the file has room for"));
  CHECK_THAT(set(UINT64_MAX, 16), Contains("entries of metadata"));
  CHECK_THAT(set(UINT64_MAX, 24), Contains("the key of an entry is said to have"));
  CHECK_THAT(set(uint32_t{77}, 52), Contains("unknown type 77"));
  CHECK_THAT(set(UINT64_MAX - 3, 56), Contains("general.architecture") && Contains("bytes"));
  CHECK_THAT(set(UINT64_MAX, 69), Contains("the name of a tensor is said to have"));
  CHECK_THAT(set('\xFF', 77), Contains("the name of a tensor must be a text"));
  CHECK_THAT(set(uint32_t{5}, 78), Contains("has 5 dimensions"));
  CHECK_THAT(set(uint64_t{1} << 62, 82), Contains("tensor \"a\"") && Contains("be counted"));
  CHECK_THAT(set(uint64_t{0}, 82), Contains("sizes are above 0"));
  CHECK_THAT(set(uint64_t{1} << 40, 82), Contains("needs 8796093022208 bytes"));
  CHECK_THAT(set(uint32_t{10}, 98), Contains("Q2_K, which is not read"));
  CHECK_THAT(set(uint32_t{5}, 98), Contains("unknown element type 5"));
  CHECK_THAT(set(uint32_t{2}, 98), Contains("in blocks of 32"));
  CHECK_THAT(set(uint64_t{8}, 102), Contains("no multiple of the alignment"));
  CHECK_THAT(set(uint64_t{1} << 60, 102), Contains("cut short"));
  CHECK_THAT(parse_refusal([](std::string& b) { b.append(64, '\0'); }),
             Contains("belong to no tensor"));
  for (size_t size = 0; size < 160; ++size) {
    const std::string message = parse_refusal([&](std::string& b) { b.resize(size); });
    INFO(size);
    CHECK_THAT(message, Contains("x.gguf"));
  }
}

TEST_CASE("gguf: entries and lists that do not hold together are refused by name") {
  const auto parsed = [](const GgufBytes& file) {
    const std::string bytes = file.bytes();
    return message_of([&] { parse_gguf(std::as_bytes(std::span(bytes)), "x.gguf"); });
  };
  CHECK_THAT(parsed(GgufBytes().number("a", 1).number("a", 2)), Contains("\"a\" is there twice"));
  CHECK_THAT(parsed(GgufBytes().tensor("t", {1}, {1}).tensor("t", {1}, {1})),
             Contains("tensor \"t\" is there twice"));
  CHECK_THAT(parsed(GgufBytes().number("general.alignment", 48)), Contains("power of two"));
  CHECK_THAT(parsed(GgufBytes().number("general.alignment", 0)), Contains("power of two"));
  std::string bytes = GgufBytes().integers("l", {1, 2}).bytes();
  const auto again = [&](uint32_t kind, uint64_t count) {
    poke(bytes, 37, kind), poke(bytes, 41, count);
    return message_of([&] { parse_gguf(std::as_bytes(std::span(bytes)), "x.gguf"); });
  };
  CHECK_THAT(again(9, 1), Contains("list of lists"));
  CHECK_THAT(again(13, 1), Contains("unknown type 13"));
  CHECK_THAT(again(8, 1 << 20), Contains("more than the file has room for"));
  CHECK_THAT(again(0, uint64_t{1} << 40), Contains("at most"));
  CHECK_THAT(again(7, 1), Contains("accepted"));
}
