// Running sums, and sums of rows by index, in NumPy's order and with its bits; and totals.
#include "pool.h"

namespace {

const long TOGETHER = 8;  // running sums at a time: one alone waits for each addition
const long PIECE = 1 << 14;  // elements of a piece for a thread
const long COLUMNS = 128;  // that a total is added up in
const long PIECES = 4;  // of a sum of rows, each of which reads all indices
const long WIDE_ROWS = 32;  // elements from which that is worth it

struct Job {
  const void* from;
  void* to;
  const long* index;
  long n, width, rows, back;
};

// LINES lines of n elements that are `step` apart, from a first to a last one.
template <class T, long LINES> void run_lines(const T* from, T* to, const Job& job, long apart) {
  const long step = job.back ? -job.width : job.width, first = job.back ? job.n - 1 : 0;
  T sum[LINES];
  for (long i = 0; i < LINES; ++i)
    to[i * apart + first * job.width] = sum[i] = from[i * apart + first * job.width];
  for (long j = 1, at = first * job.width + step; j < job.n; ++j, at += step)
    for (long i = 0; i < LINES; ++i) to[i * apart + at] = sum[i] += from[i * apart + at];
}

// Blocks of n rows of `width` elements: sums along the n rows.
template <class T> void running(void* state, long k) {
  const Job& job = *(Job*)state;
  const long lines = job.width == 1 ? job.rows : job.rows * job.width;
  const long per = (PIECE + job.n - 1) / job.n, low = k * per;
  const long high = low + per < lines ? low + per : lines;
  const T* from = (const T*)job.from;
  T* to = (T*)job.to;
  for (long i = low; i < high;) {
    const long at = i / job.width * job.width * job.n + i % job.width;
    const long apart = job.width == 1 ? job.n : 1;
    const long left = job.width == 1 ? high - i : job.width - i % job.width;
    if (left >= TOGETHER && i + TOGETHER <= high) {
      run_lines<T, TOGETHER>(from + at, to + at, job, apart);
      i += TOGETHER;
    } else {
      run_lines<T, 1>(from + at, to + at, job, apart);
      ++i;
    }
  }
}

// The sum of piece k, by columns, so that the compiler may use vectors.
template <class T> void total(void* state, long k) {
  const Job& job = *(Job*)state;
  const long low = k * PIECE, high = low + PIECE < job.n ? low + PIECE : job.n;
  const T* from = (const T*)job.from;
  T sums[COLUMNS] = {};
  long i = low;
  for (; i + COLUMNS <= high; i += COLUMNS)
    for (long j = 0; j < COLUMNS; ++j) sums[j] += from[i + j];
  for (long j = 0; i < high; ++i, ++j) sums[j] += from[i];
  for (long half = COLUMNS / 2; half; half /= 2)
    for (long j = 0; j < half; ++j) sums[j] += sums[j + half];
  ((T*)job.to)[k] = sums[0];
}

// All rows of the result.
template <class T> void add_all_rows(const Job& job) {
  T* to = (T*)job.to;
  const T* from = (const T*)job.from;
  const long w = job.width;
  if (w == 1)
    for (long i = 0; i < job.n; ++i) to[job.index[i]] += from[i];
  else
    for (long i = 0; i < job.n; ++i)
      for (long j = 0; j < w; ++j) to[job.index[i] * w + j] += from[i * w + j];
}

// Piece k of the rows of the result.
template <class T> void add_rows(void* state, long k) {
  const Job& job = *(Job*)state;
  const long low = job.rows * k / PIECES, high = job.rows * (k + 1) / PIECES, w = job.width;
  for (long i = 0; i < job.n; ++i) {
    const long row = job.index[i];
    if (row < low || row >= high) continue;
    T* to = (T*)job.to + row * w;
    const T* from = (const T*)job.from + i * w;
    for (long j = 0; j < w; ++j) to[j] += from[j];
  }
}

}  // namespace

extern "C" {

// Along the middle axis of an array (rows, n, width); from the end if `back`.
void gpugrad_running(
    long wide, const void* from, void* to, long rows, long n, long width, long back) {
  Job job = {from, to, nullptr, n, width, rows, back};
  const long per = (PIECE + n - 1) / n, lines = rows * width;
  gpugrad_parallel(wide ? running<double> : running<float>, &job, (lines + per - 1) / per);
}

// The sums of pieces of PIECE elements each.
void gpugrad_totals(long wide, const void* from, void* to, long n) {
  Job job = {from, to, nullptr, n, 1, 1, 0};
  gpugrad_parallel(wide ? total<double> : total<float>, &job, (n + PIECE - 1) / PIECE);
}

// to[index[i]] += from[i] for n rows of `width` elements, in order; `to` has `rows` rows.
void gpugrad_add_rows(
    long wide, const void* from, void* to, const long* index, long n, long width, long rows) {
  Job job = {from, to, index, n, width, rows, 0};
  if (width < WIDE_ROWS || gpugrad_threads() == 1)
    return wide ? add_all_rows<double>(job) : add_all_rows<float>(job);
  gpugrad_parallel(wide ? add_rows<double> : add_rows<float>, &job, PIECES);
}
}
