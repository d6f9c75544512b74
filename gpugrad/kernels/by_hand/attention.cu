// Attention without storing the scores: blocks of queries meet blocks of keys in shared memory.
//
// Forward (FlashAttention-2, Dao 2023): the softmax of a row is computed online, with the largest
// score so far; earlier sums are rescaled when a larger score comes. The logarithm of each row's sum
// of exponentials is saved. The gradient recomputes the probabilities from it: P = exp(S - lse),
// dS = P (dO V^T - delta) with delta = rowsum(dO O). Each gradient is a kernel that owns the rows of
// its result and adds to them in a fixed order, without atomics: eight products in all. Without mask
// and dropout, `attention_grads` takes five: a block owns keys, adds up the gradients of its keys and
// values, and adds its part of the gradient of each query in float32, atomically. Whichever block is
// the last to add to a tile of queries rounds it.
//
// With dropout, the sum of exponentials includes all weights, and dropped ones are not applied. The
// random number of a weight depends on its index in the array of all weights. So every kernel draws
// the mask of a tile again, and it is never stored in global memory.
//
// Minimal traffic: forward reads Q once, and K and V once for each BM queries.
#include "mma.cuh"
#include "philox.cuh"
#include "tiles.cuh"

struct Attention {
  long long m, n, k, l;    // queries, keys; lengths of a query and of a value
  long long heads, group;  // query heads; how many of them share a key head
  long long causal;
  long long query[3], key[3], value[3], mask[4];  // strides: outer, head, line (, column)
  long long g[3], out[3];             // of the cotangent, and of the result or a gradient
  long long by_key[3], by_value[3];   // of two more gradients
};

struct NoMask {};
template <class M> constexpr bool IS_MASK = true;
template <> constexpr bool IS_MASK<NoMask> = false;
__device__ inline float masked(float s, const NoMask*, long long) { return s; }
__device__ inline double masked(double s, const NoMask*, long long) { return s; }
template <class C> __device__ C masked(C s, const bool* mask, long long at) {
  return mask[at] ? s : -infinity<C>();
}
template <class C, class T> __device__ C masked(C s, const T* mask, long long at) {
  return s + C(mask[at]) * C(1.4426950408889634);
}

// The score of a query and a key times log2(e), so that exp2 gives the probability.
template <class C, class M> __device__ C score(
    C dot, C scale, const M* mask, const Attention& a, int i, int j) {
  bool seen = i < (int)a.m && j < (int)a.n && (!a.causal || j <= i);
  return seen ? masked(dot * scale, mask, i * a.mask[2] + j * a.mask[3]) : -infinity<C>();
}

// Whether all queries from i on and keys from j on of a tile exist and see each other, so that no
// score needs a test.
__device__ inline bool is_whole(const Attention& a, long long i, int queries, long long j, int keys) {
  return i + queries <= a.m && j + keys <= a.n && (!a.causal || j + keys - 1 <= i);
}

// The dropout mask of a tile: a bit for each weight, in shared memory. A query has the bits of whole
// blocks of eight numbers, from the block of its first key on. `draw` and `operator()` need a
// barrier between them.
template <int QUERIES, int KEYS> struct Kept {
  static constexpr int LINE = KEYS / 8 + 1;
  unsigned char* bits;
  unsigned n, first;  // keys; low bits of the index of the first query's and key's number

  __device__ Kept(void* memory, const Attention& a) : bits((unsigned char*)memory), n(a.n) {}

  // `line`: index of query `i` among the queries of all heads; `j`: the first key
  template <int THREADS> __device__ void draw(
      const Stream& stream, float p, const Attention& a, long long line, long long i, long long j) {
    first = (unsigned)line * n + (unsigned)j;
#pragma unroll 1
    for (int item = threadIdx.x; item < QUERIES * LINE; item += THREADS) {
      int q = item / LINE;
      long long start = (line + q) * a.n, block = (start + j) / 8 + item % LINE;
      long long key = block * 8 - start;
      if (i + q >= a.m || key >= min(a.n, j + KEYS) || (a.causal && key > i + q)) continue;
      Block words = stream[block];
      unsigned made = 0;
#pragma unroll
      for (int w = 0; w < 8; ++w)
        made |= (unsigned)(Uniform()(word_of<unsigned>(words, w)) >= p) << w;
      bits[item] = made;
    }
  }

  __device__ bool operator()(int q, int k) const {
    unsigned at = ((first + q * n) & 7) + k;
    return bits[q * LINE + at / 8] >> (at & 7) & 1;
  }
};

