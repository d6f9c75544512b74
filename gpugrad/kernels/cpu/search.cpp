// Places among sorted numbers, and polynomials of the pieces between them. gpugrad/ops/arrays/sort.py
// and gpugrad/ops/scipy/pieces.py have the formulas.
#include "pool.h"

#include <algorithm>
#include <cmath>

namespace {

const long PIECE = 4096;  // points of a piece for a thread
const int BLOCK = 16;     // points whose searches run side by side
const int NEAR = 64;      // numbers behind the place of the point before that are searched first

// Whether a number stands before `v`. A NaN is the last of all, as in NumPy.
template <class T, bool RIGHT> inline bool is_below(T x, T v) {
  return RIGHT ? (x <= v) | (v != v) : (x < v) | ((v != v) & (x == x));
}

// Sorted numbers, and how many of them there are in a step of 1 if they are in equal steps.
template <class T, bool RIGHT> struct Sorted {
  const T* x;
  int n;
  double rate = 0;

  Sorted(const T* x, long n) : x(x), n(n) {
    while (n > 1 && !std::isfinite(x[n - 1])) --n;
    if (n > 1 && x[n - 1] > x[0]) rate = (n - 1) / ((double)x[n - 1] - x[0]);
  }

  bool is_behind(int at, T v) const { return (at == 0) | is_below<T, RIGHT>(x[std::max(at, 1) - 1], v); }
  bool is_not_behind(int at, T v) const {
    return (at >= n) | !is_below<T, RIGHT>(x[std::min(at, n - 1)], v);
  }

  // The places of a block's points, if they are those that equal steps would give.
  bool guess(const T* v, int* at) const {
    bool good = true;
    for (int b = 0; b < BLOCK; ++b) {
      const double step = ((double)v[b] - x[0]) * rate + 1;
      const int k = (int)std::min(std::max(0.0, step), (double)n);  // 0 of a NaN
      at[b] = k;
      good &= is_behind(k, v[b]) & is_not_behind(k, v[b]);
    }
    return good;
  }

  // How many numbers stand before each of a block's points: a search of `count` ones without branches.
  void search(const T* v, int* at, int from, int count) const {
    std::fill(at, at + BLOCK, from);
    for (; count > 1; count -= count / 2)
      for (int b = 0; b < BLOCK; ++b)
        at[b] += -(int)is_below<T, RIGHT>(x[at[b] + count / 2 - 1], v[b]) & (count / 2);
    for (int b = 0; b < BLOCK && count; ++b) at[b] += is_below<T, RIGHT>(x[at[b]], v[b]);
  }
};

// Calls each(first point, count, places, values, whether the places are one) for each block of the
// points of a piece.
template <class T, bool RIGHT, class Each>
inline void walk(const T* x, long n, const T* v, long points, long piece, Each each) {
  const long high = std::min((piece + 1) * PIECE, points);
  const Sorted<T, RIGHT> sorted(x, n);
  int at[BLOCK] = {};
  T some[BLOCK];
  bool guesses = sorted.rate > 0;
  for (long i = piece * PIECE; i < high; i += BLOCK) {
    const int count = std::min((long)BLOCK, high - i), last = at[BLOCK - 1];
    for (int b = 0; b < BLOCK; ++b) some[b] = v[i + std::min(b, count - 1)];
    bool same = n > 0, near = n > 0;
    for (int b = 0; b < BLOCK && n; ++b) {
      const bool behind = sorted.is_behind(last, some[b]);
      same &= behind & sorted.is_not_behind(last, some[b]);
      near &= behind & sorted.is_not_behind(last + NEAR, some[b]);
    }
    if (same) std::fill(at, at + BLOCK, last);
    else if (near) sorted.search(some, at, last, std::min(NEAR, (int)n - last));
    else if (!guesses || !(guesses = sorted.guess(some, at))) sorted.search(some, at, 0, n);
    each(i, count, at, some, same);
  }
}

struct Search {
  const void *x, *v;
  long n, points;
  long* out;
};
template <class T, bool RIGHT> void places(void* state, long piece) {
  const Search& job = *(Search*)state;
  walk<T, RIGHT>((const T*)job.x, job.n, (const T*)job.v, job.points, piece,
                 [&](long i, int count, const int* at, const T*, bool) {
                   std::copy(at, at + count, job.out + i);
                 });
}

struct Pieces {
  const double *c, *x, *v, *g, *factors;
  double* out;
  long terms, pieces, width, points;
};

// Calls each(first point, count, pieces, steps from their starts, whether the pieces are one) for
// each block of a part.
template <class Each> inline void steps(const Pieces& job, long part, Each each) {
  const int last = job.pieces - 1;
  walk<double, true>(
      job.x, job.pieces + 1, job.v, job.points, part,
      [&](long i, int count, const int* at, const double* v, bool same) {
        int piece[BLOCK];
        double s[BLOCK];
        for (int b = 0; b < BLOCK; ++b) piece[b] = std::min(std::max(at[b] - 1, 0), last);
        if (same)
          for (int b = 0; b < BLOCK; ++b) s[b] = v[b] - job.x[piece[0]];
        else
          for (int b = 0; b < BLOCK; ++b) s[b] = v[b] - job.x[piece[b]];
        each(i, count, piece, s, same);
      });
}

void values(void* state, long part) {
  const Pieces& job = *(Pieces*)state;
  const long row = job.pieces * job.width, n = job.terms;
  steps(job, part, [&](long i, int count, const int* piece, const double* s, bool same) {
    for (long j = 0; j < job.width; ++j) {
      double y[BLOCK] = {}, term[BLOCK] = {};
      for (long q = 0; q < n; ++q) {
        const double* c = job.c + q * row + j;
        const double f = job.factors[q];
        if (same) std::fill(term, term + BLOCK, f * c[piece[0] * job.width]);
        else
          for (int b = 0; b < BLOCK; ++b) term[b] = f * c[piece[b] * job.width];
        for (int b = 0; b < BLOCK; ++b) y[b] = q ? y[b] * s[b] + term[b] : term[b];
      }
      for (int b = 0; b < BLOCK; ++b) y[b] = s[b] != s[b] ? s[b] : s[b] == 0 ? term[b] : y[b];
      for (int b = 0; b < count; ++b) job.out[(i + b) * job.width + j] = y[b];
    }
  });
}

void spread(void* state, long part) {
  const Pieces& job = *(Pieces*)state;
  const long row = job.pieces * job.width;
  steps(job, part, [&](long i, int count, const int* piece, const double* s, bool) {
    for (int b = 0; b < count; ++b)
      for (long j = 0; j < job.width && s[b] == s[b]; ++j) {
        double g = job.g[(i + b) * job.width + j];
        for (long q = job.terms - 1; q >= 0; --q, g *= s[b])
          job.out[q * row + piece[b] * job.width + j] += job.factors[q] * g;
      }
  });
}

}  // namespace

extern "C" {

// `out`: how many of the `n` sorted numbers stand before each of the points.
void gpugrad_searchsorted(
    long wide, long right, const void* x, const void* v, long* out, long n, long points) {
  Search job = {x, v, n, points, out};
  const gpugrad_job jobs[][2] = {{places<float, false>, places<float, true>},
                                 {places<double, false>, places<double, true>}};
  gpugrad_parallel(jobs[wide][right], &job, (points + PIECE - 1) / PIECE);
}

// `c` and the result of `spreads`, which adds `g`: (terms or more, pieces, width); `x`: the pieces'
// ends; `g` and the result otherwise: (points, width); `factors`: of each term.
void gpugrad_pieces(
    long spreads, const double* c, const double* x, const double* v, const double* g,
    const double* factors, double* out, long terms, long pieces, long width, long points) {
  Pieces job = {c, x, v, g, factors, out, terms, pieces, width, points};
  const long parts = (points + PIECE - 1) / PIECE;
  for (long part = 0; spreads && part < parts; ++part) spread(&job, part);
  if (!spreads) gpugrad_parallel(values, &job, parts);
}
}
