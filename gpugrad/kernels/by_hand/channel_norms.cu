// Batch norm: standardises each channel of an array (lines, channels) if LAST, else of (examples,
// channels, places), over all other axes. Each direction is one cooperative launch of three phases,
// with barriers between them: each block sums a part of a channel (or of as many channels as its
// threads have columns), the parts of a channel are added in a fixed order, and the elements are
// computed from these sums. So forward reads one array twice and writes one, and backward reads two
// arrays twice and writes one. A thread reads packs of W elements, 16 bytes if lines are whole packs
// and otherwise 1 element; it has the same packs in the last phase as in the first.
//
// Forward may add an array and apply relu on the way. Backward may first add up two cotangents and
// multiply by relu's slope. It writes the result, and reads it again, only if others need it, too.

constexpr int CHANNEL_THREADS = 256;
#define FOR_CHANNELS __launch_bounds__(CHANNEL_THREADS, 2)  // as many as the launcher counts on

// How a block covers its channels: `across` threads (a power of 2) share a line, the others have
// other lines. A line is a row of channels if LAST, otherwise a piece of at most `span` of the
// `places` of a channel of an example, which has `pieces` of them.
struct Shape {
  long long lines;
  int channels, places, span, pieces, across;
};

template <int W, bool LAST> struct Walk {
  Shape shape;
  int along, team, teams, tile;

  __device__ explicit Walk(Shape shape)
      : shape(shape), along((int)threadIdx.x % shape.across),
        team((int)threadIdx.x / shape.across), teams(CHANNEL_THREADS / shape.across),
        tile((int)blockIdx.x) {}

  // Goes to the block's next channels, if there are any.
  __device__ bool here() const { return (LAST ? tile * shape.across * W : tile) < shape.channels; }
  __device__ void next() { tile += (int)gridDim.x; }

  // The first channel of this thread's packs, if it exists.
  __device__ int channel() const { return LAST ? (tile * shape.across + along) * W : tile; }
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

// The same, of memory that this thread wrote before.
template <class T, int W> __device__ Pack<T, W> get_own(const T* x) {
  Pack<T, W> made;
  if constexpr (sizeof(made) == 16) {
    *(int4*)&made = *(const int4*)x;
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
template <class T, int W, bool LAST, class C> __device__ void moments(
    const Walk<W, LAST>& walk, const T* __restrict__ x, C* partial, C (*sums)[32 * W], C* scratch) {
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
  total<W, LAST>(counts, walk.shape.across, sums, scratch);
  total<W, LAST>(means, walk.shape.across, sums, scratch);
#pragma unroll
  for (int k = 0; k < W; ++k) {
    means[k] /= counts[k];
    C off = near[k] - means[k], own = squares[k] - sum[k] * sum[k] * n;
    squares[k] = n ? (own < 0 ? C(0) : own) + off * off * n : C(0);
  }
  total<W, LAST>(squares, walk.shape.across, sums, scratch);
  partial += (long long)blockIdx.y * walk.shape.channels;
  const long long next = (long long)gridDim.y * walk.shape.channels;
  write(walk, partial, counts), write(walk, partial + next, means);
  write(walk, partial + 2 * next, squares);
}

// Calls f(channel, its parts) in each thread of a block, for each of the block's share of channels.
template <class C, class F> __device__ void each_channel(int channels, const C* partial, F f) {
  int blocks = (int)(gridDim.x * gridDim.y);
  for (int k = (int)(blockIdx.y * gridDim.x + blockIdx.x); k < channels; k += blocks)
    f(k, partial + k);
}

// The sum of f(offset of a part), by a block
template <class C, class F> __device__ C over_parts(int channels, C* scratch, F f) {
  C sum = 0;
  for (int k = threadIdx.x; k < (int)gridDim.y; k += CHANNEL_THREADS) sum += f((long long)k * channels);
  return block_reduce(sum, Sum(), C(0), scratch);
}

// An element of the result of a norm
template <class T, class C> __device__ T scaled(T x, C center, C factor, C shift) {
  return T((C(x) - center) * factor + shift);
}

// Standardised x, its mean and its variance. `more`: null, or an array that is added to the result.
// `partial`: (3, parts, channels).
template <class T, int W, bool LAST> __global__ void FOR_CHANNELS channel_forward(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
    const T* __restrict__ more, T* __restrict__ y, compute_t<T>* mean, compute_t<T>* var,
    compute_t<T>* partial, unsigned* arrived, Shape shape, double count, double eps, bool relu) {
  typedef compute_t<T> C;
  SHARED_SUMS(C, W, LAST);
  const int channels = shape.channels;
  for (Walk<W, LAST> walk(shape); walk.here(); walk.next()) moments(walk, x, partial, sums, scratch);
  grid_barrier(arrived);
  each_channel(channels, partial, [&](int channel, const C* counts) {
    const C* means = counts + (long long)gridDim.y * channels;
    const C* squares = means + (long long)gridDim.y * channels;
    C off = over_parts(channels, scratch, [&](long long at) { return counts[at] * means[at]; });
    off /= C(count);
    C sum = over_parts(channels, scratch, [&](long long at) {
      C d = means[at] - off;
      return squares[at] + counts[at] * d * d;
    });
    if (threadIdx.x) return;
    mean[channel] = C(x[(long long)channel * shape.places]) + off, var[channel] = sum / C(count);
  });
  grid_barrier(arrived);
  for (Walk<W, LAST> walk(shape); walk.here(); walk.next()) {
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
        p.at[k] = scaled(p.at[k], center[k], scale[k], shift[k]);
        if (more) p.at[k] = T(C(p.at[k]) + C(q.at[k]));
        if (relu && C(p.at[k]) < C(0)) p.at[k] = T(C(0));  // NaN stays
      }
      put(y + at, p);
    });
  }
}

