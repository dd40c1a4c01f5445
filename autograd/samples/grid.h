#pragma once
#include "autograd/proof/sample.h"

namespace tally::samples {

// What every op must stand beside the samples that are its own: products of shapes, layouts and
// numbers, each of which breaks another kind of loop.

/// For loops over elements: none, one, around and between the vectors of the instruction sets,
/// axes of 0 and 1 at each place.
const std::vector<Shape>& element_shapes();
/// For loops over rows of a width: narrow, around a vector, more rows than columns, a batch.
const std::vector<Shape>& row_shapes();

/// (rows, depth, columns) of products: vectors, and around the tiles of fast ones.
const std::vector<Shape>& product_sizes();

/// make(name, shape, seed) for each of the shapes.
template <class Make>
void add_shapes(std::vector<Sample>& list, const std::vector<Shape>& shapes, Make make) {
  uint64_t seed = 1000;
  for (const Shape& shape : shapes) {
    list.push_back(make("of " + to_text(shape), shape, seed += 10));
    list.back().derived = true;
  }
}

/// Layouts in which rows stay whole: those that every op serves.
const std::vector<Layout>& row_layouts();
/// Those of an op that takes whole matrices in either order of memory.
const std::vector<Layout>& matrix_layouts();
/// Layouts of an op that takes any strides.
const std::vector<Layout>& all_layouts();

/// Copies of `s`, each with one input in one of the layouts. `inputs`: which, none named: all.
void add_views(std::vector<Sample>& list, const Sample& s, const std::vector<Layout>& layouts,
               const std::vector<size_t>& inputs = {});

/// Numbers that loops treat unlike ordinary ones, from ordinary ones.
enum class Numbers : uint8_t {
  zeros,
  equal,    // all of them 0.5: ties, no variance
  tiny,     // times 1e-12
  large,    // times 1e4
  outlier,  // one is 3000
  steps     // rounded to halves: ties here and there, exact sums
};
/// Copies of `s` whose input `input` has such numbers; proven by the adjoint alone.
void add_numbers(std::vector<Sample>& list, const Sample& s, const std::vector<Numbers>& numbers,
                 size_t input = 0);
/// All of them.
const std::vector<Numbers>& all_numbers();

}  // namespace tally::samples
