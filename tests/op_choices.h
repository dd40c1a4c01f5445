#pragma once
#include <catch2/catch.hpp>

#include <algorithm>

#include "autograd/proof/proof.h"

namespace tally {

/// Declared == counted for every choice of wanted gradients, fresh and accumulating, in both
/// widths.
template <class O, size_t N>
void check_every_choice(const typename O::Attrs& attrs, const SampleInput (&inputs)[N]) {
  for (unsigned choice = 0; choice < (4u << N); ++choice) {
    const DType dtype = choice & 1 ? DType::counted_half : DType::counted;
    std::array<Tensor, N> in;
    Into<N> into;
    for (size_t i = 0; i < N; ++i) {
      in[i] = make_input(inputs[i], dtype, kReference);
      into.skip[i] = !inputs[i].differentiable || (choice >> (2 + i) & 1);
      if (choice & 2 && !into.skip[i]) into.target[i] = random_like(in[i], 50 + i);
    }
    if (std::find(into.skip.begin(), into.skip.end(), false) == into.skip.end()) continue;
    counted_calls().clear();
    typename O::Saved saved;
    auto y = std::apply([&](const auto&... t) { return O::forward(t..., attrs, &saved); }, in);
    if constexpr (std::is_same_v<decltype(y), Tensor>) {
      O::backward(random_like(y, 60), std::move(saved), into);
    } else {
      decltype(y) dy;
      dy[0] = random_like(y[0], 60);  // the others are statistics
      O::backward(dy, std::move(saved), into);
    }
    for (const CountedCall& c : counted_calls()) {
      INFO(c.call << ", choice " << choice << ": declared " << c.declared.flops << " FLOP, "
                  << c.declared.bytes_read << " B, " << c.declared.bytes_written << " B; counted "
                  << c.counted.flops << ", " << c.counted.bytes_read << ", "
                  << c.counted.bytes_written);
      CHECK(c.declared == c.counted);
    }
  }
}

}  // namespace tally
