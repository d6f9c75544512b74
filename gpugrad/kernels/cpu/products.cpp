// Products of matrices, and of stacks of them: BLAS on one thread computes pieces that the pool's
// threads take. OpenBLAS's own threads spin for milliseconds after each product, and would keep the
// cores from the pool.
#include "array.h"
#include "blas.h"
#include "pool.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include <memory>

namespace {

const long PIECE = 1 << 17;  // least multiply-adds of a piece: 2 us, ten times what a job costs
const long ROWS = 16;  // pieces are cut at multiples of it, so that BLAS fills its vectors
const long FEW = 64;  // rows that BLAS multiplies by as many columns in the time of packing them
const long TOGETHER = 256;  // rows that are copied for one product

// ---- BLAS

void *gemm_float, *gemm_double, *gemv_float, *gemv_double;
bool long_integers;  // of BLAS: 64 bits

template <class T, class I>
void call(
    void* function, bool at, bool bt, long m, long n, long k, const T* a, long lda, const T* b,
    long ldb, T* c, long ldc, bool add) {
  typedef void (*Gemm)(int, int, int, I, I, I, T, const T*, I, const T*, I, T, T*, I);
  Gemm gemm = (Gemm)function;
  gemm(101, at ? 112 : 111, bt ? 112 : 111, I(m), I(n), I(k), T(1), a, I(lda), b, I(ldb), T(add), c,
       I(ldc));
}

// y = x @ b, or y = x @ b^T if `transposed`, for a matrix b in memory of `rows` by `columns`.
template <class T, class I>
void call_vector(bool transposed, long rows, long columns, const T* b, long ld, const T* x,
                 long x_step, T* y, long y_step) {
  typedef void (*Gemv)(int, int, I, I, T, const T*, I, const T*, I, T, T*, I);
  Gemv gemv = (Gemv)(sizeof(T) == 4 ? gemv_float : gemv_double);
  gemv(101, transposed ? 111 : 112, I(rows), I(columns), T(1), b, I(ld), x, I(x_step), T(0), y,
       I(y_step));
}

const long LONGEST_WAIT = 10;  // seconds that a fork waits, as in core/forking.py
const pthread_rwlock_t FREE = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
pthread_rwlock_t in_use = FREE;  // by products, to read; by a fork, to write
thread_local bool waited;

void before_fork() {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += LONGEST_WAIT;
  waited = pthread_rwlock_timedwrlock(&in_use, &until) == 0;
}

void after_fork() {
  if (waited) pthread_rwlock_unlock(&in_use);
}

void in_child() { in_use = FREE; }

// ---- the matrices of an array

struct Matrix {
  long ld;  // elements from one row (column, if transposed) to the next
  bool transposed;
};

// The last two axes as BLAS takes them; false if no step is 1.
bool as_matrix(const Array& x, long size, Matrix& matrix) {
  long rows = x.shape[x.ndim - 2], columns = x.shape[x.ndim - 1];
  long row = x.strides[x.ndim - 2], column = x.strides[x.ndim - 1];
  if (row % size || column % size) return false;
  row /= size, column /= size;
  if ((column == 1 || columns == 1) && (row >= columns || rows == 1))
    matrix = {rows == 1 || row < columns ? columns : row, false};
  else if ((row == 1 || rows == 1) && (column >= rows || columns == 1))
    matrix = {columns == 1 || column < rows ? rows : column, true};
  else
    return false;
  return true;
}

// Bytes to matrix i of the stack `out`, in an array that broadcasts to it.
long offset(const Array& x, const Array& out, long i) {
  long bytes = 0;
  for (int d = out.ndim - 3; d >= 0; --d) {
    long at = i % out.shape[d], own = d - (out.ndim - x.ndim);
    i /= out.shape[d];
    if (own >= 0 && x.shape[own] > 1) bytes += at * x.strides[own];
  }
  return bytes;
}

// Whether a stack of matrices, with `ld` elements from row to row, is one tall matrix.
bool is_tall(const Array& x, long ld, long size) {
  long step = ld * size * x.shape[x.ndim - 2];
  for (int d = x.ndim - 3; d >= 0; step *= x.shape[d--])
    if (x.shape[d] != 1 && x.strides[d] != step) return false;
  return true;
}

// Whether b is a transposed: NumPy computes half of that product, and the result is symmetric.
bool is_square_of(const Array& a, const Array& b) {
  int d = a.ndim - 1;
  return a.data == b.data && a.ndim == b.ndim && a.shape[d] == b.shape[d - 1] &&
         a.shape[d - 1] == b.shape[d] && a.strides[d] == b.strides[d - 1] &&
         a.strides[d - 1] == b.strides[d];
}

// ---- the product

struct Product {
  const Array *a, *b, *c;
  Matrix am, bm;
  long m, n, k, ldc, stack;
  long each;  // matrices of a piece, if it has whole ones
  long cuts, cut;  // pieces of a matrix, and their rows or columns
  bool by_rows;
  bool gathered;  // m are the rows of all matrices of `a`, which lie apart
};

void gemm(bool at, bool bt, long m, long n, long k, const float* a, long lda, const float* b,
          long ldb, float* c, long ldc, bool add) {
  gpugrad_gemm(at, bt, m, n, k, a, lda, b, ldb, c, ldc, add);
}

void gemm(bool at, bool bt, long m, long n, long k, const double* a, long lda, const double* b,
          long ldb, double* c, long ldc, bool add) {
  auto of = long_integers ? call<double, int64_t> : call<double, int>;
  of(gemm_double, at, bt, m, n, k, a, lda, b, ldb, c, ldc, add);
}

// The same for one row of `a` if p.m is 1, or one column of `b` if p.n is 1.
template <class T>
void multiply_vector(const Product& p, long m, long n, const T* a, const T* b, T* c) {
  auto gemv = long_integers ? call_vector<T, int64_t> : call_vector<T, int>;
  Matrix am = p.am, bm = p.bm;
  if (p.m == 1)
    gemv(bm.transposed, bm.transposed ? n : p.k, bm.transposed ? p.k : n, b, bm.ld, a,
         am.transposed ? am.ld : 1, c, 1);
  else
    gemv(!am.transposed, am.transposed ? p.k : m, am.transposed ? m : p.k, a, am.ld, b,
         bm.transposed ? 1 : bm.ld, c, p.ldc);
}

// m rows of the matrices of `a`, from the first one on, times n columns of `b`: a product for each
// matrix would pack `b` each time.
template <class T>
void multiply_gathered(const Product& p, long first, long m, long n, const T* b, T* c) {
  long rows = p.a->shape[p.a->ndim - 2];
  std::unique_ptr<T[]> copies(new T[TOGETHER * p.k]);
  for (long done = 0; done < m; done += TOGETHER) {
    long count = m - done < TOGETHER ? m - done : TOGETHER;
    for (long r = 0; r < count; ++r) {
      long at = first + done + r;
      const T* matrix = (const T*)(p.a->data + offset(*p.a, *p.c, at / rows));
      memcpy(&copies[r * p.k], matrix + at % rows * p.am.ld, p.k * sizeof(T));
    }
    const T* together = copies.get();
    gemm(false, p.bm.transposed, count, n, p.k, together, p.k, b, p.bm.ld, c, p.ldc, false);
    c += count * p.ldc;
  }
}

template <class T> void multiply(const Product& p, long i, long low, long high) {
  const T* a = (const T*)(p.a->data + offset(*p.a, *p.c, i));
  const T* b = (const T*)(p.b->data + offset(*p.b, *p.c, i));
  T* c = (T*)(p.c->data + offset(*p.c, *p.c, i));
  long m = p.m, n = p.n;
  if (p.by_rows) {
    m = high - low;
    a += p.am.transposed ? low : low * p.am.ld;
    c += low * p.ldc;
  } else {
    n = high - low;
    b += p.bm.transposed ? low * p.bm.ld : low;
    c += low;
  }
  if (p.gathered) return multiply_gathered(p, p.by_rows ? low : 0, m, n, b, c);
  if (p.m == 1 || p.n == 1) return multiply_vector(p, m, n, a, b, c);
  gemm(p.am.transposed, p.bm.transposed, m, n, p.k, a, p.am.ld, b, p.bm.ld, c, p.ldc, false);
}

template <class T> void piece(void* state, long k) {
  const Product& p = *(Product*)state;
  long length = p.by_rows ? p.m : p.n;
  if (p.cuts == 1) {
    long end = (k + 1) * p.each < p.stack ? (k + 1) * p.each : p.stack;
    for (long i = k * p.each; i < end; ++i) multiply<T>(p, i, 0, length);
  } else {
    long low = k % p.cuts * p.cut, high = low + p.cut < length ? low + p.cut : length;
    multiply<T>(p, k / p.cuts, low, high);
  }
}

long divided(long a, long b) { return (a + b - 1) / b; }

// How a product is cut into pieces; returns their number.
long cut(Product& p) {
  double work = double(p.m) * p.n * p.k;
  long threads = gpugrad_threads();
  long most = threads == 1 ? 1 : long(work * p.stack / PIECE) + 1;  // pieces of any use
  p.by_rows = p.m >= p.n;
  long length = p.by_rows ? p.m : p.n;
  p.each = p.cuts = 1, p.cut = length;
  if (p.stack >= 2 * threads || most < 2) {
    long pieces = p.stack < most ? p.stack : most;
    p.each = divided(p.stack, pieces < 4 * threads ? pieces : 4 * threads);
    return divided(p.stack, p.each);
  }
  long wanted = divided(p.stack == 1 ? threads : 2 * threads, p.stack);
  if (wanted > divided(most, p.stack)) wanted = divided(most, p.stack);
  p.cut = divided(divided(length, wanted), ROWS) * ROWS;
  p.cuts = divided(length, p.cut);
  return p.cuts * p.stack;
}

// ---- stacks of matrices that are too small for BLAS

const long TINY = 4;  // columns and terms at most

struct Tiny {
  const Array *a, *b, *c;
  long m, stack, each;
  bool steady;  // each array's matrices are `steps` bytes apart
  long steps[3];
};

// Bytes from matrix to matrix, if they are always the same.
bool is_steady(const Array& x, const Array& out, long& step) {
  long next = 0;
  bool known = false;
  for (int d = out.ndim - 3; d >= 0; --d) {
    int own = d - (out.ndim - x.ndim);
    if (out.shape[d] == 1) continue;
    long stride = own >= 0 && x.shape[own] > 1 ? x.strides[own] : 0;
    if (known && stride != next) return false;
    if (!known) step = stride;
    next = stride * out.shape[d], known = true;
  }
  return true;
}

template <class T, int K, int N> void tiny(void* state, long piece) {
  const Tiny& p = *(Tiny*)state;
  const Array& a = *p.a, &b = *p.b, &c = *p.c;
  const long *as = (long*)a.strides + a.ndim - 2, *bs = (long*)b.strides + b.ndim - 2;
  const long *cs = (long*)c.strides + c.ndim - 2;
  const long end = (piece + 1) * p.each < p.stack ? (piece + 1) * p.each : p.stack;
  for (long i = piece * p.each; i < end; ++i) {
    const char* x = a.data + (p.steady ? i * p.steps[0] : offset(a, c, i));
    const char* y = b.data + (p.steady ? i * p.steps[1] : offset(b, c, i));
    char* z = c.data + (p.steady ? i * p.steps[2] : offset(c, c, i));
    T right[K][N];
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < N; ++n) right[k][n] = *(const T*)(y + k * bs[0] + n * bs[1]);
    for (long m = 0; m < p.m; ++m, x += as[0], z += cs[0]) {
      T sums[N] = {};
      for (int k = 0; k < K; ++k) {
        const T left = *(const T*)(x + k * as[1]);
        for (int n = 0; n < N; ++n) sums[n] += left * right[k][n];
      }
      for (int n = 0; n < N; ++n) *(T*)(z + n * cs[1]) = sums[n];
    }
  }
}

