// Factors and singular values of matrices, and triangular systems, by NumPy's LAPACK on one thread:
// the pool's threads take blocks of a matrix, or the matrices of a stack. As in NumPy, factors are
// computed in double.
#include "blas.h"
#include "pool.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace {

const long BLOCK = 64;  // columns that are factored at once
const long PIECE = 32;  // rows or columns of a piece for a thread
const long TILE = 16;

// Fortran's functions get numbers by their addresses. A long is also read as an int: the memory is
// little-endian, and the numbers are small. `info` is 0 before a call.
typedef const char* C;
typedef const long* N;

template <class T> struct Of {
  typedef void (*Triangle)(C, C, C, C, N, N, const T*, const T*, N, T*, N);
  typedef void (*Product)(C, C, N, N, N, const T*, const T*, N, const T*, N, const T*, T*, N);
  static inline Triangle trsm, trmm;
  static inline Product gemm;
};
void (*dpotrf)(C, N, double*, N, long*);
void (*dgetrf)(N, N, double*, N, void*, long*);
void (*dgetrs)(C, N, N, const double*, N, const void*, double*, N, long*);
void (*dlaswp)(N, double*, N, N, N, const void*, N);
void (*dgesdd)(C, N, N, double*, N, double*, double*, N, double*, N, double*, N, void*, long*,
               size_t);
bool long_integers;

const long ONE = 1;

// All matrices below are in columns, unless "rows" is said: those are transposed ones in columns.

// b = a^-1 @ b, or b @ a^-1 if the side is "R", for a triangle.
template <class T>
void solve(C side, C uplo, C trans, C diag, long m, long n, const T* a, long lda, T* b, long ldb) {
  const T one = 1;
  Of<T>::trsm(side, uplo, trans, diag, &m, &n, &one, a, &lda, b, &ldb);
}

// c -= a @ b
template <class T>
void subtract(C at, C bt, long m, long n, long k, const T* a, const T* b, T* c, long ld) {
  const T plus = 1, minus = -1;
  Of<T>::gemm(at, bt, &m, &n, &k, &minus, a, &ld, b, &ld, &plus, c, &ld);
}

template <class F> void call(void* state, long k) { (*(F*)state)(k); }

template <class F> void parallel(long n, F piece) { gpugrad_parallel(call<F>, &piece, n); }

// Matrices of a stack; the pieces of a single one are jobs of their own.
template <class F> void each(long stack, F matrix) {
  if (stack == 1) matrix(0);
  else parallel(stack, matrix);
}

long pieces(long n) { return (n + PIECE - 1) / PIECE; }

long least(long a, long b) { return a < b ? a : b; }

// y[j][i] = x[i][j], for rows of x from `low` to `high`
template <class X, class Y>
void transpose(const X* x, long ldx, Y* y, long ldy, long low, long high, long columns) {
  for (long i0 = low; i0 < high; i0 += TILE)
    for (long j0 = 0; j0 < columns; j0 += TILE)
      for (long j = j0; j < least(j0 + TILE, columns); ++j)
        for (long i = i0; i < least(i0 + TILE, high); ++i) y[j * ldy + i] = Y(x[i * ldx + j]);
}

template <class X, class Y>
void transpose(const X* x, long ldx, Y* y, long ldy, long rows, long columns) {
  parallel(pieces(rows), [=](long k) {
    transpose(x, ldx, y, ldy, k * PIECE, least((k + 1) * PIECE, rows), columns);
  });
}

// ---- Cholesky: the lower triangle of rows, in place

bool factor(double* a, long n) {
  for (long j = 0; j < n; j += BLOCK) {
    const long width = least(BLOCK, n - j), next = j + width, rest = n - next;
    double *corner = a + j * n + j, *below = a + next * n + j;
    long info = 0;
    dpotrf("U", &width, corner, &n, &info);
    if (info) return false;
    parallel(pieces(rest), [=](long k) {
      const long low = k * PIECE, rows = least(PIECE, rest - low);
      solve("L", "U", "T", "N", width, rows, corner, n, below + low * n, n);
    });
    parallel(pieces(rest), [=](long k) {
      const long low = k * PIECE, rows = least(PIECE, rest - low);
      double* row = below + low * n;
      subtract("T", "N", low + rows, rows, width, below, row, row + width, n);
    });
  }
  return true;
}

