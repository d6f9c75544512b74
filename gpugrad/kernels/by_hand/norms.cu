// Layer norm and RMS norm of rows, and their gradients. Gradients of weights take two stages: each
// block sums the contributions of its rows to each column, then the blocks' sums are added in a
// fixed order. If a row fits into its team's registers, forward reads one row and writes one, and
// backward reads two and writes one. No statistics are computed twice.
#include "rows.cuh"

// Mean and variance of a row (0 and mean square if not CENTERED), returned to the whole team
template <bool CENTERED, class T, int HELD> __device__ void moments(
    const Line<T, HELD>& x, compute_t<T>& mean, compute_t<T>& var, compute_t<T>* scratch) {
  typedef compute_t<T> C;
  mean = 0, var = 0;
  C sum = 0, squares = 0;
  if (CENTERED) {
    x.each([&](int, const Pack<T, PACKED<T>>& p) {
#pragma unroll
      for (int k = 0; k < PACKED<T>; ++k) sum += C(p.at[k]);
    });
    mean = block_reduce(sum, Sum(), C(0), scratch) / x.n;
  }
  x.each([&](int i, const Pack<T, PACKED<T>>& p) {
#pragma unroll
    for (int k = 0; k < PACKED<T>; ++k) {
      C d = C(p.at[k]) - mean;
      if (i + k >= 0 && i + k < x.n) squares += d * d;
    }
  });
  var = block_reduce(squares, Sum(), C(0), scratch) / x.n;
}

template <class T, int HELD, bool CENTERED> __global__ void FOR_TEAM norm_forward(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
    T* __restrict__ y, compute_t<T>* __restrict__ means, compute_t<T>* __restrict__ vars,
    long long rows, int n, double eps) {
  typedef compute_t<T> C;
  __shared__ C scratch[32];
  long long row = row_of_team();
  if (row >= rows) return;
  x += row * n, y += row * n;
  Line<T, HELD> line(x, n, shift_of(x, n), T(0.0f));
  C mean, var;
  moments<CENTERED>(line, mean, var, scratch);
  C scale = inverse_root(var, C(eps));
  line.each([&](int i, Pack<T, PACKED<T>> p) {
    Pack<T, PACKED<T>> w, b;
    if (weight) w = load(weight, i, n, T(0.0f));
    if (bias) b = load(bias, i, n, T(0.0f));
#pragma unroll
    for (int k = 0; k < PACKED<T>; ++k) {
      C v = (C(p.at[k]) - mean) * scale;
      if (weight) v *= C(w.at[k]);
      if (bias) v += C(b.at[k]);
      p.at[k] = T(v);
    }
    store(y, i, n, p);
  });
  if (threadIdx.x == 0) means[row] = mean, vars[row] = var;
}

// The coefficients of a row's gradient: dx = g * weight * scale + xhat * slope + shift, until slope
// is rescaled to multiply x - mean
template <class C> struct Slope {
  C mean, scale, slope, shift;
};

// `total` and `product`: the row's sums of g * weight and of g * weight * xhat
template <bool CENTERED, class C> __device__ void finish(
    Slope<C>& s, C total, C product, C var, C eps, C g_mean, C g_var, int n) {
  s.slope = (2 * g_var * ((var + eps) * s.scale) - s.scale * product) / n;
  s.shift = CENTERED ? (g_mean - s.scale * total) / n : C(0);
}

