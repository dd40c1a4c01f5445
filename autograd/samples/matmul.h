#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/matmul.h"

namespace tally::samples {

inline std::vector<Sample> matmul() {
  using O = ops::MatMul;
  std::vector<Sample> list = {
      sample<O>("5 x 7 by 7 x 3", {}, {normal({5, 7}, 1), normal({7, 3}, 2)}),
      sample<O>("a transposed", {true, false}, {normal({2, 7, 5}, 3), normal({2, 7, 3}, 4)}),
      sample<O>("b transposed", {false, true}, {normal({2, 5, 7}, 5), normal({2, 3, 7}, 6)}),
      sample<O>("both transposed", {true, true}, {normal({7, 5}, 7), normal({3, 7}, 8)}),
      sample<O>("batches repeat", {}, {normal({2, 1, 3, 4}, 9), normal({3, 4, 2}, 10)}),
      sample<O>("one matrix for a batch, transposed", {true, true},
                {normal({4, 3}, 11), normal({3, 2, 4}, 12)}),
      sample<O>("row by matrix", {}, {normal({7}, 13), normal({2, 7, 3}, 14)}),
      sample<O>("matrix by column", {}, {normal({2, 5, 7}, 15), normal({7}, 16)}),
      sample<O>("row by column", {}, {normal({7}, 17), normal({7}, 18)}),
      sample<O>("one element", {}, {normal({1, 1}, 19), normal({1, 1}, 20)}),
      sample<O>("odd sizes", {}, {normal({17, 33}, 21), normal({33, 19}, 22)}),
      sample<O>("one matrix for a batch of rows", {},
                {normal({3, 4, 18}, 27), normal({18, 5}, 28)}),
      sample<O>("many small ones", {}, {normal({15, 3, 5}, 29), normal({15, 5, 2}, 30)}),
      sample<O>("nothing to add up", {}, {normal({3, 0}, 23), normal({0, 4}, 24)}),
      sample<O>("no batches", {}, {normal({0, 2, 3}, 25), normal({3, 4}, 26)}),
      sample<O>("extreme values", {},
                {values({2, 3}, {0, 1e15, -1e-15, 30, -40, 1}), normal({3, 2}, 31)})
          .not_smooth(),
  };
  // Sizes (rows, depth, columns) around the tiles of a product, each under both orders of memory.
  uint64_t seed = 100;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const std::string how =
          std::string(ta ? ", a" : "") + (tb ? ", b" : "") + (ta || tb ? " transposed" : "");
      for (const Shape& n : product_sizes()) {
        const Shape a = ta ? Shape{n[1], n[0]} : Shape{n[0], n[1]};
        const Shape b = tb ? Shape{n[2], n[1]} : Shape{n[1], n[2]};
        list.push_back(
            sample<O>(to_text(n) + how, {ta, tb}, {normal(a, ++seed), normal(b, ++seed)}));
        list.back().derived = true;
      }
      const Shape a = ta ? Shape{2, 5, 3} : Shape{2, 3, 5},
                  b = tb ? Shape{2, 9, 5} : Shape{2, 5, 9};
      add_views(list, sample<O>("2 x 3 x 5 x 9" + how, {ta, tb}, {normal(a, 40), normal(b, 41)}),
                matrix_layouts());
    }
  }
  const Sample base = sample<O>("3 x 5 x 9", {}, {normal({3, 5}, 42), normal({5, 9}, 43)});
  add_numbers(list, base, all_numbers());
  add_numbers(list, base, {Numbers::zeros, Numbers::large}, 1);
  return list;
}

}  // namespace tally::samples