template <class E> __device__ void store(
    typename E::T* to, const typename E::C (&o)[E::ROWS][E::OUT], long long lines, int columns,
    long long stride) {
  constexpr int W = E::W;
  typedef Pack<typename E::T, W> Some;
#pragma unroll
  for (int i = 0; i < E::ROWS; ++i) {
    if (E::row(i) >= lines) continue;
    typename E::T* line = to + E::row(i) * stride;
#pragma unroll
    for (int j = 0; j < E::OUT; j += W) {
      int at = E::out_column(j);
      Some some;
#pragma unroll
      for (int w = 0; w < W; ++w) some.at[w] = typename E::T(o[i][j + w]);
      if (columns % W == 0 && stride % W == 0) {
        if (at < columns) *(Some*)(line + at) = some;
      } else {
#pragma unroll
        for (int w = 0; w < W; ++w)
          if (at + w < columns) line[at + w] = some.at[w];
      }
    }
  }
}

// Calls `stays` for a row and a column of the tile
template <class E, class F> __device__ void drop(
    typename E::C (&s)[E::ROWS][E::COLUMNS], F stays) {
#pragma unroll
  for (int i = 0; i < E::ROWS; ++i)
#pragma unroll
    for (int j = 0; j < E::COLUMNS; ++j)
      if (!stays(E::row(i), E::column(j))) s[i][j] = 0;
}

