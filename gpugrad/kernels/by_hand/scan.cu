// Cumulative sums, products, extrema and logsumexp along an axis, and the first-order linear
// recurrence.
//
// An array is treated as lines: `outer` groups of `columns` lines of `n` positions. Element k of
// line (o, c) of x is at o * xo + k * xk + c * xc. Sums have type compute_t<T>.
//
// Minimal traffic: the array is read and written once. A long line is cut into parts, so that there
// are enough blocks to fill the GPU, and is then read twice.

template <class A> struct RunningSum : Sum {
  static __device__ A none() { return A(0); }
};
template <class A> struct RunningProduct {
  static __device__ A none() { return A(1); }
  __device__ A operator()(A a, A b) const { return a * b; }
};
template <class A> struct RunningMax : Max {
  static __device__ A none() { return lowest<A>(); }
};
template <class A> struct RunningMin : Min {
  static __device__ A none() { return highest<A>(); }
};
template <class A> struct RunningLogSumExp {
  static __device__ A none() { return -infinity<A>(); }
  __device__ A operator()(A a, A b) const {
    A high = Max()(a, b);
    if (high - high != A(0)) return high;  // infinite or NaN
    return high + log1p(exp((a < b ? a : b) - high));
  }
};

const int ITEMS = 8;  // consecutive positions per thread

// Positions k to k + ITEMS of a line, with `none` from `end` on; backwards if `reverse`.
template <class T>
__device__ void read_items(
    const T* x, long long k, long long end, long long n, long long stride, bool reverse,
    compute_t<T> none, compute_t<T>* v) {
  long long first = reverse ? n - k - ITEMS : k;
  bool whole = stride == 1 && k + ITEMS <= end && (unsigned long long)(x + first) % 16 == 0;
  if (whole) {
    T some[ITEMS];
#pragma unroll
    for (int j = 0; j < ITEMS; j += PACKED<T>) {
      Pack<T, PACKED<T>> pack = *(const Pack<T, PACKED<T>>*)(x + first + j);
#pragma unroll
      for (int i = 0; i < PACKED<T>; ++i) some[j + i] = pack.at[i];
    }
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
      v[j] = compute_t<T>(reverse ? some[ITEMS - 1 - j] : some[j]);
    return;
  }
#pragma unroll
  for (int j = 0; j < ITEMS; ++j)
    v[j] = k + j < end ? compute_t<T>(x[(reverse ? n - 1 - k - j : k + j) * stride]) : none;
}

