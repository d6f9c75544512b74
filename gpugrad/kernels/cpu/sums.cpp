// Running sums, and sums of rows by index, in NumPy's order and with its bits; sums of other orders
// over all elements, or over some axes. The text begins with a definition of TYPE, and of the name of
// the function that it is compiled for: all of them take 0.6 s, one 0.1 s.
#include "array.h"
#include "list.h"
#include "pool.h"

#include <cstring>

namespace {

const long TOGETHER = 8;  // running sums at a time: one alone waits for each addition
const long PIECE = 1 << 14;  // elements of a piece for a thread
const long COLUMNS = 128;  // that a total is added up in
const long ROWS = 16;  // pieces of the rows of a result
const long WIDE_ROWS = 32;  // elements from which rows are worth sorting by their indices
const long BLOCK = 2048;  // columns of a sum over rows that are added up together

struct Job {
  const void* from;
  void* to;
  long n, width, rows, back;
};

// What runs along an axis, as NumPy's functions.
struct Plus {
  template <class T> T operator()(T a, T b) const { return a + b; }
};
struct Times {
  template <class T> T operator()(T a, T b) const { return a * b; }
};
struct Most {
  template <class T> T operator()(T a, T b) const { return a >= b || a != a ? a : b; }
};
struct Least {
  template <class T> T operator()(T a, T b) const { return a <= b || a != a ? a : b; }
};

// LINES lines of n elements that are `step` apart, from a first to a last one.
template <class T, class F, long LINES> void run_lines(const T* from, T* to, const Job& job, long apart) {
  const long step = job.back ? -job.width : job.width, first = job.back ? job.n - 1 : 0;
  T sum[LINES];
  for (long i = 0; i < LINES; ++i)
    to[i * apart + first * job.width] = sum[i] = from[i * apart + first * job.width];
  for (long j = 1, at = first * job.width + step; j < job.n; ++j, at += step)
    for (long i = 0; i < LINES; ++i)
      to[i * apart + at] = sum[i] = F()(sum[i], from[i * apart + at]);
}

// Blocks of n rows of `width` elements: sums along the n rows.
template <class T, class F> void running(void* state, long k) {
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
      run_lines<T, F, TOGETHER>(from + at, to + at, job, apart);
      i += TOGETHER;
    } else {
      run_lines<T, F, 1>(from + at, to + at, job, apart);
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

// ---- sums over a middle axis ----

// Sums of blocks of columns, over pieces of the rows.
struct Rows {
  const void* from;
  void *to, *partial;
  long n, width, rows, pieces;  // rows: in a piece

  long blocks() const { return (width + BLOCK - 1) / BLOCK; }
  long columns(long block) const { return width - block * BLOCK < BLOCK ? width - block * BLOCK : BLOCK; }
};

template <class T> void add_up(const T* __restrict from, T* __restrict sum, long n, long step, long w) {
  memcpy(sum, from, w * sizeof(T));
  long i = 1;
  for (; i + 4 <= n; i += 4) {
    const T *a = from + i * step, *b = a + step, *c = b + step, *d = c + step;
    for (long j = 0; j < w; ++j) sum[j] += (a[j] + b[j]) + (c[j] + d[j]);
  }
  for (; i < n; ++i)
    for (long j = 0; j < w; ++j) sum[j] += from[i * step + j];
}

template <class T> void sum_piece(void* state, long k) {
  const Rows& job = *(Rows*)state;
  const long w = job.width, block = k % job.blocks(), piece = k / job.blocks() % job.pieces;
  const long outer = k / job.blocks() / job.pieces, low = piece * job.rows;
  const long rows = job.n - low < job.rows ? job.n - low : job.rows;
  const T* from = (const T*)job.from + (outer * job.n + low) * w + block * BLOCK;
  T* to = job.pieces == 1 ? (T*)job.to + outer * w : (T*)job.partial + (outer * job.pieces + piece) * w;
  add_up(from, to + block * BLOCK, rows, w, job.columns(block));
}

template <class T> void sum_partials(void* state, long k) {
  const Rows& job = *(Rows*)state;
  const long w = job.width, block = k % job.blocks(), outer = k / job.blocks();
  const T* from = (const T*)job.partial + outer * job.pieces * w + block * BLOCK;
  add_up(from, (T*)job.to + outer * w + block * BLOCK, job.pieces, w, job.columns(block));
}

template <class T> void sum_middle(Rows job, long outer) {
  List<T> partial(job.pieces == 1 ? 0 : outer * job.pieces * job.width);
  job.partial = partial.first;
  gpugrad_parallel(sum_piece<T>, &job, outer * job.pieces * job.blocks());
  if (job.pieces > 1) gpugrad_parallel(sum_partials<T>, &job, outer * job.blocks());
}

// ---- sums and products of rows, in NumPy's order ----

struct Lines {
  const void* from;
  void* to;
  long n, lines, outer;  // lines: of a piece, of `outer` in all
};

template <class T> T pairwise(const T* a, long n) {
  typedef T Eight __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T))));
  if (n > 128) {
    const long half = n / 2 - n / 2 % 8;
    return pairwise(a, half) + pairwise(a + half, n - half);
  }
  T sum = T(-0.0);
  long i = 0;
  if (n >= 8) {
    Eight r = *(const Eight*)a;
    for (i = 8; i + 8 <= n; i += 8) r += *(const Eight*)(a + i);
    sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  }
  for (; i < n; ++i) sum += a[i];
  return sum;
}