// lse: (outer, heads, m). `by` is 1 / (1 - p). A block has BM queries of
// one head.
template <class E, int V, class M, bool DROPS>
__global__ void __launch_bounds__(E::THREADS, 1) attention_forward(
    const typename E::T* query, const typename E::T* key, const typename E::T* value,
    const M* mask, const Word* stream, typename E::T* out, typename E::C* lse, Attention a,
    typename E::C scale, float p, typename E::C by) {
  typedef typename E::C C;
  typedef typename E::Held Held;
  extern __shared__ __align__(128) char memory[];
  Held* q = (Held*)memory;
  Held* k = q + E::BM * E::LINE;
  Held* v = k + E::BN * E::LINE;
  Held* own = v + E::BN * E::LINE;
  Kept<E::BM, E::BN> kept(own + E::BM * E::OWN, a);
  Stream numbers(DROPS ? stream : nullptr, 0, 0, 0, 0);

  long long tiles = (a.m + E::BM - 1) / E::BM, stack = blockIdx.x / tiles;
  long long first = (tiles - 1 - blockIdx.x % tiles) * E::BM;  // causal: blocks with most keys first
  long long outer = stack / a.heads, head = stack % a.heads, shared = head / a.group;
  query += outer * a.query[0] + head * a.query[1] + first * a.query[2];
  key += outer * a.key[0] + shared * a.key[1];
  value += outer * a.value[0] + shared * a.value[1];
  mask += outer * a.mask[0] + head * a.mask[1];
  long long keys = a.causal ? min(a.n, first + E::BM) : a.n;

  C o[E::ROWS][E::OUT] = {}, largest[E::ROWS], sum[E::ROWS] = {};
#pragma unroll
  for (int i = 0; i < E::ROWS; ++i) largest[i] = -infinity<C>();
  scale *= C(1.4426950408889634);
  load<E, V, E::BM>(q, query, a.query[2], a.m - first, a.k);
  load<E, V, E::BN>(k, key, a.key[2], keys, a.k);
  for (long long at = 0; at < keys; at += E::BN) {
    E::arrived();
    load<E, V, E::BN>(v, value + at * a.value[2], a.value[2], keys - at, a.l);
    if constexpr (DROPS)
      kept.template draw<E::THREADS>(numbers, p, a, stack * a.m + first, first, at);
    C s[E::ROWS][E::COLUMNS] = {};
    E::dot(s, q, k);
    bool whole = !IS_MASK<M> && is_whole(a, first, E::BM, at, E::BN);
#pragma unroll
    for (int i = 0; i < E::ROWS; ++i) {
      C top = largest[i];
#pragma unroll
      for (int j = 0; j < E::COLUMNS; ++j) {
        s[i][j] = whole ? s[i][j] * scale
                        : score(s[i][j], scale, mask, a, first + E::row(i), at + E::column(j));
        top = s[i][j] > top ? s[i][j] : top;
      }
      top = E::of_row(top, Max());
      C none = top == -infinity<C>() ? C(0) : top;  // all keys so far are masked
      C before = exp2(largest[i] - none), here = 0;
      largest[i] = top;
#pragma unroll
      for (int j = 0; j < E::COLUMNS; ++j) here += s[i][j] = exp2(s[i][j] - none);
      sum[i] = sum[i] * before + here;
#pragma unroll
      for (int j = 0; j < E::OUT; ++j) o[i][j] *= before;
    }
    E::arrived();
    if (at + E::BN < keys)
      load<E, V, E::BN>(
          k, key + (at + E::BN) * a.key[2], a.key[2], keys - at - E::BN, a.k);
    if constexpr (DROPS) drop<E>(s, [&](int i, int j) { return kept(i, j); });
    E::apply(o, s, v, own);
  }
#pragma unroll
  for (int i = 0; i < E::ROWS; ++i) {
    C total = E::of_row(sum[i], Sum()), factor = total == C(0) ? C(0) : (DROPS ? by : C(1)) / total;
#pragma unroll
    for (int j = 0; j < E::OUT; ++j) o[i][j] = total == C(0) ? C(0) : o[i][j] * factor;
    long long line = first + E::row(i);
    if (line < a.m && E::column(0) == 0)
      lse[stack * a.m + line] = largest[i] == infinity<C>()
          ? largest[i] : (largest[i] + log2(total)) * C(0.6931471805599453);
  }
  out += outer * a.out[0] + head * a.out[1] + first * a.out[2];
  store<E>(out, o, a.m - first, a.l, a.out[2]);
}

// delta = rowsum(g out) - g_lse (0 if null), with a warp for each line of l elements. `zeros`, 4
// `packs` numbers, become 0.
template <class T, int V> __global__ void attention_delta(
    const T* g, const T* out, const compute_t<T>* g_lse, compute_t<T>* delta, float* zeros,
    Attention a, long long lines, long long packs) {
  typedef Pack<T, V> Some;
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < packs; i += step)
    ((Pack<float, 4>*)zeros)[i] = Pack<float, 4>{};
  long long line = (long long)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (line >= lines) return;
  long long i = line % a.m, head = line / a.m % a.heads, outer = line / a.m / a.heads;
  g += outer * a.g[0] + head * a.g[1] + i * a.g[2];
  out += outer * a.out[0] + head * a.out[1] + i * a.out[2];
  compute_t<T> sum = 0;
  for (int i = threadIdx.x % 32; i < a.l / V; i += 32) {
    Some x = ((const Some*)g)[i], y = ((const Some*)out)[i];
#pragma unroll
    for (int k = 0; k < V; ++k) sum += compute_t<T>(x.at[k]) * compute_t<T>(y.at[k]);
  }
  sum = warp_reduce(sum, Sum());
  if (threadIdx.x % 32 == 0) delta[line] = g_lse ? sum - g_lse[line] : sum;
}

enum Of { QUERY, KEY, VALUE };

