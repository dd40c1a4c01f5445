#include "cli/page.h"

#include <algorithm>
#include <cctype>

#include "cli/chart.h"

namespace tally::cli {
namespace {

constexpr const char* kStyle = R"css(
body { font: 15px/1.45 system-ui, sans-serif; color: #222; background: #f4f4f2; margin: 0; }
header, main { max-width: 1320px; margin: 0 auto; padding: 12px 16px; }
header h1 { font-size: 22px; margin: 4px 0; }
header p { margin: 0; color: #555; overflow-wrap: anywhere; }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 14px; }
section { background: #fff; border: 1px solid #ddd; border-radius: 6px; padding: 10px 14px; min-width: 0; }
section.wide { grid-column: 1 / -1; }
section h2 { font-size: 16px; margin: 2px 0 4px; }
section p { margin: 2px 0 8px; color: #555; font-size: 13px; }
svg.chart { width: 100%; max-width: 680px; display: block; margin: 0 auto; }
svg text { font: 12px system-ui, sans-serif; fill: #333; }
svg text.inside { fill: #fff; }
svg .grid { stroke: #e3e3e3; }
svg .axis { stroke: #666; }
div.table { overflow-x: auto; max-height: 420px; overflow-y: auto; }
table { border-collapse: collapse; font-size: 13px; width: 100%; }
th, td { padding: 2px 8px; border-bottom: 1px solid #eee; text-align: left; vertical-align: top; white-space: nowrap; }
td.text { white-space: pre-wrap; overflow-wrap: anywhere; min-width: 140px; }
th { position: sticky; top: 0; background: #fff; }
details summary { cursor: pointer; overflow-wrap: anywhere; padding: 2px 0; }
details.layer > summary { font-weight: 600; }
details.layer > *:not(summary) { margin-left: 14px; }
span.note { font-weight: 400; color: #555; font-size: 13px; }
span.maths { font-family: ui-monospace, monospace; font-size: 13px; color: #0b5394; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; }
)css";

bool is_number(const std::string& cell) {
  if (cell.empty() || cell.size() > 24) return false;
  const size_t first = cell[0] == '-' || cell[0] == '+' ? 1 : 0;
  return first < cell.size() && std::isdigit(static_cast<unsigned char>(cell[first]));
}

/// Columns of numbers stand to the right, with the dashes of what is not known among them.
bool is_number_column(const std::vector<std::vector<std::string>>& rows, size_t column) {
  bool any = false;
  for (size_t i = 1; i < rows.size(); ++i) {
    const std::string cell = column < rows[i].size() ? rows[i][column] : "";
    if (cell.empty() || cell == "-") continue;
    if (!is_number(cell)) return false;
    any = true;
  }
  return any;
}

}  // namespace

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return "";
  std::string out = "<div class=\"table\"><table>\n<tr>";
  std::vector<bool> right;
  for (size_t i = 0; i < rows[0].size(); ++i) {
    right.push_back(is_number_column(rows, i));
    out += right[i] ? "<th class=\"number\">" : "<th>";
    out += chart::escaped(rows[0][i]) + "</th>";
  }
  out += "</tr>\n";
  for (size_t i = 1; i < rows.size(); ++i) {
    out += "<tr>";
    for (size_t k = 0; k < rows[i].size(); ++k) {
      const std::string& cell = rows[i][k];
      out += k < right.size() && right[k] ? "<td class=\"number\">"
             : cell.size() > 40           ? "<td class=\"text\">"
                                          : "<td>";
      out += chart::escaped(cell) + "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

Page::Page(std::string title, std::string subtitle)
    : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

void Page::section(const std::string& title, const std::string& note, const std::string& picture,
                   const std::string& table, bool wide) {
  body_ += wide ? "<section class=\"wide\">" : "<section>";
  body_ += "<h2>" + chart::escaped(title) + "</h2>\n";
  if (!note.empty()) body_ += "<p>" + chart::escaped(note) + "</p>\n";
  body_ += picture + table + "</section>\n";
}

std::string Page::html() const {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         chart::escaped(title_) + "</title>\n<style>" + kStyle +
         "</style>\n</head>\n<body>\n<header><h1>" + chart::escaped(title_) + "</h1>\n<p>" +
         chart::escaped(subtitle_) + "</p></header>\n<main>\n" + body_ +
         "</main>\n</body>\n</html>\n";
}

}  // namespace tally::cli
