// Products of tiles in shared memory by two engines with one interface: Simt<T, D, BM, BN> with
// multiply-adds for every dtype, and Mma<T, D, BM, BN> with tensor cores for 16-bit floats.
//
// A block holds BM lines of one matrix and BN lines of another, all of length D, and a BM x BN result
// in the registers of its threads: a thread's s[i][j] is element (row(i), column(j)).
//   dot(s, a, x)           s += a x^T: all BM lines times all BN lines
//   apply(o, s, x, own)    o += s x: a result of `dot` times the BN lines; o[i][j] is element
//                          (row(i), out_column(j)) of BM x D. `own` is scratch, BM lines of OWN
//   of_row(v, f)           v reduced over the threads that share a row, the same for s and o
//   load(to, from, ...)    lines into shared memory, complete after `arrived`
// Needs mma.cuh.

template <class T_, int D_, int BM_, int BN_> struct Simt {
  typedef T_ T;
  typedef compute_t<T_> C;
  typedef C Held;  // the type in shared memory
  static constexpr int D = D_, BM = BM_, BN = BN_, THREADS = 256;
  static constexpr int ROWS = BM / 16, COLUMNS = BN / 16, OUT = D / 16;
  static constexpr int N = 16 / sizeof(C);  // numbers in an access of 16 bytes
  // Lines are padded to 16 bytes beyond a multiple of 128, so that eight threads that read 16 bytes
  // of eight lines access all 32 banks.
  static constexpr int LINE = D + N, OWN = BN + N;
  static constexpr int W = sizeof(C) == 8 || D % 64 ? 2 : 4;  // neighbouring columns of `o`

  static __device__ int row(int i) { return threadIdx.x / 16 * ROWS + i; }
  static __device__ int column(int j) { return threadIdx.x % 16 + 16 * j; }
  static __device__ int out_column(int j) { return (threadIdx.x % 16 + j / W * 16) * W + j % W; }

  static __device__ void dot(C (&s)[ROWS][COLUMNS], const C* a, const C* x) {
#pragma unroll 2
    for (int d = 0; d < D; d += N) {
      Pack<C, N> p[ROWS];
#pragma unroll
      for (int i = 0; i < ROWS; ++i) p[i] = *(const Pack<C, N>*)(a + row(i) * LINE + d);
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) {
        Pack<C, N> q = *(const Pack<C, N>*)(x + column(j) * LINE + d);
#pragma unroll
        for (int k = 0; k < N; ++k)
#pragma unroll
          for (int i = 0; i < ROWS; ++i) s[i][j] += p[i].at[k] * q.at[k];
      }
    }
  }

  // The 16 threads that share rows are in one warp, and no other thread reads what they write.
  static __device__ void apply(
      C (&o)[ROWS][OUT], const C (&s)[ROWS][COLUMNS], const C* x, C* own) {
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) own[row(i) * OWN + column(j)] = s[i][j];
    __syncwarp();
#pragma unroll 1
    for (int n = 0; n < BN; n += N) {
      Pack<C, N> p[ROWS];
#pragma unroll
      for (int i = 0; i < ROWS; ++i) p[i] = *(const Pack<C, N>*)(own + row(i) * OWN + n);
#pragma unroll
      for (int k = 0; k < N; ++k)
#pragma unroll
        for (int j = 0; j < OUT; j += W) {
          Pack<C, W> q = *(const Pack<C, W>*)(x + (n + k) * LINE + out_column(j));
#pragma unroll
          for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int w = 0; w < W; ++w) o[i][j + w] += p[i].at[k] * q.at[w];
        }
    }
    __syncwarp();
  }

  template <class F> static __device__ C of_row(C v, F f) {
#pragma unroll
    for (int by = 8; by; by >>= 1) v = f(v, __shfl_xor_sync(0xFFFFFFFFu, v, by));
    return v;
  }

  template <int V> static __device__ void copy(C* to, const T* from, bool there) {
    Pack<T, V> some = {};
    if (there) some = *(const Pack<T, V>*)from;
#pragma unroll
    for (int k = 0; k < V; ++k) to[k] = C(some.at[k]);
  }
  static __device__ void arrived() { __syncthreads(); }
};