// The factor of (x + x^T) / 2, rows in `out`, which is 0 above the diagonal.
template <class T> bool cholesky(const T* x, T* out, long n) {
  std::unique_ptr<double[]> rows(new double[n * n]);
  double* a = rows.get();
  parallel(pieces(n), [=](long k) {
    const long low = k * PIECE, high = least(low + PIECE, n);
    for (long j0 = 0; j0 < high; j0 += TILE)
      for (long i = low; i < high; ++i)
        for (long j = j0; j < least(j0 + TILE, n); ++j)
          a[i * n + j] = (x[i * n + j] + x[j * n + i]) / 2;
  });
  if (!factor(a, n)) return false;
  parallel(pieces(n), [=](long k) {
    for (long i = k * PIECE; i < least((k + 1) * PIECE, n); ++i) {
      for (long j = 0; j <= i; ++j) out[i * n + j] = T(a[i * n + j]);
      for (long j = i + 1; j < n; ++j) out[i * n + j] = 0;
    }
  });
  return true;
}

// ---- LU: columns, in place

struct Columns {
  double* a;
  long n;
  char* pivots;

  void* own(long j) const { return pivots + j * (long_integers ? 8 : 4); }

  // Factors the columns of a block. Their pivots count from row j.
  bool factor(long j, long width) const {
    const long rows = n - j;
    long info = 0;
    dgetrf(&rows, &width, a + j * n + j, &n, own(j), &info);
    return !info;
  }

  void exchange(long j, long width, long low, long columns) const {
    dlaswp(&columns, a + low * n + j, &n, &ONE, &width, own(j), &ONE);
  }

  // What the block at j, of full width, does to columns to its right.
  void update(long j, long low, long columns) const {
    const double* corner = a + j * n + j;
    double* column = a + low * n + j;
    exchange(j, BLOCK, low, columns);
    solve("L", "L", "N", "U", BLOCK, columns, corner, n, column, n);
    subtract("N", "N", n - j - BLOCK, columns, BLOCK, corner + BLOCK, column, column + BLOCK, n);
  }

  void count_from_start(long j, long width) const {
    for (long i = 0; i < width; ++i)
      if (long_integers) ((int64_t*)own(j))[i] += j;
      else ((int32_t*)own(j))[i] += int32_t(j);
  }
};

bool factor(const Columns& x) {
  const long n = x.n;
  bool good = x.factor(0, least(BLOCK, n));
  for (long j = 0; j + BLOCK < n && good; j += BLOCK) {
    const long next = j + BLOCK, width = least(BLOCK, n - next), after = next + width;
    bool* next_good = &good;
    parallel(1 + pieces(n - after), [=, &x](long k) {
      if (k == 0) {  // the longest piece: the next block is factored meanwhile
        x.update(j, next, width);
        *next_good = x.factor(next, width);
      } else {
        const long low = after + (k - 1) * PIECE;
        x.update(j, low, least(PIECE, n - low));
      }
    });
  }
  if (!good) return false;
  parallel(pieces(n), [=, &x](long k) {  // the exchanges in columns of blocks to the left
    const long low = k * PIECE;
    for (long j = (low / BLOCK + 1) * BLOCK; j < n; j += BLOCK)
      x.exchange(j, least(BLOCK, n - j), low, least(PIECE, n - low));
  });
  for (long j = 0; j < n; j += BLOCK) x.count_from_start(j, least(BLOCK, n - j));
  return true;
}

// ---- systems with few right-hand sides: for them LAPACK takes as long as for four times as many

const long FEW = 8;
typedef double Few __attribute__((vector_size(FEW * sizeof(double))));  // a row

