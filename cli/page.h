#pragma once
#include <string>
#include <vector>

namespace tally::cli {

/// Rows of text as an HTML table; the first is the head. Cells that begin with a digit stand right.
std::string html_table(const std::vector<std::vector<std::string>>& rows);

/// One self-contained HTML file: sections beside each other on a wide screen, below each other on a
/// phone. No script, no other file.
class Page {
 public:
  Page(std::string title, std::string subtitle);
  /// A section from a picture (SVG) and a table; either may be empty. `wide` takes a whole row.
  void section(const std::string& title, const std::string& note, const std::string& picture,
               const std::string& table, bool wide = false);
  std::string html() const;

 private:
  std::string title_, subtitle_, body_;
};

}  // namespace tally::cli
