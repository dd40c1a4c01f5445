#include "autograd/proof/likely_mistake.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace tally {
namespace {

using Numbers = GradientFacts::Numbers;
constexpr double kAlike = 1e-5;  // relative to the largest: far above rounding, far below a mistake

bool alike(const Numbers& a, const Numbers& b) {
  if (a.size() != b.size()) return false;
  const double scale = std::max(largest(a), largest(b));
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::fabs(a[i] - b[i]) <= kAlike * scale)) return false;
  }
  return true;
}

template <class F>
Numbers each(const Numbers& a, F&& f) {
  Numbers out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = f(i);
  return out;
}

// The factor c for which a = c n everywhere, if there is one.
std::optional<double> common_factor(const Numbers& a, const Numbers& n) {
  double an = 0, nn = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    an += a[i] * n[i];
    nn += n[i] * n[i];
  }
  if (nn == 0) return {};
  const double c = an / nn;
  if (c == 0 || !alike(a, each(n, [&](size_t i) { return c * n[i]; }))) return {};
  return c;
}

std::string about_factor(const GradientFacts& f, double c) {
  const std::string off = "off by a factor of " + to_text(std::round(c * 1e4) / 1e4);
  const Shape& shape = f.sample.inputs[static_cast<size_t>(f.input)].shape;
  std::vector<Shape> shapes = f.output_shapes;
  shapes.push_back(shape);
  for (const Shape& s : shapes) {
    std::vector<int64_t> counts(1, s.numel());
    for (int i = 0; i < s.ndim(); ++i) counts.push_back(s[i]);
    for (int64_t count : counts) {
      const double size = static_cast<double>(count);
      if (count > 2 && std::fabs(c * size - 1) < kAlike)
        return off + " = 1/" + to_text(count) + ": a mean is taken where a sum belongs";
      if (count > 2 && std::fabs(c / size - 1) < kAlike)
        return off + ": a sum is taken where a mean belongs";
    }
  }
  return off + ": a constant is forgotten or comes twice";
}

std::string about_whole(const GradientFacts& f, const Numbers& a, const Numbers& n) {
  for (double x : a) {
    if (!std::isfinite(x))
      return "not finite: a division by zero, or memory that was never written";
  }
  if (largest(a) == 0)
    return "zero everywhere: it is never written, or what was saved for it is stale";
  if (alike(a, each(n, [&](size_t i) { return -n[i]; }))) return "wrong sign";
  if (const auto c = common_factor(a, n)) return about_factor(f, *c);
  return "";
}

std::string about_place(const GradientFacts& f, const Numbers& a, const Numbers& n) {
  const Shape& shape = f.sample.inputs[static_cast<size_t>(f.input)].shape;
  const int64_t cols = shape.ndim() ? shape[-1] : 1, rows = cols ? shape.numel() / cols : 0;
  if (rows > 1 && cols > 1) {
    const auto turned = [&](size_t i) {  // element i of n seen as (cols, rows), transposed
      const size_t r = static_cast<size_t>(rows), c = static_cast<size_t>(cols);
      return n[i % r * c + i / r];
    };
    if (alike(a, each(a, turned))) return "transposed: rows and columns are mixed up";
  }
  for (size_t j = 0; j < f.numeric.size(); ++j) {
    if (static_cast<int>(j) == f.input || f.numeric[j].empty()) continue;
    if (alike(a, f.numeric[j]))
      return "this is the gradient of input " + to_text(j) + ": the inputs are mixed up";
  }
  for (int shift : {-1, 1}) {  // the same numbers, one place on
    const int64_t size = static_cast<int64_t>(a.size());
    int64_t same = 0, seen = 0;
    for (int64_t i = std::max(0, -shift); i < std::min(size, size - shift); ++i, ++seen) {
      const double difference =
          std::fabs(a[static_cast<size_t>(i)] - n[static_cast<size_t>(i + shift)]);
      same += difference <= kAlike * largest(n) ? 1 : 0;
    }
    if (seen > 2 && same >= seen - std::max<int64_t>(1, rows))
      return "moved by one place: an index is off by one";
  }
  return "";
}

// How the gradient depends on the upstream gradient tells a lost sum from a lost product.
std::string about_upstream(const GradientFacts& f, const Numbers& a) {
  const size_t k = static_cast<size_t>(f.input);
  const auto with = [&](auto&& change) {
    std::vector<Numbers> dy = f.upstream;
    for (size_t o = 0; o < dy.size(); ++o) {
      const Shape& s = f.output_shapes[o];
      const size_t cols = static_cast<size_t>(s.ndim() ? s[-1] : 1);
      for (size_t i = 0; i < dy[o].size(); ++i)
        dy[o][i] = change(dy[o][i], i / std::max<size_t>(cols, 1),
                          dy[o].size() / std::max<size_t>(cols, 1));
    }
    return f.analytic_for(dy)[k];
  };
  if (alike(a, with([](double x, size_t, size_t) { return 3 * x; }))) {
    return "does not depend on the upstream gradient: it is not multiplied by dy";
  }
  const bool many =
      f.output_shapes[0].ndim() > 1 && f.output_shapes[0].numel() > f.output_shapes[0][-1];
  const double size = static_cast<double>(a.size());
  const auto touched = [&](const Numbers& part) {  // elements that this part of dy reaches
    return static_cast<double>(std::count_if(part.begin(), part.end(),
                                             [&](double x) { return x != 0; })) > size / 2;
  };
  if (many) {
    const Numbers last =
        with([](double x, size_t row, size_t rows) { return row + 1 == rows ? x : 0; });
    if (touched(last) && alike(a, last))
      return "only the last row counts: = stands where += belongs";
    const Numbers first = with([](double x, size_t row, size_t) { return row == 0 ? x : 0; });
    if (touched(first) && alike(a, first))
      return "only the first row counts: the sum over rows is missing";
  }
  return "";
}