// The cotangent of a norm: g, plus `more` if that is not null, where relu is positive. Relu's result
// is `relu`; if that is null and `bias` is not, it is the relu of x, center, factor and shift.
template <class T, int W, class C> __device__ Pack<T, W> cotangent(
    const T* __restrict__ g, const T* __restrict__ more, const T* __restrict__ relu,
    const T* __restrict__ bias, long long at, const Pack<T, W>& x, const C (&center)[W],
    const C (&factor)[W], const C (&shift)[W]) {
  Pack<T, W> u = get<T, W>(g + at), other, out;
  if (!relu && !bias) return u;
  if (more) other = get<T, W>(more + at);
  if (relu) out = get<T, W>(relu + at);
#pragma unroll
  for (int k = 0; k < W; ++k) {
    if (more) u.at[k] = T(C(u.at[k]) + C(other.at[k]));
    if (!relu) out.at[k] = scaled(x.at[k], center[k], factor[k], shift[k]);
    u.at[k] = T(C(u.at[k]) * C(C(out.at[k]) > C(0)));  // NaN stays
  }
  return u;
}

// The contribution of each part to the gradients of weight and bias: (2, parts, channels). See
// channel_backward for the arguments.
template <class T, int W, bool LAST, class C> __device__ void slopes_of_parts(
    const Walk<W, LAST>& walk, const T* __restrict__ g, const T* __restrict__ x,
    const C* __restrict__ mean, const C* __restrict__ var, const T* __restrict__ weight,
    const T* __restrict__ bias, const T* __restrict__ more, const T* __restrict__ relu, T* masked,
    C* partial, C eps, C (*sums)[32 * W], C* scratch) {
  C center[W], scale[W], factor[W], shift[W], by_weight[W], by_bias[W];
  of_channels(walk, mean, C(0), center);
  of_channels(walk, var, C(0), scale);
  of_channels(walk, weight, C(1), factor);
  of_channels(walk, bias, C(0), shift);
#pragma unroll
  for (int k = 0; k < W; ++k) {
    scale[k] = mean ? inverse_root(scale[k], eps) : C(1);
    factor[k] = scale[k] * factor[k];
    by_weight[k] = by_bias[k] = 0;
  }
  walk.each([&](long long at) {
    Pack<T, W> v = get<T, W>(x + at);
    Pack<T, W> u = cotangent(g, more, relu, bias, at, v, center, factor, shift);
    if (masked) put(masked + at, u);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      by_weight[k] += C(u.at[k]) * ((C(v.at[k]) - center[k]) * scale[k]);
      by_bias[k] += C(u.at[k]);
    }
  });
  total<W, LAST>(by_weight, walk.shape.across, sums, scratch);
  total<W, LAST>(by_bias, walk.shape.across, sums, scratch);
  partial += (long long)blockIdx.y * walk.shape.channels;
  write(walk, partial, by_weight);
  write(walk, partial + (long long)gridDim.y * walk.shape.channels, by_bias);
}