template <class T> void sum_rows(void* state, long k) {
  const Lines& job = *(Lines*)state;
  const long low = k * job.lines, high = smaller(low + job.lines, job.outer);
  for (long i = low; i < high; ++i) ((T*)job.to)[i] = T(0) + pairwise((const T*)job.from + i * job.n, job.n);
}

// Eight rows at once, since each product waits for the one before.
template <class T> void multiply_rows(void* state, long k) {
  const Lines& job = *(Lines*)state;
  const long low = k * job.lines, high = smaller(low + job.lines, job.outer);
  for (long i = low; i < high; i += 8) {
    const T* from[8];
    T product[8];
    for (int r = 0; r < 8; ++r) {
      from[r] = (const T*)job.from + (i + r < high ? i + r : i) * job.n;
      product[r] = 1;
    }
    for (long j = 0; j < job.n; ++j)
      for (int r = 0; r < 8; ++r) product[r] *= from[r][j];
    for (int r = 0; r < 8 && i + r < high; ++r) ((T*)job.to)[i + r] = product[r];
  }
}

// Sums of squares in double, of rows of at most PIECE elements, or of pieces of one row.
template <class T> void squares(void* state, long k) {
  const Lines& job = *(Lines*)state;
  const long low = k * job.lines, high = smaller(low + job.lines, job.outer);
  for (long i = low; i < high; ++i) {
    const T* from = (const T*)job.from + i * job.n;
    double sums[16] = {}, sum = 0;
    long j = 0;
    for (; j + 16 <= job.n; j += 16)
      for (long c = 0; c < 16; ++c) sums[c] += (double)from[j + c] * from[j + c];
    for (; j < job.n; ++j) sum += (double)from[j] * from[j];
    for (long c = 0; c < 16; ++c) sum += sums[c];
    ((double*)job.to)[i] = sum;
  }
}

template <class T> void product(void* state, long k) {
  const Job& job = *(Job*)state;
  const long low = k * PIECE, high = smaller(low + PIECE, job.n);
  const T* from = (const T*)job.from;
  double products[32], all = 1;
  for (double& p : products) p = 1;
  long i = low;
  for (; i + 32 <= high; i += 32)
    for (long c = 0; c < 32; ++c) products[c] *= from[i + c];
  for (; i < high; ++i) all *= from[i];
  for (double p : products) all *= p;
  ((double*)job.to)[k] = all;
}

template <class T, class F>
bool extremes(const void* from, void* to, const long* index, long n, long width, long rows) {
  for (long i = 0; i < n; ++i) {
    if (index[i] < 0 || index[i] >= rows) return false;
    const T* a = (const T*)from + i * width;
    T* b = (T*)to + index[i] * width;
    for (long j = 0; j < width; ++j) b[j] = F()(b[j], a[j]);
  }
  return true;
}

// ---- sums of rows by index ----

