#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "tests/threads.h"

using namespace tally;

namespace {

/// 1 where x * 1 is flushed to zero for subnormal x.
int flushes() {
  volatile float subnormal = 1e-39f, one = 1.0f;
  return subnormal * one == 0.0f ? 1 : 0;
}

}  // namespace

TEST_CASE("parallel: every index is visited once, in the same chunks for any thread count") {
  for (const int threads : {1, 2, 3, 7}) {
    const test::Threads scope(threads);
    for (const int64_t grain : {1, 3, 64})
      for (const int64_t count : {0, 1, 2, 3, 64, 65, 1000}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
        std::atomic<int> bad{0};
        parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          if (begin % grain != 0 || end != std::min(begin + grain, count)) ++bad;
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        CHECK(bad == 0);
        CHECK(std::all_of(visits.begin(), visits.end(), [](const auto& v) { return v == 1; }));
      }
  }
}

TEST_CASE("parallel: many regions in a row neither hang nor lose a chunk") {
  const test::Threads scope(3);
  int64_t sum = 0;
  for (int64_t r = 0; r < 20000; ++r) {
    std::atomic<int64_t> part{0};
    parallel_for(5, 1, [&](int64_t begin, int64_t) { part += begin; });
    sum += part;
  }
  CHECK(sum == 20000 * 10);
}

TEST_CASE("parallel: a nested call runs on its own thread") {
  const test::Threads scope(4);
  std::atomic<int> foreign{0}, chunks{0};
  parallel_for(8, 1, [&](int64_t, int64_t) {
    const auto self = std::this_thread::get_id();
    parallel_for(4, 1, [&](int64_t, int64_t) {
      ++chunks;
      if (std::this_thread::get_id() != self) ++foreign;
    });
  });
  CHECK(chunks == 32);
  CHECK(foreign == 0);
}

TEST_CASE("parallel: thread indices are below num_threads and unique to a thread") {
  const test::Threads scope(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<int> bad{0};
  parallel_for(400, 1, [&](int64_t, int64_t) {
    const int index = thread_index();
    if (index < 0 || index >= 4 || inside[static_cast<size_t>(index)]++ != 0) ++bad;
    std::this_thread::yield();
    --inside[static_cast<size_t>(std::clamp(index, 0, 3))];
  });
  CHECK(bad == 0);
  CHECK(thread_index() == 0);
}

TEST_CASE("parallel: callers on two threads at once both finish") {
  const test::Threads scope(3);
  std::atomic<int64_t> total{0};
  const auto work = [&] {
    for (int r = 0; r < 500; ++r)
      parallel_for(10, 1, [&](int64_t begin, int64_t) { total += begin; });
  };
  std::thread other(work);
  work();
  other.join();
  CHECK(total == 2 * 500 * 45);
}

TEST_CASE("parallel: an exception in a chunk reaches the caller and the pool survives") {
  const test::Threads scope(3);
  const auto throwing = [](int64_t begin, int64_t) { check(begin != 7, "chunk seven"); };
  for (int r = 0; r < 50; ++r) CHECK_THROWS_WITH(parallel_for(20, 1, throwing), "chunk seven");
  std::atomic<int> n{0};
  parallel_for(20, 1, [&](int64_t, int64_t) { ++n; });
  CHECK(n == 20);
}

TEST_CASE("parallel: subnormals are flushed in every chunk and only there", "[F17]") {
  const test::Threads scope(4);
  CHECK(flushes() == 0);
  std::atomic<int> flushed{0};
  parallel_for(64, 1, [&](int64_t, int64_t) { flushed += flushes(); });
  parallel_for(1, 1, [&](int64_t, int64_t) { flushed += flushes(); });
  CHECK(flushed == 65);
  CHECK(flushes() == 0);
  {
    const FlushSubnormals outer;
    { const FlushSubnormals inner; }
    CHECK(flushes() == 1);
  }
  CHECK(flushes() == 0);
}

TEST_CASE("parallel: scratch belongs to one thread, aligned and writable to its end") {
  const test::Threads scope(4);
  std::vector<std::byte*> where(64);
  std::vector<int> who(64);
  parallel_for(64, 1, [&](int64_t begin, int64_t) {
    const auto scratch = thread_scratch();
    scratch.front() = scratch.back() = std::byte{1};
    where[static_cast<size_t>(begin)] = scratch.data();
    who[static_cast<size_t>(begin)] = thread_index();
  });
  std::set<std::pair<std::byte*, int>> pairs;
  for (size_t i = 0; i < 64; ++i) {
    pairs.insert({where[i], who[i]});
    CHECK(reinterpret_cast<uintptr_t>(where[i]) % 64 == 0);
  }
  CHECK(pairs.size() == std::set<std::byte*>(where.begin(), where.end()).size());
  CHECK(thread_scratch().size() == kThreadScratchBytes);
}

TEST_CASE("parallel: a thread count out of range and a grain of zero are refused") {
  CHECK_THROWS_WITH(set_num_threads(0), Catch::Contains("1 to 256"));
  CHECK_THROWS_AS(set_num_threads(kMaxThreads + 1), Error);
  CHECK_THROWS_WITH(parallel_for(2, 0, [](int64_t, int64_t) {}), Catch::Contains("grain"));
}
