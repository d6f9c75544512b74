// Steps of optimizers over many tensors in one launch.
//
// A step is bound by memory bandwidth. Adam in float32 reads p, g, m, v and writes p, m, v: at least
// 28 bytes per element.
#include "tables.cuh"

// ---- SGD: tensors of type T, gradients of type G, which is T or a 16-bit float

template <class S> struct SgdSettings { S rate, momentum, of_velocity, of_gradient; };

template <class T, class G = T> __global__ void __launch_bounds__(256) sgd(
    const __grid_constant__ Table<2> table, SgdSettings<compute_t<T>> given,
    const SgdSettings<compute_t<T>>* live) {
  typedef compute_t<T> S;
  constexpr int W = WIDE<T, G>;
  S rate = live ? live->rate : given.rate;
  each_chunk(table, [&](int i, long long start, int n) {
    T* p = (T*)table.at[0][i] + start;
    const G* g = (const G*)table.at[1][i] + start;
    int whole = aligned(p, g) ? n / W * W : 0;
    for (int k = threadIdx.x * W; k < whole; k += blockDim.x * W) {
      S a[W], b[W];
      load<W>(p + k, a);
      load<W>(g + k, b);
#pragma unroll
      for (int j = 0; j < W; ++j) a[j] -= rate * b[j];
      store<W>(a, p + k);
    }
    for (int k = whole + threadIdx.x; k < n; k += blockDim.x) p[k] = T(S(p[k]) - rate * S(g[k]));
  });
}

template <class T, class G = T> __global__ void __launch_bounds__(256) sgd_momentum(
    const __grid_constant__ Table<3> table, SgdSettings<compute_t<T>> given,
    const SgdSettings<compute_t<T>>* live) {
  typedef compute_t<T> S;
  constexpr int W = WIDE<T, G>;
  SgdSettings<S> s = live ? *live : given;
  auto step = [&](S& p, S g, S& v) {
    v = s.momentum * v + g;
    p -= s.of_velocity * v + s.of_gradient * g;
  };
  each_chunk(table, [&](int i, long long start, int n) {
    T* p = (T*)table.at[0][i] + start;
    const G* g = (const G*)table.at[1][i] + start;
    S* v = (S*)table.at[2][i] + start;
    int whole = aligned(p, g, v) ? n / W * W : 0;
    for (int k = threadIdx.x * W; k < whole; k += blockDim.x * W) {
      S a[W], b[W], c[W];
      load<W>(p + k, a);
      load<W>(g + k, b);
      load<W>(v + k, c);
#pragma unroll
      for (int j = 0; j < W; ++j) step(a[j], b[j], c[j]);
      store<W>(a, p + k);
      store<W>(c, v + k);
    }
    for (int k = whole + threadIdx.x; k < n; k += blockDim.x) {
      S a = S(p[k]), c = v[k];
      step(a, S(g[k]), c);
      p[k] = T(a);
      v[k] = c;
    }
  });
}

// ---- Adam, and AdamW if keep < 1

// stride and root contain the bias corrections: rate / (1 - beta_1^t), 1 / (1 - beta_2^t).
template <class S> struct AdamSettings {
  S beta_1, add_1, beta_2, add_2, keep, stride, root, epsilon;
};