template <class T>
__device__ void write_items(
    T* y, long long k, long long end, long long n, long long stride, bool reverse,
    const compute_t<T>* v) {
  long long first = reverse ? n - k - ITEMS : k;
  if (stride == 1 && k + ITEMS <= end && (unsigned long long)(y + first) % 16 == 0) {
#pragma unroll
    for (int j = 0; j < ITEMS; j += PACKED<T>) {
      Pack<T, PACKED<T>> pack;
#pragma unroll
      for (int i = 0; i < PACKED<T>; ++i)
        pack.at[i] = T(reverse ? v[ITEMS - 1 - j - i] : v[j + i]);
      *(Pack<T, PACKED<T>>*)(y + first + j) = pack;
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < ITEMS; ++j)
    if (k + j < end) y[(reverse ? n - 1 - k - j : k + j) * stride] = T(v[j]);
}

// A block scans one part of `side` adjacent lines (a power of two up to 32), chunk by chunk. Its
// threads are (groups of ITEMS positions, lines). Element k of a line combines, in this order: the
// parts before it, the chunks of the part, the warps of the chunk, the groups of the warp in pairs,
// the items of the group. So the order depends only on the shape and on k.
//
// If y is null, only the totals of the parts are written. `before`, if not null, holds the scanned
// totals. Both have the shape (outer, parts, columns). With `initial`, position 0 of y is the
// result of an empty scan, and all others move on by one.
template <class T, class F>
__global__ void scan(
    const T* x, T* y, const compute_t<T>* before, compute_t<T>* totals, long long n,
    long long columns, long long part, long long xo, long long xk, long long xc, long long yo,
    long long yk, long long yc, int side, int reverse, int initial) {
  typedef compute_t<T> A;
  __shared__ A of_warp[2][32][32];  // two buffers in turn, so that a chunk needs one barrier
  F f;
  int t = threadIdx.x, lane = t & 31, warp = t >> 5, warps = blockDim.x >> 5;
  int mine = lane & (side - 1), group = t / side, groups = blockDim.x / side;
  long long across = (columns + side - 1) / side;
  long long o = blockIdx.x / across, c = blockIdx.x % across * side + mine;
  bool inside = c < columns;
  long long start = blockIdx.y * part, stop = start + part < n ? start + part : n;
  long long at = (o * gridDim.y + blockIdx.y) * columns + c;  // among the totals
  A carry = before && blockIdx.y && inside ? before[at - columns] : F::none();
  const T* line = x + o * xo + (inside ? c * xc : 0);
  T* out = y + o * yo + (inside ? c * yc : 0);
  if (y && initial && start == 0 && group == 0 && inside) out[0] = T(F::none());
  int turn = 0;
  for (long long chunk = start; chunk < stop; chunk += groups * ITEMS, turn ^= 1) {
    long long k = chunk + group * ITEMS, end = inside ? stop : 0;
    A v[ITEMS];
    read_items(line, k, end, n, xk, reverse, F::none(), v);
    A total = v[0];
#pragma unroll
    for (int j = 1; j < ITEMS; ++j) total = f(total, v[j]);
    for (int by = side; by < 32; by <<= 1) {
      A other = __shfl_up_sync(0xFFFFFFFFu, total, by);
      if (lane >= by) total = f(other, total);
    }
    A run = __shfl_up_sync(0xFFFFFFFFu, total, side);
    if (lane >= 32 - side) of_warp[turn][warp][mine] = total;
    __syncthreads();
    A prefix = carry;
    for (int w = 0; w < warps; ++w) {
      if (w == warp) prefix = carry;
      carry = f(carry, of_warp[turn][w][mine]);
    }
    run = lane < side ? prefix : f(prefix, run);
    if (!y) continue;
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) v[j] = run = f(run, v[j]);
    write_items(out + (initial ? yk : 0), k, end, n, yk, reverse, v);
  }
  if (totals && group == 0 && inside) totals[at] = carry;
}

// ---- y_k = b_k + a_k y_(k - 1), from y_(-1) = 0
//
// Sequential: a product of many a may overflow where the single steps do not.

const int STEPS = 32;

// Lines that are adjacent in memory: a thread for each.
template <class T>
__global__ void recur_columns(
    const T* a, const T* b, T* y, long long n, long long columns, int reverse) {
  typedef compute_t<T> A;
  long long c = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  long long first = (long long)blockIdx.y * n * columns + c;
  long long step = reverse ? -columns : columns;
  if (reverse) first += (n - 1) * columns;
  a += first, b += first, y += first;
  A last = 0;
  for (long long k = 0; k < n; k += ITEMS) {
    A factors[ITEMS], terms[ITEMS];
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
      if (k + j < n) factors[j] = A(a[(k + j) * step]), terms[j] = A(b[(k + j) * step]);
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
      if (k + j < n) {
        last = k + j ? terms[j] + factors[j] * last : terms[j];
        y[(k + j) * step] = T(last);
      }
  }
}

// Lines with contiguous elements: a warp for 32 of them, through shared memory, so that each access
// reads consecutive elements.
template <class T>
__global__ void recur_lines(const T* a, const T* b, T* y, long long n, long long lines, int reverse) {
  typedef compute_t<T> A;
  __shared__ A factors[32][STEPS + 1], terms[32][STEPS + 1];
  int lane = threadIdx.x;
  long long first = (long long)blockIdx.x * 32;
  int here = lines - first < 32 ? int(lines - first) : 32;
  A last = 0;
  for (long long from = 0; from < n; from += STEPS) {
    long long k = from + lane, place = reverse ? n - 1 - k : k;
#pragma unroll 4
    for (int i = 0; i < here; ++i)
      if (k < n) {
        factors[i][lane] = A(a[(first + i) * n + place]);
        terms[i][lane] = A(b[(first + i) * n + place]);
      }
    __syncwarp();
    int steps = n - from < STEPS ? int(n - from) : STEPS;
    if (lane < here)
      for (int j = 0; j < steps; ++j) {
        last = from + j ? terms[lane][j] + factors[lane][j] * last : terms[lane][j];
        terms[lane][j] = last;
      }
    __syncwarp();
    for (int i = 0; i < here; ++i)
      if (k < n) y[(first + i) * n + place] = T(terms[i][lane]);
    __syncwarp();
  }
}