// The gradient by the queries, keys or values. A block has BM lines of the result and processes BN
// lines of the other side at a time. In terms of these sides, all three have the same form:
//   QUERY  rows are queries: dp = dO V^T, s = Q K^T, o += dS K
//   KEY    rows are keys:    dp = V dO^T, s = K Q^T, o += dS^T Q, over all heads of the group
//   VALUE  rows are keys:    s = K Q^T, o += P^T dO
template <class E, int V, class M, Of OF, bool DROPS>
__global__ void __launch_bounds__(E::THREADS, 1) attention_grad(
    const typename E::T* g, const typename E::T* query, const typename E::T* key,
    const typename E::T* value, const typename E::C* lse, const typename E::C* delta,
    const M* mask, const Word* stream, typename E::T* out, Attention a, typename E::C scale,
    float p, typename E::C by) {
  typedef typename E::T T;
  typedef typename E::C C;
  typedef typename E::Held Held;
  constexpr bool BY_QUERY = OF == QUERY;
  extern __shared__ __align__(128) char memory[];
  Held* rows = (Held*)memory;               // Q, or K
  Held* rows2 = rows + E::BM * E::LINE;     // dO, or V; not for VALUE
  Held* one = rows2 + (OF == VALUE ? 0 : E::BM * E::LINE);
  Held* two = one + E::BN * E::LINE;
  Held* own = two + E::BN * E::LINE;
  Kept<BY_QUERY ? E::BM : E::BN, BY_QUERY ? E::BN : E::BM> kept(own + E::BM * E::OWN, a);
  Stream numbers(DROPS ? stream : nullptr, 0, 0, 0, 0);
  auto stays = [&](int row, int column) {
    return BY_QUERY ? kept(row, column) : kept(column, row);
  };

  long long lines = BY_QUERY ? a.m : a.n, across = BY_QUERY ? a.n : a.m;
  long long tiles = (lines + E::BM - 1) / E::BM, block = blockIdx.x % tiles;
  long long first = (BY_QUERY ? tiles - 1 - block : block) * E::BM;
  long long stack = blockIdx.x / tiles, stacks = BY_QUERY ? a.heads : a.heads / a.group;
  long long outer = stack / stacks, head = stack % stacks;
  long long shared = BY_QUERY ? head / a.group : head;
  if (!BY_QUERY) head *= a.group;
  query += outer * a.query[0] + head * a.query[1];
  key += outer * a.key[0] + shared * a.key[1];
  value += outer * a.value[0] + shared * a.value[1];
  mask += outer * a.mask[0] + head * a.mask[1];
  long long of_head = (outer * a.heads + head) * a.m;  // start of the lines of lse and delta
  g += outer * a.g[0] + head * a.g[1], lse += of_head, delta += of_head;

  // A causal query sees the keys before it; a causal key is seen by the queries after it.
  long long begin = !BY_QUERY && a.causal ? min(first, across) / E::BN * E::BN : 0;
  long long end = BY_QUERY && a.causal ? min(across, first + E::BM) : across;
  long long each = (end - begin + E::BN - 1) / E::BN, steps = BY_QUERY ? each : each * a.group;

  auto load_one = [&](long long step) {
    long long h = step / each, at = begin + step % each * E::BN;
    if (OF == QUERY) load<E, V, E::BN>(one, value + at * a.value[2], a.value[2], end - at, a.l);
    if (OF == KEY)
      load<E, V, E::BN>(one, g + h * a.g[1] + at * a.g[2], a.g[2], end - at, a.l);
    if (OF == VALUE)
      load<E, V, E::BN>(
          one, query + h * a.query[1] + at * a.query[2], a.query[2], end - at, a.k);
  };
  auto load_two = [&](long long step) {
    long long h = step / each, at = begin + step % each * E::BN;
    if (OF == QUERY) load<E, V, E::BN>(two, key + at * a.key[2], a.key[2], end - at, a.k);
    if (OF == KEY)
      load<E, V, E::BN>(
          two, query + h * a.query[1] + at * a.query[2], a.query[2], end - at, a.k);
    if (OF == VALUE)
      load<E, V, E::BN>(two, g + h * a.g[1] + at * a.g[2], a.g[2], end - at, a.l);
  };
  C scale2 = scale * C(1.4426950408889634);
  // Turns s into the probabilities of the tile, times (dp - delta) unless OF is VALUE
  auto weigh = [&](C (&s)[E::ROWS][E::COLUMNS], const C (&dp)[E::ROWS][E::COLUMNS],
                   long long step) {
    long long h = step / each, at = begin + step % each * E::BN;
    bool whole = !IS_MASK<M> && (BY_QUERY ? is_whole(a, first, E::BM, at, E::BN)
                                          : is_whole(a, at, E::BN, first, E::BM));
#pragma unroll
    for (int r = 0; r < E::ROWS; ++r)
#pragma unroll
      for (int c = 0; c < E::COLUMNS; ++c) {
        int row = first + E::row(r), column = at + E::column(c);
        int i = BY_QUERY ? row : column, j = BY_QUERY ? column : row;
        C x = whole ? s[r][c] * scale2 : score(s[r][c], scale2, mask + h * a.mask[1], a, i, j);
        if (x == -infinity<C>()) {
          s[r][c] = 0;
          continue;
        }
        C own = exp2(x - lse[h * a.m + i] * C(1.4426950408889634)), d = dp[r][c];
        if (DROPS && OF != VALUE) d = stays(E::row(r), E::column(c)) ? d * by : C(0);
        s[r][c] = OF == VALUE ? own : own * (d - delta[h * a.m + i]);
      }
  };

  C o[E::ROWS][E::OUT] = {};
  if (BY_QUERY) {
    load<E, V, E::BM>(rows, query + first * a.query[2], a.query[2], a.m - first, a.k);
    load<E, V, E::BM>(rows2, g + first * a.g[2], a.g[2], a.m - first, a.l);
  } else {
    load<E, V, E::BM>(rows, key + first * a.key[2], a.key[2], a.n - first, a.k);
    if (OF == KEY)
      load<E, V, E::BM>(rows2, value + first * a.value[2], a.value[2], a.n - first, a.l);
  }
  if (steps > 0) load_one(0);
  for (long long step = 0; step < steps; ++step) {
    C s[E::ROWS][E::COLUMNS] = {}, dp[E::ROWS][E::COLUMNS] = {};
    E::arrived();
    load_two(step);
    if constexpr (DROPS) {
      long long at = begin + step % each * E::BN, i = BY_QUERY ? first : at;
      kept.template draw<E::THREADS>(
          numbers, p, a, of_head + step / each * a.m + i, i, BY_QUERY ? at : first);
    }
    if (OF == VALUE) {
      E::dot(s, rows, one);
      weigh(s, dp, step);
    } else {
      E::dot(dp, rows2, one);
    }
    E::arrived();
    if (step + 1 < steps) load_one(step + 1);
    if (OF != VALUE) {
      E::dot(s, rows, two);
      weigh(s, dp, step);
    }
    if constexpr (DROPS && OF == VALUE) drop<E>(s, stays);
    E::apply(o, s, two, own);
  }
  int columns = OF == VALUE ? a.l : a.k;
  if (OF != VALUE || DROPS) {
#pragma unroll
    for (int i = 0; i < E::ROWS; ++i)
#pragma unroll
      for (int j = 0; j < E::OUT; ++j) o[i][j] *= OF != VALUE ? scale : by;
  }
  out += outer * a.out[0] + stack % stacks * a.out[1] + first * a.out[2];
  store<E>(out, o, lines - first, columns, a.out[2]);
}

