// The closed forms of `account --algebra` against what the run on meta counted.
#include <catch2/catch.hpp>
#include <cmath>

#include "backends/register_all.h"
#include "models/algebra.h"
#include "models/zoo.h"

using namespace tally;

TEST_CASE("algebra: every formula that something counts equals the count, for every preset",
          "[account]") {
  register_all();
  for (const Preset& p : presets()) {
    RunConfig c = p.config;
    c.resolve_and_check(p.name);
    if (c.model.architecture != Architecture::decoder) continue;
    for (int mode = 0; mode < 3; ++mode) {
      ReportOptions o;
      o.batch = 3;
      o.seq = 24;
      o.train = mode == 0;
      o.decode = mode == 1;
      const Report r = make_report(c.model, o);
      int checked = 0;
      for (const Formula& f : algebra(r)) {
        INFO(p.name << ", mode " << mode << ": " << f.what << " = " << f.formula << " = "
                    << f.numbers);
        CHECK(std::isfinite(f.value));
        CHECK_FALSE(f.unit.empty());
        if (!std::isfinite(f.counted) || f.what == "rule of thumb") continue;
        CHECK(f.value == Approx(f.counted).epsilon(1e-12));
        ++checked;
      }
      CHECK(checked >= 9);
    }
  }
}

TEST_CASE("algebra: the formulas hold for every position scheme", "[account]") {
  register_all();
  for (Position position : {Position::none, Position::learned, Position::rope, Position::sinusoidal,
                            Position::alibi, Position::t5_bias, Position::xl_relative}) {
    RunConfig c = find_preset("llama-smoke").config;
    c.model.position = position;
    c.resolve_and_check("llama-smoke");
    for (int mode = 0; mode < 3; ++mode) {
      ReportOptions o;
      o.batch = 3, o.seq = 24, o.train = mode == 0, o.decode = mode == 1;
      const Report r = make_report(c.model, o);
      for (const Formula& f : algebra(r)) {
        INFO("position " << static_cast<int>(position) << ", mode " << mode << ": " << f.what);
        if (std::isfinite(f.counted) && f.what != "rule of thumb")
          CHECK(f.value == Approx(f.counted).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("algebra: the lecture's figures", "[account]") {
  register_all();
  RunConfig llama = find_preset("llama-3-8b").config;
  llama.resolve_and_check("llama-3-8b");
  ReportOptions o;
  o.seq = 8192;
  o.train = true;
  const Report r = make_report(llama.model, o);
  const auto value = [&](const std::string& what) -> double {
    for (const Formula& f : algebra(r)) {
      if (f.what == what) return f.value;
    }
    FAIL("no line for " << what);
    return NAN;
  };
  CHECK(value("all") == 8030261248.0);
  CHECK(value("model FLOPs, full attention") == Approx(4.7442e14).epsilon(1e-4));
  CHECK(value("all three (L81)") == 16 * 8030261248.0);
  CHECK(value("KV cache of a token") == 2.0 * 32 * 8 * 128 * 4);
}
