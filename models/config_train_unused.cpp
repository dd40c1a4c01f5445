// Fields of a training that the chosen optimizer or schedule would ignore.
#include <algorithm>

#include "core/error.h"
#include "models/config_unused.h"

namespace tally {
namespace {

/// Fields of TrainConfig, and what reads them.
struct ReadBy {
  bool read;
  std::string what;  // that would read it
  std::vector<std::string_view> fields;
};

template <class E>
bool one_of(E value, std::initializer_list<E> list) {
  return std::ranges::find(list, value) != list.end();
}

// "optimizer = adamw or adam"
template <class E>
ReadBy read_if(const char* field, E value, std::initializer_list<E> list,
               std::vector<std::string_view> fields) {
  std::string names;
  size_t left = list.size();
  for (const E e : list) {
    names += std::string(enum_names(e)[static_cast<size_t>(e)]);
    --left;
    names += left > 1 ? ", " : left == 1 ? " or " : "";
  }
  return {one_of(value, list), std::string(field) + " = " + names, std::move(fields)};
}

std::vector<ReadBy> optimizer_fields(const TrainConfig& t) {
  using enum OptimizerKind;
  const auto by = [&](std::initializer_list<OptimizerKind> list,
                      std::vector<std::string_view> fields) {
    return read_if("optimizer", t.optimizer, list, std::move(fields));
  };
  // Muon, Shampoo and SOAP leave a part of the model to AdamW, which reads its numbers.
  return {by({adamw, adam, nadam, lion, soap, muon, shampoo}, {"beta1"}),
          by({adamw, adam, nadam, lion, soap, muon, shampoo, rmsprop}, {"beta2"}),
          by({adamw, adam, nadam, soap, muon, shampoo, rmsprop}, {"eps"}),
          by({sgd, muon, rmsprop}, {"momentum"}),
          by({sgd, muon}, {"nesterov"}),
          by({adamw, adam}, {"amsgrad"}),
          by({muon}, {"muon_scaling"}),
          by({shampoo, soap}, {"precondition_every", "precondition_longest"}),
          by({muon, shampoo, soap}, {"rest_lr_scale"})};
}

std::vector<ReadBy> schedule_fields(const TrainConfig& t) {
  using enum Schedule;
  const auto by = [&](std::initializer_list<Schedule> list, std::vector<std::string_view> fields) {
    return read_if("schedule", t.schedule, list, std::move(fields));
  };
  return {by({linear, cosine, wsd}, {"final_lr_fraction"}),
          by({wsd}, {"decay", "decay_fraction"}),
          by({multi_step}, {"milestones", "milestone_factor"}),
          by({constant, linear, cosine, inverse_sqrt, multi_step, wsd}, {"warmup_from"}),
          {t.accumulation_start > 0, "accumulation_start above 0", {"ramp_steps"}},
          {t.patience > 0 || t.keep_best, "patience above 0 or keep_best", {"min_delta"}},
          {t.skip_deviations > 0 || t.spike_factor > 0,
           "skip_deviations or spike_factor above 0",
           {"guard_window"}}};
}

}  // namespace

void check_set_fields(const TrainConfig& t, std::span<const std::string> set,
                      const std::string& where) {
  const auto names = enum_names(t.optimizer);
  for (const auto& table : {optimizer_fields(t), schedule_fields(t)}) {
    for (const ReadBy& row : table) {
      for (const std::string_view field : row.fields) {
        if (row.read || std::ranges::find(set, field) == set.end()) continue;
        fail(where, ": ", std::string(field), " was set, and nothing would read it: it needs ",
             row.what, "; leave it out, or choose that (optimizer is ",
             std::string(names[static_cast<size_t>(t.optimizer)]), ", schedule ",
             std::string(enum_names(t.schedule)[static_cast<size_t>(t.schedule)]), ")");
      }
    }
  }
}

}  // namespace tally
