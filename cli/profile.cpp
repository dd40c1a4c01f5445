#include "models/profile.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/common.h"
#include "cli/ledger_view.h"
#include "cli/page.h"
#include "data/file.h"
#include "models/config_json.h"
#include "models/report.h"
#include "models/trainer.h"

namespace tally::cli {
namespace {

Json totals_json(const std::vector<LedgerTotal>& totals) {
  Json list = Json::array();
  for (const LedgerTotal& t : totals)
    list.push_back({{"key", t.key},
                    {"calls", t.calls},
                    {"seconds", t.seconds},
                    {"flops", t.cost.flops},
                    {"bytes_read", t.cost.bytes_read},
                    {"bytes_written", t.cost.bytes_written}});
  return list;
}

std::string describe(const Profile& p) {
  return fmt::format("{}: {}, batch {}, {} tokens a sequence, {} on {}", p.config.name,
                     p.options.decode ? "decoding one token" : "training step", p.options.batch,
                     p.options.seq, to_text(p.options.dtype), to_text(p.options.device));
}

std::string profile_page(const Profile& p, const Ceilings& c) {
  const auto ops = sorted_totals(p.calls, "op");
  Page page("Profile of " + p.config.name, describe(p));
  page.section("Shares by class", "What the work is, and what takes the time.",
               share_picture(p.calls), html_table(share_rows(p.calls)));
  page.section("Roofline",
               "Each dot is an op, numbered as below (none below 0.1 GFLOP/s); the lines are what "
               "the machine allows with "
               "the data in each level of memory.",
               roofline_picture(ops, c), html_table(roofline_rows(ops, c)));
  page.section("Memory over the step", "Bytes of live tensors while each call ran.",
               memory_picture(p.calls), html_table(memory_rows(p.calls)));
  page.section("By op", "", "", html_table(rate_rows(ops, "op", c)), true);
  page.section("By layer", "", "",
               html_table(rate_rows(sorted_totals(p.calls, "layer"), "layer", c)), true);
  return page.html();
}

void print_profile(const Profile& p, const Ceilings& c, const std::string& by,
                   const std::string& out) {
  std::printf("%s\n\n", describe(p).c_str());
  std::fputs((table_text(rate_rows(sorted_totals(p.calls, by), by, c)) + "\n").c_str(), stdout);
  std::fputs((table_text(share_rows(p.calls)) + "\n").c_str(), stdout);
  Rows rows = {{"figure", "value"},
               {"step, median", fmt::format("{:.3f} ms", 1e3 * p.step_seconds)},
               {"in calls", fmt::format("{:.3f} ms ({:.1f}%)", 1e3 * p.calls_seconds,
                                        100 * p.calls_seconds / p.step_seconds)},
               {"tokens/s", short_number(static_cast<double>(p.tokens) / p.step_seconds)},
               {"peak memory", bytes_text(p.peak_bytes)},
               {"ceiling, multiply-adds", short_number(c.flops) + "FLOP/s"}};
  for (const Ceilings::Level& l : c.levels)
    rows.push_back({"ceiling, read from " + l.name, short_number(l.read) + "B/s"});
  std::fputs(table_text(rows).c_str(), stdout);
  std::printf("\npictures in %s/profile.html; trace for ui.perfetto.dev in %s/trace.json\n",
              out.c_str(), out.c_str());
}

void check_profile_memory(const ModelConfig& config, const ProfileOptions& o) {
  if (o.device == kMeta) return;
  ReportOptions r;
  r.batch = o.batch, r.seq = o.seq;
  r.train = !o.decode, r.decode = o.decode;
  r.dtype = o.dtype;
  r.optimizer = o.optimizer;
  r.recompute = o.recompute;
  check_memory("profile", make_report(config, r).peak);
}

Json profile_json(const Profile& p, const Ceilings& c) {
  Json levels = Json::object();
  for (const Ceilings::Level& l : c.levels) levels[l.name] = l.read;
  Json json = {{"model", p.config.name},
               {"batch", p.options.batch},
               {"seq", p.options.seq},
               {"tokens", p.tokens},
               {"step_seconds", p.step_seconds},
               {"calls_seconds", p.calls_seconds},
               {"mean_step_seconds", p.mean_seconds},
               {"peak_bytes", p.peak_bytes},
               {"peak_flops_per_s", c.flops},
               {"read_bytes_per_s", levels},
               {"machine", environment()}};
  for (const char* by : {"op", "layer", "class", "phase"})
    json[std::string("by_") + by] = totals_json(sorted_totals(p.calls, by));
  return json;
}

}  // namespace

int profile(const ProfileVerbOptions& o) {
  const Target target = resolve_target(o.target.name, o.target.set);
  if (o.target.print_config) {
    std::fputs(to_json_text(target.config).c_str(), stdout);
    return 0;
  }
  ProfileOptions options;
  options.batch = o.batch > 0 ? o.batch : o.decode ? 1 : target.config.train.batch;
  options.seq = o.seq > 0 ? o.seq : o.decode ? 0 : target.config.train.seq;
  options.steps = static_cast<int>(o.steps);
  options.decode = o.decode;
  options.dtype = dtype_of_options(o);
  options.optimizer = optimizer_of(target.config.train, target.config.model);
  options.device = device_of_options(o);
  options.seed = o.seed;
  options.recompute = target.config.train.recompute;
  std::vector<std::string> choices = {"op", "layer", "class", "phase"};
  sorted_totals({}, o.by);
  check(std::find(choices.begin(), choices.end(), o.by) != choices.end(),
        "--by: must be op, layer, class or phase; got '", o.by, "'");
  check_profile_memory(target.config.model, options);
  make_folder(o.out);
  ProgressLine line(o.quiet || o.json);
  const Profile p = profile_model(target.config.model, options, [&](int step) {
    line.show(fmt::format("step {} of {}", step + 1, options.warm_up + options.steps));
  });
  line.show("measuring what the machine allows ...", true);
  const Ceilings c = measure_ceilings(p.options.dtype);
  line.finish();
  write_file_atomic(o.out + "/profile.html", profile_page(p, c));
  write_file_atomic(o.out + "/trace.json", chrome_trace(p.calls));
  if (o.json)
    print_json(profile_json(p, c));
  else
    print_profile(p, c, o.by, o.out);
  return 0;
}

}  // namespace tally::cli