// Elements from one key of `weights` to the next; padded so that eight lines access all banks.
template <class E> constexpr int WEIGHTS_LINE = E::BN + 8;

// Stores lines of `sums`, k numbers each, rounded. Other blocks have added to them, so L1 may be stale.
template <class E, int V> __device__ void store_rounded(
    typename E::T* to, const float* sums, int lines, int k, long long stride) {
  for (int i = threadIdx.x * V; i < lines * k; i += E::THREADS * V) {
    Pack<typename E::T, V> some;
#pragma unroll
    for (int w = 0; w < V; w += 4) {
      float4 part = __ldcg((const float4*)(sums + i + w));
      *(unsigned*)(some.at + w) = packed<typename E::T>(part.x, part.y);
      *(unsigned*)(some.at + w + 2) = packed<typename E::T>(part.z, part.w);
    }
    *(Pack<typename E::T, V>*)(to + i / k * stride + i % k) = some;
  }
}

// The gradients by keys and values, and `sums`, to which the gradient by the queries is added. A
// block has BM keys of one key head, and meets BN queries at a time:
//   s = K Q^T, dp = V dO^T; by value: o += P^T dO; by key: o += dS^T Q; by query: sums += dS K
//
// For each query head, `sums` has m k numbers, then a count for each tile of queries, padded to four:
// how many blocks have added to the tile. The last block rounds it. A block counts a tile one step
// late: its atomics have completed by then, and the barriers of that step do for the count as well.
template <class E, int V>
__global__ void __launch_bounds__(E::THREADS, 2) attention_grads(
    const typename E::T* g, const typename E::T* query, const typename E::T* key,
    const typename E::T* value, const float* lse, const float* delta, float* sums,
    typename E::T* by_query, typename E::T* by_key, typename E::T* by_value, Attention a,
    float scale) {
  typedef typename E::T T;
  static_assert(E::BM == E::BN, "so that the first causal tile of queries starts at `first`");
  extern __shared__ __align__(128) char memory[];
  __shared__ bool complete;
  T* k = (T*)memory;
  T* v = k + E::BM * E::LINE;
  T* q = v + E::BM * E::LINE;
  T* dout = q + E::BN * E::LINE;
  T* weights = dout + E::BN * E::LINE;  // dS, a line for each key
  float* of_queries = (float*)(weights + E::BM * WEIGHTS_LINE<E>);  // lse log2(e), then delta

  long long tiles = (a.n + E::BM - 1) / E::BM, first = blockIdx.x % tiles * E::BM;
  long long stack = blockIdx.x / tiles, stacks = a.heads / a.group;
  long long outer = stack / stacks, shared = stack % stacks, head = shared * a.group;
  query += outer * a.query[0] + head * a.query[1], g += outer * a.g[0] + head * a.g[1];
  by_query += outer * a.out[0] + head * a.out[1];
  key += outer * a.key[0] + shared * a.key[1] + first * a.key[2];
  value += outer * a.value[0] + shared * a.value[1] + first * a.value[2];
  long long of_head = (outer * a.heads + head) * a.m;
  lse += of_head, delta += of_head;

  int m = (int)a.m, query_tiles = (m + E::BN - 1) / E::BN;
  long long each = m * a.k + (query_tiles + 3) / 4 * 4;
  sums += (outer * a.heads + head) * each;
  int begin = a.causal ? (int)min(first, a.m) : 0;
  int steps = (m - begin + E::BN - 1) / E::BN * (int)a.group;
  float o_key[E::ROWS][E::OUT] = {}, o_value[E::ROWS][E::OUT] = {};
  load<E, V, E::BM>(k, key, a.key[2], a.n - first, a.k);
  load<E, V, E::BM>(v, value, a.value[2], a.n - first, a.l);
  float scale2 = scale * 1.4426950408889634f;
  // A step loads a tile of queries, computes with the one before, and counts the one before that.
  int h = 0, at = begin - E::BN;  // the head in the group, and the first query of the tile
  int h_before = 0, at_before = 0;
  for (int step = -1; step <= steps; ++step) {
    bool computes = step >= 0 && step < steps, counted = step > 0;
    if (computes) {
      float s[E::ROWS][E::COLUMNS] = {}, dp[E::ROWS][E::COLUMNS] = {};
      E::dot(s, k, q);
      bool whole = is_whole(a, at, E::BN, first, E::BM);
#pragma unroll
      for (int c = 0; c < E::COLUMNS; ++c) {
        float lse2 = of_queries[E::column(c)];
#pragma unroll
        for (int r = 0; r < E::ROWS; ++r) {
          float x = whole ? s[r][c] * scale2
                          : score(s[r][c], scale2, (const NoMask*)nullptr, a, at + E::column(c),
                                  (int)first + E::row(r));
          s[r][c] = x == -infinity<float>() ? 0.0f : exp2(x - lse2);
        }
      }
      E::apply(o_value, s, dout, (T*)nullptr);
      E::dot(dp, v, dout);
#pragma unroll
      for (int c = 0; c < E::COLUMNS; ++c) {
        float own = of_queries[E::BN + E::column(c)];
        // a weight of 0 is no weight: dp may be infinite for a query that does not see the key
#pragma unroll
        for (int r = 0; r < E::ROWS; ++r)
          if (s[r][c] != 0.0f) s[r][c] *= dp[r][c] - own;
      }
#pragma unroll
      for (int r = 0; r < E::ROWS; ++r)
#pragma unroll
        for (int c = 0; c < E::COLUMNS; c += 2)
          *(unsigned*)(weights + E::row(r) * WEIGHTS_LINE<E> + E::column(c)) =
              packed<T>(s[r][c], s[r][c + 1]);
      E::apply(o_key, s, q, (T*)nullptr);
    }
    __syncthreads();
    int next = at + E::BN, group = h;
    if (next >= m) next = begin, ++group;
    if (step + 1 < steps) {
      const T* from = query + group * a.query[1] + next * a.query[2];
      load<E, V, E::BN>(q, from, a.query[2], m - next, a.k);
      from = g + group * a.g[1] + next * a.g[2];
      load<E, V, E::BN>(dout, from, a.g[2], m - next, a.l);
      for (int i = threadIdx.x; i < E::BN; i += E::THREADS) {
        long long line = group * a.m + next + i;
        of_queries[i] = next + i < m ? lse[line] * 1.4426950408889634f : 0.0f;
        of_queries[E::BN + i] = next + i < m ? delta[line] : 0.0f;
      }
    }
    float* before = sums + h_before * each;
    unsigned others = 0;
    bool counts = counted && threadIdx.x == E::THREADS - 1;  // its warp loads no `of_queries`
    if (counts) {
      __threadfence();
      others = atomicAdd((unsigned*)(before + m * a.k) + at_before / E::BN, 1u);
    }
    if (computes) {
      float o[E::ROWS][E::OUT] = {};  // rows are queries here
      E::apply_transposed(o, weights, WEIGHTS_LINE<E>, k);
      float* to = sums + h * each + at * a.k;
#pragma unroll
      for (int r = 0; r < E::ROWS; ++r)
#pragma unroll
        for (int c = 0; c < E::OUT; ++c)
          if (at + E::row(r) < m && E::out_column(c) < (int)a.k)
            atomicAdd(to + E::row(r) * (int)a.k + E::out_column(c), o[r][c] * scale);
    }
    if (counts) {  // a causal tile meets the tiles of keys up to its own
      complete = others + 1 == (a.causal ? min(tiles, at_before / E::BN + 1LL) : tiles);
      if (complete) __threadfence();
    }
    E::arrived();
    if (counted && complete)
      store_rounded<E, V>(by_query + h_before * a.out[1] + at_before * a.out[2],
                          before + at_before * a.k, min(E::BN, m - at_before), (int)a.k, a.out[2]);
    h_before = h, at_before = at, h = group, at = next;
  }
#pragma unroll
  for (int i = 0; i < E::ROWS; ++i)
#pragma unroll
    for (int j = 0; j < E::OUT; ++j) o_key[i][j] *= scale;
  by_key += outer * a.by_key[0] + shared * a.by_key[1] + first * a.by_key[2];
  store<E>(by_key, o_key, a.n - first, a.k, a.by_key[2]);
  by_value += outer * a.by_value[0] + shared * a.by_value[1] + first * a.by_value[2];
  store<E>(by_value, o_value, a.n - first, a.l, a.by_value[2]);
}
