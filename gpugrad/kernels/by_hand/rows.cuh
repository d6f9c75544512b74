// Rows of an array, each read by a team of threads: a warp if blockDim.x is 32 (then a block has
// blockDim.y teams and no barrier), otherwise a block. Rows need no alignment: a row is cut into
// packs of 16 bytes, starting at the aligned address before its first element. Only packs that
// extend beyond the row, or are misaligned in a second array, move element by element.

// Element by element. Not inlined: copies for each of a thread's packs would be most of the code,
// and 16-bit elements, read ahead for all packs, would take a register each.
template <class T> __device__ __noinline__ int4 load_some(
    const T* row, int first, int n, T none) {
  Pack<T, PACKED<T>> made;
#pragma unroll
  for (int k = 0; k < PACKED<T>; ++k) {
    int i = first + k;
    made.at[k] = i >= 0 && i < n ? row[i] : none;
  }
  return *(int4*)&made;
}

// The elements [first, first + W) of a row, with `none` outside [0, n). FIXED means that nothing
// writes to the row while the kernel runs.
template <class T, bool FIXED = true> __device__ Pack<T, PACKED<T>> load(
    const T* row, int first, int n, T none) {
  constexpr int W = PACKED<T>;
  Pack<T, W> made;
  if (first >= 0 && first + W <= n && (size_t)(row + first) % 16 == 0) {
    const int4* at = (const int4*)(row + first);
    *(int4*)&made = FIXED ? __ldg(at) : __ldcg(at);
  } else {
    *(int4*)&made = load_some(row, first, n, none);
  }
  return made;
}

template <class T> __device__ __noinline__ void store_some(T* row, int first, int n, int4 words) {
  const Pack<T, PACKED<T>> pack = *(Pack<T, PACKED<T>>*)&words;
#pragma unroll
  for (int k = 0; k < PACKED<T>; ++k) {
    int i = first + k;
    if (i >= 0 && i < n) row[i] = pack.at[k];
  }
}

template <class T> __device__ void store(T* row, int first, int n, const Pack<T, PACKED<T>>& pack) {
  const int4 words = *(const int4*)&pack;
  if (first >= 0 && first + PACKED<T> <= n && (size_t)(row + first) % 16 == 0)
    __stwb((int4*)(row + first), words);  // the compiler may split an assignment
  else
    store_some(row, first, n, words);
}

// Hides from the compiler that a pack was used before. It would otherwise keep converted elements
// (floats of 16-bit ones, in twice the registers) until the next use.
template <class P> __device__ P afresh(P pack) {
  int4& words = *(int4*)&pack;
  asm volatile("" : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w));
  return pack;
}

// The largest block: a thread then has at most 128 registers, of which packs take up to 64.
constexpr int TEAM = 512;
#define FOR_TEAM __launch_bounds__(TEAM, 1)
#define FOR_TEAM_OF(held) __launch_bounds__(TEAM, (held) < 0 ? 2 : 1)

// The number of elements between the start of the first pack and of the row; 0 for whole packs.
template <class T> __device__ int shift_of(const T* row, int n) {
  return n % PACKED<T> ? (int)((size_t)row / sizeof(T) % PACKED<T>) : 0;
}