// The gradient of x, and those of weight and bias if they are not null. If `mean` is null, x is
// already standardised. The cotangent is that of `cotangent`, where `bias` is null unless relu is to
// be computed again; it is written to `masked` if that is not null. `partial`: (2, parts, channels).
// `slopes`: (3, channels): dx = cotangent * slopes[0] + (x - mean) * slopes[1] + slopes[2].
template <class T, int W, bool LAST> __global__ void FOR_CHANNELS channel_backward(
    const T* __restrict__ g, const T* __restrict__ x, const compute_t<T>* __restrict__ mean,
    const compute_t<T>* __restrict__ var, const compute_t<T>* __restrict__ g_mean,
    const compute_t<T>* __restrict__ g_var, const T* __restrict__ weight,
    const T* __restrict__ bias, const T* __restrict__ more, const T* __restrict__ relu, T* masked,
    T* __restrict__ dx, T* __restrict__ d_weight, T* __restrict__ d_bias, compute_t<T>* partial,
    compute_t<T>* slopes, unsigned* arrived, Shape shape, double count, double eps) {
  typedef compute_t<T> C;
  SHARED_SUMS(C, W, LAST);
  const int channels = shape.channels;
  for (Walk<W, LAST> walk(shape); walk.here(); walk.next())
    slopes_of_parts(
        walk, g, x, mean, var, weight, bias, more, relu, masked, partial, C(eps), sums, scratch);
  grid_barrier(arrived);
  each_channel(channels, partial, [&](int channel, const C* products) {
    const C* others = products + (long long)gridDim.y * channels;
    C product = over_parts(channels, scratch, [&](long long at) { return products[at]; });
    C sum = over_parts(channels, scratch, [&](long long at) { return others[at]; });
    if (threadIdx.x) return;
    if (d_weight) d_weight[channel] = T(product), d_bias[channel] = T(sum);
    C scale = inverse_root(var[channel], C(eps)), factor = weight ? C(weight[channel]) : C(1);
    C slope = 2 * g_var[channel] * ((var[channel] + C(eps)) * scale) - scale * factor * product;
    slopes[channel] = scale * factor;
    slopes[channels + channel] = slope / C(count) * (mean ? scale : C(1));
    slopes[2 * channels + channel] = (g_mean[channel] - scale * factor * sum) / C(count);
  });
  grid_barrier(arrived);
  for (Walk<W, LAST> walk(shape); walk.here(); walk.next()) {
    C center[W], shift[W], by_g[W], by_x[W], rest[W];
    of_channels(walk, mean, C(0), center);
    of_channels(walk, bias, C(0), shift);
    of_channels(walk, slopes, C(0), by_g);  // forward's factor, too
    of_channels(walk, slopes + channels, C(0), by_x);
    of_channels(walk, slopes + 2 * channels, C(0), rest);
    walk.each([&](long long at) {
      Pack<T, W> v = get<T, W>(x + at);
      Pack<T, W> u = masked ? get_own<T, W>(masked + at)
                            : cotangent(g, more, relu, bias, at, v, center, by_g, shift);
#pragma unroll
      for (int k = 0; k < W; ++k)
        u.at[k] = T(C(u.at[k]) * by_g[k] + ((C(v.at[k]) - center[k]) * by_x[k] + rest[k]));
      put(dx + at, u);
    });
  }
}
