// Plans of a step's memory, the arena that follows them, and programs that are played again.
#include <catch2/catch.hpp>
#include <thread>

#include "autograd/functional.h"
#include "autograd/tape.h"
#include "core/arena.h"
#include "core/host_backend.h"
#include "core/ops/accumulate.h"
#include "core/program.h"
#include "core/random.h"
#include "tests/registered.h"

using namespace tally;
using Catch::Matchers::Contains;
using Block = MemoryTrace::Block;

namespace {

/// Allocations and releases in random order; sizes over five orders of magnitude, some never
/// released.
std::vector<Block> random_trace(uint64_t seed, size_t count) {
  std::vector<Block> blocks;
  std::vector<size_t> alive;
  uint64_t now = 0, draw = 0;
  const auto next = [&](uint64_t below) { return Philox::word(seed, 1, draw++) % below; };
  while (blocks.size() < count) {
    if (!alive.empty() && next(100) < 48) {
      const size_t i = next(alive.size());
      blocks[alive[i]].died = ++now;
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      alive.push_back(blocks.size());
      blocks.push_back(
          {size_t{1} + next(10) * (size_t{1} << next(16)), ++now, MemoryTrace::kNever});
    }
  }
  for (const size_t i : alive) {
    if (next(2)) blocks[i].died = ++now;
  }
  return blocks;
}

bool overlap(const Block& a, const Block& b) { return a.born < b.died && b.born < a.died; }

Tensor numbers(int64_t n, Device device = kCPU) { return empty({n}, DType::f32, device); }

/// The plan of tensors that live together, two of `bytes` and one twice as large.
MemoryPlan three(int64_t n) {
  return plan_memory([n](MemoryTrace&) {
    const Tensor a = numbers(n, kMeta), b = numbers(n, kMeta);
    const Tensor c = numbers(2 * n, kMeta);
  });
}

std::vector<float> values(const Tensor& t) { return to_host<float>(t); }

}  // namespace

TEST_CASE("memory plan: no two blocks that are alive at once overlap, in 200 random traces",
          "[memory]") {
  double waste = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<Block> trace = random_trace(seed, 2 + seed);
    const MemoryPlan plan = plan_memory(trace);
    REQUIRE(plan.blocks.size() == trace.size());
    bool clean = true;
    for (size_t i = 0; i < trace.size(); ++i) {
      const auto& a = plan.blocks[i];
      clean = clean && a.bytes == trace[i].bytes && a.offset % MemoryPlan::kAlign == 0 &&
              a.offset + a.bytes <= plan.arena_bytes;
      for (size_t j = 0; j < i; ++j) {
        const auto& b = plan.blocks[j];
        clean = clean && (!overlap(trace[i], trace[j]) || a.offset + a.bytes <= b.offset ||
                          b.offset + b.bytes <= a.offset);
      }
    }
    INFO("seed " << seed);
    CHECK(clean);
    CHECK(plan.arena_bytes >= plan.live_peak);
    // Places are aligned: a handful of small blocks cannot fill theirs.
    const size_t least = std::max(plan.live_peak, MemoryPlan::kAlign * trace.size());
    waste = std::max(waste, static_cast<double>(plan.arena_bytes) / static_cast<double>(least));
  }
  CHECK(waste < 1.6);
}

TEST_CASE("memory plan: a trace lists what lives when, and its peak is the backend's", "[memory]") {
  backend(kMeta).reset_peak();
  const size_t before = backend(kMeta).memory().live;
  const MemoryPlan plan = plan_memory([](MemoryTrace& trace) {
    trace.begin_section();
    const Tensor kept = numbers(100, kMeta);
    { const Tensor gone = numbers(300, kMeta), nothing = numbers(0, kMeta); }
    trace.begin_section();
    const Tensor view = kept.narrow(0, 0, 5), other = numbers(200, kMeta);
  });
  REQUIRE(plan.blocks.size() == 3);  // nothing and views take no place
  CHECK(plan.sections == std::vector<size_t>{0, 2});
  CHECK(plan.live_peak == 1600);
  CHECK(plan.live_peak == backend(kMeta).memory().peak - before);
  CHECK(plan.arena_bytes == 448 + 1216);
  CHECK(plan.blocks[1].offset == plan.blocks[2].offset);  // never alive together
}

TEST_CASE("arena: allocations take their planned places, again in every step", "[memory]") {
  const auto arena = Arena::create(three(100), kCPU);
  const void* places[3] = {};
  const size_t live = backend(kCPU).memory().live;
  for (int step = 0; step < 3; ++step) {
    const UseMemory use(*arena);
    arena->begin_step();
    const Tensor a = numbers(100), b = numbers(100), c = numbers(200);
    const void* now[3] = {a.data(), b.data(), c.data()};
    for (int i = 0; i < 3; ++i) {
      if (step > 0) CHECK(now[i] == places[i]);
      places[i] = now[i];
      CHECK(reinterpret_cast<uintptr_t>(now[i]) % 64 == 0);
    }
    CHECK(arena->stats().planned == 3);
    CHECK(arena->stats().unplanned == 0);
    CHECK(arena->stats().live == 3);
    CHECK(backend(kCPU).memory().live == live + 1600);  // counted as without a plan
  }
  CHECK(arena->stats().live == 0);
  CHECK(backend(kCPU).memory().live == live);
}

