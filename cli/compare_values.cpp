#include "cli/compare_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "cli/common.h"
#include "cli/step_data.h"
#include "models/architecture.h"

namespace tally::cli {
namespace {

using What = WalkDifference::What;

std::string verdict(const WalkDifference& d) {
  if (d.what == What::none)
    return fmt::format("all {} ops agree, forward and backward", d.compared);
  const std::string before = fmt::format("{} op{} agree{} before it", d.compared,
                                         d.compared == 1 ? "" : "s", d.compared == 1 ? "s" : "");
  if (d.what == What::ops)
    return fmt::format("the ops part at call {}: A runs {}, B runs {}; {}", d.number, d.a, d.b,
                       before);
  return fmt::format(
      "the first op that differs is call {}, {}: output {} in {} of {} values, at most by {:.6g} "
      "(value {}: {:.9g} and {:.9g}); {}",
      d.number, d.a, d.output, d.differing, d.count, d.largest, d.place, d.value_a, d.value_b,
      before);
}

Json difference_json(const WalkDifference& d) {
  const auto number = [](double v) { return std::isfinite(v) ? Json(v) : Json(to_text(v)); };
  return {{"differ", d.what == What::none  ? "nothing"
                     : d.what == What::ops ? "ops"
                                           : "values"},
          {"compared", d.compared},
          {"call", d.number},
          {"a", d.a},
          {"b", d.b},
          {"output", d.output},
          {"largest", number(d.largest)},
          {"place", d.place},
          {"value_a", number(d.value_a)},
          {"value_b", number(d.value_b)},
          {"differing", d.differing},
          {"count", d.count}};
}

}  // namespace

int compare_values(const CompareOptions& o) {
  const DType dtype = dtype_of_options(o);
  const Device device = device_of_options(o);
  StepModel a = make_step_model(o.a, {}, dtype, device),
            b = make_step_model(o.b, {}, dtype, device);
  StepOptions s;
  static_cast<Common&>(s) = o;
  s.text = o.text;
  s.batch = o.batch;
  s.seq = o.seq;
  s.values = std::numeric_limits<int64_t>::max();
  const auto kind = [](const StepModel& m) { return architecture_name(m.target.config.model); };
  check(kind(a) == kind(b), "compare: ", o.a, " is of architecture = ", kind(a), " and ", o.b,
        " of ", kind(b), ": one batch does not serve both");
  a.model->set_recompute({}), b.model->set_recompute({});  // what is computed again repeats
  StepBatch batch = make_step_batch(s, a);
  batch.micro.resize(1);
  const nn::ModelBatch& read = batch.micro[0];
  const int64_t tokens =
                    std::max(read.ids.size(1), read.source.defined() ? read.source.size(1) : 0),
                context = b.target.config.model.context,

                vocab_a = a.target.config.model.vocab, vocab_b = b.target.config.model.vocab;
  check(tokens <= context, "compare: ", tokens, " tokens do not fit the context of ", o.b, ", ",
        context, "; give --seq ", context);
  check(vocab_a <= vocab_b, "compare: ", o.a, " has ", vocab_a, " tokens and ", o.b, " ", vocab_b,
        ": one batch does not serve both");
  WalkOptions w;  // no dropout, no update: what the weights make of the batch
  w.first = std::numeric_limits<int64_t>::max();
  w.counts_targets = batch.counts_targets;
  const Walk walk_a = walk_step(*a.model, batch.micro, w),
             walk_b = walk_step(*b.model, batch.micro, w);
  const WalkDifference d = first_difference(walk_a, walk_b, o.tolerance);
  if (o.json) {
    Json json = difference_json(d);
    json["batch"] = batch.source;
    json["loss_a"] = walk_a.loss;
    json["loss_b"] = walk_b.loss;
    print_json(json);
  } else {
    std::printf("A: %s, loss %.9g\nB: %s, loss %.9g\non %s %s\n%s\n", o.a.c_str(), walk_a.loss,
                o.b.c_str(), walk_b.loss, batch.source.c_str(),
                batch.micro[0].ids.shape().to_text().c_str(), verdict(d).c_str());
  }
  return 0;
}

}  // namespace tally::cli
