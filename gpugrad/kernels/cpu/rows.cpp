// Softmax, logsumexp, cross entropy and layer norm of rows, and their gradients: each row is read from memory
// once, and again from cache. Sums along a row are added by lanes, so their order depends on the
// width of a vector but not on the number of threads.
//
// A library has some of them for one type: the text begins with definitions of TYPE and of JOBS, such as
// JOB(Softmax) JOB(SoftmaxGrad), or of CHANNELS. All of them would take four seconds to compile.
#include "pool.h"
#define LIBMVEC 0  // exp and log are those of own.h
#include "vector.h"

#include <cstdlib>
#include <cstring>

#define ALWAYS __attribute__((always_inline))

namespace {

const long PIECE = 1 << 14;  // elements of a piece for a thread, at least
const long PIECES = 16;  // of sums over rows, at most
const long STRIP = 4096;  // elements that one sum adds up

template <class T> constexpr int N = LANES<(int)sizeof(T)>;
template <class T> using Vec = V<T, N<T>>;

// Some elements of a row, and `rest` in the other lanes.
template <class T> INLINE Vec<T> some(const T* p, long n, T rest) {
  if (n >= N<T>) return load<N<T>, N<T>>(p);
#if defined(__AVX512F__)
  const Vec<T> others = rest;
  if constexpr (sizeof(T) == 4)
    return (raw<T, N<T>>)__builtin_ia32_loadups512_mask(p, others.of, (1 << n) - 1);
  else return (raw<T, N<T>>)__builtin_ia32_loadupd512_mask(p, others.of, (1 << n) - 1);
#endif
  T lanes[N<T>];
  for (int k = 0; k < N<T>; ++k) lanes[k] = k < n ? p[k] : rest;
  return load<N<T>, N<T>>(lanes);
}
template <class T> INLINE void put(T* p, long n, Vec<T> v) {
  if (n >= N<T>) return store<N<T>>(p, v);
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return __builtin_ia32_storeups512_mask(p, v.of, (1 << n) - 1);
  else return __builtin_ia32_storeupd512_mask(p, v.of, (1 << n) - 1);
#endif
  for (int k = 0; k < n; ++k) p[k] = v[k];
}

template <class T, class F> INLINE void each(long n, F block) {
  long j = 0;
  for (; j + N<T> <= n; j += N<T>) block(j, (long)N<T>);
  if (j < n) block(j, n - j);
}

// For all blocks, the K sums of the lanes of what block(j, count, terms) puts into `terms`.
template <class T, int K, class F> INLINE void sums(long n, T* totals, F block) {
  Vec<T> all[K] = {};
  for (long from = 0; from < n; from += STRIP) {
    const long to = n - from < STRIP ? n : from + STRIP;
    Vec<T> part[4][K] = {}, terms[K];  // four, since an addition takes several cycles
    const auto add = [&](long j, long count, Vec<T>* sum) ALWAYS {
      block(j, count, terms);
      for (int k = 0; k < K; ++k) sum[k] += terms[k];
    };
    long j = from;
    for (; j + 4 * N<T> <= to; j += 4 * N<T>)
      for (int i = 0; i < 4; ++i) add(j + i * N<T>, (long)N<T>, part[i]);
    for (; j < to; j += N<T>) add(j, to - j < N<T> ? to - j : (long)N<T>, part[0]);
    for (int k = 0; k < K; ++k) all[k] += (part[0][k] + part[1][k]) + (part[2][k] + part[3][k]);
  }
  for (int k = 0; k < K; ++k) totals[k] = over_lanes(Sum(), all[k])[0];
}

// The sum of the lanes of block(j, count) for all blocks.
template <class T, class F> INLINE T sum(long n, F block) {
  T total;
  sums<T, 1>(n, &total, [&](long j, long count, Vec<T>* terms) ALWAYS {
    terms[0] = block(j, count);
  });
  return total;
}

// The largest element; a NaN is not, but makes all that follows NaN.
template <class T> INLINE T largest(const T* x, long n) {
  const auto larger = [](Vec<T> a, Vec<T> b) ALWAYS { return where(a > b, a, b); };
  Vec<T> m[4] = {-infinity<T>(), -infinity<T>(), -infinity<T>(), -infinity<T>()};
  long j = 0;
  for (; j + 4 * N<T> <= n; j += 4 * N<T>)
    for (int k = 0; k < 4; ++k) m[k] = larger(load<N<T>, N<T>>(x + j + k * N<T>), m[k]);
  for (; j < n; j += N<T>) m[0] = larger(some(x + j, n - j, -infinity<T>()), m[0]);
  return over_lanes(Max(), larger(larger(m[0], m[1]), larger(m[2], m[3])))[0];
}

struct Job {
  void** p;
  long rows, n;
  double eps;
  char* part;  // of a piece: sums over rows
};

// ---- softmax and its logarithm

// Writes exp(x - max) and returns the sum.
template <class T> INLINE T exponentials(const T* x, T* out, long n, T m) {
  return sum<T>(n, [&](long j, long count) ALWAYS {
    const Vec<T> e = exp(some(x + j, count, -infinity<T>()) - m);
    put(out + j, count, e);
    return e;
  });
}

template <class T> struct Softmax {
  static void row(const Job& job, long r) {
    const T* x = (const T*)job.p[0] + r * job.n;
    T* out = (T*)job.p[1] + r * job.n;
    const T share = T(1) / exponentials(x, out, job.n, largest(x, job.n));
    each<T>(job.n, [&](long j, long count) ALWAYS {
      put(out + j, count, some(out + j, count, T(0)) * share);
    });
  }
};

// A row of -inf, in which nothing counts, gives zeros.
template <class T> struct SoftmaxOrZero {
  static void row(const Job& job, long r) {
    const T* x = (const T*)job.p[0] + r * job.n;
    if (largest(x, job.n) != -infinity<T>()) return Softmax<T>::row(job, r);
    T* out = (T*)job.p[1] + r * job.n;
    for (long j = 0; j < job.n; ++j) out[j] = 0;
  }
};

template <class T> struct SoftmaxGrad {
  static void row(const Job& job, long r) {
    const T *g = (const T*)job.p[0] + r * job.n, *y = (const T*)job.p[1] + r * job.n;
    T* out = (T*)job.p[2] + r * job.n;
    const T total = sum<T>(job.n, [&](long j, long count) ALWAYS {
      return some(g + j, count, T(0)) * some(y + j, count, T(0));
    });
    each<T>(job.n, [&](long j, long count) ALWAYS {
      put(out + j, count, (some(g + j, count, T(0)) - total) * some(y + j, count, T(0)));
    });
  }
};

template <class T> INLINE T log_of_sum(const T* x, long n, T m) {
  const T total = sum<T>(n, [&](long j, long count) ALWAYS {
    return exp(some(x + j, count, -infinity<T>()) - m);
  });
  return log(Vec<T>(total))[0];
}

template <class T> struct LogSoftmax {
  static void row(const Job& job, long r) {
    const T* x = (const T*)job.p[0] + r * job.n;
    T* out = (T*)job.p[1] + r * job.n;
    const T m = largest(x, job.n), total = log_of_sum(x, job.n, m);
    each<T>(job.n, [&](long j, long count) ALWAYS {
      put(out + j, count, some(x + j, count, T(0)) - m - total);
    });
  }
};

template <class T> struct LogSoftmaxGrad {
  static void row(const Job& job, long r) {
    const T *g = (const T*)job.p[0] + r * job.n, *y = (const T*)job.p[1] + r * job.n;
    T* out = (T*)job.p[2] + r * job.n;
    const T total =
        sum<T>(job.n, [&](long j, long count) ALWAYS { return some(g + j, count, T(0)); });
    each<T>(job.n, [&](long j, long count) ALWAYS {
      put(out + j, count, some(g + j, count, T(0)) - exp(some(y + j, count, T(0))) * total);
    });
  }
};

template <class T> struct LogSumExp {
  static void row(const Job& job, long r) {
    const T* x = (const T*)job.p[0] + r * job.n;
    const T m = largest(x, job.n), shift = m - m == 0 ? m : 0;
    ((T*)job.p[1])[r] = log_of_sum(x, job.n, shift) + shift;
  }
};

// Of a row without a gradient it is 0, even where the row is infinite.
template <class T> struct LogSumExpGrad {
  static void row(const Job& job, long r) {
    const T g = ((const T*)job.p[0])[r], total = ((const T*)job.p[2])[r];
    const T* x = (const T*)job.p[1] + r * job.n;
    T* out = (T*)job.p[3] + r * job.n;
    each<T>(job.n, [&](long j, long count) ALWAYS {
      put(out + j, count, g == 0 ? Vec<T>(T(0)) : exp(some(x + j, count, T(0)) - total) * g);
    });
  }
};

// ---- cross entropy: a label of -1 is that of a row which does not count

template <class T> struct CrossEntropy {
  static void row(const Job& job, long r) {
    const T* x = (const T*)job.p[0] + r * job.n;
    const long label = ((const long*)job.p[1])[r];
    const T m = largest(x, job.n);
    ((T*)job.p[2])[r] = label < 0 ? T(0) : log_of_sum(x, job.n, m) - (x[label] - m);
  }
};

template <class T> struct CrossEntropyGrad {
  static void row(const Job& job, long r) {
    const T *x = (const T*)job.p[0] + r * job.n, g = ((const T*)job.p[2])[r];
    const long label = ((const long*)job.p[1])[r];
    T* out = (T*)job.p[3] + r * job.n;
    if (label < 0) {
      for (long j = 0; j < job.n; ++j) out[j] = 0;
      return;
    }
    const T scale = g / exponentials(x, out, job.n, largest(x, job.n));
    each<T>(job.n, [&](long j, long count) ALWAYS {
      put(out + j, count, some(out + j, count, T(0)) * scale);
    });
    out[label] -= g;
  }
};

// ---- layer norm, with weights of the length of a row, or null

template <class T> struct LayerNorm {
  static void row(const Job& job, long r) {
    const long n = job.n;
    const T *x = (const T*)job.p[0] + r * n, *w = (const T*)job.p[1], *b = (const T*)job.p[2];
    T* out = (T*)job.p[3] + r * n;
    const T mean =
        sum<T>(n, [&](long j, long count) ALWAYS { return some(x + j, count, T(0)); }) / n;
    const T var = sum<T>(n, [&](long j, long count) ALWAYS {
      const Vec<T> d = some(x + j, count, mean) - mean;
      return d * d;
    }) / n;
    const T scale = T(1) / sqrt(Vec<T>(var + T(job.eps)))[0];
    ((T*)job.p[4])[r] = mean, ((T*)job.p[5])[r] = var;
    each<T>(n, [&](long j, long count) ALWAYS {
      Vec<T> y = (some(x + j, count, T(0)) - mean) * scale;
      if (w) y = y * some(w + j, count, T(0));
      if (b) y = y + some(b + j, count, T(0));
      put(out + j, count, y);
    });
  }
};

// By x, and sums over rows of the gradients by the weights, in `part`.
template <class T> struct LayerNormGrads {
  static void row(const Job& job, long r) {
    const long n = job.n;
    const T *g = (const T*)job.p[0] + r * n, *x = (const T*)job.p[1] + r * n;
    const T mean = ((const T*)job.p[2])[r], var = ((const T*)job.p[3])[r];
    const T *w = (const T*)job.p[4], scale = T(1) / sqrt(Vec<T>(var + T(job.eps)))[0];
    T *out = (T*)job.p[5] + r * n, *by_w = (T*)job.part, *by_b = by_w + n;
    const auto weighted = [&](long j, long count) ALWAYS {
      const Vec<T> own = some(g + j, count, T(0));
      return w ? own * some(w + j, count, T(0)) : own;
    };
    const auto standard = [&](long j, long count) ALWAYS {
      return (some(x + j, count, T(0)) - mean) * scale;
    };
    T totals[2];
    sums<T, 2>(n, totals, [&](long j, long count, Vec<T>* terms) ALWAYS {
      terms[0] = weighted(j, count), terms[1] = terms[0] * standard(j, count);
    });
    const T shift = totals[0] / n, slope = totals[1] / n;
    each<T>(n, [&](long j, long count) ALWAYS {
      const Vec<T> y = standard(j, count), own = some(g + j, count, T(0));
      put(out + j, count, (weighted(j, count) - shift - y * slope) * scale);
      if (!w) return;
      put(by_w + j, count, some(by_w + j, count, T(0)) + own * y);
      put(by_b + j, count, some(by_b + j, count, T(0)) + own);
    });
  }
};

// ---- channels: elements [image, channel, place], standardized over images and places

struct Channels {
  const void *x, *g;  // g: the gradient, or null forwards
  const void *weight, *bias;  // of a channel, or null
  void *out, *mean, *var, *by_weight, *by_bias;
  long images, channels, n;
  double eps;
};

template <class F> INLINE void each_image(const Channels& job, long c, F row) {
  for (long i = 0; i < job.images; ++i) row((i * job.channels + c) * job.n);
}

template <class T> void channel(void* state, long c) {
  const Channels& job = *(Channels*)state;
  const T *x = (const T*)job.x, *w = (const T*)job.weight, *b = (const T*)job.bias;
  const T count = job.images * job.n;
  T mean = 0, var = 0;
  each_image(job, c, [&](long at) ALWAYS {
    mean += sum<T>(job.n, [&](long j, long count) ALWAYS { return some(x + at + j, count, T(0)); });
  });
  mean /= count;
  each_image(job, c, [&](long at) ALWAYS {
    var += sum<T>(job.n, [&](long j, long count) ALWAYS {
      const Vec<T> d = some(x + at + j, count, mean) - mean;
      return d * d;
    });
  });
  var /= count;
  ((T*)job.mean)[c] = mean, ((T*)job.var)[c] = var;
  const T scale = T(1) / sqrt(Vec<T>(var + T(job.eps)))[0];
  each_image(job, c, [&](long at) ALWAYS {
    each<T>(job.n, [&](long j, long count) ALWAYS {
      Vec<T> y = (some(x + at + j, count, T(0)) - mean) * scale;
      if (w) y = y * w[c];
      if (b) y = y + b[c];
      put((T*)job.out + at + j, count, y);
    });
  });
}

template <class T> void channel_grads(void* state, long c) {
  const Channels& job = *(Channels*)state;
  const T *x = (const T*)job.x, *g = (const T*)job.g, *w = (const T*)job.weight;
  const T mean = ((const T*)job.mean)[c], var = ((const T*)job.var)[c];
  const T count = job.images * job.n, scale = T(1) / sqrt(Vec<T>(var + T(job.eps)))[0];
  T total = 0, along = 0;
  each_image(job, c, [&](long at) ALWAYS {
    total += sum<T>(job.n, [&](long j, long count) ALWAYS { return some(g + at + j, count, T(0)); });
    along += sum<T>(job.n, [&](long j, long count) ALWAYS {
      return some(g + at + j, count, T(0)) * ((some(x + at + j, count, mean) - mean) * scale);
    });
  });
  if (w) ((T*)job.by_weight)[c] = along, ((T*)job.by_bias)[c] = total;
  const T shift = total / count, slope = along / count, factor = w ? scale * w[c] : scale;
  each_image(job, c, [&](long at) ALWAYS {
    each<T>(job.n, [&](long j, long count) ALWAYS {
      const Vec<T> y = (some(x + at + j, count, T(0)) - mean) * scale;
      put((T*)job.out + at + j, count, (some(g + at + j, count, T(0)) - shift - y * slope) * factor);
    });
  });
}

// ---- jobs

template <template <class> class Of, class T> struct Pieces {
  static long size(const Job& job) {
    const long least = (PIECE + job.n - 1) / job.n, most = (job.rows + PIECES - 1) / PIECES;
    return least > most ? least : most;
  }
  // The bytes of 2 n sums, in whole cache lines.
  static long room(const Job& job) { return (2 * job.n * sizeof(T) + 63) / 64 * 64; }
  static void piece(void* state, long k) {
    Job job = *(Job*)state;
    const long step = size(job), to = (k + 1) * step < job.rows ? (k + 1) * step : job.rows;
    if (job.part) memset(job.part += k * room(job), 0, room(job));
    for (long r = k * step; r < to; ++r) Of<T>::row(job, r);
  }
  static void run(Job& job, void* sums) {
    const long pieces = (job.rows + size(job) - 1) / size(job);
    if (sums) job.part = (char*)aligned_alloc(64, pieces * room(job));
    gpugrad_parallel(piece, &job, pieces);
    if (!sums) return;
    T* total = (T*)sums;
    for (long j = 0; j < 2 * job.n; ++j) total[j] = 0;
    for (long k = 0; k < pieces; ++k)
      for (long j = 0; j < 2 * job.n; ++j) total[j] += ((T*)(job.part + k * room(job)))[j];
    free(job.part);
  }
};

}  // namespace

#ifdef CHANNELS
// Standardizes channels, or with `g` computes gradients. Pointers are the fields of Channels.
extern "C" void gpugrad_channels(void** p, long images, long channels, long n, double eps) {
  Channels job = {p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], images, channels, n, eps};
  gpugrad_parallel(job.g ? channel_grads<TYPE> : channel<TYPE>, &job, channels);
}
#else
#define JOB(Of) Pieces<Of, TYPE>::run,
// Job `kind` of JOBS on rows of n elements; of the gradients by weights, 2 n sums.
extern "C" void gpugrad_rows(
    long kind, void** pointers, long rows, long n, double eps, void* sums) {
  void (*const jobs[])(Job&, void*) = {JOBS};
  Job job = {pointers, rows, n, eps, nullptr};
  jobs[kind](job, sums);
}
#endif