TEST_CASE("arena: a step that departs from its plan is counted and corrupts nothing", "[memory]") {
  const auto arena = Arena::create(three(100), kCPU);
  Tensor held;
  {
    const UseMemory use(*arena);
    arena->begin_step();
    held = full({100}, 7, DType::f32, kCPU);
    CHECK(arena->stats().planned == 1);
    const Tensor odd = full({55}, 1, DType::f32, kCPU), b = full({100}, 2, DType::f32, kCPU);
    CHECK(arena->stats().unplanned == 1);
    CHECK(arena->stats().unplanned_bytes == 220);
    CHECK(arena->stats().planned == 2);  // the plan goes on behind what it does not know
    CHECK(values(odd) == std::vector<float>(55, 1));
  }
  {
    const UseMemory use(*arena);
    arena->begin_step();
    const Tensor a = full({100}, 3, DType::f32, kCPU), b = full({100}, 4, DType::f32, kCPU),
                 c = full({200}, 5, DType::f32, kCPU), more = full({1}, 6, DType::f32, kCPU);
    CHECK(arena->stats().unplanned == 2);  // the place that is still held, and one too many
    CHECK(a.data() != held.data());
    CHECK(values(held) == std::vector<float>(100, 7));
    CHECK(values(b) == std::vector<float>(100, 4));
  }
  CHECK_THROWS_WITH(arena->check_empty(), Contains("1 tensors of a step before"));
  held = {};
  arena->check_empty();
  CHECK_THROWS_WITH(arena->begin_section(0), Contains("has 0 sections"));
}

TEST_CASE("arena: a strict one refuses what was not planned, by name", "[memory][error]") {
  const auto arena = Arena::create(three(100), kCPU, Arena::OnDeparture::fail);
  const UseMemory use(*arena);
  arena->begin_step();
  const Tensor a = numbers(100);
  CHECK_THROWS_WITH(numbers(99), Contains("departs from its plan; allocation 1 of 3 asks for 396 "
                                          "bytes, planned are 400"));
  CHECK(numbers(100).defined());
}

TEST_CASE("arena: outlived by its tensors, which may go on another thread", "[memory]") {
  auto arena = Arena::create(three(50), kCPU);
  Tensor a;
  {
    const UseMemory use(*arena);
    arena->begin_step();
    a = full({50}, 3, DType::f32, kCPU);
  }
  arena.reset();
  std::thread([t = std::move(a)]() mutable {
    CHECK(values(t) == std::vector<float>(50, 3));
    t = {};
  }).join();
}

TEST_CASE("program: plays recorded calls again on new inputs, step values and random streams",
          "[program]") {
  for (const bool planned : {false, true}) {
    Generator g(3);
    const Tensor x = full({64}, 1, DType::f32, kCPU), w = full({64}, 0.5, DType::f32, kCPU);
    const Tensor like = numbers(64, kMeta);
    Generator of_meta;
    const auto work = [&](const Tensor& in, Generator& streams) {
      const Tensor a = mul(dropout(in, 0.5, streams), full({64}, 2, DType::f32, in.device()));
      return sum(dropout(add(a, a), 0.25, streams));
    };
    const auto arena = Arena::create(plan_memory([&](MemoryTrace&) { work(like, of_meta); }), kCPU);
    Program program;
    size_t output = 0;
    {
      std::unique_ptr<UseMemory> use;
      if (planned) use = std::make_unique<UseMemory>(*arena);
      arena->begin_step();
      Program::Capture capture(program, {0, 1, g.position()});
      const Tensor y = work(x, g);
      output = program.output(y);
      capture.finish(g.position());
      CHECK(arena->stats().unplanned == 0);
    }
    CHECK(program.streams() == 2);
    CHECK(program.size() == 6);
    for (int step = 0; step < 4; ++step) {
      x.storage().note_write("test");
      backend(kCPU).copy_from_host(x.data(), std::vector<float>(64, float(step)).data(),
                                   x.nbytes());
      const uint64_t start = g.position();
      const float want = values(work(x, g))[0];
      program.run({0, 1, start});
      CHECK(program.value(output) == want);
    }
  }
}

TEST_CASE("program: what cannot be played again is refused by name", "[program][error]") {
  Program program;
  const Tensor x = full({4}, 1, DType::f32, kCPU);
  {
    Program::Capture capture(program, {});
    CHECK_THROWS_WITH(to_host<float>(x), Contains("a step is being captured"));
    CHECK_THROWS_WITH(to(x, kReference), Contains("copies between devices are not captured"));
    Program other;
    CHECK_THROWS_WITH(Program::Capture(other, {}), Contains("another program is being captured"));
    CHECK_THROWS_WITH(program.run({}), Contains("while one is captured"));
    CHECK_THROWS_WITH(program.output(x), Contains("must have one element"));
    CHECK_THROWS_WITH(capture.finish(1), Contains("1 random streams were taken, by 0 calls"));
  }
  CHECK_THROWS_WITH(program.run({NAN, 1, 0}), Contains("learning rate must be finite"));
  CHECK_THROWS_WITH(program.value(0), Contains("has 0 outputs"));
  add(x, x);
  Program full_one;
  {
    Program::Capture capture(full_one, {});
    add(x, x);
  }
  CHECK_THROWS_WITH(Program::Capture(full_one, {}), Contains("holds a step already"));
}

TEST_CASE("program: changes what a tape saved as any call does, and a ledger lists it",
          "[program]") {
  Tensor w = full({4}, 1, DType::f32, kCPU);
  w.requires_grad_();
  Program program;
  {
    const ModuleScope scope("layer");
    Program::Capture capture(program, {});
    ops::Accumulate::into(w, full({4}, 1, DType::f32, kCPU));
  }
  Tape tape;
  const Tensor y = sum(mul(w, w));
  std::string first;
  {
    const Ledger ledger;
    program.run({});
    REQUIRE(ledger.entries().size() == 1);
    CHECK(std::string(ledger.entries()[0].module) == "layer");
  }
  CHECK(values(w) == std::vector<float>(4, 3));
  CHECK_THROWS_WITH(tape.backward(y), Contains("last written by a replayed step"));
}
