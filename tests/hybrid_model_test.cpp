// Decoders whose mixer_pattern has layers with a recurrence: parameters, cost, decoding, training,
// errors. tests/family_test.cpp holds them to recorded models, tests/recurrent_test.cpp the layers
// to their full pass.

#include "models/config_attention.h"
#include "models/config_mixers.h"
#include "models/probes.h"
#include "models/report.h"
#include "tests/block_helpers.h"
#include "tests/decoder_checks.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

/// Models of two to four layers; the first two hold every kind.
const std::vector<Assignments>& hybrids() {
  static const std::vector<Assignments> list = {
      {"mixer_pattern=delta,attention", "delta_key_heads=2", "delta_value_heads=4",
       "delta_key_dim=3", "delta_value_dim=5", "conv_width=3"},
      {"mixer_pattern=mamba,attention", "mamba_inner=12", "mamba_state=3", "mamba_dt_rank=2",
       "mamba_norms=true", "position=none"},
      {"mixer_pattern=mamba", "mamba_conv_bias=false", "mamba_state=4", "conv_width=1",
       "position=none", "kv_heads=0"},
      {"mixer_pattern=delta", "norm_gain=one_plus_gamma", "position=learned", "kv_heads=0"},
      {"mixer_pattern=delta,mamba,attention", "layers=4", "qk_norm=head", "attention_gate=true",
       "norm_gain=one_plus_gamma", "rope_fraction=0.5", "mamba_state=3", "delta_key_dim=3"},
      {"mixer_pattern=delta,attention", "layers=4", "window=3", "attention_pattern=full,window",
       "position=alibi", "delta_key_dim=3"},
      {"mixer_pattern=mamba,attention", "experts=4", "shared_experts=1", "shared_expert_d_ff=10",
       "shared_expert_gate=true", "first_expert_layer=1", "mamba_state=3"},
      {"mixer_pattern=delta,attention", "parallel=shared_norm", "residual_gain=vector",
       "residual_gain_init=0.5", "delta_key_dim=3"},
      {"mixer_pattern=mamba,attention", "placement=double", "position=t5_bias", "t5_buckets=4",
       "t5_max_distance=5", "mamba_state=3"},
      {"mixer_pattern=delta,attention", "attention=latent", "kv_heads=0", "head_dim=0",
       "kv_lora_rank=6", "qk_nope_head_dim=4", "qk_rope_head_dim=2", "v_head_dim=3",
       "delta_key_heads=2", "delta_key_dim=3"},
      {"mixer_pattern=attention,mamba", "position=xl_relative", "mamba_state=3"},
      {"mixer_pattern=delta,mamba,attention", "layers=3", "document_end=7", "delta_key_dim=3",
       "mamba_state=3", "window=4"},
      {"mixer_pattern=mamba,delta", "document_end=7", "position=none", "kv_heads=0",
       "delta_key_dim=3", "mamba_state=3", "conv_width=2"},
      {"mixer_pattern=attention,delta", "rope_scaling=dynamic_ntk", "rope_factor=3",
       "rope_original_context=4", "delta_key_dim=3"}};
  return list;
}

std::string text_of(const Assignments& list) {
  std::string text;
  for (const std::string& a : list) text += a + " ";
  return text;
}

std::vector<double> row_of(const Tensor& logits, int64_t at) {
  return to_doubles(contiguous(logits.narrow(1, at, 1)));
}

}  // namespace

TEST_CASE("hybrid model: the closed form of parameters is the model's", "[config]") {
  register_all();
  for (const Assignments& choice : hybrids()) {
    INFO(text_of(choice));
    const ModelConfig c = with(choice);
    check_closed_form(c);
    CHECK(parameter_counts(c).recurrence == recurrence_counts(c).parameters);
    CHECK(recurrence_counts(c).parameters > recurrence_counts(c).matrices);
  }
}

