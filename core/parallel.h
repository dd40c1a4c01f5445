#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace tally {

/// The most threads that take part in one parallel_for.
inline constexpr int kMaxThreads = 256;
/// Bytes of the scratch arena that every thread owns.
inline constexpr size_t kThreadScratchBytes = size_t{4} << 20;

/// Sets how many threads (the caller included) share a parallel_for; 1 to kMaxThreads.
/// At start: the number of CPUs this process may run on. Results do not depend on it.
void set_num_threads(int n);
int num_threads();

/// 0 on the thread that called parallel_for, 1 .. num_threads() - 1 on the workers.
int thread_index();

/// An arena of kThreadScratchBytes owned by the calling thread, aligned to 64 bytes, touched by
/// nobody else, kept for the life of the thread. It belongs to the kernel that is running:
/// its contents are lost whenever another kernel (gemm packs into it) runs on the same thread.
std::span<std::byte> thread_scratch();

/// While in scope this thread reads and writes subnormal numbers as zero (bits DAZ and FTZ of
/// x86-64's MXCSR, FZ of arm64's FPCR): arithmetic on them is up to a hundred times slower. The
/// former mode comes back at the end. parallel_for does this on every thread that takes part, the
/// caller included.
class FlushSubnormals {
 public:
  FlushSubnormals() : former_(mode()) {
    if ((former_ & kFlush) != kFlush) set_mode(former_ | kFlush);
  }
  ~FlushSubnormals() {
    if ((former_ & kFlush) != kFlush) set_mode(former_);
  }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
#if defined(__aarch64__)
  static constexpr uint64_t kFlush = uint64_t{1} << 24;
  static uint64_t mode() { return __builtin_aarch64_get_fpcr64(); }
  static void set_mode(uint64_t mode) { __builtin_aarch64_set_fpcr64(mode); }
#else
  static constexpr uint64_t kFlush = 0x8040;
  static uint64_t mode() { return __builtin_ia32_stmxcsr(); }
  static void set_mode(uint64_t mode) { __builtin_ia32_ldmxcsr(static_cast<unsigned>(mode)); }
#endif
  uint64_t former_;
};

namespace detail {
using ChunkFunction = void (*)(void* context, int64_t begin, int64_t end);
void run_chunks(int64_t count, int64_t grain, ChunkFunction function, void* context);
}  // namespace detail

/// Calls f(begin, end) for the chunks [i grain, min((i + 1) grain, count)) of [0, count), each
/// once, on the threads of the pool. The chunks are the same for any number of threads, so a
/// kernel whose chunks write apart (or add up partial results in chunk order afterwards) gives
/// the same bits for any number of threads. A single chunk, and a call from inside another
/// parallel_for, run on the calling thread with no synchronisation. The first exception thrown
/// by f is thrown again on the caller once all threads have stopped.
template <class F>
void parallel_for(int64_t count, int64_t grain, F&& f) {
  if (count <= 0) return;
  if (count <= grain) {
    FlushSubnormals flush;
    f(int64_t{0}, count);
    return;
  }
  using Body = std::remove_reference_t<F>;
  const auto call = [](void* context, int64_t begin, int64_t end) {
    (*static_cast<Body*>(context))(begin, end);
  };
  auto* body = const_cast<std::remove_const_t<Body>*>(std::addressof(f));
  detail::run_chunks(count, grain, call, body);
}

}  // namespace tally
