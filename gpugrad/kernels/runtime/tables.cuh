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

// Calls f(array, first element, number of elements) for each chunk of this block.
template <int K, class F> __device__ void each_chunk(const Table<K>& table, F f) {
  for (int chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    int low = 0, high = table.count - 1;
    while (low < high) {  // find the last array whose first chunk is not beyond this one
      int middle = (low + high + 1) / 2;
      if (table.first[middle] <= chunk) low = middle;
      else high = middle - 1;
    }
    long long start = (long long)(chunk - table.first[low]) * CHUNK, left = table.size[low] - start;
    f(low, start, left < CHUNK ? (int)left : CHUNK);
  }
}

// The number of parts of an array in which a sum over it is computed.
constexpr int SEGMENTS = 512;
__device__ inline int segments_of(long long size) {
  long long chunks = (size + CHUNK - 1) / CHUNK;
  return chunks < SEGMENTS ? (int)chunks : SEGMENTS;
}

// Calls f(array, segment, number of segments of the array) for each segment of this block. The
// chunks of a table made for this are segments.
template <int K, class F> __device__ void each_segment(const Table<K>& table, F f) {
  for (int at = blockIdx.x; at < table.chunks; at += gridDim.x) {
    int low = 0, high = table.count - 1;
    while (low < high) {
      int middle = (low + high + 1) / 2;
      if (table.first[middle] <= at) low = middle;
      else high = middle - 1;
    }
    f(low, at - table.first[low], segments_of(table.size[low]));
  }
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
