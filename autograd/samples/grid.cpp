#include "autograd/samples/grid.h"

#include <algorithm>
#include <cmath>

namespace tally::samples {
namespace {

const char* name_of(Numbers n) {
  static const char* const names[] = {"zeros",         "equal numbers", "tiny numbers",
                                      "large numbers", "an outlier",    "steps of a half"};
  return names[static_cast<int>(n)];
}

double changed(Numbers n, double v, bool in_the_middle) {
  switch (n) {
    case Numbers::zeros:
      return 0;
    case Numbers::equal:
      return 0.5;
    case Numbers::tiny:
      return v * 1e-12;
    case Numbers::large:
      return v * 1e4;
    case Numbers::outlier:
      return in_the_middle ? 3000 : v;
    case Numbers::steps:
      return std::round(2 * v) / 2;
  }
  return v;
}

}  // namespace

const std::vector<Shape>& element_shapes() {
  static const std::vector<Shape> all = {{},     {0},    {1},    {2},    {7},       {8},
                                         {9},    {16},   {17},   {33},   {65},      {0, 3},
                                         {3, 0}, {1, 5}, {5, 1}, {3, 9}, {2, 1, 3}, {2, 3, 1, 17}};
  return all;
}

const std::vector<Shape>& row_shapes() {
  static const std::vector<Shape> all = {{1, 1},  {1, 2},  {3, 1},    {2, 3},      {3, 8},
                                         {3, 9},  {2, 16}, {2, 17},   {1, 33},     {2, 65},
                                         {17, 2}, {0, 3},  {2, 3, 5}, {2, 1, 2, 7}};
  return all;
}

const std::vector<Shape>& product_sizes() {
  static const std::vector<Shape> all = {{1, 1, 1},  {1, 2, 3},    {3, 1, 2},    {2, 3, 1},
                                         {1, 9, 33}, {33, 9, 1},   {9, 33, 1},   {7, 8, 9},
                                         {9, 1, 17}, {16, 16, 16}, {13, 17, 15}, {1, 65, 2},
                                         {0, 3, 2},  {2, 0, 3},    {2, 3, 0}};
  return all;
}

const std::vector<Layout>& row_layouts() {
  static const std::vector<Layout> all = {Layout::rows_apart, Layout::every_second_row,
                                          Layout::repeated};
  return all;
}

const std::vector<Layout>& matrix_layouts() {
  static const std::vector<Layout> all = {Layout::rows_apart, Layout::every_second_row,
                                          Layout::transposed, Layout::turned, Layout::repeated};
  return all;
}

const std::vector<Layout>& all_layouts() {
  static const std::vector<Layout> all = {
      Layout::rows_apart, Layout::every_second_row, Layout::every_second_column,
      Layout::transposed, Layout::turned,           Layout::repeated};
  return all;
}

void add_views(std::vector<Sample>& list, const Sample& from, const std::vector<Layout>& layouts,
               const std::vector<size_t>& inputs) {
  const Sample s = from;  // which may be in the list
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const SampleInput& in = s.inputs[i];
    if (!in.present) continue;
    if (!inputs.empty() && std::find(inputs.begin(), inputs.end(), i) == inputs.end()) continue;
    for (const Layout layout : layouts) {
      if (!can_lie(in.shape, layout)) continue;
      Sample view = s;
      view.name += ", input " + to_text(i) + " " + tally::name_of(layout);
      view.inputs[i] = laid_out(in, layout);
      view.derived = true;
      // Memory that is repeated is read once; what is declared is each element.
      view.bounded_cost = view.bounded_cost || layout == Layout::repeated;
      list.push_back(std::move(view));
    }
  }
}

void add_numbers(std::vector<Sample>& list, const Sample& from, const std::vector<Numbers>& numbers,
                 size_t input) {
  const Sample s = from;
  for (const Numbers n : numbers) {
    Sample other = s;
    other.name += ", " + std::string(name_of(n)) + (input > 0 ? " of input " + to_text(input) : "");
    std::vector<double>& v = other.inputs[input].values;
    for (size_t k = 0; k < v.size(); ++k) v[k] = changed(n, v[k], k == v.size() / 2);
    other.smooth = false;
    other.derived = true;
    list.push_back(std::move(other));
  }
}

const std::vector<Numbers>& all_numbers() {
  static const std::vector<Numbers> all = {Numbers::zeros, Numbers::equal,   Numbers::tiny,
                                           Numbers::large, Numbers::outlier, Numbers::steps};
  return all;
}

}  // namespace tally::samples