void exchange_rows(Few* y, const char* pivots, long i) {
  const long j = (long_integers ? ((const int64_t*)pivots)[i] : ((const int32_t*)pivots)[i]) - 1;
  const Few row = y[i];
  y[i] = y[j], y[j] = row;
}

// y -= a * row
void subtract(const double* a, const Few& row, Few* y, long n) {
  const Few by = row;
  for (long i = 0; i < n; ++i) y[i] -= a[i] * by;
}

// The sum of a[i] * y[i], in four chains that do not wait for each other.
Few dot(const double* a, const Few* y, long n) {
  Few s0 = {}, s1 = {}, s2 = {}, s3 = {};
  long i = 0;
  for (; i + 4 <= n; i += 4)
    s0 += a[i] * y[i], s1 += a[i + 1] * y[i + 1], s2 += a[i + 2] * y[i + 2],
        s3 += a[i + 3] * y[i + 3];
  for (; i < n; ++i) s0 += a[i] * y[i];
  return (s0 + s1) + (s2 + s3);
}

template <class T>
void solve_few(const double* lu, const char* pivots, const T* b, T* out, bool adjoint, long n,
               long columns, long count) {
  std::unique_ptr<Few[]> memory(new Few[n]());
  Few* y = memory.get();
  for (long i = 0; i < n; ++i)
    for (long c = 0; c < count; ++c) y[i][c] = b[i * columns + c];
  if (adjoint) {
    for (long k = 0; k < n; ++k) y[k] = (y[k] - dot(lu + k * n, y, k)) / lu[k * n + k];
    for (long k = n - 1; k >= 0; --k) y[k] -= dot(lu + k * n + k + 1, y + k + 1, n - k - 1);
    for (long k = n - 1; k >= 0; --k) exchange_rows(y, pivots, k);
  } else {
    for (long k = 0; k < n; ++k) exchange_rows(y, pivots, k);
    for (long k = 0; k < n; ++k) subtract(lu + k * n + k + 1, y[k], y + k + 1, n - k - 1);
    for (long k = n - 1; k >= 0; --k) {
      y[k] /= lu[k * n + k];
      subtract(lu + k * n, y[k], y, k);
    }
  }
  for (long i = 0; i < n; ++i)
    for (long c = 0; c < count; ++c) out[i * columns + c] = T(y[i][c]);
}

// ---- the gradient of Cholesky: I. Murray, arXiv:1602.07527, section 4.2

// Twice the gradient by a block on the diagonal, in the place of the one by its factor d; rows.
template <class T> void corner_gradient(const T* d, T* g, long width, long n) {
  const T one = 1;
  for (long i = 0; i < width; ++i)
    for (long j = i + 1; j < width; ++j) g[i * n + j] = 0;
  Of<T>::trmm("R", "U", "T", "N", &width, &width, &one, d, &n, g, &n);  // d^T @ g
  for (long i = 0; i < width; ++i)
    for (long j = i + 1; j < width; ++j) g[i * n + j] = g[j * n + i];
  solve("R", "U", "T", "N", width, width, d, n, g, n);  // d^-T @ it
  solve("L", "U", "N", "N", width, width, d, n, g, n);  // @ d^-1
}

