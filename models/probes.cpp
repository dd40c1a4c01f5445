#include "models/probes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>

#include "core/ops/loss_row.h"
#include "core/ops/moe_router.h"
#include "models/probe_measures.h"

namespace tally {
namespace {

// "blocks[3]" itself, or "encoder.layers[3]", and its branches, "blocks[3].attention" or
// "blocks[3].mlp": modules by paths.
bool is_block(std::string_view module) { return module.ends_with(']'); }
bool is_sublayer(std::string_view module) {
  static constexpr std::string_view kBranches[] = {
      "].attention", "].cross_attention", "].delta_net", "].mamba",
      "].mlp",       "].mlp.experts",     "].parallel"};
  return std::ranges::any_of(kBranches, [&](auto branch) { return module.ends_with(branch); });
}

// What an optimizer's update changes: its operand "w"; the one call of such a name that only reads it
// is scaled_gradient.
const View* updated_parameter(const WatchedCall& call) {
  if (recorder().phase != Phase::optimizer || call.find("g")) return nullptr;
  return call.find("w");
}

}  // namespace

Probes::Probes(const std::vector<std::string>& names,
               const std::vector<optim::ParameterGroup>& groups) {
  for (const std::string& name : names) places_[name];
  for (const optim::ParameterGroup& g : groups) {
    for (const auto& [name, t] : g.parameters) parameters_[t.data()] = name;
  }
}

double Probes::Mean::value() const {
  const double mean = count > 0 ? sum / count : NAN;
  return root ? std::sqrt(mean) : mean;
}

Probes::Mean& Probes::at(const char* probe, const std::string& place) {
  Places& places = places_.at(probe);
  for (auto& [name, mean] : places) {
    if (name == place) return mean;
  }
  return places.emplace_back(place, Mean{}).second;
}

void Probes::add(const char* probe, const std::string& place, double sum, double count, bool root) {
  if (!wants(probe)) return;
  Mean& m = at(probe, place);
  m.sum += sum;
  m.count += count;
  m.root = root;
}

void Probes::raise(const char* probe, const std::string& place, double value) {
  if (!wants(probe)) return;
  Mean& m = at(probe, place);
  if (m.count == 0 || !(value <= m.sum)) m.sum = value;
  m.count = 1;
}

void Probes::noise(const GradientNoise& g) {
  if (!wants("noise_scale") || g.passes < 2) return;
  add("noise_scale", "trace", g.trace(), 1);
  add("noise_scale", "square", g.square(), 1);
  if (g.square() != 0) add("noise_scale", "batches", g.trace() / g.square(), 1);
}

void Probes::moments(const std::vector<std::pair<std::string, Tensor>>& state) {
  if (!wants("momentum_rank")) return;
  for (const auto& [name, t] : state) {
    for (const std::string_view moment : {"exp_avg.", "momentum_buffer."}) {
      if (!name.starts_with(moment)) continue;
      if (const double rank = rank_share(t); std::isfinite(rank))
        add("momentum_rank", name.substr(moment.size()), rank, 1);
    }
  }
}

void Probes::before(const WatchedCall& call) {
  const View* w = updated_parameter(call);
  if (!w || !(wants("update_ratio") || wants("update_rank"))) return;
  old_parameter_.resize(static_cast<size_t>(w->nbytes()));
  if (w->is_dense()) std::memcpy(old_parameter_.data(), w->data, old_parameter_.size());
}

void Probes::after(const WatchedCall& call, const Entry& entry) {
  if (entry.phase == Phase::optimizer) return update(call);
  if (entry.phase != Phase::forward) return;
  if (is_sublayer(entry.module)) branch_ = entry.module;
  residual(call, entry);
  attention(call, entry);
  router(call, entry);
  loss(call);
}

// What a block adds to the stream arrives by an `add`, or by a dropout that adds. The last one in a
// block leaves the stream as the next block finds it.
void Probes::residual(const WatchedCall& call, const Entry& entry) {
  const std::string_view module = entry.module;
  const bool embedding = module == "embedding";
  if (!embedding && !is_block(module)) return;
  const bool drops = call.find("residual") != nullptr;
  const View* branch = drops ? call.find("x") : call.find("b");
  if (branch && !embedding && wants("sublayer_rms"))
    add("sublayer_rms", branch_, square_sum(*branch), static_cast<double>(branch->numel()), true);
  const View* stream = call.find("y");
  if (!stream || !wants("residual_rms")) return;
  if (module != stream_place_) settle_stream();
  stream_place_ = module;
  stream_squares_ = square_sum(*stream);
  stream_count_ = static_cast<double>(stream->numel());
}

void Probes::attention(const WatchedCall& call, const Entry& entry) {
  const auto* a = call.as<ops::AttentionForward>();
  if (!a || !(wants("max_logit") || wants("attention_entropy") || wants("attention_saturation")))
    return;
  const AttentionMeasure m = measure_attention(*a);
  const std::string_view module = entry.module;
  const bool over_memory = module.ends_with(".cross_attention");
  const std::string block(over_memory ? module : module.substr(0, module.rfind('.')));
  add("attention_entropy", block, m.entropy, m.rows);
  add("attention_saturation", block, m.saturated, m.rows);
  raise("max_logit", block, m.max_logit);
}

// The busiest expert's share, in shares of an even load.
void Probes::router(const WatchedCall& call, const Entry& entry) {
  const auto* r = call.as<ops::MoeRouter::Forward>();
  if (!r || !wants("router_load") || r->experts.numel() == 0) return;
  std::vector<int64_t> counts(static_cast<size_t>(r->x.cols()), 0);
  for (int64_t i = 0; i < r->experts.numel(); ++i)
    ++counts[static_cast<size_t>(r->experts.pointer<int64_t>()[i])];
  const double most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  const std::string_view module = entry.module;
  add("router_load", std::string(module.substr(0, module.find(".mlp"))),
      most * static_cast<double>(r->x.cols()) / static_cast<double>(r->experts.numel()), 1);
}

void Probes::loss(const WatchedCall& call) {
  const View* stats = call.find("stats");
  if (!stats || stats->numel() != ops::LossStats::kSize || !wants("log_z")) return;
  const std::vector<double> s = summarize(*stats, ops::LossStats::kSize).first;
  const double count = s[ops::LossStats::kCount];
  add("log_z", "mean", s[ops::LossStats::kLogZ], count);
  add("log_z", "rms", s[ops::LossStats::kLogZSquared], count, true);
}

void Probes::record(const std::string& parameter, const Updated& u) {
  if (u.gradient_squares >= 0) add("grad_norm", parameter, u.gradient_squares, 1, true);
  if (u.weight > 0) add("update_ratio", parameter, u.change / u.weight, 1);
  if (std::isfinite(u.rank)) add("update_rank", parameter, u.rank, 1);
}

void Probes::update(const WatchedCall& call) {
  // A master has no name of its own: the parameter that it is rounded into has.
  const View *x = call.find("x"), *y = call.find("y");
  if (updated_.place && x && y && x->data == updated_.place) {
    const auto name = parameters_.find(y->data);
    if (name != parameters_.end()) record(name->second, std::exchange(updated_, {}));
    return;
  }
  const View *w = updated_parameter(call), *dw = call.find("dw");
  if (!w) return;
  Updated u{w->data};
  if (wants("grad_norm") && dw) u.gradient_squares = square_sum(*dw);
  if (wants("update_ratio") && w->is_dense())
    std::tie(u.change, u.weight) = change_of(*w, old_parameter_.data());
  if (wants("update_rank")) u.rank = rank_share(*w, old_parameter_.data());
  const auto name = parameters_.find(w->data);
  if (name != parameters_.end())
    record(name->second, u);
  else
    updated_ = u;
}

void Probes::settle_stream() {
  if (stream_count_ > 0) add("residual_rms", stream_place_, stream_squares_, stream_count_, true);
  stream_count_ = 0;
}

ProbeValues Probes::values() {
  settle_stream();
  ProbeValues all;
  for (const auto& [probe, places] : places_) {
    auto& list = all[probe];
    for (const auto& [place, mean] : places) list.emplace_back(place, mean.value());
  }
  return all;
}

}  // namespace tally
