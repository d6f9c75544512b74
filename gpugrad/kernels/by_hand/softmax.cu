// Softmax and its logarithm along rows. If a row fits into its team's registers, forward reads one
// row and writes one, and backward reads two and writes one. Longer rows are read twice.
#include "rows.cuh"

template <class T, int HELD, bool LOG>
__global__ void FOR_TEAM
    softmax_forward(const T* __restrict__ x, T* __restrict__ y, long long rows, int n) {
  typedef compute_t<T> C;
  __shared__ C scratch[32];
  long long row = row_of_team();
  if (row >= rows) return;
  x += row * n, y += row * n;
  Line<T, HELD> line(x, n, shift_of(x, n), T(-infinity<C>()));
  C largest, sum;
  exponentials(line, largest, sum, scratch);
  C scale = LOG ? log(sum) : C(1) / sum;
  line.each([&](int i, Pack<T, PACKED<T>> p) {
#pragma unroll
    for (int k = 0; k < PACKED<T>; ++k) {
      C z = C(p.at[k]) - largest;
      p.at[k] = T(LOG ? z - scale : exp_of<T>(z) * scale);
    }
    store(y, i, n, p);
  });
}

// softmax: out * (g - sum(g * out)); its logarithm: g - exp(out) * sum(g)
template <class T, int HELD, bool LOG>
__global__ void FOR_TEAM softmax_backward(
    const T* __restrict__ g, const T* __restrict__ out, T* __restrict__ dx, long long rows,
    int n) {
  typedef compute_t<T> C;
  __shared__ C scratch[32];
  long long row = row_of_team();
  if (row >= rows) return;
  g += row * n, out += row * n, dx += row * n;
  int shift = shift_of(out, n);
  Line<T, HELD> gs(g, n, shift, T(0.0f)), outs(out, n, shift, T(0.0f));
  C sum = 0;
  gs.each(outs, [&](int, const Pack<T, PACKED<T>>& a, const Pack<T, PACKED<T>>& b, int) {
#pragma unroll
    for (int k = 0; k < PACKED<T>; ++k) sum += LOG ? C(a.at[k]) : C(a.at[k]) * C(b.at[k]);
  });
  sum = block_reduce(sum, Sum(), C(0), scratch);
  gs.each(outs, [&](int i, Pack<T, PACKED<T>> a, const Pack<T, PACKED<T>>& b, int) {
#pragma unroll
    for (int k = 0; k < PACKED<T>; ++k) {
      C u = C(a.at[k]), v = C(b.at[k]);
      a.at[k] = T(LOG ? u - exp_of<T>(v) * sum : v * (u - sum));
    }
    store(dx, i, n, a);
  });
}

// log(sum(exp(x))) of each row, in one pass for any length
template <class T>
__global__ void FOR_TEAM
    logsumexp(const T* __restrict__ x, T* __restrict__ y, long long rows, int n) {
  typedef compute_t<T> C;
  __shared__ C scratch[32];
  long long row = row_of_team();
  if (row >= rows) return;
  x += row * n;
  C largest, sum;
  exponentials(Line<T, 0>(x, n, shift_of(x, n), T(-infinity<C>())), largest, sum, scratch);
  bool finite = largest - largest == 0;
  if (threadIdx.x == 0) y[row] = T(finite ? largest + log(sum) : largest);
}