// g: rows of the gradient by the factor x, which become those by the symmetric matrix.
template <class T> void cholesky_gradient(const T* x, T* g, long n) {
  for (long j = (n - 1) / BLOCK * BLOCK; j >= 0; j -= BLOCK) {
    const long width = least(BLOCK, n - j), next = j + width, rest = n - next;
    const T *corner = x + j * n + j, *left = x + j * n, *below = x + next * n;
    T *g_corner = g + j * n + j, *g_left = g + j * n, *g_below = g + next * n;
    parallel(pieces(rest), [=](long k) {  // rows below
      const long rows = least(PIECE, rest - k * PIECE);
      T* row = g_below + k * PIECE * n;
      solve("L", "U", "N", "N", width, rows, corner, n, row + j, n);
      if (j) subtract("N", "N", j, rows, width, left, row + j, row, n);
    });
    parallel(1 + pieces(j), [=](long k) {
      if (k == 0) {
        if (rest) subtract("N", "T", width, width, rest, below + j, g_below + j, g_corner, n);
        corner_gradient(corner, g_corner, width, n);
      } else if (rest) {
        const long low = (k - 1) * PIECE, columns = least(PIECE, j - low);
        subtract("N", "T", columns, width, rest, below + low, g_below + j, g_left + low, n);
      }
    });
    parallel(pieces(j), [=](long k) {
      const long low = k * PIECE, columns = least(PIECE, j - low);
      subtract("N", "N", columns, width, width, left + low, g_corner, g_left + low, n);
    });
  }
  parallel(pieces(n), [=](long k) {
    const long low = k * PIECE, high = least(low + PIECE, n);
    for (long j0 = 0; j0 < high; j0 += TILE)
      for (long i = low; i < high; ++i)
        for (long j = j0; j < least(j0 + TILE, i + 1); ++j)
          g[i * n + j] = g[j * n + i] = g[i * n + j] / 2;
  });
}

// ---- stacks

template <class T> bool cholesky_all(const T* x, T* out, long stack, long n) {
  std::atomic<bool> good{true};
  each(stack, [=, &good](long i) {
    if (!cholesky(x + i * n * n, out + i * n * n, n)) good = false;
  });
  return good;
}

template <class T> bool lu_all(const T* x, double* lu, char* pivots, long stack, long n) {
  std::atomic<bool> good{true};
  each(stack, [=, &good](long i) {
    double* a = lu + i * n * n;
    transpose(x + i * n * n, n, a, n, n, n);
    if (!factor(Columns{a, n, pivots + i * n * 8})) good = false;
  });
  return good;
}

template <class T>
void lu_solve_all(const double* lu, const char* pivots, const T* b, T* out, bool adjoint,
                  long stack, long n, long columns) {
  const long width = columns <= PIECE ? FEW : PIECE, cuts = (columns + width - 1) / width;
  parallel(stack * cuts, [=](long k) {
    const long i = k / cuts, low = k % cuts * width, count = least(width, columns - low);
    const double* a = lu + i * n * n;
    const char* own = pivots + i * n * 8;
    const T* from = b + i * n * columns + low;
    T* to = out + i * n * columns + low;
    if (width == FEW) return solve_few(a, own, from, to, adjoint, n, columns, count);
    std::unique_ptr<double[]> y(new double[n * count]);
    transpose(from, columns, y.get(), n, 0, n, count);
    long info = 0;
    dgetrs(adjoint ? "T" : "N", &n, &count, a, &n, own, y.get(), &n, &info);
    transpose(y.get(), n, to, columns, 0, count, n);
  });
}

template <class T>
void triangular_all(const T* a, T* b, bool lower, bool adjoint, bool unit, long stack, long n,
                    long columns) {
  const long width = stack > 1 ? columns : PIECE, cuts = (columns + width - 1) / width;
  parallel(stack * cuts, [=](long k) {
    const long i = k / cuts, low = k % cuts * width, count = least(width, columns - low);
    // rows are the columns of transposed matrices
    solve("R", lower ? "U" : "L", adjoint ? "T" : "N", unit ? "U" : "N", count, n, a + i * n * n, n,
          b + i * n * columns + low, columns);
  });
}

