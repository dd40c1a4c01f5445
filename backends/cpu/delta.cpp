// The gated delta rule in f32: heads are shared out, since they do not meet; a token passes over the
// state twice, with rows that the compiler makes vectors of. Sums over the keys of a row are those of
// the loops, in their order.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/gated_delta_rule.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

using DeltaRule = ops::GatedDeltaRule;
using ops::element;
using ops::kScanChunk;
using DeltaRow = std::vector<float>;

/// One head of one sequence of a view.
struct HeadPlace {
  int64_t b, h;
};

DeltaRow token_row(const View& v, HeadPlace p, int64_t t, int64_t size, float factor = 1) {
  DeltaRow row(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i)
    row[static_cast<size_t>(i)] = element<float>(v, p.b, t, p.h, i) * factor;
  return row;
}

/// A token's operands, side by side.
struct DeltaToken {
  DeltaRow k, v;
  float decay, rate;
  DeltaToken(const DeltaRule::Views& w, HeadPlace p, int64_t t)
      : k(token_row(w.k, p, t, w.keys())),
        v(token_row(w.v, p, t, w.values())),
        decay(ops::begins_document(w.documents, p.b, t, w.g.shape[1])
                  ? 0
                  : std::exp(element<float>(w.g, p.b, t, p.h))),
        rate(element<float>(w.beta, p.b, t, p.h)) {}
};

/// to = decay from, found += to^T k: what the faded state holds under the key.
void fade(const DeltaToken& token, int64_t m, const float* __restrict from, float* __restrict to,
          float* __restrict found) {
  for (const float key : token.k) {
    for (int64_t j = 0; j < m; ++j) {
      const float faded = token.decay * from[j];
      to[j] = faded;
      found[j] += faded * key;
    }
    from += m, to += m;
  }
}

/// The same in place.
void fade(const DeltaToken& token, int64_t m, float* __restrict s, float* __restrict found) {
  for (const float key : token.k) {
    for (int64_t j = 0; j < m; ++j) {
      s[j] = token.decay * s[j];
      found[j] += s[j] * key;
    }
    s += m;
  }
}

/// e = v - found in the place of `found`, u = rate e.
void correct(const DeltaToken& token, float* __restrict e, float* __restrict u) {
  for (size_t j = 0; j < token.v.size(); ++j) {
    e[j] = token.v[j] - e[j];
    u[j] = token.rate * e[j];
  }
}

/// s += k u^T, out += s^T q.
void write_and_read(const DeltaToken& token, const DeltaRow& q, int64_t m,
                    const float* __restrict u, float* __restrict s, float* __restrict out) {
  for (size_t i = 0; i < token.k.size(); ++i) {
    const float key = token.k[i], query = q[i];
    for (int64_t j = 0; j < m; ++j) {
      s[j] += key * u[j];
      out[j] += s[j] * query;
    }
    s += m;
  }
}

/// f(row, row of v) for each row of a state (..., K, M) of a view; `at` are its leading places.
template <class F, class... At>
void each_state_row(const View& v, int64_t m, DeltaRow& s, F&& f, At... at) {
  const int64_t step = v.strides[v.shape.ndim() - 1];
  for (int64_t i = 0; i < static_cast<int64_t>(s.size()) / m; ++i)
    f(s.data() + i * m, &element<float>(v, at..., i, int64_t{0}), step);
}
template <class... At>
void load_state(const View& v, int64_t m, DeltaRow& s, At... at) {
  each_state_row(
      v, m, s,
      [m](float* to, const float* from, int64_t step) {
        for (int64_t j = 0; j < m; ++j) to[j] = from[j * step];
      },
      at...);
}
template <class... At>
void store_state(const View& v, int64_t m, DeltaRow& s, At... at) {
  each_state_row(
      v, m, s,
      [m](const float* from, float* to, int64_t step) {
        for (int64_t j = 0; j < m; ++j) to[j * step] = from[j];
      },
      at...);
}