TEST_CASE("hybrid model: decoding with the cache equals the full pass everywhere", "[model][F22]") {
  register_all();
  const PauseTape values_only;
  for (const Assignments& choice : hybrids()) {
    INFO(text_of(choice));
    const ModelConfig c = with(choice);
    for (const Device device : {kReference, kCPU}) {
      const auto model = random_model(c, DType::f64, device);
      const Tensor text = ids(1, device, 2, 11);
      // Dynamic NTK turns by the length of the text, and cached keys by that of their moment.
      const bool by_length = c.rope_scaling == RopeScale::dynamic_ntk;
      const Tensor whole = model->logits(text);
      for (const int64_t prompt : {1, 2, 5}) {
        nn::KVCache cache = model->make_cache(2, 11);
        for (int64_t at = 0; at < 11;) {
          const int64_t count = at == 0 ? prompt : std::min<int64_t>(at == prompt ? 2 : 1, 11 - at);
          const Tensor next = model->next_logits(copy(text.narrow(1, at, count)), cache);
          at += count;
          CHECK(cache.length() == at);
          if (by_length && at != prompt) continue;
          const Tensor full = by_length ? model->logits(copy(text.narrow(1, 0, at))) : whole;
          INFO("position " << at);
          CHECK(largest_difference(to_doubles(next), row_of(full, at - 1)) <= 1e-12);
        }
        ReportOptions o;
        o.batch = 2, o.seq = 10, o.decode = true, o.dtype = DType::f64;
        CHECK(make_report(c, o).kv_cache == double(cache.nbytes()));
      }
    }
  }
}

TEST_CASE("hybrid model: a text behind the end of another is as if it were alone", "[model][L97]") {
  register_all();
  for (const Assignments& choice :
       {Assignments{"mixer_pattern=delta", "delta_key_dim=3"},
        {"mixer_pattern=mamba", "mamba_state=3"},
        {"mixer_pattern=mamba,delta", "conv_width=2", "mamba_state=2"}}) {
    for (const Device device : {kReference, kCPU}) {
      INFO(text_of(choice) << "on " << to_text(device));
      Assignments all{"document_end=7", "position=none", "kv_heads=0"};
      all.insert(all.end(), choice.begin(), choice.end());
      const ModelConfig c = with(all);
      const auto model = random_model(c, DType::f64, device);
      // Texts of 2, 1 and 5 tokens and their ends; taps reach over several of them.
      const std::vector<int64_t> packed{4, 7, 7, 9, 11, 3, 5, 7, 2, 8, 1};
      const auto logits = [&](size_t first, size_t count) {
        const std::vector<int64_t> v(packed.begin() + static_cast<std::ptrdiff_t>(first),
                                     packed.begin() + static_cast<std::ptrdiff_t>(first + count));
        return model->logits(from_host<int64_t>(v, {1, static_cast<int64_t>(count)}, device));
      };
      const Tensor both = logits(0, packed.size());
      for (const auto& [first, count] : {std::pair<size_t, size_t>{0, 2}, {2, 1}, {3, 5}, {8, 3}}) {
        const Tensor alone = logits(first, count);
        for (size_t t = 0; t < count; ++t)
          CHECK(largest_difference(row_of(both, static_cast<int64_t>(first + t)),
                                   row_of(alone, static_cast<int64_t>(t))) <= 1e-13);
      }
    }
  }
}

TEST_CASE("hybrid model: a cache that is cleared begins anew", "[model]") {
  register_all();
  const auto model = random_model(with(hybrids()[4]), DType::f64, kCPU);
  const Tensor text = ids(1, kCPU, 2, 6);
  nn::KVCache cache = model->make_cache(2, 8);
  const auto first = to_doubles(model->next_logits(text, cache));
  CHECK(to_doubles(model->next_logits(copy(text.narrow(1, 0, 2)), cache)) != first);
  CHECK_THROWS_WITH(model->next_logits(copy(text.narrow(1, 0, 1)), cache),
                    Contains("8 + 1 tokens do not fit the capacity of 8"));
  cache.clear();
  CHECK(to_doubles(model->next_logits(text, cache)) == first);
}

