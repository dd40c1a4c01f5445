// The selective scan in f32: all exponentials of a token in one call, then plain loops over the
// numbers of a channel's state, which the compiler makes vectors of.
#include "core/ops/selective_scan.h"

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loop_axes.h"
#include "backends/cpu/plain_loops.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

using ops::element;
using ops::kScanChunk;
using Scan = ops::SelectiveScan;
using Numbers = std::vector<float>;

/// Channels [begin, end) of a sequence's parameters, side by side, and what a token does to them.
struct Channels {
  int64_t begin, count, n;  // n: numbers of state a channel
  Numbers rates;            // A

  Channels(const In& a, int64_t first, int64_t last)
      : begin(first), count(last - first), n(a.shape[1]) {
    for (int64_t c = first; c < last; ++c)
      for (int64_t i = 0; i < n; ++i) rates.push_back(element<float>(a, c, i));
  }
  int64_t size() const { return count * n; }
  /// A token's row of a view (B, T, N).
  void row(const In& v, int64_t b, int64_t t, float* to) const {
    for (int64_t i = 0; i < n; ++i) to[i] = element<float>(v, b, t, i);
  }
  /// decay = exp(dt A), 0 where a document begins
  void decays(const In& dt, const In& documents, int64_t b, int64_t t, float* decay) const {
    if (ops::begins_document(documents, b, t, dt.shape[1])) {
      std::fill_n(decay, size(), 0.0F);
      return;
    }
    for (int64_t c = 0; c < count; ++c) {
      const float step = element<float>(dt, b, t, begin + c);
      for (int64_t i = c * n; i < (c + 1) * n; ++i) decay[i] = step * rates[static_cast<size_t>(i)];
    }
    isa().map(MathFunction::exp, size(), decay, decay);
  }
  /// after = decay before + dt x Bm
  void update(const In& x, const In& dt, const float* bm, int64_t b, int64_t t, const float* decay,
              const float* before, float* after) const {
    for (int64_t c = 0; c < count; ++c) {
      const float in = element<float>(dt, b, t, begin + c) * element<float>(x, b, t, begin + c);
      const float *d = decay + c * n, *from = before + c * n;
      float* to = after + c * n;
      for (int64_t i = 0; i < n; ++i) to[i] = d[i] * from[i] + in * bm[i];
    }
  }
  /// Copies a state (..., C, N) of a view from or to dense numbers; `at` are its leading places.
  template <class... At>
  void load(const View& v, float* h, At... at) const {
    const int64_t step = v.strides[v.shape.ndim() - 1];
    for (int64_t c = 0; c < count; ++c, h += n) {
      const float* from = &element<float>(v, at..., begin + c, int64_t{0});
      for (int64_t i = 0; i < n; ++i) h[i] = from[i * step];
    }
  }
  template <class... At>
  void store(const View& v, const float* h, At... at) const {
    const int64_t step = v.strides[v.shape.ndim() - 1];
    for (int64_t c = 0; c < count; ++c, h += n) {
      float* to = &element<float>(v, at..., begin + c, int64_t{0});
      for (int64_t i = 0; i < n; ++i) to[i * step] = h[i];
    }
  }
};

void forward_of(const Scan::Forward& c, const Channels& part, int64_t b) {
  const int64_t n = part.n;
  Numbers h(static_cast<size_t>(part.size())), decay(h), bm(static_cast<size_t>(n)), cm(bm);
  if (c.state.defined()) part.load(c.state, h.data(), b);
  for (int64_t t = 0; t < c.x.shape[1]; ++t) {
    if (c.states.defined() && t % kScanChunk == 0)
      part.store(c.states, h.data(), b, t / kScanChunk);
    part.row(c.bm, b, t, bm.data());
    part.row(c.cm, b, t, cm.data());
    part.decays(c.dt, c.documents, b, t, decay.data());
    part.update(c.x, c.dt, bm.data(), b, t, decay.data(), h.data(), h.data());
    for (int64_t k = 0; k < part.count; ++k) {
      const float* state = h.data() + k * n;
      float sum =
          sum_of<float>(n, [&](int64_t i) { return cm[static_cast<size_t>(i)] * state[i]; });
      if (c.d.defined())
        sum += element<float>(c.d, part.begin + k) * element<float>(c.x, b, t, part.begin + k);
      c.y.put(element<float>(c.y, b, t, part.begin + k), sum);
    }
  }
  part.store(c.last, h.data(), b);
}

void scan_forward_f32(const Scan::Forward& c) {
  constexpr int64_t kChannels = 16;
  const int64_t channels = c.a.shape[0], pieces = (channels + kChannels - 1) / kChannels;
  parallel_for(c.x.shape[0] * pieces, 1, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const int64_t first = i % pieces * kChannels;
      forward_of(c, Channels(c.a, first, std::min(first + kChannels, channels)), i / pieces);
    }
  });
}

/// One sequence backwards: dA and dD of its own, added to those of the others later.
struct Sequence {
  const Scan::Backward& c;
  const Channels& all;
  int64_t b;
  float *da, *dd;
  Numbers dh, h, decay, bm, cm, db, dc;  // h, decay: of a chunk