// Rows of the result are those of `base`, or zeros; then rows of `from` are added.
struct Add {
  const void *from, *base;
  void* to;
  const long* index;
  long n, width, rows, m;  // m: indices of a slice, of n in all
  long *start, *order;  // the indices sorted by rows
  bool outside;

  // In a piece.
  long slices() const { return PIECE / (rows * width) > 1 ? PIECE / (rows * width) : 1; }

  // The row that an index names, or -1.
  long row(long i) const {
    if (i < 0) i += rows;
    return i < 0 || i >= rows ? -1 : i;
  }

  bool sort() {
    memset(start, 0, (rows + 1) * sizeof(long));
    for (long i = 0; i < n; ++i) {
      const long r = row(index[i]);
      if (r < 0) return false;
      ++start[r + 1];
    }
    for (long r = 0; r < rows; ++r) start[r + 1] += start[r];
    for (long i = 0; i < n; ++i) order[start[row(index[i])]++] = i;
    for (long r = rows; r > 0; --r) start[r] = start[r - 1];
    start[0] = 0;
    return true;
  }

  template <class T> void begin(long row, long count) const {
    T* to = (T*)this->to + row * width;
    if (!base) memset(to, 0, count * width * sizeof(T));
    else if (base != this->to) memcpy(to, (const T*)base + row * width, count * width * sizeof(T));
  }
};

template <class T> void add_row(const T* __restrict from, T* __restrict to, long w) {
  for (long j = 0; j < w; ++j) to[j] += from[j];
}

// Piece k of the rows of the result.
template <class T> void add_rows(void* state, long k) {
  const Add& job = *(Add*)state;
  const long w = job.width;
  for (long r = job.rows * k / ROWS; r < job.rows * (k + 1) / ROWS; ++r) {
    job.begin<T>(r, 1);
    for (long i = job.start[r]; i < job.start[r + 1]; ++i)
      add_row((const T*)job.from + job.order[i] * w, (T*)job.to + r * w, w);
  }
}

template <class T> bool add_narrow_rows(const Add& job) {
  const T* from = (const T*)job.from;
  T* to = (T*)job.to;
  const long w = job.width;
  job.begin<T>(0, job.rows);
  for (long i = 0; i < job.n; ++i) {
    const long r = job.row(job.index[i]);
    if (r < 0) return false;
    if (w == 1) to[r] += from[i];
    else
      for (long j = 0; j < w; ++j) to[r * w + j] += from[i * w + j];
  }
  return true;
}

// Slices of the result, which have indices of their own: one for each element.
template <class T> void add_along(void* state, long k) {
  Add& job = *(Add*)state;
  const long w = job.width, rows = job.rows, count = job.m * w, size = rows * w;
  const long per = job.slices(), all = job.n / job.m;
  for (long slice = k * per; slice < (k + 1) * per && slice < all; ++slice) {
    const T* from = (const T*)job.from + slice * count;
    T* to = (T*)job.to + slice * size;
    const long* index = job.index + slice * count;
    memset(to, 0, size * sizeof(T));
    for (long i = 0; i < count; i += w)
      for (long j = 0; j < w; ++j) {
        long r = index[i + j];
        if (r < 0) r += rows;
        if (r < 0 || r >= rows) {
          __atomic_store_n(&job.outside, true, __ATOMIC_RELAXED);
          return;
        }
        to[r * w + j] += from[i + j];
      }
  }
}

}  // namespace

