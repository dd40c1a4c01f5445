#include "cli/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tally::chart {
namespace {

// Small, so that text is still readable where the picture is as wide as a phone.
constexpr double kWidth = 480, kHeight = 300;
constexpr double kLeft = 58, kRight = 12, kTop = 10, kBottom = 42, kLegendLine = 17;
constexpr size_t kPoints = 400;
// Okabe and Ito's colours, told apart by colour-blind readers too.
constexpr std::array<const char*, 7> kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                "#e69f00", "#56b4e9", "#555555"};
const char* color(size_t i) { return kColors[i % kColors.size()]; }

// Where values lie on the picture.
struct Scale {
  bool logarithmic = false;
  double low = 0, high = 1, from = 0, to = 1;
  double at(double v) const {
    const double a = logarithmic ? std::log10(low) : low, b = logarithmic ? std::log10(high) : high,
                 x = logarithmic ? std::log10(v) : v;
    return from + (x - a) / (b - a) * (to - from);
  }
  bool shows(double v) const { return std::isfinite(v) && (!logarithmic || v > 0); }
  bool holds(double v) const { return shows(v) && v >= low && v <= high; }
};

struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
};

Scale make_scale(const Axis& axis, Range r, double from, double to) {
  Scale s{axis.logarithmic, 0, 1, from, to};
  if (r.low > r.high) r = axis.logarithmic ? Range{1, 10} : Range{0, 1};  // nothing to show
  if (axis.logarithmic) {
    s.low = axis.low.value_or(std::pow(10, std::floor(std::log10(r.low))));
    s.high = axis.high.value_or(std::pow(10, std::ceil(std::log10(r.high))));
    if (s.low >= s.high) s.high = s.low * 10;
    return s;
  }
  double low = axis.low.value_or(r.low), high = axis.high.value_or(r.high);
  if (low >= high) {  // one value only
    const double room = std::max(std::fabs(low) * 0.1, 1e-12);
    low -= axis.low ? 0 : room;
    high += room;
  }
  const double room = (high - low) * 0.05;
  s.low = axis.low ? low : (low >= 0 && low - room < 0 ? 0 : low - room);
  s.high = axis.high ? high : high + room;
  return s;
}

std::vector<double> scale_ticks(const Scale& s, int about) {
  if (!s.logarithmic) return ticks(s.low, s.high, about);
  std::vector<double> list;
  const int first = static_cast<int>(std::ceil(std::log10(s.low) - 1e-9)),
            last = static_cast<int>(std::floor(std::log10(s.high) + 1e-9));
  const int step = std::max(1, (last - first) / about + ((last - first) % about ? 1 : 0));
  for (int e = first; e <= last; e += std::max(1, step)) list.push_back(std::pow(10, e));
  return list;
}

// Points of a series in the order of x, thinned to the lowest and the highest of each stretch.
std::vector<std::pair<double, double>> thinned(const Series& s) {
  std::vector<std::pair<double, double>> all;
  for (size_t i = 0; i < std::min(s.x.size(), s.y.size()); ++i) all.push_back({s.x[i], s.y[i]});
  if (all.size() <= kPoints) return all;
  std::vector<std::pair<double, double>> few = {all.front()};
  const size_t stretch = (all.size() + kPoints / 2 - 1) / (kPoints / 2);
  for (size_t begin = 0; begin < all.size(); begin += stretch) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last =
        all.begin() + static_cast<std::ptrdiff_t>(std::min(begin + stretch, all.size()));
    auto [a, b] = std::minmax_element(
        first, last, [](const auto& p, const auto& q) { return p.second < q.second; });
    if (a > b) std::swap(a, b);
    few.push_back(*a);
    if (a != b) few.push_back(*b);
  }
  few.push_back(all.back());
  return few;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text,
                    const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, more, escaped(text));
}
std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                     style);
}

