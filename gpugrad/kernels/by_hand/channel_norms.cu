// Batch norm: standardises each channel of an array (lines, channels) if LAST, else of (examples,
// channels, places), over all other axes. Statistics, and the sums in a gradient, are computed in
// two stages without atomics: each block sums a part of a channel (or of as many channels as its
// threads have columns), then the parts are added in a fixed order. So forward reads one array
// twice and writes one, and backward reads two arrays twice and writes one. A thread reads packs of
// W elements, 16 bytes if lines are whole packs and otherwise 1 element.
//
// Forward may add an array and apply relu on the way. Backward may first add up two cotangents and
// multiply by relu's slope; then it writes the result, which it reads again.

constexpr int CHANNEL_THREADS = 256;
#define FOR_CHANNELS __launch_bounds__(CHANNEL_THREADS, 1)

// How a block covers its channels: `across` threads (a power of 2) share a line, the others have
// other lines. A line is a row of channels if LAST, otherwise a piece of at most `span` of the
// `places` of a channel of an example, which has `pieces` of them.
struct Shape {
  long long lines;
  int channels, places, span, pieces, across;
};

template <int W, bool LAST> struct Walk {
  Shape shape;
  int along, team, teams;

  __device__ explicit Walk(Shape shape)
      : shape(shape), along((int)threadIdx.x % shape.across),
        team((int)threadIdx.x / shape.across), teams(CHANNEL_THREADS / shape.across) {}

  // The first channel of this thread's packs, if it exists.
  __device__ int channel() const {
    return LAST ? ((int)blockIdx.x * shape.across + along) * W : (int)blockIdx.x;
  }
  __device__ bool any() const { return !LAST || channel() < shape.channels; }

  // Start and number of a line's elements in this block
  __device__ long long start(long long line, int& n) const {
    if (LAST) return n = 1, line * shape.channels + channel();
    long long example = divided(line, shape.pieces);
    int first = (int)(line - example * shape.pieces) * shape.span;
    n = min(shape.span, shape.places - first);
    return (example * shape.channels + channel()) * shape.places + first;
  }

  // Offset of a channel's first element
  __device__ long long start() const { return (long long)channel() * shape.places; }

  // Calls f(offset of a pack) for each pack of this thread
  template <class F> __device__ void each(F f) const {
    if (!any()) return;
    long long line = (long long)blockIdx.y * teams + team, step = (long long)gridDim.y * teams;
    if constexpr (LAST) {
#pragma unroll 4
      for (; line < shape.lines; line += step) f(line * shape.channels + channel());
    } else {
      for (; line < shape.lines; line += step) {
        int n;
        long long at = start(line, n);
#pragma unroll 4
        for (int i = along * W; i < n; i += shape.across * W) f(at + i);
      }
    }
  }
};

template <class T, int W> __device__ Pack<T, W> get(const T* x) {
  Pack<T, W> made;
  if constexpr (sizeof(made) == 16) {
    *(int4*)&made = __ldg((const int4*)x);
  } else {
    made = *(const Pack<T, W>*)x;
  }
  return made;
}

template <class T, int W> __device__ void put(T* y, const Pack<T, W>& pack) {
  if constexpr (sizeof(pack) == 16) {
    __stwb((int4*)y, *(const int4*)&pack);  // the compiler may split an assignment
  } else {
    *(Pack<T, W>*)y = pack;
  }
}

// The channel's value in a small array, for each element of a pack; `none` if there is no array.
template <int W, bool LAST, class T, class C> __device__ void of_channels(
    const Walk<W, LAST>& walk, const T* small, C none, C (&made)[W]) {
#pragma unroll
  for (int k = 0; k < W; ++k)
    made[k] = small && walk.any() ? C(small[walk.channel() + (LAST ? k : 0)]) : none;
}

