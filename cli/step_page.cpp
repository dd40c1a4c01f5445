#include <fmt/format.h>

#include "cli/chart.h"
#include "cli/common.h"
#include "cli/ledger_view.h"
#include "cli/page.h"
#include "cli/step_view.h"

namespace tally::cli {
namespace {

std::string call_html(const WalkedCall& c) {
  const Entry& e = c.entry;
  std::string html = fmt::format(
      "<details class=\"call\"><summary><b>{}</b> {} <span class=\"maths\">{}</span></summary>\n",
      c.number, chart::escaped(e.op), chart::escaped(c.formula));
  html += "<p>" + chart::escaped(cost_line(c)) + "</p>\n";
  return html + html_table(operand_rows(c)) + "</details>\n";
}

std::string module_name(const Entry& e) { return *e.module ? e.module : "(outside of a layer)"; }

/// The calls from `at` on that share phase and layer, to unfold; moves `at` behind them.
std::string module_html(std::span<const WalkedCall> calls, size_t& at) {
  const Entry& first = calls[at].entry;
  std::string body;
  double flops = 0, bytes = 0, saved = 0;
  size_t n = 0;
  for (; at < calls.size() && calls[at].entry.phase == first.phase &&
         calls[at].entry.module == first.module;
       ++at, ++n) {
    const WalkedCall& c = calls[at];
    flops += c.entry.cost.flops;
    bytes += c.entry.cost.bytes_read + c.entry.cost.bytes_written;
    saved += c.saved_bytes();
    body += call_html(c);
  }
  return fmt::format(
             "<details class=\"layer\"><summary>{} <span class=\"note\">{} call{}, {}, {} "
             "moved{}</span></summary>\n",
             chart::escaped(module_name(first)), n, n == 1 ? "" : "s", flops_text(flops),
             bytes_text(bytes), saved > 0 ? ", " + bytes_text(saved) + " saved" : "") +
         body + "</details>\n";
}

Rows phase_rows(const Walk& walk) {
  Rows rows = {{"phase", "calls", "GFLOP", "read", "written", "saved"}};
  for (const Phase phase : {Phase::forward, Phase::recompute, Phase::backward, Phase::optimizer}) {
    Cost cost;
    double saved = 0;
    int64_t calls = 0;
    for (const WalkedCall& c : walk.calls) {
      if (c.entry.phase != phase) continue;
      cost += c.entry.cost;
      saved += c.saved_bytes();
      ++calls;
    }
    if (calls == 0) continue;
    rows.push_back({to_text(phase), to_text(calls), fmt::format("{:.4g}", cost.flops / 1e9),
                    bytes_text(cost.bytes_read), bytes_text(cost.bytes_written),
                    bytes_text(saved)});
  }
  return rows;
}

}  // namespace

std::string step_page(const std::string& title, const std::string& subtitle, const Walk& walk,
                      std::span<const WalkedCall> calls) {
  Page page(title, subtitle);
  page.section("The step",
               fmt::format("Loss {:.6g} nats per token, gradient norm {:.6g} before clipping.",
                           walk.loss, walk.grad_norm),
               "", html_table(phase_rows(walk)));
  std::vector<Entry> entries;
  for (const WalkedCall& c : walk.calls) entries.push_back(c.entry);
  page.section("Memory over the step", "Bytes of live tensors while each call ran.",
               memory_picture(entries), html_table(memory_rows(entries)));
  for (size_t at = 0; at < calls.size();) {
    const Phase phase = calls[at].entry.phase;
    std::string body;
    while (at < calls.size() && calls[at].entry.phase == phase) body += module_html(calls, at);
    page.section(to_text(phase),
                 "Unfold a layer, then a call: -> is written, +> is updated or added to.", "", body,
                 true);
  }
  return page.html();
}

}  // namespace tally::cli
