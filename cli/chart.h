#pragma once
#include <optional>
#include <string>
#include <vector>

// Pictures as SVG text, for pages that open offline: no script, no font, no other file.
namespace tally::chart {

/// One line (or cloud of dots) over x; a value that is not finite breaks the line.
struct Series {
  std::string name;
  std::vector<double> x, y;
  bool dots = false;    // dots instead of a line
  bool dashed = false;  // a ceiling, a limit
};

/// What an axis shows, with its unit: "loss (nats per token)".
struct Axis {
  std::string label;
  bool logarithmic = false;
  std::optional<double> low{}, high{};  // else from the values
};

/// A dot with a short text beside it: the peak, the number of an op.
struct Mark {
  double x = 0, y = 0;
  std::string text;
};

/// Lines and dots over two axes, with ticks, grid, legend. More than about 400 points of a series
/// are thinned to the extremes of equal stretches of x.
std::string plot(const Axis& x, const Axis& y, const std::vector<Series>& series,
                 const std::vector<Mark>& marks = {});

/// A horizontal bar for each row, cut into one part for each of `parts`; every row adds up to its
/// own total. Shares below 8 % carry no figure.
struct Shares {
  std::string name;
  std::vector<double> values;
};
std::string share_bars(const std::vector<std::string>& parts, const std::vector<Shares>& rows);

/// Values of an axis that people read easily (1, 2, 5 times a power of ten), within low..high.
std::vector<double> ticks(double low, double high, int about);
/// 1234567 as "1.23M", 0.00012 as "1.2e-4": at most four figures.
std::string tick_text(double value);
/// Text for use between tags and in attributes.
std::string escaped(const std::string& text);

}  // namespace tally::chart