// The block's sum for each channel, returned to all threads. `sums` and `scratch` are shared memory.
// If LAST, `across` threads cover the channels and the others repeat them.
template <int W, bool LAST, class C> __device__ void total(
    C (&values)[W], int across, C (*sums)[32 * W], C* scratch) {
  if constexpr (LAST) {
    int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5, along = lane & (across - 1);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      for (int by = 16; by >= across; by >>= 1)
        values[k] += __shfl_xor_sync(0xFFFFFFFFu, values[k], by);
      if (lane < across) sums[warp][along * W + k] = values[k];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < across * W; i += CHANNEL_THREADS)
      for (int k = 1; k < CHANNEL_THREADS / 32; ++k) sums[0][i] += sums[k][i];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < W; ++k) values[k] = sums[0][along * W + k];
    __syncthreads();
  } else {
    C sum = 0;
#pragma unroll
    for (int k = 0; k < W; ++k) sum += values[k];
    sum = block_reduce(sum, Sum(), C(0), scratch);
#pragma unroll
    for (int k = 0; k < W; ++k) values[k] = sum;
  }
}

#define SHARED_SUMS(C, W, LAST)                              \
  __shared__ C sums[LAST ? CHANNEL_THREADS / 32 : 1][32 * W]; \
  __shared__ C scratch[32]

// Writes one number for each channel of a block.
template <int W, bool LAST, class C> __device__ void write(
    const Walk<W, LAST>& walk, C* small, const C (&values)[W]) {
  if (walk.team || !walk.any() || (!LAST && walk.along)) return;
#pragma unroll
  for (int k = 0; k < (LAST ? W : 1); ++k) small[walk.channel() + k] = values[k];
}

// For each channel in each part: the number of elements, their mean minus the channel's first
// element, and the sum of squared distances from the mean: (3, parts, channels). A thread takes
// differences from its own first element. That is one of its n elements, so subtracting the squared
// mean from the squares loses at most a factor of n in accuracy, and n is small.
template <class T, int W, bool LAST> __global__ void FOR_CHANNELS channel_moments(
    const T* __restrict__ x, compute_t<T>* __restrict__ partial, Shape shape) {
  typedef compute_t<T> C;
  SHARED_SUMS(C, W, LAST);
  Walk<W, LAST> walk(shape);
  C near[W], sum[W], squares[W];
  int n = 0;
#pragma unroll
  for (int k = 0; k < W; ++k) near[k] = sum[k] = squares[k] = 0;
  walk.each([&](long long at) {
    Pack<T, W> p = get<T, W>(x + at);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      if (!n) near[k] = C(p.at[k]);
      C d = C(p.at[k]) - near[k];
      sum[k] += d, squares[k] += d * d;
    }
    ++n;
  });

  // combine the threads of the block
  C counts[W], means[W];
#pragma unroll
  for (int k = 0; k < W; ++k) {
    counts[k] = n;
    C first = walk.any() ? C(x[walk.start() + (LAST ? k : 0)]) : C(0);
    sum[k] = n ? sum[k] / n : C(0), near[k] = n ? near[k] - first + sum[k] : C(0);
    means[k] = near[k] * n;
  }
  total<W, LAST>(counts, shape.across, sums, scratch);
  total<W, LAST>(means, shape.across, sums, scratch);
#pragma unroll
  for (int k = 0; k < W; ++k) {
    means[k] /= counts[k];
    C off = near[k] - means[k], own = squares[k] - sum[k] * sum[k] * n;
    squares[k] = n ? (own < 0 ? C(0) : own) + off * off * n : C(0);
  }
  total<W, LAST>(squares, shape.across, sums, scratch);
  partial += (long long)blockIdx.y * shape.channels;
  const long long next = (long long)gridDim.y * shape.channels;
  write(walk, partial, counts), write(walk, partial + next, means);
  write(walk, partial + 2 * next, squares);
}