template <class T, class G = T> __global__ void __launch_bounds__(256) adam(
    const __grid_constant__ Table<4> table, AdamSettings<compute_t<T>> given,
    const AdamSettings<compute_t<T>>* live) {
  typedef compute_t<T> S;
  constexpr int W = WIDE<T, G>;
  AdamSettings<S> s = live ? *live : given;
  auto step = [&](S& p, S g, S& m, S& v) {
    m = s.beta_1 * m + s.add_1 * g;
    v = s.beta_2 * v + s.add_2 * g * g;
    p = s.keep * p - s.stride * m / (sqrt(v * s.root) + s.epsilon);
  };
  each_chunk(table, [&](int i, long long start, int n) {
    T* p = (T*)table.at[0][i] + start;
    const G* g = (const G*)table.at[1][i] + start;
    S* m = (S*)table.at[2][i] + start;
    S* v = (S*)table.at[3][i] + start;
    int whole = aligned(p, g, m, v) ? n / W * W : 0;
    for (int k = threadIdx.x * W; k < whole; k += blockDim.x * W) {
      S a[W], b[W], c[W], d[W];
      load<W>(p + k, a);
      load<W>(g + k, b);
      load<W>(m + k, c);
      load<W>(v + k, d);
#pragma unroll
      for (int j = 0; j < W; ++j) step(a[j], b[j], c[j], d[j]);
      store<W>(a, p + k);
      store<W>(c, m + k);
      store<W>(d, v + k);
    }
    for (int k = whole + threadIdx.x; k < n; k += blockDim.x) {
      S a = S(p[k]), c = m[k], d = v[k];
      step(a, S(g[k]), c, d);
      p[k] = T(a);
      m[k] = c;
      v[k] = d;
    }
  });
}

// ---- checks of gradients: their norm, and whether they are finite

// The sum of squares of each block's chunks of numbers in type A. The squares are doubles: those of
// floats overflow from 1e19 on. Reading the gradients takes longer than adding doubles.
template <class T, class A> __global__ void __launch_bounds__(256) squares(
    const __grid_constant__ Table<1> table, double* sums) {
  constexpr int W = PACKED<T>;
  __shared__ double scratch[32];
  double sum = 0;
  each_chunk(table, [&](int i, long long start, int n) {
    const T* g = (const T*)table.at[0][i] + start;
    int whole = aligned(g) ? n / W * W : 0;
    for (int k = threadIdx.x * W; k < whole; k += blockDim.x * W) {
      A a[W];
      load<W>(g + k, a);
#pragma unroll
      for (int j = 0; j < W; ++j) sum += double(a[j]) * double(a[j]);
    }
    for (int k = whole + threadIdx.x; k < n; k += blockDim.x) {
      double a = double(A(g[k]));
      sum += a * a;
    }
  });
  sum = block_reduce(sum, Sum(), 0.0, scratch);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Scales gradients so that their norm is at most max_norm, and writes the norm. Every block adds up
// all partial sums, which are few, in the same order, so the scale needs no launch of its own.
template <class T, class A> __global__ void __launch_bounds__(256) clip(
    const __grid_constant__ Table<2> table, const double* sums, int n_sums, A max_norm, A* norm) {
  __shared__ double scratch[32];
  double sum = 0;
  for (int k = threadIdx.x; k < n_sums; k += blockDim.x) sum += sums[k];
  A size = A(sqrt(block_reduce(sum, Sum(), 0.0, scratch)));
  A scale = size < infinity<A>() ? (size > max_norm ? max_norm / size : A(1)) : size - size;
  if (blockIdx.x == 0 && threadIdx.x == 0) *norm = size;
  each_chunk(table, [&](int i, long long start, int n) {
    map_chunk<A>(
        (const T*)table.at[0][i] + start, (T*)table.at[1][i] + start, n,
        [&](A a) { return a * scale; });
  });
}

// Writes 1 to `broken` if an element is infinite or NaN; all threads write the same value.
template <class T> __global__ void __launch_bounds__(256) find_broken(
    const __grid_constant__ Table<1> table, int* broken) {
  typedef compute_t<T> S;
  constexpr int W = PACKED<T>;
  bool found = false;
  each_chunk(table, [&](int i, long long start, int n) {
    const T* g = (const T*)table.at[0][i] + start;
    int whole = aligned(g) ? n / W * W : 0;
    for (int k = threadIdx.x * W; k < whole; k += blockDim.x * W) {
      S a[W];
      load<W>(g + k, a);
#pragma unroll
      for (int j = 0; j < W; ++j) found |= !(a[j] - a[j] == S(0));
    }
    for (int k = whole + threadIdx.x; k < n; k += blockDim.x)
      found |= !(S(g[k]) - S(g[k]) == S(0));
  });
  if (found) *broken = 1;
}