template <class T>
bool svd_all(const T* x, T* u, T* s, T* vh, bool full, long stack, long m, long n) {
  std::atomic<bool> good{true};
  const long k = least(m, n), us = full ? m : k, vs = full ? n : k;
  each(stack, [=, &good](long i) {
    const long most = m > n ? m : n, size = 4 * k * k + 7 * k + 64 * (m + n) + most;
    std::unique_ptr<double[]> memory(new double[m * n + m * us + k + vs * n + size]);
    std::unique_ptr<int64_t[]> integers(new int64_t[8 * k]);
    double *a = memory.get(), *au = a + m * n, *as = au + m * us, *av = as + k, *work = av + vs * n;
    transpose(x + i * m * n, n, a, m, 0, m, n);
    long info = 0;
    dgesdd(full ? "A" : "S", &m, &n, a, &m, as, au, &m, av, &vs, work, &size, integers.get(), &info,
           1);  // the length of the first argument, as Fortran has it
    if (info) good = false;
    transpose(au, m, u + i * m * us, us, 0, us, m);
    transpose(av, vs, vh + i * vs * n, n, 0, n, vs);
    for (long j = 0; j < k; ++j) s[i * k + j] = T(as[j]);
  });
  return good;
}

}  // namespace

extern "C" {

// `of`: addresses in the order of the list in lapack.py.
void gpugrad_set_lapack(void** of, long longs) {
  Of<float>::trsm = (decltype(Of<float>::trsm))*of++;
  Of<double>::trsm = (decltype(Of<double>::trsm))*of++;
  Of<float>::trmm = (decltype(Of<float>::trmm))*of++;
  Of<double>::trmm = (decltype(Of<double>::trmm))*of++;
  Of<float>::gemm = (decltype(Of<float>::gemm))*of++;
  Of<double>::gemm = (decltype(Of<double>::gemm))*of++;
  dpotrf = (decltype(dpotrf))*of++, dgetrf = (decltype(dgetrf))*of++;
  dgetrs = (decltype(dgetrs))*of++, dlaswp = (decltype(dlaswp))*of++;
  dgesdd = (decltype(dgesdd))*of++;
  long_integers = longs;
}

// Arrays are contiguous, of double if `wide` and else of float. The results are whether all
// matrices have factors.

long gpugrad_cholesky(long wide, const void* x, void* out, long stack, long n) {
  Blas blas;
  return wide ? cholesky_all((const double*)x, (double*)out, stack, n)
              : cholesky_all((const float*)x, (float*)out, stack, n);
}

// g: the gradient by the factor x, which becomes the one by the matrix.
void gpugrad_cholesky_gradient(long wide, const void* x, void* g, long stack, long n) {
  Blas blas;
  each(stack, [=](long i) {
    if (wide) cholesky_gradient((const double*)x + i * n * n, (double*)g + i * n * n, n);
    else cholesky_gradient((const float*)x + i * n * n, (float*)g + i * n * n, n);
  });
}

// lu: of double, in columns; pivots: n times 8 bytes for each matrix.
long gpugrad_lu(long wide, const void* x, double* lu, char* pivots, long stack, long n) {
  Blas blas;
  return wide ? lu_all((const double*)x, lu, pivots, stack, n)
              : lu_all((const float*)x, lu, pivots, stack, n);
}

void gpugrad_lu_solve(
    long wide, const double* lu, const char* pivots, const void* b, void* out, long adjoint,
    long stack, long n, long columns) {
  Blas blas;
  if (wide)
    lu_solve_all(lu, pivots, (const double*)b, (double*)out, adjoint, stack, n, columns);
  else
    lu_solve_all(lu, pivots, (const float*)b, (float*)out, adjoint, stack, n, columns);
}

// b: right-hand sides, which become the solutions.
void gpugrad_triangular(
    long wide, const void* a, void* b, long lower, long adjoint, long unit, long stack, long n,
    long columns) {
  Blas blas;
  if (wide)
    triangular_all((const double*)a, (double*)b, lower, adjoint, unit, stack, n, columns);
  else
    triangular_all((const float*)a, (float*)b, lower, adjoint, unit, stack, n, columns);
}

long gpugrad_svd(long wide, const void* x, void* u, void* s, void* vh, long full, long stack, long m,
                 long n) {
  Blas blas;
  return wide ? svd_all((const double*)x, (double*)u, (double*)s, (double*)vh, full, stack, m, n)
              : svd_all((const float*)x, (float*)u, (float*)s, (float*)vh, full, stack, m, n);
}
}