// The sum of f(part) over the parts of a column; a block is (32, 32), its rows share the parts.
#define FOR_COLUMNS __launch_bounds__(1024)
template <class C, class F> __device__ C over_parts(int parts, bool any, C (*sums)[33], F f) {
  C sum = 0;
  if (any) {
#pragma unroll 4
    for (int k = threadIdx.y; k < parts; k += 32) sum += f(k);
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (int k = 0; k < 32; ++k) sum += sums[k][threadIdx.x];
  __syncthreads();
  return sum;
}

// Mean and variance of each channel from its parts
template <class T> __global__ void FOR_COLUMNS channel_statistics(
    const compute_t<T>* __restrict__ partial, const T* __restrict__ x,
    compute_t<T>* __restrict__ mean, compute_t<T>* __restrict__ var, int parts, int channels,
    double count, int places) {
  typedef compute_t<T> C;
  __shared__ C sums[32][33];
  int channel = (int)blockIdx.x * 32 + (int)threadIdx.x;
  bool any = channel < channels;
  const C *counts = partial + channel, *means = counts + (long long)parts * channels;
  const C* squares = means + (long long)parts * channels;
  C off = over_parts(parts, any, sums, [&](int k) {
    long long at = (long long)k * channels;
    return counts[at] * means[at];
  });
  off /= C(count);
  C sum = over_parts(parts, any, sums, [&](int k) {
    long long at = (long long)k * channels;
    C d = means[at] - off;
    return squares[at] + counts[at] * d * d;
  });
  if (!any || threadIdx.y) return;
  mean[channel] = C(x[(long long)channel * places]) + off, var[channel] = sum / C(count);
}

// `more`: null, or an array that is added to the result
template <class T, int W, bool LAST> __global__ void FOR_CHANNELS channel_forward(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
    const compute_t<T>* __restrict__ mean, const compute_t<T>* __restrict__ var,
    const T* __restrict__ more, T* __restrict__ y, Shape shape, double eps, bool relu) {
  typedef compute_t<T> C;
  Walk<W, LAST> walk(shape);
  C center[W], scale[W], factor[W], shift[W];
  of_channels(walk, mean, C(0), center);
  of_channels(walk, var, C(0), scale);
  of_channels(walk, weight, C(1), factor);
  of_channels(walk, bias, C(0), shift);
#pragma unroll
  for (int k = 0; k < W; ++k) scale[k] = inverse_root(scale[k], C(eps)) * factor[k];
  walk.each([&](long long at) {
    Pack<T, W> p = get<T, W>(x + at), q;
    if (more) q = get<T, W>(more + at);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      p.at[k] = T((C(p.at[k]) - center[k]) * scale[k] + shift[k]);
      if (more) p.at[k] = T(C(p.at[k]) + C(q.at[k]));
      if (relu && C(p.at[k]) < C(0)) p.at[k] = T(C(0));  // NaN stays
    }
    put(y + at, p);
  });
}