std::string draw_axes(const Axis& ax, const Axis& ay, const Scale& x, const Scale& y) {
  std::string out;
  for (double v : scale_ticks(y, 5)) {
    out += line(x.from, y.at(v), x.to, y.at(v), "grid");
    out += text_at(x.from - 5, y.at(v) + 4, "end", tick_text(v));
  }
  for (double v : scale_ticks(x, 6)) {
    out += line(x.at(v), y.from, x.at(v), y.to, "grid");
    const std::string text = tick_text(v);
    const double half = 3.6 * static_cast<double>(text.size());  // of its width, about
    const double at = std::min(x.at(v), kWidth - half);          // inside the picture
    out += text_at(at, y.from + 16, "middle", text);
  }
  out += line(x.from, y.from, x.to, y.from, "axis") + line(x.from, y.from, x.from, y.to, "axis");
  out += text_at((x.from + x.to) / 2, y.from + 34, "middle", ax.label);
  const double middle = (y.from + y.to) / 2;
  out += text_at(13, middle, "middle", ay.label,
                 fmt::format(" transform=\"rotate(-90 13 {:.1f})\"", middle).c_str());
  return out;
}

std::string dot(double x, double y, double radius, const char* fill) {
  return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", x, y, radius,
                     fill);
}

// A line through points side by side; one alone, which no line would show, is a dot.
std::string draw_stretch(const std::vector<std::pair<double, double>>& points, const Series& s,
                         size_t number) {
  std::string out, path;
  for (const auto& [x, y] : points) {
    if (s.dots || points.size() == 1)
      out += dot(x, y, 3.5, color(number));
    else
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
  }
  if (!path.empty())
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"{}/>\n",
                       path, color(number), s.dashed ? " stroke-dasharray=\"5 4\"" : "");
  return out;
}

std::string draw_series(const Series& s, size_t number, const Scale& x, const Scale& y) {
  std::string out;
  std::vector<std::pair<double, double>> stretch;
  for (const auto& [px, py] : thinned(s)) {
    if (x.shows(px) && y.shows(py)) {
      stretch.push_back({x.at(px), std::clamp(y.at(py), y.to, y.from)});
      continue;
    }
    out += draw_stretch(stretch, s, number);
    stretch.clear();
  }
  return out + draw_stretch(stretch, s, number);
}

// Names beside little strokes, in lines above the picture; returns the height they take.
std::string draw_legend(const std::vector<std::string>& names, double* height) {
  std::string out;
  double x = kLeft, y = kTop + 8;
  for (size_t i = 0; i < names.size(); ++i) {
    const double width = 24 + 7.2 * static_cast<double>(names[i].size());
    if (x > kLeft && x + width > kWidth - kRight) {
      x = kLeft;
      y += kLegendLine;
    }
    out += fmt::format(
        "<path d=\"M{:.1f} {:.1f}h12\" stroke=\"{}\" stroke-width=\"4\" fill=\"none\"/>\n", x,
        y - 4, color(i));
    out += text_at(x + 16, y, "start", names[i]);
    x += width;
  }
  *height = names.empty() ? 0 : y - kTop + 8;
  return out;
}

struct Box {
  double left, top, right, bottom;
  bool meets(const Box& b) const {
    return left < b.right && b.left < right && top < b.bottom && b.top < bottom;
  }
};

// Dots with their texts; a text takes the first place around its dot where it covers no other.
std::string draw_marks(const std::vector<Mark>& marks, const Scale& x, const Scale& y) {
  std::string out;
  std::vector<Box> taken;
  for (const Mark& m : marks) {
    if (!x.holds(m.x) || !y.holds(m.y)) continue;
    const double cx = x.at(m.x), cy = y.at(m.y);
    out += dot(cx, cy, 3, "#222");
    taken.push_back({cx - 3, cy - 3, cx + 3, cy + 3});
  }
  for (const Mark& m : marks) {
    if (!x.holds(m.x) || !y.holds(m.y)) continue;
    const double cx = x.at(m.x), cy = y.at(m.y), width = 7 * static_cast<double>(m.text.size());
    Box best{};
    for (int ring = 0; ring < 8; ++ring) {
      const double distance = 5 + 7 * ring;
      bool free = false;
      for (double angle : {0.5, -0.5, 2.6, -2.6, 1.57, -1.57}) {
        const double px = cx + distance * std::cos(angle) - (std::cos(angle) < -0.1 ? width : 0),
                     py = cy - distance * std::sin(angle) + 4;
        best = {px, py - 10, px + width, py + 2};
        free =
            px > x.from && best.right < x.to + 4 && best.top > y.to - 4 && best.bottom < y.from &&
            std::none_of(taken.begin(), taken.end(), [&](const Box& b) { return b.meets(best); });
        if (free) break;
      }
      if (free) break;
    }
    taken.push_back(best);
    out += text_at(best.left, best.bottom - 2, "start", m.text);
  }
  return out;
}