TEST_CASE("hybrid model: a recurrence decodes a token at one cost, however long the text",
          "[account]") {
  register_all();
  for (const char* mixer : {"delta", "mamba"}) {
    const ModelConfig c = with({std::string("mixer_pattern=") + mixer, "context=2048",
                                "position=none", "kv_heads=0", "tied_head=true", "head_bias=true"});
    Report reports[2];
    for (const bool longer : {false, true}) {
      ReportOptions o;
      o.seq = longer ? 2000 : 20, o.decode = true;
      reports[longer] = make_report(c, o);
    }
    CHECK(reports[0].cost.flops == reports[1].cost.flops);
    CHECK(reports[0].cost.bytes_read == reports[1].cost.bytes_read);
    CHECK(reports[0].kv_cache == reports[1].kv_cache);
    CHECK(reports[0].kv_cache_per_token == 0);
  }
  // bf16 weights: the state stays in the type of sums.
  const ModelConfig c = with({"mixer_pattern=delta", "delta_key_dim=3", "delta_value_dim=5",
                              "position=none", "kv_heads=0"});
  CHECK(cache_size(c, 7, 0).state == 2 * 4 * 3 * 5);
  CHECK(cache_size(c, 7, 0).numbers == 2 * 3 * (2 * 4 * 3 + 4 * 5));
  ReportOptions o;
  o.decode = true, o.dtype = DType::bf16, o.seq = 7;
  CHECK(make_report(c, o).kv_cache == 4 * 2 * 4 * 3 * 5 + 2 * 2 * 3 * (2 * 4 * 3 + 4 * 5));
}

TEST_CASE("hybrid model: every formula of the algebra equals the count", "[account]") {
  register_all();
  for (const Assignments& choice : hybrids()) {
    INFO(text_of(choice));
    check_algebra(with(choice), 9);
  }
}

TEST_CASE("hybrid model: a step has one loss, one ledger and one gradient on every path",
          "[model]") {
  register_all();
  for (size_t i = 0; i < 7; ++i) {
    INFO(text_of(hybrids()[i]));
    const ModelConfig c = with(hybrids()[i]);
    const Outcome on_reference = step(c, DType::f64, kReference),
                  on_cpu = step(c, DType::f64, kCPU), again = step(c, DType::f64, kCPU, "all");
    CHECK(on_cpu.loss == Approx(on_reference.loss).epsilon(1e-12));
    CHECK(again.loss == on_cpu.loss);
    for (size_t p = 0; p < on_cpu.gradients.size(); ++p) {
      INFO(on_cpu.gradients[p].first);
      CHECK(largest_difference(on_cpu.gradients[p].second, on_reference.gradients[p].second) <=
            1e-12);
      CHECK(again.gradients[p].second == on_cpu.gradients[p].second);
    }
    CHECK(step(c, DType::f64, kMeta).ledger == on_cpu.ledger);
  }
}

TEST_CASE("hybrid model: every parameter passes tally gradcheck", "[model]") {
  register_all();
  for (const size_t i : {0, 1, 4, 6}) {
    INFO(text_of(hybrids()[i]));
    ModelConfig c = with(hybrids()[i]);
    c.init_std = 0.4;
    check_differences(c);
  }
  // As it begins a Mamba layer hardly moves the loss: differences need larger steps.
  RunConfig jamba = find_preset("jamba-smoke").config;
  jamba.resolve_and_check("jamba-smoke");
  check_differences(jamba.model);
}

TEST_CASE("hybrid model: learns a batch by heart", "[model]") {
  register_all();
  for (const size_t i : {0, 1}) {
    ModelConfig c = with(hybrids()[i]);
    c.init_std = 0.4;
    check_learns_a_batch(c);
  }
}