// The contribution of each part to the gradients of weight and bias: (2, parts, channels). If `mean`
// is null, x is already standardised. If `masked` is not null, the cotangent is g, plus `more` if
// that is not null, where `relu` > 0, and is written there.
template <class T, int W, bool LAST> __global__ void FOR_CHANNELS channel_sums(
    const T* __restrict__ g, const T* __restrict__ x, const compute_t<T>* __restrict__ mean,
    const compute_t<T>* __restrict__ var, const T* __restrict__ more, const T* __restrict__ relu,
    T* __restrict__ masked, compute_t<T>* __restrict__ partial, Shape shape, double eps) {
  typedef compute_t<T> C;
  SHARED_SUMS(C, W, LAST);
  Walk<W, LAST> walk(shape);
  C center[W], scale[W], by_weight[W], by_bias[W];
  of_channels(walk, mean, C(0), center);
  of_channels(walk, var, C(0), scale);
#pragma unroll
  for (int k = 0; k < W; ++k) {
    scale[k] = mean ? inverse_root(scale[k], C(eps)) : C(1);
    by_weight[k] = by_bias[k] = 0;
  }
  walk.each([&](long long at) {
    Pack<T, W> u = get<T, W>(g + at), v = get<T, W>(x + at);
    if (masked) {
      Pack<T, W> out = get<T, W>(relu + at), other;
      if (more) other = get<T, W>(more + at);
#pragma unroll
      for (int k = 0; k < W; ++k) {
        if (more) u.at[k] = T(C(u.at[k]) + C(other.at[k]));
        u.at[k] = T(C(u.at[k]) * C(C(out.at[k]) > C(0)));  // NaN stays
      }
      put(masked + at, u);
    }
#pragma unroll
    for (int k = 0; k < W; ++k) {
      by_weight[k] += C(u.at[k]) * ((C(v.at[k]) - center[k]) * scale[k]);
      by_bias[k] += C(u.at[k]);
    }
  });
  total<W, LAST>(by_weight, shape.across, sums, scratch);
  total<W, LAST>(by_bias, shape.across, sums, scratch);
  partial += (long long)blockIdx.y * shape.channels;
  write(walk, partial, by_weight);
  write(walk, partial + (long long)gridDim.y * shape.channels, by_bias);
}

// The gradients of weight and bias (if wanted), and the coefficients of dx:
// dx = g * slopes[0] + (x - mean) * slopes[1] + slopes[2]
template <class T> __global__ void FOR_COLUMNS channel_slopes(
    const compute_t<T>* __restrict__ partial, const compute_t<T>* __restrict__ mean,
    const compute_t<T>* __restrict__ var, const compute_t<T>* __restrict__ g_mean,
    const compute_t<T>* __restrict__ g_var, const T* __restrict__ weight,
    compute_t<T>* __restrict__ slopes, T* __restrict__ d_weight, T* __restrict__ d_bias, int parts,
    int channels, double count, double eps) {
  typedef compute_t<T> C;
  __shared__ C sums[32][33];
  int channel = (int)blockIdx.x * 32 + (int)threadIdx.x;
  bool any = channel < channels;
  auto column = [&](const C* from) {
    return over_parts(
        parts, any, sums, [&](int k) { return from[(long long)k * channels + channel]; });
  };
  C product = column(partial), sum = column(partial + (long long)parts * channels);
  if (!any || threadIdx.y) return;
  if (d_weight) d_weight[channel] = T(product), d_bias[channel] = T(sum);
  C scale = inverse_root(var[channel], C(eps)), factor = weight ? C(weight[channel]) : C(1);
  C slope = 2 * g_var[channel] * ((var[channel] + C(eps)) * scale) - scale * factor * product;
  slopes[channel] = scale * factor;
  slopes[channels + channel] = slope / C(count) * (mean ? scale : C(1));
  slopes[2 * channels + channel] = (g_mean[channel] - scale * factor * sum) / C(count);
}

template <class T, int W, bool LAST> __global__ void FOR_CHANNELS channel_backward(
    const T* __restrict__ g, const T* __restrict__ x, const compute_t<T>* __restrict__ mean,
    const compute_t<T>* __restrict__ slopes, T* __restrict__ dx, Shape shape) {
  typedef compute_t<T> C;
  Walk<W, LAST> walk(shape);
  C center[W], by_g[W], by_x[W], shift[W];
  of_channels(walk, mean, C(0), center);
  of_channels(walk, slopes, C(0), by_g);
  of_channels(walk, slopes + shape.channels, C(0), by_x);
  of_channels(walk, slopes + 2 * shape.channels, C(0), shift);
  walk.each([&](long long at) {
    Pack<T, W> u = get<T, W>(g + at), v = get<T, W>(x + at);
#pragma unroll
    for (int k = 0; k < W; ++k)
      u.at[k] = T(C(u.at[k]) * by_g[k] + ((C(v.at[k]) - center[k]) * by_x[k] + shift[k]));
    put(dx + at, u);
  });
}
