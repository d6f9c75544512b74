// Copies: of arrays that lie in memory in different ways, and of what indices name along an axis.
#include "lanes.h"
#include "strided.h"

#include <atomic>
#include <vector>

namespace {

const long PIECE = 1 << 16;  // bytes of a piece for a thread
const long WIDE = 64;  // columns of a tile

template <long SIZE> struct Bytes { char of[SIZE]; };

// Elements with strides in bytes.
template <class T> void move(const char* from, char* to, long n, long step, long to_step) {
  for (long i = 0; i < n; ++i) *(T*)(to + i * to_step) = *(const T*)(from + i * step);
}

void move(long size, const char* from, char* to, long n, long step, long to_step) {
  if (step == size && to_step == size) memcpy(to, from, n * size);
  else if (size == 1) move<char>(from, to, n, step, to_step);
  else if (size == 2) move<short>(from, to, n, step, to_step);
  else if (size == 4 && !step && to_step == 4) for (long i = 0; i < n; ++i) ((int*)to)[i] = *(int*)from;
  else if (size == 4) move<int>(from, to, n, step, to_step);
  else if (size == 8) move<long>(from, to, n, step, to_step);
  else if (size == 16) move<Bytes<16>>(from, to, n, step, to_step);
  else for (long i = 0; i < n; ++i) memcpy(to + i * to_step, from + i * step, size);
}

struct Copy {
  Walk walk;
  long size;
};

void copy_piece(void* state, long k) {
  const Copy& job = *(Copy*)state;
  const Walk& w = job.walk;
  const long step = w.strides[0][w.ndim - 1], to_step = w.strides[1][w.ndim - 1];
  w.piece(k, [&](char** at, long n) { move(job.size, at[0], at[1], n, step, to_step); });
}

// A matrix of columns that are contiguous in `from`, and of rows that are in `to`.
struct Tiles {
  long size, rows, columns, step, to_step;  // step: from column to column of `from`

  void plain(const char* from, char* to, long high, long wide) const {
    for (long i = 0; i < high; ++i) move(size, from + i * size, to + i * to_step, wide, step, size);
  }

  // Up to WIDE rows, of which vectors are transposed in registers.
  void strip(const char* from, char* to, long high) const {
    const long n = size == 4 ? high / LANES * LANES : 0;
    for (long j = 0; j < columns; j += LANES) {
      const long wide = columns - j < LANES ? columns - j : LANES;
      const char* a = from + j * step;
      char* b = to + j * size;
      const long fast = wide == LANES ? n : 0;
      for (long i = 0; i < fast; i += LANES) {
        Vector v[LANES];
        for (int k = 0; k < LANES; ++k) v[k] = *(const Vector*)(a + k * step + i * 4);
        transpose(v);
        for (int k = 0; k < LANES; ++k) *(Vector*)(b + (i + k) * to_step) = v[k];
      }
      plain(a + fast * size, b + fast * to_step, high - fast, wide);
    }
  }
};

struct Transposed {
  Walk walk;  // of the other axes; its last one is of one element
  Tiles tiles;
};

void transpose_piece(void* state, long k) {
  const Transposed& job = *(Transposed*)state;
  const Tiles& t = job.tiles;
  const long strips = (t.rows + WIDE - 1) / WIDE, row = k % strips * WIDE;
  char* at[ARRAYS];
  job.walk.line(k / strips, at);
  t.strip(at[0] + row * t.size, at[1] + row * t.to_step, t.rows - row < WIDE ? t.rows - row : WIDE);
}

// The axis along which `from` is contiguous, if rows of the result are not: -1 if there is none.
int contiguous_axis(const Walk& w, long size) {
  if (w.strides[1][w.ndim - 1] != size || std::labs(w.strides[0][w.ndim - 1]) < WIDE) return -1;
  for (int d = 0; d < w.ndim - 1; ++d)
    if (w.strides[0][d] == size && w.shape[d] >= 4) return d;
  return -1;
}

// ---- by indices ----

struct Take {
  const char* from;
  char* to;
  const long* index;
  long n, m, inner, size, total, per;  // inner: bytes, or elements along an axis
  std::atomic<bool> outside;

