#include "core/parallel.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "core/error.h"

namespace tally {
namespace {

thread_local int t_index = 0;
thread_local bool t_inside = false;  // this thread is running a chunk

/// Waits for `done()` by spinning: kernels follow one another within microseconds, and a sleep
/// costs tens. Returns false when the time is up.
template <class Done>
bool spin_until(const Done& done) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kSpin = std::chrono::microseconds(50);
  const auto end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("yield");
#endif
    }
  } while (Clock::now() < end);
  return done();
}

/// The pool. Threads are started when first wanted and live as long as the process (detached,
/// so neither exit nor a forked child ever waits for them).
///
/// One word, `state_`, holds a ticket, an open bit and the number of workers inside the region.
/// A worker enters by adding one while the bit is set; the caller, once no chunk is left, clears
/// the bit and waits for the workers inside, never for one that has not woken up yet.
class Pool {
 public:
  Pool() {
    cpu_set_t set;
    CPU_ZERO(&set);
    const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
    const int cpus = known ? CPU_COUNT(&set) : 1;
    limit_.store(std::clamp(cpus, 1, kMaxThreads), std::memory_order_relaxed);
  }

  int limit() const { return limit_.load(std::memory_order_relaxed); }

  void set_limit(int n) {
    const std::lock_guard lock(busy_);
    limit_.store(n, std::memory_order_relaxed);
  }

  void run(int64_t count, int64_t grain, detail::ChunkFunction function, void* context) {
    const int64_t chunks = (count - 1) / grain + 1;
    std::unique_lock lock(busy_, std::try_to_lock);
    const int parts = static_cast<int>(std::min<int64_t>(limit(), chunks));
    if (!lock.owns_lock() || parts == 1) return run_alone(count, grain, function, context);
    start_workers(parts - 1);
    job_ = {count, grain, chunks, parts, function, context, nullptr};
    for (int p = 0; p < parts; ++p) next_[p].value.store(first(p), std::memory_order_relaxed);
    const uint32_t ticket = (state_.load(std::memory_order_relaxed) + kTicket) & ~(kTicket - 1);
    state_.store(ticket | kOpen, std::memory_order_release);
    state_.notify_all();
    work(0);
    state_.fetch_and(~kOpen, std::memory_order_acq_rel);
    wait_for_workers();
    if (job_.error) std::rethrow_exception(job_.error);
  }

  static void run_alone(int64_t count, int64_t grain, detail::ChunkFunction function,
                        void* context) {
    FlushSubnormals flush;
    for (int64_t begin = 0; begin < count; begin += grain)
      function(context, begin, std::min(begin + grain, count));
  }

 private:
  static constexpr uint32_t kWorkers = 0x7fff, kOpen = 0x8000, kTicket = 0x10000;

  struct Job {
    int64_t count = 0, grain = 1, chunks = 0;
    int parts = 1;
    detail::ChunkFunction function = nullptr;
    void* context = nullptr;
    std::exception_ptr error;
  };
  struct alignas(64) Counter {
    std::atomic<int64_t> value{0};
  };

  int64_t first(int part) const { return job_.chunks * part / job_.parts; }

  /// Every thread begins with its own share of the chunks, so that what one kernel left in a
  /// core's cache is found there by the next; then it helps the others.
  void work(int index) {
    t_inside = true;
    FlushSubnormals flush;
    try {
      for (int i = 0; i < job_.parts; ++i) drain((index + i) % job_.parts);
    } catch (...) {
      const std::lock_guard lock(error_);
      if (!job_.error) job_.error = std::current_exception();
    }
    t_inside = false;
  }

  void drain(int part) {
    const int64_t end = first(part + 1);
    for (;;) {
      const int64_t chunk = next_[part].value.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= end) return;
      const int64_t begin = chunk * job_.grain;
      job_.function(job_.context, begin, std::min(begin + job_.grain, job_.count));
    }
  }

  void wait_for_workers() {
    const auto alone = [this] { return (state_.load(std::memory_order_acquire) & kWorkers) == 0; };
    if (spin_until(alone)) return;
    for (uint32_t s; ((s = state_.load(std::memory_order_acquire)) & kWorkers) != 0;)
      state_.wait(s, std::memory_order_acquire);
  }

  void start_workers(int wanted) {
    for (; started_ < wanted; ++started_) try {
        std::thread([this, index = started_ + 1] { serve(index); }).detach();
      } catch (const std::system_error& e) {
        fail("parallel_for: the system refused thread ", started_ + 1, " of ", wanted, "; ",
             e.what(), "; ask for fewer with set_num_threads or --threads");
      }
  }

  [[noreturn]] void serve(int index) {
    t_index = index;
    for (uint32_t seen = 0;;) {
      const auto news = [&] { return state_.load(std::memory_order_relaxed) / kTicket != seen; };
      if (index >= limit() || !spin_until(news)) wait_for_news(seen);
      seen = state_.load(std::memory_order_relaxed) / kTicket;
      if (enter(index)) {
        work(index);
        leave();
      }
    }
  }

  void wait_for_news(uint32_t seen) {
    for (uint32_t s; (s = state_.load(std::memory_order_relaxed)) / kTicket == seen;)
      state_.wait(s, std::memory_order_relaxed);
  }

  bool enter(int index) {
    uint32_t s = state_.load(std::memory_order_relaxed);
    while ((s & kOpen) != 0) {
      if (!state_.compare_exchange_weak(s, s + 1, std::memory_order_acquire,
                                        std::memory_order_relaxed))
        continue;
      if (index < job_.parts) return true;
      leave();
      return false;
    }
    return false;
  }

  void leave() {
    const uint32_t before = state_.fetch_sub(1, std::memory_order_release);
    if ((before & kOpen) == 0) state_.notify_all();
  }

  std::mutex busy_, error_;
  std::atomic<int> limit_{1};
  int started_ = 0;
  Job job_;
  alignas(64) std::atomic<uint32_t> state_{0};
  std::array<Counter, kMaxThreads> next_;
};

Pool& pool() {
  static Pool& instance = *new Pool;  // never destroyed: its threads outlive every static
  return instance;
}

struct Scratch {
  Scratch() : bytes(std::aligned_alloc(size_t{2} << 20, kThreadScratchBytes)) {
    if (bytes == nullptr) throw std::bad_alloc();
    // Advice only: without huge pages packing pays for address translation, nothing else.
    madvise(bytes, kThreadScratchBytes, MADV_HUGEPAGE);
  }
  ~Scratch() { std::free(bytes); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* bytes;
};

}  // namespace

void set_num_threads(int n) {
  check(n >= 1 && n <= kMaxThreads, "set_num_threads: needs 1 to ", kMaxThreads, " threads; got ",
        n);
  check(!t_inside, "set_num_threads: cannot be called from inside parallel_for");
  pool().set_limit(n);
}

int num_threads() { return pool().limit(); }

int thread_index() { return t_index; }

std::span<std::byte> thread_scratch() {
  thread_local const Scratch scratch;
  return {static_cast<std::byte*>(scratch.bytes), kThreadScratchBytes};
}

void detail::run_chunks(int64_t count, int64_t grain, ChunkFunction function, void* context) {
  check(grain >= 1, "parallel_for: the grain must be at least 1; got ", grain);
  if (t_inside) return Pool::run_alone(count, grain, function, context);
  pool().run(count, grain, function, context);
}

}  // namespace tally