// Each team takes rows at a fixed stride. If `means` is null, x is already standardised. PARTIAL,
// which needs HELD, also writes the block's contributions to the gradients of weight and bias:
// (blocks, n) for one, then for the other.
template <class T, int HELD, bool CENTERED, bool PARTIAL> __global__ void FOR_TEAM norm_backward(
    const T* __restrict__ g, const T* __restrict__ x, const compute_t<T>* __restrict__ means,
    const compute_t<T>* __restrict__ vars, const compute_t<T>* __restrict__ g_means,
    const compute_t<T>* __restrict__ g_vars, const T* __restrict__ weight, T* __restrict__ dx,
    compute_t<T>* __restrict__ partial, long long rows, int n, double eps) {
  typedef compute_t<T> C;
  typedef Pack<T, PACKED<T>> P;
  constexpr int W = PACKED<T>, OWN = PARTIAL ? HELD * W : 1;
  __shared__ C scratch[32];
  C by_weight[OWN], by_bias[OWN];
#pragma unroll
  for (int k = 0; k < OWN; ++k) by_weight[k] = by_bias[k] = 0;

  for (long long row = row_of_team(); row < rows; row += (long long)gridDim.x * blockDim.y) {
    const T *gs = g + row * n, *xs = x + row * n;
    // a thread has the same columns in every row, so it can sum them
    int shift = PARTIAL ? 0 : shift_of(xs, n);
    Line<T, HELD> a(gs, n, shift, T(0.0f)), b(xs, n, shift, T(0.0f));
    C var = vars[row], total = 0, product = 0;
    Slope<C> s;
    s.mean = means ? means[row] : C(0), s.scale = inverse_root(var, C(eps));
    const C unit = means ? s.scale : C(1);
    a.each(b, [&](int i, const P& u, const P& v, int before) {
      P w;
      if (weight) w = load(weight, i, n, T(0.0f));
#pragma unroll
      for (int k = 0; k < W; ++k) {
        C given = C(u.at[k]), hat = (C(v.at[k]) - s.mean) * unit;
        if constexpr (PARTIAL) {
          by_weight[before * W + k] += given * hat;
          by_bias[before * W + k] += given;
        }
        if (weight) given *= C(w.at[k]);
        total += given, product += given * hat;
      }
    });
    if (CENTERED) total = block_reduce(total, Sum(), C(0), scratch);
    product = block_reduce(product, Sum(), C(0), scratch);
    finish<CENTERED>(
        s, total, product, var, C(eps), CENTERED ? g_means[row] : C(0), g_vars[row], n);
    s.slope *= unit;  // x - mean is not divided by the deviation yet
    a.each(b, [&](int i, P u, const P& v, int) {
      P w;
      if (weight) w = load(weight, i, n, T(0.0f));
#pragma unroll
      for (int k = 0; k < W; ++k) {
        C given = C(u.at[k]);
        if (weight) given *= C(w.at[k]);
        u.at[k] = T(given * s.scale + (C(v.at[k]) - s.mean) * s.slope + s.shift);
      }
      store(dx + row * n, i, n, u);
    });
  }

  if constexpr (PARTIAL) {
    extern __shared__ double columns[];  // sums for weight and bias if a block has several teams
    C *sums = (C*)columns, *out = partial + (long long)blockIdx.x * n;
    for (int team = 0; team < blockDim.y; ++team) {
#pragma unroll
      for (int k = 0; k < HELD * W; ++k) {
        int i = (k / W * (int)blockDim.x + (int)threadIdx.x) * W + k % W;
        if (team != threadIdx.y || i >= n) continue;
        C p = by_weight[k] + (team ? sums[i] : C(0)), q = by_bias[k] + (team ? sums[n + i] : C(0));
        if (team + 1 < blockDim.y) {
          sums[i] = p, sums[n + i] = q;
        } else {
          out[i] = p, out[(long long)gridDim.x * n + i] = q;
        }
      }
      __syncthreads();
    }
  }
}

// Contributions of rows to the gradients of weight and bias, for rows that are too long for
// registers: a thread has a pack of columns, blockIdx.y takes rows at a fixed stride.
template <class T> __global__ void FOR_TEAM norm_columns(
    const T* __restrict__ g, const T* __restrict__ x, const compute_t<T>* __restrict__ means,
    const compute_t<T>* __restrict__ vars, compute_t<T>* __restrict__ partial, long long rows,
    int n, double eps) {
  typedef compute_t<T> C;
  constexpr int W = PACKED<T>;
  int first = (int)(blockIdx.x * blockDim.x + threadIdx.x) * W;
  if (first >= n) return;
  C by_weight[W], by_bias[W];
#pragma unroll
  for (int k = 0; k < W; ++k) by_weight[k] = by_bias[k] = 0;
#pragma unroll 4
  for (long long row = blockIdx.y; row < rows; row += gridDim.y) {
    Pack<T, W> u = load(g + row * n, first, n, T(0.0f)), v = load(x + row * n, first, n, T(0.0f));
    C mean = means[row], scale = inverse_root(vars[row], C(eps));
#pragma unroll
    for (int k = 0; k < W; ++k) {
      by_weight[k] += C(u.at[k]) * ((C(v.at[k]) - mean) * scale);
      by_bias[k] += C(u.at[k]);
    }
  }
  C *out = partial + (long long)blockIdx.y * n, *more = out + (long long)gridDim.y * n;
#pragma unroll
  for (int k = 0; k < W; ++k)
    if (first + k < n) out[first + k] = by_weight[k], more[first + k] = by_bias[k];
}

// The column sums of two consecutive arrays (parts, n); a block is (32, 16)
template <class T> __global__ void column_sums(
    const compute_t<T>* __restrict__ partial, T* __restrict__ first, T* __restrict__ second,
    int parts, int n) {
  typedef compute_t<T> C;
  __shared__ C sums[16][33];
  int column = blockIdx.x * 32 + threadIdx.x;
  partial += (long long)blockIdx.y * parts * n;
  C sum = 0;
  if (column < n)
    for (int k = threadIdx.y; k < parts; k += 16) sum += partial[(long long)k * n + column];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y || column >= n) return;
  for (int k = 1; k < 16; ++k) sum += sums[k][threadIdx.x];
  (blockIdx.y ? second : first)[column] = T(sum);
}