TEST_CASE("hybrid model: recurrences begin as their papers say, whatever init is", "[config]") {
  register_all();
  for (const char* init : {"init=normal", "init=fixup", "init=mitchell"}) {
    const ModelConfig c =
        with({"mixer_pattern=delta,mamba", "position=none", "kv_heads=0", "mamba_state=5",
              "mamba_norms=true", "norm_gain=one_plus_gamma", init});
    const auto model = build_model(c, DType::f64, kReference);
    initialise(*model, c, 3);
    const nn::DeltaNet& delta = *model->blocks[0]->delta_net;
    const nn::Mamba& mamba = *model->blocks[1]->mamba;
    for (const double a : to_doubles(delta.decay_log)) CHECK(std::exp(a) <= 16);
    const auto fades = to_doubles(mamba.decay_log);
    for (size_t k = 0; k < fades.size(); ++k)
      CHECK(std::exp(fades[k]) == Approx(double(1 + k % 5)));
    for (const Tensor& bias : {delta.decay_bias, mamba.dt.bias}) {
      for (const double b : to_doubles(bias)) {
        const double at_zero = std::log1p(std::exp(b));
        CHECK((at_zero >= 0.999e-3 && at_zero <= 0.1001));
      }
    }
    for (const Tensor& one : {delta.norm, mamba.dt_norm, mamba.b_norm, mamba.c_norm, mamba.skip}) {
      for (const double v : to_doubles(one)) CHECK(v == 1);
    }
    CHECK(to_doubles(mamba.conv.bias) == std::vector<double>(32, 0));
    double squares = 0;
    for (const double v : to_doubles(mamba.conv.weight)) squares += v * v;
    CHECK(std::sqrt(squares / 128) == Approx(1 / std::sqrt(12.0)).epsilon(0.25));
    // How fast a state fades is not pulled to 0.
    for (const auto& group : optim::decay_groups(*model, 0.1)) {
      for (const auto& [name, t] : group.parameters) {
        INFO(name);
        const bool vector =
            t.ndim() < 2 || name.ends_with("decay_log") || name.starts_with("embedding.");
        CHECK((group.weight_decay == 0) == vector);
      }
    }
  }
}

TEST_CASE("hybrid model: probes see what a recurrence adds to the stream", "[probe]") {
  register_all();
  const ModelConfig c = with({"mixer_pattern=delta,mamba,attention", "layers=3"});
  const auto model = random_model(c, DType::f32, kCPU);
  Probes probes({"sublayer_rms", "residual_rms", "max_logit"}, {});
  model->loss(ids(1, kCPU), ids(2, kCPU));
  const ProbeValues values = probes.values();
  const auto places = [&](const char* probe) {
    std::vector<std::string> names;
    for (const auto& [place, value] : values.at(probe)) {
      CHECK(value > 0);
      names.push_back(place);
    }
    return names;
  };
  CHECK(places("sublayer_rms") == std::vector<std::string>{"blocks[0].delta_net", "blocks[0].mlp",
                                                           "blocks[1].mamba", "blocks[1].mlp",
                                                           "blocks[2].attention", "blocks[2].mlp"});
  CHECK(places("max_logit") == std::vector<std::string>{"blocks[2]"});
}

TEST_CASE("hybrid model: sizes that are left out follow from the model's", "[config]") {
  const ModelConfig c =
      with({"mixer_pattern=delta,mamba", "d_model=40", "heads=5", "kv_heads=5", "position=none"});
  CHECK((c.delta_key_heads == 5 && c.delta_value_heads == 5));
  CHECK((c.delta_key_dim == 8 && c.delta_value_dim == 8 && c.conv_width == 4));
  CHECK((c.mamba_inner == 80 && c.mamba_state == 16 && c.mamba_dt_rank == 3));
  const ModelConfig plain = with({});
  CHECK((plain.conv_width == 0 && plain.delta_key_heads == 0 && plain.mamba_inner == 0));
}

