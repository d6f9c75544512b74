// Softmax cross entropy of rows. A row that fits into its team's registers is read once, a longer one
// twice; forward with class numbers and without smoothing reads any row once. Backward writes one
// row, which may be the row that it reads: each thread reads its elements before it writes them, and
// reads no other thread's.
#include "rows.cuh"

// A class has probability 1; all classes share `smoothing` of it. An invalid label gives NaN,
// because no error can be raised here without waiting. The type L of losses and their gradients may
// be float for 16-bit scores.
template <class T, class L, int HELD> __global__ void FOR_TEAM sparse_forward(
    const T* __restrict__ x, const long long* __restrict__ labels, L* __restrict__ losses,
    long long rows, int n, bool ignoring, long long ignored, double smoothing) {
  typedef compute_t<T> C;
  __shared__ C scratch[32];
  long long row = row_of_team();
  if (row >= rows) return;
  long long label = labels[row];
  if (ignoring && label == ignored) {
    if (threadIdx.x == 0) losses[row] = L(0.0f);
    return;
  }
  x += row * n;
  Line<T, HELD> line(x, n, shift_of(x, n), T(-infinity<C>()));
  C largest, sum;
  exponentials(line, largest, sum, scratch);
  bool known = label >= 0 && label < n;
  C picked = (known ? C(x[label]) : infinity<C>() - infinity<C>()) - largest;
  if (smoothing != 0) {
    C every = 0;
    line.each([&](int i, const Pack<T, PACKED<T>>& p) {
#pragma unroll
      for (int k = 0; k < PACKED<T>; ++k)
        if (i + k >= 0 && i + k < n) every += C(p.at[k]) - largest;
    });
    every = block_reduce(every, Sum(), C(0), scratch) / n;
    picked = picked * C(1 - smoothing) + every * C(smoothing);
  }
  if (threadIdx.x == 0) losses[row] = L(log(sum) - picked);
}

// The cotangent of a row is g[row * step]; `step` is 0 if it is the same for all rows, as for a mean.
// If `losses` is not null, it writes these too, without smoothing. The thread with the label's score
// does so, because other threads may see an overwritten score.
template <class T, class L, int HELD> __device__ void backward_of_row(
    const L* __restrict__ g, const T* x, const long long* __restrict__ labels, T* dx, L* losses,
    int step, long long row, int n, bool ignoring, long long ignored, double smoothing,
    compute_t<T>* scratch) {
  typedef compute_t<T> C;
  x += row * n, dx += row * n;
  long long label = labels[row];
  Line<T, HELD, false> line(x, n, shift_of(x, n), T(-infinity<C>()));
  C largest, sum;
  exponentials(line, largest, sum, scratch);
  bool kept = !(ignoring && label == ignored), known = label >= 0 && label < n;
  C by = known ? C(g[row * step]) : infinity<C>() - infinity<C>();
  C scale = by / sum, own = by * C(1 - smoothing), share = by * C(smoothing) / n, picked = 0;
  bool mine = threadIdx.x == 0 && !(kept && known);
  line.each([&](int i, Pack<T, PACKED<T>> p) {
#pragma unroll
    for (int k = 0; k < PACKED<T>; ++k) {
      C of_it = C(p.at[k]) - largest, d = exp_of<T>(of_it) * scale - share;
      if (i + k == label) d -= own, picked = of_it, mine |= kept;
      p.at[k] = T(kept ? d : C(0));
    }
    store(dx, i, n, p);
  });
  if (losses && mine)
    losses[row] = L(!kept ? C(0) : known ? log(sum) - picked : infinity<C>() - infinity<C>());
}

// If `total` is not null, the block that finishes last writes the sum of the losses to it, divided by
// `count` or by *divisor if that is not null, also to the address at `place`. The order of the sum
// is fixed.
template <class T, class L, int HELD> __global__ void FOR_TEAM_OF(HELD) sparse_backward(
    const L* __restrict__ g, const T* x, const long long* __restrict__ labels, T* dx, L* losses,
    L* total, L* const* place, const L* divisor, unsigned* arrived, int step, long long rows, int n,
    bool ignoring, long long ignored, double smoothing, double count) {
  typedef compute_t<T> C;
  __shared__ C scratch[32];
  long long row = row_of_team();
  if (row < rows)
    backward_of_row<T, L, HELD>(
        g, x, labels, dx, losses, step, row, n, ignoring, ignored, smoothing, scratch);
  if (!total || !is_last_block(arrived)) return;
  int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
  C sum = 0;
#pragma unroll 8
  for (int i = thread; i < rows; i += threads) sum += C(losses[i]);
  sum = warp_reduce(sum, Sum());
  if (thread % 32 == 0) scratch[thread / 32] = sum;
  __syncthreads();
  if (thread >= 32) return;
  sum = warp_reduce(thread < threads / 32 ? scratch[thread] : C(0), Sum());
  if (thread) return;
  *total = L(sum == 0 ? C(0) : sum / (divisor ? C(*divisor) : C(count)));
  if (place) **place = *total;
}

template <class T, int HELD> __global__ void FOR_TEAM dense_forward(
    const T* __restrict__ x, const T* __restrict__ labels, T* __restrict__ losses, long long rows,
    int n) {
  typedef compute_t<T> C;
  __shared__ C scratch[32];
  long long row = row_of_team();
  if (row >= rows) return;
  x += row * n, labels += row * n;
  int shift = shift_of(x, n);
  Line<T, HELD> line(x, n, shift, T(-infinity<C>())), probabilities(labels, n, shift, T(0.0f));
  C largest, sum, total = 0, terms = 0;
  exponentials(line, largest, sum, scratch);
  line.each(probabilities, [&](int, const Pack<T, PACKED<T>>& a, const Pack<T, PACKED<T>>& b, int) {
#pragma unroll
    for (int k = 0; k < PACKED<T>; ++k) {
      C label = C(b.at[k]);
      total += label;
      if (label != 0) terms += label * (C(a.at[k]) - largest);  // 0, also with -inf
    }
  });
  total = block_reduce(total, Sum(), C(0), scratch);
  terms = block_reduce(terms, Sum(), C(0), scratch);
  if (threadIdx.x == 0) losses[row] = T((total == 0 ? C(0) : total * log(sum)) - terms);
}

template <class T, int HELD> __global__ void FOR_TEAM dense_backward(
    const T* __restrict__ g, const T* x, const T* __restrict__ labels, T* dx, int step,
    long long rows, int n) {
  typedef compute_t<T> C;
  __shared__ C scratch[32];
  long long row = row_of_team();
  if (row >= rows) return;
  x += row * n, labels += row * n, dx += row * n;
  int shift = shift_of(x, n);
  Line<T, HELD, false> line(x, n, shift, T(-infinity<C>()));
  Line<T, HELD, false> probabilities(labels, n, shift, T(0.0f));
  C largest, sum, total = 0, by = C(g[row * step]);
  exponentials(line, largest, sum, scratch);
  probabilities.each([&](int, const Pack<T, PACKED<T>>& p) {
#pragma unroll
    for (int k = 0; k < PACKED<T>; ++k) total += C(p.at[k]);
  });
  C scale = block_reduce(total, Sum(), C(0), scratch) / sum;
  line.each(probabilities, [&](int i, Pack<T, PACKED<T>> a, const Pack<T, PACKED<T>>& b, int) {
#pragma unroll
    for (int k = 0; k < PACKED<T>; ++k)
      a.at[k] = T(by * (exp_of<T>(C(a.at[k]) - largest) * scale - C(b.at[k])));
    store(dx, i, n, a);
  });
}
