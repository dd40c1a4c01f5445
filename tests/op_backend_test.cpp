// Every backend against the reference and against meta, generic over the sample table.
#include <cstdio>
#include <map>

#include "core/host_backend.h"
#include "core/ops/all.h"
#include "core/parallel.h"
#include "tests/large_samples.h"
#include "tests/samples.h"

using namespace tally;

namespace {

// A backend that stands for a kernel writer's: memory like the host's, one kernel of its own.
Device faulty_device() {
  static const Device device = register_backend(std::make_unique<HostBackend>("faulty"));
  return device;
}

const Sample& linear_sample() {
  static const Sample s =
      sample<ops::Linear>("one row", {}, {normal({1, 64}, 1), normal({3, 64}, 2), absent()});
  return s;
}

template <class Sum>
ProofResult prove_linear_with(Sum sum) {
  set_up_proofs();
  kernels<ops::Linear::Forward>[faulty_device().kind][static_cast<size_t>(DType::f32)] = sum;
  return prove_backend(linear_sample(), faulty_device(), DType::f32);
}

}  // namespace

TEST_CASE("every op: the cpu backend equals the reference within what rounding can do", "[op]") {
  constexpr std::array types{DType::f32, DType::f64, DType::bf16};
  struct Largest {
    double ulp = 0, of_bound = 0;
  };
  std::map<std::string, std::array<Largest, types.size()>> table;
  for (size_t t = 0; t < types.size(); ++t) {
    prove_all([&](const Sample& s) {
      const ProofResult r = prove_backend(s, kCPU, types[t]);
      Largest& row = table[s.op][t];
      row.ulp = std::max(row.ulp, r.ulp);
      row.of_bound = std::max(row.of_bound, r.error);
      return r;
    });
  }
  std::printf(
      "largest difference of cpu and reference, in units in the last place of the "
      "largest number of a tensor, and as a part of the bound\n%-24s",
      "op");
  for (const DType dtype : types) std::printf("%12s%10s", to_text(dtype).c_str(), "of bound");
  for (const auto& [op, row] : table) {
    std::printf("\n%-24s", op.c_str());
    for (const Largest& l : row) std::printf("%12.3g%10.2g", l.ulp, l.of_bound);
  }
  std::printf("\n");
}

TEST_CASE("large shapes: the cpu backend equals the reference within what rounding can do",
          "[op]") {
  set_up_proofs();
  for (const Sample& s : large_samples()) {
    const ProofResult r = prove_backend(s, kCPU, DType::f32);
    INFO(r.op << " '" << r.sample << "': " << r.note);
    CHECK(r.ok());
  }
}

TEST_CASE("infinities and NaN: the cpu backend gives what the reference gives", "[op]") {
  using namespace tally::ops;
  set_up_proofs();
  std::vector<double> numbers(5 * 40);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<double>(i));
  numbers[17] = NAN;                                             // inside a row
  numbers[40] = numbers[79] = NAN;                               // at its ends
  numbers[90] = INFINITY;                                        // overflow
  for (size_t j = 0; j < 40; ++j) numbers[120 + j] = -INFINITY;  // nothing else
  numbers[165] = -INFINITY;                                      // one of them
  const auto prove = [&]<class O>(std::type_identity<O>, const typename O::Attrs& attrs) {
    const SampleInput x = values({5, 40}, numbers);
    Sample s;
    if constexpr (requires { attrs.scale; }) {
      s = sample<O>("special numbers", attrs, {x, absent()});
    } else {
      s = sample<O>("special numbers", attrs, {x});
    }
    const ProofResult r = prove_backend(s, kCPU, DType::f32);
    INFO(r.op << ": " << r.note);
    CHECK(r.ok());
  };
  prove(std::type_identity<Softmax>{}, {});
  prove(std::type_identity<LogSoftmax>{}, {});
  for (int64_t axis : {0, 1}) {
    prove(std::type_identity<AMax>{}, {{axis}});
    prove(std::type_identity<AMin>{}, {{axis}});
    prove(std::type_identity<LogSumExp>{}, {{axis}});
    prove(std::type_identity<Sum>{}, {{axis}});
    prove(std::type_identity<Norm>{}, {{axis}});
    prove(std::type_identity<Var>{}, {{axis}});
  }
}

TEST_CASE("every op: the bits do not depend on the number of threads", "[op][threads][F48]") {
  for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    prove_all([&](const Sample& s) { return prove_threads(s, kCPU, dtype); });
    for (const Sample& s : large_samples()) {
      const ProofResult r = prove_threads(s, kCPU, dtype);
      INFO(r.op << " '" << r.sample << "': " << r.note);
      CHECK(r.ok());
    }
  }
}

TEST_CASE("every op: a run on meta has the ledger and the peak memory of a real run",
          "[op][memory]") {
  for (Device device : {kReference, kCPU}) {
    for (DType dtype : {DType::f32, DType::bf16}) {
      prove_all([&](const Sample& s) { return prove_meta(s, device, dtype); });
    }
  }
}

TEST_CASE("the rounding bound of a product is K u sum|terms|, in any order", "[proof]") {
  set_up_proofs();
  const double u = rounding_of(DType::f32).unit;
  rounding() = rounding_of(DType::f32);
  Rounded sum(0);
  double terms = 0;
  for (int k = 0; k < 100; ++k) {
    const Rounded product = Rounded::term(std::sin(k), 0) * Rounded::term(std::cos(3 * k), 0);
    sum += product;
    terms += std::fabs(product.v);
  }
  // 100 additions, and one unit for each product.
  CHECK(sum.error() == Approx(101 * u * terms).epsilon(1e-6));
  rounding() = {};
}

TEST_CASE("the backend proof takes another order of a sum, not another sum", "[proof]") {
  using Call = ops::Linear::Forward;
  const auto backwards = [](const Call& c) {
    for (int64_t o = 0; o < c.w.rows(); ++o) {
      float sum = 0;
      for (int64_t i = c.w.cols() - 1; i >= 0; --i)
        sum += c.x.row<float>(0)[i] * c.w.row<float>(o)[i];
      c.y.row<float>(0)[o] = sum;
    }
  };
  CHECK(prove_linear_with(backwards).ok());

  const auto narrow_sum = [](const Call& c) {  // the sum is kept in bf16
    for (int64_t o = 0; o < c.w.rows(); ++o) {
      bf16 sum(0.0F);
      for (int64_t i = 0; i < c.w.cols(); ++i)
        sum = bf16(static_cast<float>(sum) + c.x.row<float>(0)[i] * c.w.row<float>(o)[i]);
      c.y.row<float>(0)[o] = static_cast<float>(sum);
    }
  };
  const ProofResult narrow = prove_linear_with(narrow_sum);
  INFO(narrow.note);
  CHECK(narrow.error > 10);

  const auto short_sum = [](const Call& c) {  // the last term is left out
    for (int64_t o = 0; o < c.w.rows(); ++o) {
      float sum = 0;
      for (int64_t i = 0; i + 1 < c.w.cols(); ++i)
        sum += c.x.row<float>(0)[i] * c.w.row<float>(o)[i];
      c.y.row<float>(0)[o] = sum;
    }
  };
  CHECK(prove_linear_with(short_sum).error > 10);

  const auto not_a_number = [](const Call& c) {
    for (int64_t o = 0; o < c.w.rows(); ++o) c.y.row<float>(0)[o] = NAN;
  };
  CHECK_FALSE(prove_linear_with(not_a_number).ok());
}