void delta_of(const DeltaRule::Forward& c, HeadPlace p) {
  const DeltaRule::Views views{c.k, c.v, c.g, c.beta, c.documents};
  const int64_t n = views.keys(), m = views.values();
  DeltaRow s(static_cast<size_t>(n * m)), e(static_cast<size_t>(m)), u(e), out(e);
  if (c.state.defined()) load_state(c.state, m, s, p.b, p.h);
  for (int64_t t = 0; t < c.q.shape[1]; ++t) {
    if (c.states.defined() && t % kScanChunk == 0)
      store_state(c.states, m, s, p.b, p.h, t / kScanChunk);
    const DeltaToken token(views, p, t);
    const DeltaRow q = token_row(c.q, p, t, n, static_cast<float>(c.scale));
    std::fill(e.begin(), e.end(), 0.0F);
    std::fill(out.begin(), out.end(), 0.0F);
    fade(token, m, s.data(), e.data());
    correct(token, e.data(), u.data());
    write_and_read(token, q, m, u.data(), s.data(), out.data());
    for (int64_t j = 0; j < m; ++j)
      c.y.put(element<float>(c.y, p.b, t, p.h, j), out[static_cast<size_t>(j)]);
  }
  store_state(c.last, m, s, p.b, p.h);
}

/// One head backwards.
class DeltaHead {
 public:
  DeltaHead(const DeltaRule::Backward& call, HeadPlace place)
      : c_(call),
        views_{call.k, call.v, call.g, call.beta, call.documents},
        p_(place),
        n_(views_.keys()),
        m_(views_.values()),
        ds_(static_cast<size_t>(n_ * m_)),
        faded_(ds_.size() * kScanChunk),
        after_(faded_.size()),
        e_(static_cast<size_t>(m_ * kScanChunk)),
        u_(e_),
        de_(static_cast<size_t>(m_)) {}
  void run() {
    if (c_.dlast.defined()) load_state(c_.dlast, m_, ds_, p_.b, p_.h);
    for (int64_t k = ops::scan_chunks(c_.q.shape[1]) - 1; k >= 0; --k) chunk(k);
    for (int64_t i = 0; c_.dstate.defined() && i < n_ * m_; ++i) {
      c_.dstate.put(element<float>(c_.dstate, p_.b, p_.h, i / m_, i % m_),
                    ds_[static_cast<size_t>(i)]);
    }
  }

