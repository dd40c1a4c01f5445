// Wrong costs, written on purpose: each is caught, and named.
#include <catch2/catch.hpp>

#include "autograd/proof/proof.h"
#include "backends/register_all.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

struct Views {
  In x, w;
  Out y;
};

// y = x + w with a cost that may be wrong; loops may skip what is 0.
template <class Rule>
struct Costed {
  static constexpr const char* name = "costed";
  struct Attrs {};
  struct Saved {};
  struct Forward {
    static constexpr const char* name = "costed.forward";
    static constexpr Kind kind = Kind::elementwise;
    In x, w;
    Out y;
    auto views() const { return std::tie(x, w, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const { return Rule::cost({x, w, y}); }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d) {
          if (Rule::skips && i == 1)
            y.put(y.row<T>(i)[d], A(0));
          else
            y.put(y.row<T>(i)[d], A(x.row<T>(i)[d]) + A(w.row<T>(i)[d]));
        }
      }
    }
  };
  static Tensor forward(const Tensor& x, const Tensor& w, const Attrs&, Saved*) {
    Tensor y = empty_like(x);
    run(x.device(), Forward{x, w, y});
    return y;
  }
};

template <class Rule>
ProofResult prove_cost_of() {
  register_all();
  register_proof_kernels<typename Costed<Rule>::Forward>();
  return prove_cost(
      sample<Costed<Rule>>("3 rows of 4", {}, {normal({3, 4}, 1), normal({3, 4}, 2)}));
}

struct RightCost {
  static constexpr bool skips = false;
  static Cost cost(const Views& c) {
    return flops(static_cast<double>(c.x.numel())) + reads(c.x, c.w) + writes(c.y);
  }
};

struct SkippedBranch : RightCost {
  static constexpr bool skips = true;  // one row costs nothing, the declaration does not know
};

}  // namespace

TEST_CASE("cost proof: a right cost passes, each wrong one is caught", "[proof]") {
  CHECK(prove_cost_of<RightCost>().ok());

  struct OneFlop : RightCost {
    static Cost cost(const Views& c) { return RightCost::cost(c) + flops(1); }
  };
  const ProofResult flop = prove_cost_of<OneFlop>();
  CHECK(flop.error == 1);
  CHECK_THAT(flop.note,
             Contains("costed.forward: declared 13 FLOP") && Contains("counted 12 FLOP"));

  struct LostInput : RightCost {
    static Cost cost(const Views& c) {
      return flops(static_cast<double>(c.x.numel())) + reads(c.x) + writes(c.y);
    }
  };
  CHECK(prove_cost_of<LostInput>().error == 12 * static_cast<double>(size_of(DType::counted)));

  struct OutputTwice : RightCost {
    static Cost cost(const Views& c) { return RightCost::cost(c) + writes(c.y); }
  };
  CHECK_FALSE(prove_cost_of<OutputTwice>().ok());

  const ProofResult skipped = prove_cost_of<SkippedBranch>();
  CHECK_FALSE(skipped.ok());
  CHECK_THAT(skipped.note, Contains("declared 12 FLOP") && Contains("counted 8 FLOP"));
}

TEST_CASE("cost proof: a bound may be larger than what was counted, not smaller", "[proof]") {
  register_all();
  register_proof_kernels<Costed<SkippedBranch>::Forward>();
  register_proof_kernels<Costed<RightCost>::Forward>();
  CHECK(prove_cost(
            sample<Costed<SkippedBranch>>("bounded", {}, {normal({3, 4}, 1), normal({3, 4}, 2)})
                .bounded())
            .ok());
  struct TooSmall : RightCost {
    static Cost cost(const Views& c) {
      return flops(static_cast<double>(c.x.numel()) - 1) + reads(c.x, c.w) + writes(c.y);
    }
  };
  register_proof_kernels<Costed<TooSmall>::Forward>();
  CHECK_FALSE(
      prove_cost(
          sample<Costed<TooSmall>>("bounded", {}, {normal({3, 4}, 1), normal({3, 4}, 2)}).bounded())
          .ok());
}