// One thread's packs of a row. If HELD is not 0, all packs (at most HELD) are read once and stay in
// registers. If it is 0, each call of `each` reads them again, some at a time, before the function
// that gets them may overwrite them.
template <class T, int HELD, bool FIXED = true> struct Line {
  typedef Pack<T, PACKED<T>> P;
  const T* row;
  int n, first, step;
  T none;
  P held[HELD ? HELD : 1];

  __device__ Line(const T* row, int n, int shift, T none)
      : row(row), n(n), first((int)threadIdx.x * PACKED<T> - shift),
        step((int)blockDim.x * PACKED<T>), none(none) {
    if constexpr (HELD > 0) {
#pragma unroll
      for (int k = 0; k < HELD; ++k) held[k] = load<T, FIXED>(row, first + k * step, n, none);
    }
  }

  __device__ static P again(P pack) {
    if constexpr (HELD > 4) return afresh(pack);
    return pack;
  }

  // Calls f(index of the pack's first element, pack) for each pack
  template <class F> __device__ void each(F f) const {
    if constexpr (HELD > 0) {
#pragma unroll
      for (int k = 0; k < HELD; ++k)
        if (first + k * step < n) f(first + k * step, again(held[k]));
    } else {
      for (int i = first; i < n; i += 4 * step) {
        P some[4];
#pragma unroll
        for (int k = 0; k < 4; ++k)
          if (i + k * step < n) some[k] = load<T, FIXED>(row, i + k * step, n, none);
#pragma unroll
        for (int k = 0; k < 4; ++k)
          if (i + k * step < n) f(i + k * step, some[k]);
      }
    }
  }

  // Calls f(index, pack, pack of the other row, number of packs before) for each pack of two rows
  template <class F> __device__ void each(const Line& other, F f) const {
    if constexpr (HELD > 0) {
#pragma unroll
      for (int k = 0; k < HELD; ++k)
        if (first + k * step < n) f(first + k * step, again(held[k]), again(other.held[k]), k);
    } else {
      for (int i = first; i < n; i += 2 * step) {
        P some[2], others[2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          if (i + k * step >= n) continue;
          some[k] = load<T, FIXED>(row, i + k * step, n, none);
          others[k] = load<T, FIXED>(other.row, i + k * step, n, other.none);
        }
#pragma unroll
        for (int k = 0; k < 2; ++k)
          if (i + k * step < n) f(i + k * step, some[k], others[k], 0);
      }
    }
  }
};

// Packs that stay in dynamic shared memory, 16 bytes for each: a long row takes no registers, so that
// two blocks share a processor, and one loads while the other stores. A thread reads its own only.
constexpr int KEPT = -1;
template <class T, bool FIXED> struct Line<T, KEPT, FIXED> {
  typedef Pack<T, PACKED<T>> P;
  P* kept;
  int n, first, step;

  __device__ Line(const T* row, int n, int shift, T none)
      : n(n), first((int)threadIdx.x * PACKED<T> - shift), step((int)blockDim.x * PACKED<T>) {
    extern __shared__ int4 packs_of_rows[];
    kept = (P*)packs_of_rows + threadIdx.x;
    P* to = kept;
    for (int i = first; i < n; i += 4 * step, to += 4 * blockDim.x) {
      P some[4];
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (i + k * step < n) some[k] = load<T, FIXED>(row, i + k * step, n, none);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (i + k * step < n) to[k * blockDim.x] = some[k];
    }
  }

  template <class F> __device__ void each(F f) const {
    const P* at = kept;
#pragma unroll 2
    for (int i = first; i < n; i += step, at += blockDim.x) f(i, *at);
  }
};

// The row of this team; beyond the last row for a warp without one.
__device__ inline long long row_of_team() {
  return (long long)blockIdx.x * blockDim.y + threadIdx.y;
}

// exp with fewer digits for 16-bit floats
template <class T> __device__ compute_t<T> exp_of(compute_t<T> x) {
  if constexpr (sizeof(T) == 2) {
    return __expf(x);
  } else if constexpr (sizeof(T) == 4) {
    return expf(x);
  } else {
    return exp(x);
  }
}

// The largest element of a row (-inf outside it) and the sum of exp(x - largest), computed in one
// pass and returned to the whole team. A row of -inf only has the sum 0.
template <class T, int HELD, bool FIXED> __device__ void exponentials(
    const Line<T, HELD, FIXED>& x, compute_t<T>& largest, compute_t<T>& sum, compute_t<T>* scratch) {
  typedef compute_t<T> C;
  const C low = -infinity<C>();
  C top = low;
  sum = 0;
  x.each([&](int, const Pack<T, PACKED<T>>& p) {
    C before = top;
#pragma unroll
    for (int k = 0; k < PACKED<T>; ++k) top = Max()(top, C(p.at[k]));
    C base = top == low ? C(0) : top;  // -inf - -inf is NaN
    sum *= exp_of<T>(before - base);
#pragma unroll
    for (int k = 0; k < PACKED<T>; ++k) sum += exp_of<T>(C(p.at[k]) - base);
  });
  largest = block_reduce(top, Max(), low, scratch);
  sum *= exp_of<T>(top - (largest == low ? C(0) : largest));
  sum = block_reduce(sum, Sum(), C(0), scratch);
}
