// Many arrays in one launch. Each array is cut into chunks, and a block takes one chunk after
// another. The addresses are passed by value, within the 4096 bytes of a kernel's arguments, so
// nothing is copied to the device first.

constexpr int CHUNK = 4096;  // elements; a multiple of every pack
template <int K> constexpr int ROOM = 3800 / (8 * K + 12) / 2 * 2;

// K addresses for each of `count` arrays. Launchers use a NumPy dtype with the same layout.
template <int K> struct Table {
  void* at[K][ROOM<K>];
  long long size[ROOM<K>];
  int first[ROOM<K>];  // first chunk of the array
  int count, chunks;
};

// Calls f(array, part) for each chunk of this block, or for each segment.
template <int K, class F> __device__ void each_part(const Table<K>& table, F f) {
  for (int chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    int low = 0, high = table.count - 1;
    while (low < high) {  // find the last array whose first chunk is not beyond this one
      int middle = (low + high + 1) / 2;
      if (table.first[middle] <= chunk) low = middle;
      else high = middle - 1;
    }
    f(low, chunk - table.first[low]);
  }
}

// Calls f(array, first element, number of elements) for each chunk of this block.
template <int K, class F> __device__ void each_chunk(const Table<K>& table, F f) {
  each_part(table, [&](int i, int part) {
    long long start = (long long)part * CHUNK, left = table.size[i] - start;
    f(i, start, left < CHUNK ? (int)left : CHUNK);
  });
}

// The number of parts of an array in which a sum over it is computed.
constexpr int SEGMENTS = 512;
__device__ inline int segments_of(long long size) {
  long long chunks = (size + CHUNK - 1) / CHUNK;
  return chunks < SEGMENTS ? (int)chunks : SEGMENTS;
}

template <class A> __device__ void add_squares(double2& sum, A x, A y) {
  sum.x += (double)x * (double)x;
  sum.y += (double)y * (double)y;
}

// Calls f(array, first element, number of elements, sum) for the chunks of each segment of this block,
// and writes the sum of a segment to the last column. The chunks of a table made for this are segments.
template <int K, class F> __device__ void measure_segments(const Table<K>& table, F f) {
  __shared__ double scratch[32];
  each_part(table, [&](int i, int segment) {
    double2 sum = make_double2(0, 0);
    for (long long start = (long long)segment * CHUNK; start < table.size[i];
         start += (long long)segments_of(table.size[i]) * CHUNK) {
      long long left = table.size[i] - start;
      f(i, start, left < CHUNK ? (int)left : CHUNK, sum);
    }
    sum.x = block_reduce(sum.x, Sum(), 0.0, scratch);
    sum.y = block_reduce(sum.y, Sum(), 0.0, scratch);
    if (threadIdx.x == 0) ((double2*)table.at[K - 1][i])[segment] = sum;
  });
}

// `each_chunk`, after the roots of the sums of an array's segments have been written to x and y.
template <int K, class A, class F>
__device__ void each_measured_chunk(const Table<K>& table, A& x, A& y, F f) {
  __shared__ double scratch[32];
  each_chunk(table, [&](int i, long long start, int n) {
    const double2* sums = (const double2*)table.at[K - 1][i];
    double2 sum = make_double2(0, 0);
    for (int k = threadIdx.x; k < segments_of(table.size[i]); k += blockDim.x) {
      sum.x += sums[k].x;
      sum.y += sums[k].y;
    }
    x = (A)sqrt(block_reduce(sum.x, Sum(), 0.0, scratch));
    y = (A)sqrt(block_reduce(sum.y, Sum(), 0.0, scratch));
    f(i, start, n);
  });
}

// W elements of T, converted to the type of computations, in accesses of 16 bytes.
template <int W, class T, class S> __device__ void load(const T* from, S* to) {
#pragma unroll
  for (int k = 0; k < W; k += PACKED<T>) {
    Pack<T, PACKED<T>> some = *(const Pack<T, PACKED<T>>*)(from + k);
#pragma unroll
    for (int j = 0; j < PACKED<T>; ++j) to[k + j] = S(some.at[j]);
  }
}
template <int W, class T, class S> __device__ void store(const S* from, T* to) {
#pragma unroll
  for (int k = 0; k < W; k += PACKED<T>) {
    Pack<T, PACKED<T>> some;
#pragma unroll
    for (int j = 0; j < PACKED<T>; ++j) some.at[j] = T(from[k + j]);
    *(Pack<T, PACKED<T>>*)(to + k) = some;
  }
}
template <class T, class G> constexpr int WIDE = PACKED<T> > PACKED<G> ? PACKED<T> : PACKED<G>;
template <class... P> __device__ bool aligned(P... pointers) {
  return ((... | (unsigned long long)pointers) & 15) == 0;
}

// The part of an array from `start` on; null for no array.
template <class T> __device__ T* part_of(T* array, long long start) {
  return array ? array + start : array;
}

// Elements of constant arrays are not stored.
template <int W, class T, class S> __device__ void store(const S* from, const T* to) {}
template <class T, class S> __device__ void put(S from, T& to) { to = T(from); }
template <class T, class S> __device__ void put(S from, const T& to) {}

// An array, and W of its elements in type A.
template <int W, class A, class T> struct Column {
  T* at;
  A of[W];
};
template <int W, class A, class F, class H, class C, class... D> __device__ void each_pack(
    int n, F f, H* copy, C first, D... rest) {
  int whole = aligned(copy, first.at, rest.at...) ? n / W * W : 0;
  for (int k = threadIdx.x * W; k < whole; k += blockDim.x * W) {
    load<W>(first.at + k, first.of), (load<W>(rest.at + k, rest.of), ...);
#pragma unroll
    for (int j = 0; j < W; ++j) f(first.of[j], rest.of[j]...);
    store<W>(first.of, first.at + k), (store<W>(rest.of, rest.at + k), ...);
    if (copy) store<W>(first.of, copy + k);
  }
  for (int k = whole + threadIdx.x; k < n; k += blockDim.x) {
    first.of[0] = A(first.at[k]), ((rest.of[0] = A(rest.at[k])), ...);
    f(first.of[0], rest.of[0]...);
    put(first.of[0], first.at[k]), (put(rest.of[0], rest.at[k]), ...);
    if (copy) copy[k] = H(first.of[0]);
  }
}

// Calls f with references to the elements, in type A, that arrays have in n places, and stores them.
// The threads of a block take packs if all arrays are aligned. `copy` is null, or gets the first one.
template <int W, class A, class F, class H, class... T> __device__ void each_element(
    int n, F f, H* copy, T*... arrays) {
  each_pack<W, A>(n, f, copy, Column<W, A, T>{arrays}...);
}

// Applies f to n elements in type A with the threads of a block, in packs if they are aligned.
template <class A, class S, class T, class F> __device__ void map_chunk(
    const S* from, T* to, int n, F f) {
  constexpr int W = WIDE<S, T>;
  int whole = aligned(from, to) ? n / W * W : 0;
  for (int k = threadIdx.x * W; k < whole; k += blockDim.x * W) {
    A a[W];
    load<W>(from + k, a);
#pragma unroll
    for (int j = 0; j < W; ++j) a[j] = f(a[j]);
    store<W>(a, to + k);
  }
  for (int k = whole + threadIdx.x; k < n; k += blockDim.x) to[k] = T(f(A(from[k])));
}