 private:
  void chunk(int64_t k) {
    const int64_t first = k * kScanChunk, count = std::min(kScanChunk, c_.q.shape[1] - first);
    DeltaRow s(ds_.size());
    load_state(c_.states, m_, s, p_.b, p_.h, k);
    const float* before = s.data();
    std::vector<DeltaToken> tokens;
    for (int64_t i = 0; i < count; ++i) {
      tokens.emplace_back(views_, p_, first + i);
      float *faded = faded_.data() + i * n_ * m_, *after = after_.data() + i * n_ * m_;
      float *e = e_.data() + i * m_, *u = u_.data() + i * m_;
      std::fill_n(e, m_, 0.0F);
      fade(tokens.back(), m_, before, faded, e);
      correct(tokens.back(), e, u);
      for (int64_t x = 0; x < n_; ++x) {
        const float key = tokens.back().k[static_cast<size_t>(x)];
        for (int64_t j = 0; j < m_; ++j) after[x * m_ + j] = faded[x * m_ + j] + key * u[j];
      }
      before = after;
    }
    for (int64_t i = count - 1; i >= 0; --i) token(tokens[static_cast<size_t>(i)], i, first + i);
  }
  void token(const DeltaToken& token, int64_t i, int64_t t) {
    std::fill(de_.begin(), de_.end(), 0.0F);
    if (c_.dy.defined()) through_output(i, t);
    to_error(token);
    float to_beta = 0;
    const float* e = e_.data() + i * m_;
    for (int64_t j = 0; j < m_; ++j) {
      float& d = de_[static_cast<size_t>(j)];
      to_beta += d * e[j];
      d = token.rate * d;
      if (c_.dv.defined()) c_.dv.put(element<float>(c_.dv, p_.b, t, p_.h, j), d);
    }
    if (c_.dbeta.defined()) c_.dbeta.put(element<float>(c_.dbeta, p_.b, t, p_.h), to_beta);
    through_update(token, i, t);
  }
  // dS += c q dy^T and dq = c S dy
  void through_output(int64_t i, int64_t t) {
    const DeltaRow dy = token_row(c_.dy, p_, t, m_);
    const float scale = static_cast<float>(c_.scale);
    const float *after = after_.data() + i * n_ * m_, *d = dy.data();
    for (int64_t x = 0; x < n_; ++x) {
      const float scaled = element<float>(c_.q, p_.b, t, p_.h, x) * scale;
      const float* row = after + x * m_;
      float* to = ds_.data() + x * m_;
      for (int64_t j = 0; j < m_; ++j) to[j] += scaled * d[j];
      const float sum = sum_of<float>(m_, [&](int64_t j) { return row[j] * d[j]; });
      if (c_.dq.defined()) c_.dq.put(element<float>(c_.dq, p_.b, t, p_.h, x), sum * scale);
    }
  }
  // du = dS^T k
  void to_error(const DeltaToken& token) {
    const float* __restrict row = ds_.data();
    float* __restrict to = de_.data();
    for (const float key : token.k) {
      for (int64_t j = 0; j < m_; ++j) to[j] += row[j] * key;
      row += m_;
    }
  }
  // From dS after the token to dS before it.
  void through_update(const DeltaToken& token, int64_t i, int64_t t) {
    const float *faded = faded_.data() + i * n_ * m_, *u = u_.data() + i * m_, *de = de_.data();
    float to_g = 0;
    for (int64_t x = 0; x < n_; ++x) {
      const float key = token.k[static_cast<size_t>(x)];
      const float* held = faded + x * m_;
      float* d = ds_.data() + x * m_;
      const float to_k =
          sum_of<float>(m_, [&](int64_t j) { return d[j] * u[j] - held[j] * de[j]; });
      for (int64_t j = 0; j < m_; ++j) d[j] -= key * de[j];
      to_g += sum_of<float>(m_, [&](int64_t j) { return d[j] * held[j]; });
      for (int64_t j = 0; j < m_; ++j) d[j] = token.decay * d[j];
      if (c_.dk.defined()) c_.dk.put(element<float>(c_.dk, p_.b, t, p_.h, x), to_k);
    }
    if (c_.dg.defined()) c_.dg.put(element<float>(c_.dg, p_.b, t, p_.h), to_g);
  }

  const DeltaRule::Backward& c_;
  DeltaRule::Views views_;
  HeadPlace p_;
  int64_t n_, m_;
  DeltaRow ds_, faded_, after_, e_, u_, de_;  // but ds_ and de_: of a chunk
};

template <class F>
void each_delta_head(int64_t batch, int64_t heads, F&& f) {
  parallel_for(batch * heads, 1, [&](int64_t r, int64_t end) {
    for (; r < end; ++r) f(HeadPlace{r / heads, r % heads});
  });
}

void delta_forward_f32(const DeltaRule::Forward& c) {
  each_delta_head(c.q.shape[0], c.q.shape[2], [&](HeadPlace p) { delta_of(c, p); });
}
void delta_backward_f32(const DeltaRule::Backward& c) {
  each_delta_head(c.q.shape[0], c.q.shape[2], [&](HeadPlace p) { DeltaHead(c, p).run(); });
}

}  // namespace

void register_delta() {
  constexpr auto f32 = static_cast<size_t>(DType::f32);
  kernels<DeltaRule::Forward>[kCPU.kind][f32] = delta_forward_f32;
  kernels<DeltaRule::Backward>[kCPU.kind][f32] = delta_backward_f32;
}

}  // namespace tally::cpu