extern "C" {

#ifdef RUNNING
// Along the middle axis of an array (rows, n, width); from the end if `back`. `what` is 0 for sums, 1
// for products, 2 for the largest and 3 for the smallest elements so far.
void gpugrad_running(
    long what, void* from, void* to, long rows, long n, long width, long back) {
  Job job = {array_of(from).data, array_of(to).data, n, width, rows, back};
  const long per = (PIECE + n - 1) / n, lines = rows * width;
  auto run = what == 0   ? running<TYPE, Plus>
             : what == 1 ? running<TYPE, Times>
             : what == 2 ? running<TYPE, Most>
                         : running<TYPE, Least>;
  gpugrad_parallel(run, &job, (lines + per - 1) / per);
}
#endif

#ifdef TOTALS
// The sums of pieces of PIECE elements each.
void gpugrad_totals(void* from, void* to, long n) {
  Job job = {array_of(from).data, array_of(to).data, n, 1, 1, 0};
  gpugrad_parallel(total<TYPE>, &job, (n + PIECE - 1) / PIECE);
}
#endif

#ifdef SQUARES
// Sums of squares of the rows of an array (outer, n), in double: those of floats stay in its range.
void gpugrad_squares(void* from, void* to, long outer, long n) {
  const long rows = n > PIECE ? 1 : PIECE / n, whole = outer == 1 ? n / PIECE : 0;
  if (whole < 2) {
    Lines job = {array_of(from).data, array_of(to).data, n, rows, outer};
    gpugrad_parallel(squares<TYPE>, &job, (outer + rows - 1) / rows);
    return;
  }
  List<double> sums(whole + 1);
  Lines job = {array_of(from).data, sums.first, PIECE, 1, whole};
  gpugrad_parallel(squares<TYPE>, &job, whole);
  Lines rest = {(const TYPE*)job.from + whole * PIECE, &sums[whole], n - whole * PIECE, 1, 1};
  squares<TYPE>(&rest, 0);
  double total = 0;
  for (double sum : sums) total += sum;
  *(double*)array_of(to).data = total;
}
#endif

#ifdef PRODUCTS
// Products of pieces of PIECE elements each, in double.
void gpugrad_products(void* from, void* to, long n) {
  Job job = {array_of(from).data, array_of(to).data, n, 1, 1, 0};
  gpugrad_parallel(product<TYPE>, &job, (n + PIECE - 1) / PIECE);
}
#endif

#ifdef EXTREMES
// The largest, or smallest, element of the rows (n, width) of each index, where `to` (rows, width) has
// what it begins with. Returns 0 if an index is out of bounds.
long gpugrad_extremes(
    long least, const void* from, void* to, const long* index, long n, long width, long rows) {
  return least ? extremes<TYPE, Least>(from, to, index, n, width, rows)
               : extremes<TYPE, Most>(from, to, index, n, width, rows);
}
#endif

#ifdef REDUCE_ROWS
// Sums, or products, of the rows of an array (outer, n).
void gpugrad_reduce_rows(long products, void* from, void* to, long outer, long n) {
  const long lines = PIECE / n > 8 ? PIECE / n / 8 * 8 : 8;
  Lines job = {array_of(from).data, array_of(to).data, n, lines, outer};
  auto reduce = products ? multiply_rows<TYPE> : sum_rows<TYPE>;
  gpugrad_parallel(reduce, &job, (outer + lines - 1) / lines);
}
#endif

#ifdef SUM_MIDDLE
// Sums over the middle axis of an array (outer, n, width).
void gpugrad_sum_middle(const void* from, void* to, long outer, long n, long width) {
  const long columns = width < BLOCK ? width : BLOCK, rows = 2 * PIECE / columns;
  const Rows job = {from, to, nullptr, n, width, rows, (n + rows - 1) / rows};
  return sum_middle<TYPE>(job, outer);
}
#endif

#ifdef ADD_ROWS
// A copy of `base` (rows, width), or zeros; then to[index[i]] += from[i] for n rows, in order. `base`
// may be `to`. Returns 0 if an index is out of bounds.
long gpugrad_add_rows(
    const void* from, const void* base, void* to, const long* index, long n, long width,
    long rows) {
  Add job = {from, base, to, index, n, width, rows, n};
  if (width < WIDE_ROWS) return add_narrow_rows<TYPE>(job);
  List<long> start(rows + 1), order(n);
  job.start = start.first, job.order = order.first;
  if (!job.sort()) return 0;
  gpugrad_parallel(add_rows<TYPE>, &job, ROWS);
  return 1;
}
#endif

#ifdef ADD_ALONG
// Zeros (outer, rows, width); then each element of `from` (outer, m, width) is added at its index
// along the middle axis. Returns 0 if an index is out of bounds.
long gpugrad_add_along(
    const void* from, void* to, const long* index, long outer, long m, long width, long rows) {
  Add job = {from, nullptr, to, index, outer * m, width, rows, m};
  const long per = job.slices();
  gpugrad_parallel(add_along<TYPE>, &job, (outer + per - 1) / per);
  return !job.outside;
}
#endif
}
