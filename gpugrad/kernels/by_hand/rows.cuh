// Rows of an array, each read by a team of threads: a warp where blockDim.x is 32 (then a block has
// blockDim.y of them, and no barrier), else a block. Needs no alignment: a row is cut into packs of
// 16 bytes from the aligned address before its first element on, and only packs that stick out of
// the row, or lie crooked in a second array, move element by element.

// Element by element. This is called: copied to each of a thread's packs it would be most of the
// code, and of 16-bit elements, read ahead for all packs, each would take a register.
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

// The elements [first, first + W) of a row; `none` where that is outside of [0, n). FIXED says that
// nothing writes there while the kernel runs.
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

// A pack of which the compiler cannot know that it has been here before: it would keep what it has
// made of the elements (of 16-bit ones floats, in twice the registers) until they come again.
template <class P> __device__ P afresh(P pack) {
  int4& words = *(int4*)&pack;
  asm volatile("" : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w));
  return pack;
}

// The largest block: a thread may then have 128 registers, for packs of up to 64.
constexpr int TEAM = 512;
#define FOR_TEAM __launch_bounds__(TEAM, 1)

// How many elements before a row its first pack begins: 0 in rows of whole packs.
template <class T> __device__ int shift_of(const T* row, int n) {
  return n % PACKED<T> ? (int)((size_t)row / sizeof(T) % PACKED<T>) : 0;
}

// One thread's packs of a row. HELD of them are read once and stay in registers, which must be all
// of them; with HELD = 0 they are read again at each call of `each`, some at a time, before what is
// called with them may write over them.
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

  // f(index of the pack's first element, pack) for each pack
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

  // f(index, pack, pack of the other row, how many packs came before) for each pack of two rows
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

// The row of this team; of a warp that has none it is beyond the last.
__device__ inline long long row_of_team() {
  return (long long)blockIdx.x * blockDim.y + threadIdx.y;
}

// exp, in which 16-bit floats need fewer digits
template <class T> __device__ compute_t<T> exp_of(compute_t<T> x) {
  if constexpr (sizeof(T) == 2) {
    return __expf(x);
  } else if constexpr (sizeof(T) == 4) {
    return expf(x);
  } else {
    return exp(x);
  }
}

// The largest element of a row (which is -inf outside) and the sum of exp(x - largest), known to
// its whole team after one reading. A row of -inf alone has the sum 0.
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