std::string framed(double height, const std::string& body) {
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" class=\"chart\">\n", kWidth,
                     height) +
         body + "</svg>\n";
}

}  // namespace

std::vector<double> ticks(double low, double high, int about) {
  std::vector<double> list;
  if (!(high > low) || about < 1) return list;
  const double raw = (high - low) / about, power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (double nice : {1.0, 2.0, 5.0}) {
    if (raw <= nice * power * (1 + 1e-9)) {
      step = nice * power;
      break;
    }
  }
  const double first = std::ceil(low / step - 1e-9);
  if (std::fabs(first) > 1e15) return list;  // there the next tick is the same number
  for (int i = 0; (first + i) * step <= high + step * 1e-9; ++i) list.push_back((first + i) * step);
  return list;
}

std::string tick_text(double v) {
  if (v == 0) return "0";
  const double size = std::fabs(v);
  constexpr std::array<const char*, 5> kUnits = {"", "k", "M", "G", "T"};
  if (size >= 1e15 || size < 1e-3) return fmt::format("{:.3g}", v);
  size_t unit = 0;
  for (double s = size; s >= 9999.5 && unit + 1 < kUnits.size(); s /= 1000) {
    v /= 1000;
    ++unit;
  }
  return fmt::format("{:.4g}{}", v, kUnits[unit]);
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 32 || c == '\n')
      out += c;
    else
      out += ' ';
  }
  return out;
}

std::string plot(const Axis& ax, const Axis& ay, const std::vector<Series>& series,
                 const std::vector<Mark>& marks) {
  Range rx, ry;
  std::vector<std::string> names;
  const Scale any_x{ax.logarithmic}, any_y{ay.logarithmic};
  for (const Series& s : series) {
    if (!s.name.empty()) names.push_back(s.name);
    for (size_t i = 0; i < std::min(s.x.size(), s.y.size()); ++i) {
      if (!any_x.shows(s.x[i]) || !any_y.shows(s.y[i])) continue;
      rx.add(s.x[i]);
      ry.add(s.y[i]);
    }
  }
  double legend = 0;
  std::string body = draw_legend(names.size() > 1 ? names : std::vector<std::string>(), &legend);
  const double height = kHeight + legend;
  const Scale x = make_scale(ax, rx, kLeft, kWidth - kRight),
              y = make_scale(ay, ry, height - kBottom, kTop + legend);
  body += draw_axes(ax, ay, x, y);
  for (size_t i = 0; i < series.size(); ++i) body += draw_series(series[i], i, x, y);
  return framed(height, body + draw_marks(marks, x, y));
}

std::string share_bars(const std::vector<std::string>& parts, const std::vector<Shares>& rows) {
  double legend = 0, y = 0;
  std::string body = draw_legend(parts, &legend);
  y = kTop + legend + 4;
  for (const Shares& row : rows) {
    double total = 0, x = kLeft;
    for (double v : row.values) total += v;
    body += text_at(kLeft - 6, y + 18, "end", row.name);
    for (size_t i = 0; total > 0 && i < row.values.size(); ++i) {
      const double share = row.values[i] / total, width = share * (kWidth - kLeft - kRight);
      body += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"26\" fill=\"{}\"/>\n", x, y,
          width, color(i));
      if (share >= 0.08)
        body += text_at(x + width / 2, y + 18, "middle", fmt::format("{:.1f}%", 100 * share),
                        " class=\"inside\"");
      x += width;
    }
    y += 36;
  }
  return framed(y + 4, body);
}

}  // namespace tally::chart