// Element by element: which known tensor is the quotient of what is and what should be?
std::string about_ratio(const GradientFacts& f, const Numbers& a, const Numbers& n) {
  struct Known {
    std::string name;
    const Numbers* values;
  };
  std::vector<Known> known;
  for (size_t j = 0; j < f.inputs.size(); ++j)
    known.push_back({"input " + to_text(j), &f.inputs[j]});
  for (size_t j = 0; j < f.outputs.size(); ++j)
    known.push_back({f.outputs.size() > 1 ? "output " + to_text(j) : "the output", &f.outputs[j]});
  std::erase_if(known, [&](const Known& x) { return x.values->size() != a.size(); });
  for (const Known& x : known) {
    const auto at = [&](size_t i) { return (*x.values)[i]; };
    if (common_factor(a, each(n, [&](size_t i) { return n[i] * at(i); })))
      return "a factor too much: " + x.name;
    if (common_factor(each(a, [&](size_t i) { return a[i] * at(i); }), n))
      return "the factor " + x.name + " of the chain rule is missing";
    for (const Known& y : known) {
      if (&x == &y) continue;
      const auto used = each(n, [&](size_t i) { return n[i] * (*y.values)[i]; });
      if (common_factor(each(a, [&](size_t i) { return a[i] * at(i); }), used))
        return "uses " + y.name + " where " + x.name + " belongs";
    }
  }
  for (size_t o = 0; o < f.upstream.size(); ++o) {
    if (f.upstream[o].size() != a.size()) continue;
    if (common_factor(a, f.upstream[o]))
      return "dy is handed on: the slope of the function is missing";
  }
  return "";
}

// The difference row by row: a constant is a missing mean, a multiple of an input a missing term.
std::string about_difference(const GradientFacts& f, const Numbers& a, const Numbers& n) {
  const Shape& shape = f.sample.inputs[static_cast<size_t>(f.input)].shape;
  const size_t cols = static_cast<size_t>(shape.ndim() ? shape[-1] : 1);
  if (cols < 3) return "";
  const Numbers d = each(a, [&](size_t i) { return a[i] - n[i]; });
  const auto along = [&](auto&& direction) {  // d = c direction on every row
    for (size_t row = 0; row < a.size(); row += cols) {
      double dd = 0, dx = 0, xx = 0;
      for (size_t i = row; i < row + cols; ++i) {
        const double x = direction(i);
        dd += d[i] * d[i];
        dx += d[i] * x;
        xx += x * x;
      }
      if (xx == 0 || dd - dx * dx / xx > kAlike * std::max(dd, 1e-300)) return false;
    }
    return true;
  };
  if (along([](size_t) { return 1.0; }))
    return "a term that is the same for the whole row is missing or wrong: a mean or a sum over "
           "the row";
  for (size_t j = 0; j < f.inputs.size(); ++j) {
    if (f.inputs[j].size() != a.size()) continue;
    if (along([&](size_t i) { return f.inputs[j][i]; }))
      return "a term that goes with input " + to_text(j) + " on each row is missing or wrong";
  }
  for (size_t o = 0; o < f.outputs.size(); ++o) {
    if (f.outputs[o].size() != a.size()) continue;
    if (along([&](size_t i) { return f.outputs[o][i]; }))
      return "a term that goes with the output on each row is missing or wrong";
  }
  return "";
}

std::string about_extent(const Numbers& a, const Numbers& n) {
  const double scale = largest(n);
  size_t wrong = 0, first = 0, zero = 0, last = 0;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::fabs(a[i] - n[i]));
    if (std::fabs(a[i] - n[i]) <= 1e-7 * scale) continue;
    if (wrong++ == 0) first = i;
    last = i;
    zero += a[i] == 0 ? 1 : 0;
  }
  if (wrong > 0 && wrong * 3 <= a.size()) {
    return to_text(wrong) + " of " + to_text(a.size()) + " elements differ, between " +
           to_text(first) + " and " + to_text(last) + (zero == wrong ? " (they are 0)" : "") +
           ": a border, a mask or an index is off by one";
  }
  if (worst < 0.02 * scale)
    return "a little off everywhere: an epsilon in the wrong place, or a constant that is not "
           "exact";
  return "wrong formula: a term is missing or too much";
}

}  // namespace

double largest(const std::vector<double>& numbers) {
  double m = 0;
  for (double x : numbers) m = std::max(m, std::fabs(x));
  return m;
}

std::string likely_mistake(const GradientFacts& f) {
  const Numbers& a = f.analytic[static_cast<size_t>(f.input)];
  const Numbers& n = f.numeric[static_cast<size_t>(f.input)];
  std::string text = about_whole(f, a, n);
  if (text.empty()) text = about_place(f, a, n);
  if (text.empty()) text = about_upstream(f, a);
  if (text.empty()) text = about_ratio(f, a, n);
  if (text.empty()) text = about_difference(f, a, n);
  return text.empty() ? about_extent(a, n) : text;
}

}  // namespace tally
