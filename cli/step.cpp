#include <fmt/format.h>

#include <cstdio>

#include "cli/common.h"
#include "cli/step_data.h"
#include "cli/step_view.h"
#include "data/file.h"
#include "models/config_json.h"

namespace tally::cli {

namespace {

std::string shape_text(const nn::ModelBatch& b) {
  const std::string ids = b.ids.shape().to_text();
  return b.source.defined() ? b.source.shape().to_text() + " to " + ids : ids;
}

}  // namespace

int step(const StepOptions& o) {
  if (o.target.print_config) {
    std::fputs(to_json_text(resolve_target(o.target.name, o.target.set).config).c_str(), stdout);
    return 0;
  }
  if (!o.html.empty()) check_writable_folder(o.html);  // before the work, not after it
  StepModel s =
      make_step_model(o.target.name, o.target.set, dtype_of_options(o), device_of_options(o));
  const StepBatch batch = make_step_batch(o, s);
  const int64_t number = s.optimizer->steps() + 1;
  WalkOptions w;
  w.first = o.values;
  w.dropout = s.dropout ? &*s.dropout : nullptr;
  w.clip = s.target.config.train.clip;
  w.lr = s.lr;
  w.counts_targets = batch.counts_targets;
  const Walk walk = walk_step(*s.model, batch.micro, w, s.optimizer.get());
  const std::vector<WalkedCall> calls = filtered(walk, {o.from, o.to, o.op, o.module});
  const std::string title = fmt::format("Step {} of {}", number, o.target.name),
                    what = fmt::format("{}: {} tokens, {}", batch.source,
                                       shape_text(batch.micro[0]), to_text(s.model->dtype()));
  if (!o.html.empty()) write_file_atomic(o.html, step_page(title, what, walk, calls));
  if (o.json) {
    print_json({{"step", number},
                {"batch", batch.source},
                {"loss", walk.loss},
                {"grad_norm", walk.grad_norm},
                {"calls", step_json(calls)}});
    return 0;
  }
  std::printf("%s: %s\nloss %.6g nats per token, gradient norm %.6g, %zu calls\n\n", title.c_str(),
              what.c_str(), walk.loss, walk.grad_norm, walk.calls.size());
  if (o.html.empty())
    std::fputs(step_text(calls).c_str(), stdout);
  else
    std::printf("page: %s\n", o.html.c_str());
  return 0;
}

}  // namespace tally::cli