template <class T_, int D_, int BM_, int BN_> struct Mma {
  typedef T_ T;
  typedef float C;
  typedef T_ Held;
  // A warp has 16 rows. If `o` does not fit into its registers, two warps share the same rows of `s`
  // and each has half of the columns of `o`.
  static constexpr int SPLIT = D_ > 128 ? 2 : 1;
  static constexpr int D = D_, BM = BM_, BN = BN_, THREADS = BM * 2 * SPLIT;
  static constexpr int ROWS = 2, COLUMNS = BN / 4, OUT = D / 4 / SPLIT, W = 2;
  static constexpr int LINE = D + 8, OWN = 0;

  static __device__ int lane() { return threadIdx.x % 32; }
  static __device__ int top() { return threadIdx.x / (32 * SPLIT) * 16; }
  static __device__ int left() { return threadIdx.x / 32 % SPLIT * (D / SPLIT); }
  static __device__ int row(int i) { return top() + lane() / 4 + 8 * i; }
  static __device__ int column(int j) { return j / 2 * 8 + lane() % 4 * 2 + j % 2; }
  static __device__ int out_column(int j) { return left() + column(j); }

  static __device__ void dot(float (&s)[ROWS][COLUMNS], const T* a, const T* x) {
    const T* at = a + (top() + lane() % 16) * LINE + lane() / 16 * 8;
    const T* of = x + (lane() / 16 * 8 + lane() % 8) * LINE + lane() / 8 % 2 * 8;
#pragma unroll 8  // with 16 (D = 256), reading ahead would take more registers than there are
    for (int d = 0; d < D; d += 16) {
      unsigned p[4], q[4];
      load_tiles(p, at + d);
#pragma unroll
      for (int n = 0; n < BN; n += 16) {
        load_tiles(q, of + n * LINE + d);
        add<COLUMNS>(s, n / 4, p, q);
      }
    }
  }

  // A result has the register layout of a left factor, so it only needs rounding.
  static __device__ void apply(
      float (&o)[ROWS][OUT], const float (&s)[ROWS][COLUMNS], const T* x, T*) {
    const T* of = x + lane() % 16 * LINE + lane() / 16 * 8 + left();
#pragma unroll
    for (int n = 0; n < BN; n += 16) {
      unsigned p[4], q[4];
#pragma unroll
      for (int k = 0; k < 4; ++k)
        p[k] = packed<T>(s[k % 2][n / 4 + k / 2 * 2], s[k % 2][n / 4 + k / 2 * 2 + 1]);
#pragma unroll
      for (int d = 0; d < D / SPLIT; d += 16) {
        load_tiles_transposed(q, of + n * LINE + d);
        add<OUT>(o, d / 4, p, q);
      }
    }
  }

  // o += s^T x, where `s` lies in shared memory: BN lines are the rows of `o`, BM lines of x are
  // added up. Needs BM = BN and one warp for each row.
  static __device__ void apply_transposed(
      float (&o)[ROWS][OUT], const T* s, int line, const T* x) {
    static_assert(BM == BN && SPLIT == 1, "the warps divide the columns of `s` as they do its rows");
    const T* turned = s + (lane() / 16 * 8 + lane() % 8) * line + top() + lane() / 8 % 2 * 8;
    const T* of = x + lane() % 16 * LINE + lane() / 16 * 8;
#pragma unroll
    for (int n = 0; n < BM; n += 16) {
      unsigned p[4], q[4];
      load_tiles_transposed(p, turned + n * line);
#pragma unroll
      for (int d = 0; d < D; d += 16) {
        load_tiles_transposed(q, of + n * LINE + d);
        add<OUT>(o, d / 4, p, q);
      }
    }
  }

  template <int M> static __device__ void add(
      float (&c)[ROWS][M], int j, const unsigned (&p)[4], const unsigned (&q)[4]) {
    mma_16816<T>(c[0][j], c[0][j + 1], c[1][j], c[1][j + 1], p, q[0], q[1]);
    mma_16816<T>(c[0][j + 2], c[0][j + 3], c[1][j + 2], c[1][j + 3], p, q[2], q[3]);
  }

  template <class F> static __device__ float of_row(float v, F f) {
    v = f(v, __shfl_xor_sync(0xFFFFFFFFu, v, 2));
    return f(v, __shfl_xor_sync(0xFFFFFFFFu, v, 1));
  }

  template <int V> static __device__ void copy(T* to, const T* from, bool there) {
    if constexpr (V * sizeof(T) == 16) {
      copy_async(to, from, there);
    } else {
#pragma unroll
      for (int k = 0; k < V; ++k) to[k] = there ? from[k] : T(0.0f);
    }
  }
  static __device__ void arrived() {
    copies_arrived();
    __syncthreads();
  }
};

// Loads LINES lines of a matrix into shared memory, V elements at a time, with zeros for lines from
// `lines` on and columns from `columns` on, which is a multiple of V.
template <class E, int V, int LINES> __device__ void load(
    typename E::Held* to, const typename E::T* from, long long stride, long long lines,
    int columns) {
  constexpr int EACH = E::D / V, ACROSS = EACH < E::THREADS ? EACH : E::THREADS;
  constexpr int AT_ONCE = E::THREADS / ACROSS;  // lines per step; a thread stays in its column
  int start = threadIdx.x / ACROSS;
  if (start >= AT_ONCE) return;
  for (int part = threadIdx.x % ACROSS; part < EACH; part += ACROSS) {
    const typename E::T* at = from + start * stride + part * V;
#pragma unroll 4
    for (int line = start; line < LINES; line += AT_ONCE, at += AT_ONCE * stride) {
      bool there = line < lines && part * V < columns;
      E::template copy<V>(to + line * E::LINE + part * V, there ? at : from, there);
    }
  }
}
