#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "cli/common.h"
#include "models/algebra.h"
#include "models/config_json.h"
#include "models/config_latent.h"
#include "models/report.h"
#include "models/suggest.h"
#include "models/trainer.h"

namespace tally::cli {
namespace {

/// "80GB", "24 GiB", "5e9": bytes.
double parse_bytes(const std::string& text) {
  size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  std::string unit = text.substr(used);
  while (!unit.empty() && unit[0] == ' ') unit.erase(0, 1);
  const std::map<std::string, double> units = {{"", 1},
                                               {"B", 1},
                                               {"kB", 1e3},
                                               {"MB", 1e6},
                                               {"GB", 1e9},
                                               {"TB", 1e12},
                                               {"KiB", 1024.0},
                                               {"MiB", 1048576.0},
                                               {"GiB", 1073741824.0},
                                               {"TiB", 1099511627776.0}};
  check(used > 0 && text.find_first_of("xX") > used && units.contains(unit) && value > 0 &&
            std::isfinite(value * units.at(unit)),
        "--fit: a size such as 80GB or 24GiB is needed; got '", text, "'");
  return value * units.at(unit);
}

const std::vector<LedgerTotal>& rows_by(const Report& r, const std::string& by) {
  if (by == "op") return r.by_op;
  if (by == "layer") return r.by_layer;
  if (by == "class") return r.by_class;
  const std::vector<std::string> choices = {"op", "layer", "class", "phase"};
  check(by == "phase", "--by: must be op, layer, class or phase; got '", by, "'",
        did_you_mean(by, choices));
  return r.by_phase;
}

Json rows_json(const std::vector<LedgerTotal>& rows) {
  Json list = Json::array();
  for (const LedgerTotal& t : rows) {
    list.push_back({{"key", t.key},
                    {"calls", t.calls},
                    {"flops", t.cost.flops},
                    {"bytes_read", t.cost.bytes_read},
                    {"bytes_written", t.cost.bytes_written},
                    {"model_flops", t.model.full},
                    {"model_flops_causal", t.model.causal}});
  }
  return list;
}

double recomputed_flops(const Report& r) {
  for (const LedgerTotal& t : r.by_phase) {
    if (t.key == "recompute") return t.cost.flops;
  }
  return 0;
}

Json report_json(const Report& r, const std::string& by) {
  const ParameterCount& p = r.parameters;
  return {{"model", r.config.name},
          {"batch", r.options.batch},
          {"seq", r.options.seq},
          {"tokens", r.tokens},
          {"parameters", p.total()},
          {"parameters_by_component",
           {{"embedding", p.embedding},
            {"position", p.position},
            {"attention", p.attention},
            {"recurrence", p.recurrence},
            {"mlp", p.mlp},
            {"norms", p.norms},
            {"gains", p.gains},
            {"head", p.head}}},
          {"flops", r.cost.flops},
          {"recomputed_flops", recomputed_flops(r)},
          {"model_flops", r.model.full},
          {"model_flops_causal", r.model.causal},
          {"bytes_read", r.cost.bytes_read},
          {"bytes_written", r.cost.bytes_written},
          {"intensity", r.intensity()},
          {"memory",
           {{"weights", r.weights},
            {"gradients", r.gradients},
            {"optimizer", r.optimizer},
            {"saved_activations", r.saved},
            {"peak", r.peak},
            {"kv_cache", r.kv_cache},
            {"kv_cache_per_token", r.kv_cache_per_token}}},
          {"by_" + by, rows_json(rows_by(r, by))}};
}

/// The optimizer ledger of claim L81: bytes a parameter takes in mixed precision and in f32.
std::string optimizer_ledger(double parameters) {
  std::vector<std::vector<std::string>> rows = {{"training state", "bytes/parameter", "total"}};
  const auto row = [&](const char* what, double each) {
    rows.push_back({what, fmt::format("{}", each), bytes_text(each * parameters)});
  };
  row("f32 weights + gradients + m + v", 16);
  row("  of which m and v", 8);
  row("bf16 weights and gradients, f32 master, m, v", 16);
  row("bf16 weights and gradients, f32 m, v, no master", 12);
  row("SGD with momentum, f32", 12);
  return table_text(rows);
}

void print_text(const Report& r, const std::string& by) {
  const ParameterCount& p = r.parameters;
  std::printf("%s: %s parameters (%lld)\n", r.config.name.c_str(),
              short_number(static_cast<double>(p.total())).c_str(),
              static_cast<long long>(p.total()));
  std::vector<std::vector<std::string>> rows = {{"component", "parameters", "share"}};
  const std::pair<const char*, int64_t> parts[] = {
      {"embedding", p.embedding},   {"position", p.position}, {"attention", p.attention},
      {"recurrence", p.recurrence}, {"mlp", p.mlp},           {"norms", p.norms},
      {"residual gains", p.gains},  {"head", p.head}};
  for (const auto& [name, n] : parts) {
    if (n)
      rows.push_back({name, to_text(n),
                      fmt::format("{:.2f}%", 100.0 * static_cast<double>(n) /
                                                 static_cast<double>(p.total()))});
  }
  std::fputs((table_text(rows) + "\n").c_str(), stdout);
  std::printf("%s, batch %lld, %lld tokens a sequence, %s\n",
              r.options.train    ? "training step"
              : r.options.decode ? "decoding one token"
                                 : "forward pass",
              static_cast<long long>(r.options.batch), static_cast<long long>(r.options.seq),
              to_text(r.options.dtype).c_str());
  rows = {{"figure", "value"},
          {"model FLOPs, full attention", fmt::format("{:.5g}", r.model.full)},
          {"model FLOPs, causal attention", fmt::format("{:.5g}", r.model.causal)},
          {"FLOPs, counted", fmt::format("{:.5g}", r.cost.flops)},
          {"bytes read", bytes_text(r.cost.bytes_read)},
          {"bytes written", bytes_text(r.cost.bytes_written)},
          {"FLOPs per byte", fmt::format("{:.4g}", r.intensity())},
          {"weights", bytes_text(r.weights)}};
  if (r.options.train) {
    rows.push_back({"gradients", bytes_text(r.gradients)});
    rows.push_back({"optimizer state", bytes_text(r.optimizer)});
    rows.push_back({"saved for the backward pass", bytes_text(r.saved)});
  }
  rows.push_back({"peak memory", bytes_text(r.peak)});
  rows.push_back({"KV cache a token", bytes_text(r.kv_cache_per_token)});
  rows.push_back({"KV cache in all", bytes_text(r.kv_cache)});
  if (const double again = recomputed_flops(r); again > 0) {
    rows.insert(rows.begin() + 4, {"  of which computed again", fmt::format("{:.5g}", again)});
  }
  std::fputs((table_text(rows) + "\n").c_str(), stdout);
  if (r.options.train)
    std::fputs((optimizer_ledger(static_cast<double>(p.total())) + "\n").c_str(), stdout);
  rows = {{by, "calls", "FLOPs", "share", "read", "written"}};
  for (const LedgerTotal& t : rows_by(r, by)) {
    rows.push_back({t.key, to_text(t.calls), fmt::format("{:.4g}", t.cost.flops),
                    fmt::format("{:.2f}%", 100 * t.cost.flops / std::max(r.cost.flops, 1.0)),
                    bytes_text(t.cost.bytes_read), bytes_text(t.cost.bytes_written)});
  }
  std::fputs(table_text(rows).c_str(), stdout);
}

Json algebra_json(const Report& r) {
  Json list = Json::array();
  for (const Formula& f : algebra(r)) {
    Json line = {{"what", f.what},
                 {"formula", f.formula},
                 {"numbers", f.numbers},
                 {"value", f.value},
                 {"unit", f.unit}};
    if (std::isfinite(f.counted)) line["counted"] = f.counted;
    list.push_back(line);
  }
  return list;
}

std::string algebra_text(const Report& r) {
  std::string out =
      "L layers, D d_model, H heads, G kv_heads, K head_dim, F d_ff, V vocab, B batch, T tokens a "
      "sequence\n";
  if (is_latent(r.config))
    out +=
        "Q q_lora_rank, C kv_lora_rank, N qk_nope_head_dim, R qk_rope_head_dim, M v_head_dim, K = "
        "N + "
        "R\n";
  const auto figure = [](double v) {
    return v == std::floor(v) && std::fabs(v) < 1e13 ? fmt::format("{:.0f}", v)
                                                     : fmt::format("{:.5g}", v);
  };
  for (const Formula& f : algebra(r)) {
    out += fmt::format("  {:<34}{}{} = {} {}", f.what, f.formula,
                       f.numbers.empty() ? "" : " = " + f.numbers, figure(f.value), f.unit);
    if (std::isfinite(f.counted))
      out += figure(f.counted) == figure(f.value) ? "; counted: the same"
                                                  : "; counted: " + figure(f.counted);
    out += '\n';
  }
  return out;
}

/// Days that training on `tokens` takes at a share of the peak of the devices.
double training_days(const Report& r, const AccountOptions& o) {
  check(o.flops_per_s > 0,
        "--train-tokens: say how fast the hardware is with --flops-per-s, as "
        "989e12 for an H100 in bf16");
  check(o.train, "--train-tokens: asks for a training; add --train");
  return r.model.causal / static_cast<double>(r.tokens) * o.train_tokens /
         (o.flops_per_s * o.mfu * static_cast<double>(o.devices)) / 86400;
}

Json choice_json(const Report& r, double memory) {
  const RecomputeChoice c = choose_recompute(r.config, r.options, memory);
  return {{"fits", c.fits},
          {"layers", c.layers},
          {"train.recompute", c.recompute},
          {"peak", c.peak},
          {"extra_flops", c.extra_flops}};
}

std::string choice_text(const Report& r, double memory, const std::string& asked) {
  const RecomputeChoice c = choose_recompute(r.config, r.options, memory);
  if (!c.fits)
    return fmt::format("batch {} does not fit, not even with every layer computed again: {}\n",
                       r.options.batch, bytes_text(c.peak));
  if (c.layers == 0)
    return fmt::format("batch {} fits without computing anything again\n", r.options.batch);
  return fmt::format(
      "batch {} fits in {} when {} of {} layers are computed again (--set train.recompute={}): "
      "peak "
      "{}, {:.4g} FLOPs more a step ({:.1f}%)\n",
      r.options.batch, asked, c.layers, r.config.all_layers(), c.recompute, bytes_text(c.peak),
      c.extra_flops, 100 * c.extra_flops / (r.cost.flops - recomputed_flops(r)));
}

}  // namespace

int account(const AccountOptions& o) {
  std::vector<std::string> set = o.target.set;
  if (!o.optimizer.empty()) set.push_back("train.optimizer=" + o.optimizer);
  const Target target = resolve_target(o.target.name, set);
  const TrainConfig& train = target.config.train;
  if (o.target.print_config) {
    std::fputs(to_json_text(target.config).c_str(), stdout);
    return 0;
  }
  ReportOptions options;
  options.optimizer = optimizer_of(train, target.config.model);
  options.batch = o.batch;
  options.seq = o.seq;
  options.train = o.train;
  options.decode = o.decode;
  options.dtype = dtype_of_options(o);
  options.recompute = train.recompute;
  rows_by(Report(), o.by);  // a wrong --by, before anything is printed
  const Report r = make_report(target.config.model, options);
  const double memory = o.fit.empty() ? 0 : parse_bytes(o.fit);
  const std::string formulas = o.algebra && !o.json ? algebra_text(r) : "";
  if (o.json) {
    Json json = report_json(r, o.by);
    if (o.algebra) json["algebra"] = algebra_json(r);
    if (o.train_tokens > 0) json["days"] = training_days(r, o);
    if (memory > 0) json["largest_batch"] = largest_batch(target.config.model, options, memory);
    if (memory > 0 && o.train) json["recompute"] = choice_json(r, memory);
    print_json(json);
    return 0;
  }
  print_text(r, o.by);
  if (o.algebra) std::printf("\n%s", formulas.c_str());
  if (o.train_tokens > 0)
    std::printf("\n%s tokens on %lld devices of %sFLOP/s at %.0f%% of the peak: %.1f days\n",
                short_number(o.train_tokens).c_str(), static_cast<long long>(o.devices),
                short_number(o.flops_per_s).c_str(), 100 * o.mfu, training_days(r, o));
  if (memory > 0)
    std::printf("\nlargest batch within %s: %lld\n", o.fit.c_str(),
                static_cast<long long>(largest_batch(target.config.model, options, memory)));
  if (memory > 0 && o.train) std::fputs(choice_text(r, memory, o.fit).c_str(), stdout);
  return 0;
}

}  // namespace tally::cli