  Sequence(const Scan::Backward& call, const Channels& channels, int64_t sequence, float* a,
           float* d)
      : c(call),
        all(channels),
        b(sequence),
        da(a),
        dd(d),
        dh(static_cast<size_t>(all.size())),
        h(dh.size() * (kScanChunk + 1)),
        decay(dh.size() * kScanChunk),
        bm(static_cast<size_t>(all.n)),
        cm(bm),
        db(bm),
        dc(bm) {}

  void run() {
    if (c.dlast.defined()) all.load(c.dlast, dh.data(), b);
    for (int64_t k = ops::scan_chunks(c.x.shape[1]) - 1; k >= 0; --k) chunk(k);
    for (int64_t i = 0; c.dstate.defined() && i < all.size(); ++i)
      c.dstate.put(element<float>(c.dstate, b, i / all.n, i % all.n), dh[static_cast<size_t>(i)]);
  }

 private:
  void chunk(int64_t k) {
    const int64_t first = k * kScanChunk, count = std::min(kScanChunk, c.x.shape[1] - first);
    const int64_t size = all.size();
    all.load(c.states, h.data(), b, k);
    for (int64_t i = 0; i < count; ++i) {
      all.row(c.bm, b, first + i, bm.data());
      all.decays(c.dt, c.documents, b, first + i, decay.data() + i * size);
      all.update(c.x, c.dt, bm.data(), b, first + i, decay.data() + i * size, h.data() + i * size,
                 h.data() + (i + 1) * size);
    }
    for (int64_t i = count - 1; i >= 0; --i) token(i, first + i);
  }
  void token(int64_t place, int64_t t) {
    const int64_t n = all.n;
    all.row(c.bm, b, t, bm.data());
    if (c.dy.defined()) all.row(c.cm, b, t, cm.data());
    std::fill(db.begin(), db.end(), 0.0f);
    std::fill(dc.begin(), dc.end(), 0.0f);
    for (int64_t k = 0; k < all.count; ++k) channel(place, t, k);
    for (int64_t i = 0; c.dbm.defined() && i < n; ++i)
      c.dbm.put(element<float>(c.dbm, b, t, i), db[static_cast<size_t>(i)]);
    for (int64_t i = 0; c.dcm.defined() && i < n; ++i)
      c.dcm.put(element<float>(c.dcm, b, t, i), dc[static_cast<size_t>(i)]);
  }
  void channel(int64_t place, int64_t t, int64_t k) {
    const int64_t n = all.n, size = all.size(), row = k * n;
    const float step = element<float>(c.dt, b, t, k), value = element<float>(c.x, b, t, k);
    const float g = c.dy.defined() ? element<float>(c.dy, b, t, k) : 0, in = step * value;
    const float *before = h.data() + place * size + row, *after = before + size,
                *fades = decay.data() + place * size + row, *rates = all.rates.data() + row;
    float *d = dh.data() + row, *to_a = da + row;
    if (c.dy.defined()) {
      for (int64_t i = 0; i < n; ++i) {
        dc[static_cast<size_t>(i)] += g * after[i];
        d[i] += g * cm[static_cast<size_t>(i)];
      }
    }
    float to_in = sum_of<float>(n, [&](int64_t i) { return d[i] * bm[static_cast<size_t>(i)]; });
    float to_step =
        sum_of<float>(n, [&](int64_t i) { return d[i] * before[i] * fades[i] * rates[i]; });
    for (int64_t i = 0; i < n; ++i) {
      to_a[i] += d[i] * before[i] * fades[i] * step;
      db[static_cast<size_t>(i)] += d[i] * in;
      d[i] = d[i] * fades[i];
    }
    float to_x = to_in * step;
    if (c.skips()) {
      to_x += g * element<float>(c.d, k);
      dd[k] += g * value;
    }
    to_step += to_in * value;
    if (c.dx.defined()) c.dx.put(element<float>(c.dx, b, t, k), to_x);
    if (c.ddt.defined()) c.ddt.put(element<float>(c.ddt, b, t, k), to_step);
  }
};

// All channels of a token meet in dB and dC, all tokens in dA and dD: shared out by sequences.
void scan_backward_f32(const Scan::Backward& c) {
  const int64_t batch = c.x.shape[0], channels = c.a.shape[0];
  const Channels all(c.a, 0, channels);
  Numbers da(static_cast<size_t>(batch * all.size())), dd(static_cast<size_t>(batch * channels));
  parallel_for(batch, 1, [&](int64_t b, int64_t end) {
    for (; b < end; ++b)
      Sequence(c, all, b, da.data() + b * all.size(), dd.data() + b * channels).run();
  });
  const auto total = [&](const Numbers& parts, int64_t i, int64_t n) {
    float sum = 0;
    for (int64_t b = 0; b < batch; ++b) sum += parts[static_cast<size_t>(b * n + i)];
    return sum;
  };
  for (int64_t i = 0; c.da.defined() && i < all.size(); ++i)
    c.da.put(element<float>(c.da, i / all.n, i % all.n), total(da, i, all.size()));
  for (int64_t i = 0; c.dd.defined() && i < channels; ++i)
    c.dd.put(element<float>(c.dd, i), total(dd, i, channels));
}

}  // namespace

void register_scan() {
  constexpr auto f32 = static_cast<size_t>(DType::f32);
  kernels<Scan::Forward>[kCPU.kind][f32] = scan_forward_f32;
  kernels<Scan::Backward>[kCPU.kind][f32] = scan_backward_f32;
}

}  // namespace tally::cpu