template <class T> gpugrad_job tiny_of(long k, long n) {
#define ROW(K) {tiny<T, K, 1>, tiny<T, K, 2>, tiny<T, K, 3>, tiny<T, K, 4>}
  const gpugrad_job jobs[TINY][TINY] = {ROW(1), ROW(2), ROW(3), ROW(4)};
#undef ROW
  return jobs[k - 1][n - 1];
}

bool multiply_tiny(const Array& a, const Array& b, const Array& c, long stack, bool wide) {
  const long m = c.shape[c.ndim - 2], n = c.shape[c.ndim - 1], k = a.shape[a.ndim - 1];
  if (stack < 2 || m > TINY * TINY || n > TINY || k > TINY) return false;
  Tiny p = {&a, &b, &c, m, stack, divided(stack, stack * m * n * k / PIECE + 1), true, {}};
  const Array* arrays[] = {&a, &b, &c};
  for (int i = 0; i < 3; ++i) p.steady &= is_steady(*arrays[i], c, p.steps[i]);
  gpugrad_parallel(wide ? tiny_of<double>(k, n) : tiny_of<float>(k, n), &p, divided(stack, p.each));
  return true;
}

}  // namespace

extern "C" {

// `of`: addresses of gemm and gemv for float and for double.
void gpugrad_set_blas(void** of, long longs) {
  gemm_float = of[0], gemm_double = of[1], gemv_float = of[2], gemv_double = of[3];
  long_integers = longs;
  static bool registered = pthread_atfork(before_fork, after_fork, in_child) == 0;
  (void)registered;
}

void gpugrad_gemm(
    bool at, bool bt, long m, long n, long k, const float* a, long lda, const float* b, long ldb,
    float* c, long ldc, bool add) {
  auto of = long_integers ? call<float, int64_t> : call<float, int>;
  of(gemm_float, at, bt, m, n, k, a, lda, b, ldb, c, ldc, add);
}

void gpugrad_enter_blas() { pthread_rwlock_rdlock(&in_use); }

void gpugrad_exit_blas() { pthread_rwlock_unlock(&in_use); }

// c = a @ b for NumPy arrays of float (double, if wide) with at least two axes; the axes in front
// broadcast to those of c. Returns 1; 0 for what is
// left to NumPy; or -1 if BLAS cannot read an array before it is copied.
long gpugrad_multiply(const Array& a, const Array& b, const Array& c, long wide) {
  long size = wide ? 8 : 4, stack = 1;
  for (int d = 0; d < c.ndim - 2; ++d) stack *= c.shape[d];
  if (a.shape[a.ndim - 1] && multiply_tiny(a, b, c, stack, wide)) return 1;
  if (is_square_of(a, b)) return 0;
  Matrix cm;
  Product p = {&a, &b, &c};
  if (!as_matrix(a, size, p.am) || !as_matrix(b, size, p.bm) || !as_matrix(c, size, cm)) return -1;
  p.m = c.shape[c.ndim - 2], p.n = c.shape[c.ndim - 1], p.k = a.shape[a.ndim - 1];
  if (cm.transposed && p.m > 1 && p.n > 1) return 0;
  p.ldc = p.m == 1 ? p.n : c.strides[c.ndim - 2] / size;
  p.stack = stack;
  if (!p.m || !p.n || !p.k || !p.stack || p.ldc < p.n) return 0;
  if (p.stack > 1 && b.ndim == 2 && a.ndim == c.ndim && !p.am.transposed &&
      is_tall(c, p.ldc, size)) {
    bool tall = is_tall(a, p.am.ld, size);
    p.gathered = !tall && p.m <= FEW && p.n >= FEW;
    if (tall || p.gathered) p.m *= p.stack, p.stack = 1;
  }
  Blas blas;
  gpugrad_parallel(wide ? piece<double> : piece<float>, &p, cut(p));
  return 1;
}

long gpugrad_product(void* a, void* b, void* c, long wide) {
  return gpugrad_multiply(array_of(a), array_of(b), array_of(c), wide);
}
}
