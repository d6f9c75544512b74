// Recursive filters, and their gradient: one pass from the last element of a line to the first.
#include <algorithm>
#include <vector>

namespace {

const long CHUNK = 512;  // elements whose cotangents stay in the first cache

// v_i = g_i - sum of a_j v_(i+j) for m elements before v + m; of a length K, whose state is in
// registers, unless that is 0.
template <int K, class T> void recursion(const T* a, const T* g, T* v, long m, long k) {
  if (!K) {
    for (long i = m - 1; i >= 0; --i) {
      T sum = g[i];
      for (long j = k - 1; j > 0; --j) sum -= a[j] * v[i + j];
      v[i] = sum;
    }
    return;
  }
  T state[K + 1], weights[K + 1];
  for (int j = 1; j < K; ++j) state[j] = v[m + j - 1], weights[j] = a[j];
  for (long i = m - 1; i >= 0; --i) {
    T sum = g[i];
#pragma GCC unroll 16
    for (int j = K - 1; j > 0; --j) sum -= weights[j] * state[j];
#pragma GCC unroll 16
    for (int j = K - 1; j > 1; --j) state[j] = state[j - 1];
    state[1] = v[i] = sum;
  }
}

template <class T> void recursion(const T* a, const T* g, T* v, long m, long k) {
  void (*const of_length[])(const T*, const T*, T*, long, long) = {
      recursion<0, T>, recursion<1, T>, recursion<2, T>, recursion<3, T>, recursion<4, T>,
      recursion<5, T>, recursion<6, T>, recursion<7, T>};
  of_length[k < 8 ? k : 0](a, g, v, m, k);
}

// The sum of x_i y_i, in lanes: an addition takes several cycles, and would wait for the one before.
template <class T> T dot(const T* x, const T* y, long n) {
  typedef T Lanes __attribute__((vector_size(64), aligned(sizeof(T))));
  constexpr long N = 64 / sizeof(T);
  Lanes sums[2] = {};
  long i = 0;
  for (; i + 2 * N <= n; i += 2 * N)
    for (long k = 0; k < 2; ++k)
      sums[k] += *(const Lanes*)(x + i + k * N) * *(const Lanes*)(y + i + k * N);
  T sum = 0;
  for (; i < n; ++i) sum += x[i] * y[i];
  for (long k = 0; k < N; ++k) sum += sums[0][k] + sums[1][k];
  return sum;
}

// v_i = g_i - sum of a_j v_(i+j); by_x_i = sum of b_j v_(i+j); by_b_j = sum of v_i x_(i-j);
// by_a_j = -sum of v_i y_(i-j); by_zi is the first k - 1 of v. a_0 is 1, and by_a_0 stays 0.
template <class T>
void line(const T* b, const T* a, const T* g, const T* x, const T* y, T* by_x, double* by_b,
          double* by_a, T* by_zi, long n, long k, T* v) {
  std::fill(v, v + CHUNK + k, T(0));
  for (long high = n; high > 0; high -= std::min(high, CHUNK)) {
    const long low = high - std::min(high, CHUNK), m = high - low;
    for (long j = k - 2; j >= 0; --j) v[m + j] = v[j];  // those behind the chunk
    recursion(a, g + low, v, m, k);
    for (long i = 0; i < m; ++i) by_x[low + i] = 0;
    for (long j = 0; j < k; ++j)
      for (long i = 0; i < m; ++i) by_x[low + i] += b[j] * v[i + j];
    for (long j = 0; j < k; ++j) {
      const long first = std::min(m, std::max(0L, j - low)), from = low - j + first;
      by_b[j] += dot(v + first, x + from, m - first);
      if (j) by_a[j] -= dot(v + first, y + from, m - first);
    }
  }
  for (long j = 0; j + 1 < k; ++j) by_zi[j] = j < n ? v[j] : 0;
}

template <class T>
void lines(const void* b, const void* a, const void* g, const void* x, const void* y, void* by_x,
           double* by_b, double* by_a, void* by_zi, long count, long n, long k) {
  std::vector<T> v(CHUNK + k);
  for (long l = 0; l < count; ++l)
    line((const T*)b, (const T*)a, (const T*)g + l * n, (const T*)x + l * n, (const T*)y + l * n,
         (T*)by_x + l * n, by_b, by_a, (T*)by_zi + l * (k - 1), n, k, v.data());
}

// y_i = b_0 x_i + z_0; z_j = b_(j+1) x_i - a_(j+1) y_i + z_(j+1), with a state of K - 1 registers.
template <int K, class T>
void filtered(const void* bs, const void* as, const void* xs, const void* zs, void* ys, long count,
              long n) {
  T b[K], a[K], z[K];
  for (int j = 0; j < K; ++j) b[j] = ((const T*)bs)[j], a[j] = ((const T*)as)[j];
  for (long l = 0; l < count; ++l) {
    const T* x = (const T*)xs + l * n;
    T* y = (T*)ys + l * n;
    for (int j = 0; j < K; ++j) z[j] = j + 1 < K ? ((const T*)zs)[l * (K - 1) + j] : 0;
    for (long i = 0; i < n; ++i) {
      const T in = x[i], out = z[0] + b[0] * in;
#pragma GCC unroll 16
      for (int j = 0; j + 1 < K; ++j) z[j] = z[j + 1] + b[j + 1] * in - a[j + 1] * out;
      y[i] = out;
    }
  }
}

template <class T> auto filter_of(long k) -> decltype(&filtered<2, T>) {
  const decltype(&filtered<2, T>) of_length[] = {
      filtered<2, T>, filtered<3, T>, filtered<4, T>, filtered<5, T>, filtered<6, T>, filtered<7, T>};
  return of_length[k - 2];
}

}  // namespace

// Of 2 to 7 coefficients.
extern "C" void gpugrad_filter(
    long wide, const void* b, const void* a, const void* x, const void* zi, void* y, long count,
    long n, long k) {
  (wide ? filter_of<double>(k) : filter_of<float>(k))(b, a, x, zi, y, count, n);
}

extern "C" void gpugrad_filter_gradient(
    long wide, const void* b, const void* a, const void* g, const void* x, const void* y,
    void* by_x, double* by_b, double* by_a, void* by_zi, long count, long n, long k) {
  (wide ? lines<double> : lines<float>)(b, a, g, x, y, by_x, by_b, by_a, by_zi, count, n, k);
}