TEST_CASE("hybrid model: what does not fit is refused by name", "[config][error]") {
  CHECK_THAT(refusal({"mixer_pattern=delta,attension"}), Contains("did you mean \"attention\"?"));
  CHECK_THAT(refusal({"mixer_patern=delta"}), Contains("did you mean \"mixer_pattern\"?"));
  for (const char* field : {"delta_key_heads", "delta_value_heads", "delta_key_dim",
                            "delta_value_dim", "mamba_inner", "mamba_state", "mamba_dt_rank"}) {
    const std::string own = field;
    const bool delta = own.starts_with("delta");
    const std::string wanted = own + " needs a layer that is \"" + (delta ? "delta" : "mamba");
    CHECK_THAT(refusal({own + "=2"}), Contains(wanted));
    CHECK_THAT(refusal({own + "=2", delta ? "mixer_pattern=mamba" : "mixer_pattern=delta"}),
               Contains(wanted));
  }
  CHECK_THAT(refusal({"mamba_norms=true"}), Contains("mamba_norms needs a layer"));
  CHECK_THAT(refusal({"mamba_conv_bias=false"}), Contains("mamba_conv_bias needs a layer"));
  CHECK_THAT(refusal({"conv_width=3"}), Contains("\"delta\" or \"mamba\" in mixer_pattern"));
  CHECK_THAT(refusal({"mixer_pattern=delta", "delta_key_heads=2", "delta_value_heads=3"}),
             Contains("delta_value_heads = 3 must be a multiple of delta_key_heads = 2"));
  CHECK_THAT(refusal({"mixer_pattern=delta", "conv_width=2000"}),
             Contains("conv_width must lie between"));
  CHECK_THAT(refusal({"mixer_pattern=mamba,attention", "attention_prefix=3"}),
             Contains("attention_prefix has no meaning beside a recurrence"));
  CHECK_THAT(refusal({"mixer_pattern=delta", "parallel=shared_norm", "fused_parallel=true"}),
             Contains("fused_parallel has no meaning beside a recurrence"));
  CHECK_THAT(refusal({"mixer_pattern=delta", "scalar_biases=true", "placement=none",
                      "residual_gain=scalar"}),
             Contains("scalar_biases has no meaning beside a recurrence"));
  CHECK_THAT(refusal({"architecture=encoder", "mixer_pattern=delta", "kv_heads=0", "position=none",
                      "tied_head=true", "head_bias=true"}),
             Contains("has no meaning for architecture = encoder"));
  // Without a layer of attention its fields would do nothing.
  const Assignments alone{"mixer_pattern=delta,mamba", "position=none", "kv_heads=0"};
  CHECK(refusal(alone) == "accepted");
  for (const char* assignment :
       {"attention_dropout=0.1", "attention_gate=true", "attention_output_bias=true",
        "attention_scale=2", "attention_sink=true", "attention_soft_cap=5", "fused_qkv=false",
        "qk_norm=head", "qkv_bias=true", "qkv_clip=2", "softmax_off_by_one=true", "window=3"}) {
    Assignments with_one = alone;
    with_one.emplace_back(assignment);
    const std::string field(assignment, std::string_view(assignment).find('='));
    CHECK_THAT(refusal(with_one), Contains(field + " has no meaning without attention, and"));
  }
  CHECK_THAT(refusal({"mixer_pattern=delta", "kv_heads=0"}),
             Contains("position = rope changes scores of attention"));
  CHECK_THAT(refusal({"mixer_pattern=delta", "position=none", "kv_heads=2"}),
             Contains("kv_heads = 2 are heads of attention"));
  CHECK_THAT(refusal({"shared_expert_d_ff=8"}), Contains("needs shared_experts"));
  nn::Block::Options o;
  o.attention.d_model = 4, o.mlp.d_model = 4, o.mlp.d_ff = 4;
  o.delta_net.emplace(), o.mamba.emplace();
  CHECK_THROWS_WITH(nn::Block(o, DType::f32, kMeta), Contains("one layer mixes its tokens"));
  o.mamba.reset(), o.shifts = true;
  CHECK_THROWS_WITH(nn::Block(o, DType::f32, kMeta), Contains("without scalar biases"));
}