  long place(long i) {
    if (i < 0) i += n;
    if (i < 0 || i >= n) return outside = true, 0;
    return i;
  }
};

// Slices of `inner` bytes: m of them for each of the n that the indices count. Without CHECK these are
// known to be places.
template <long BYTES, bool CHECK> void take_piece(void* state, long k) {
  Take& job = *(Take*)state;
  const long high = (k + 1) * job.per < job.total ? (k + 1) * job.per : job.total;
  const long bytes = BYTES ? BYTES : job.inner;
  long i = k * job.per, line = i % job.m;
  const char* from = job.from + i / job.m * job.n * bytes;
  for (char* to = job.to + i * bytes; i < high; ++i, to += bytes) {
    const long at = CHECK ? job.place(job.index[line]) : job.index[line];
    memcpy(to, from + at * bytes, bytes);
    if (++line == job.m) line = 0, from += job.n * bytes;
  }
}

// Elements along the middle axis of arrays (outer, n or m, inner).
template <class T> void along_piece(void* state, long k) {
  Take& job = *(Take*)state;
  const long high = (k + 1) * job.per < job.total ? (k + 1) * job.per : job.total, w = job.inner;
  long i = k * job.per, line = i % job.m;
  const T* from = (const T*)job.from + i / job.m * job.n * w;
  const long* index = job.index + i * w;
  for (T* to = (T*)job.to + i * w; i < high; ++i, to += w, index += w) {
    for (long j = 0; j < w; ++j) to[j] = from[job.place(index[j]) * w + j];
    if (++line == job.m) line = 0, from += job.n * w;
  }
}

template <bool CHECK> gpugrad_job take_pieces(long inner) {
  return inner == 4   ? take_piece<4, CHECK>
         : inner == 8 ? take_piece<8, CHECK>
                      : take_piece<0, CHECK>;
}

long taken(gpugrad_job piece, Take& job, long bytes) {
  job.per = PIECE / bytes > 1 ? PIECE / bytes : 1;
  gpugrad_parallel(piece, &job, (job.total + job.per - 1) / job.per);
  return !job.outside;
}

}  // namespace

extern "C" {

// Copies an array to another of its dtype, whose elements take `size` bytes; it is broadcast to it.
void gpugrad_copy(void* from, void* to, long size) {
  void* arrays[] = {from, to};
  Copy job = {Walk(arrays, 2), size};
  const int last = job.walk.ndim - 1, rows = contiguous_axis(job.walk, size);
  if (rows < 0) return gpugrad_parallel(copy_piece, &job, job.walk.pieces());
  const Walk& w = job.walk;
  Transposed tiled = {w, {size, w.shape[rows], w.shape[last], w.strides[0][last], w.strides[1][rows]}};
  tiled.walk.shape[rows] = tiled.walk.shape[last] = 1;
  gpugrad_parallel(
      transpose_piece, &tiled, tiled.walk.outer() * ((w.shape[rows] + WIDE - 1) / WIDE));
}

// Slices of `inner` bytes at m indices along the middle axis of (outer, n, inner); 0 if one of the
// indices is out of bounds.
long gpugrad_take(
    const void* from, void* to, const long* index, long outer, long n, long m, long inner) {
  Take job = {(const char*)from, (char*)to, index, n, m, inner, 1, outer * m, 0, {false}};
  if (outer == 1) return taken(take_pieces<true>(inner), job, inner);
  std::vector<long> places(m);  // once for all lines
  for (long i = 0; i < m; ++i) places[i] = job.place(index[i]);
  job.index = places.data();
  return !job.outside && taken(take_pieces<false>(inner), job, inner);
}

// Elements of `size` bytes at indices (outer, m, inner) along the middle axis of (outer, n, inner); 0
// if one is out of bounds.
long gpugrad_take_along(
    const void* from, void* to, const long* index, long outer, long n, long m, long inner, long size) {
  Take job = {(const char*)from, (char*)to, index, n, m, inner, size, outer * m, 0, {false}};
  const gpugrad_job piece = size == 4 ? along_piece<int> : along_piece<long>;
  return taken(piece, job, inner * size);
}
}
