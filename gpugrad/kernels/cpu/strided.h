// Loops over arrays of one shape that lie in memory in different ways, in pieces for the pool.
#pragma once

#include "array.h"
#include "pool.h"

#include <cstdlib>

const int AXES = 64, ARRAYS = 4;  // the most that there may be
const long GRAIN = 1 << 14;  // elements of a piece

const long SHORT = 16;  // elements of a line from which a call for each is worth it

// Arrays, the last of which is the result. Their axes are those of the result, from its largest
// stride to its smallest; axes that are one in all arrays are merged. Lines lie along the last axis:
// if that is short, the longest one comes last.
struct Walk {
  int count, ndim;
  long shape[AXES];
  char* data[ARRAYS];
  long strides[ARRAYS][AXES];

  void keep(int to, int from) {
    shape[to] = shape[from];
    for (int k = 0; k < count; ++k) strides[k][to] = strides[k][from];
  }

  void swap(int a, int b) {
    long n = shape[a];
    shape[a] = shape[b], shape[b] = n;
    for (int k = 0; k < count; ++k) {
      long s = strides[k][a];
      strides[k][a] = strides[k][b], strides[k][b] = s;
    }
  }

  bool continues(int outer, int inner) const {
    for (int k = 0; k < count; ++k)
      if (strides[k][outer] != shape[inner] * strides[k][inner]) return false;
    return true;
  }

  // The arrays, or their Python objects, broadcast to the shape of the last one.
  template <class A> Walk(A* const* arrays, int n) : count(n), ndim(0) {
    const Array& out = array_of(arrays[n - 1]);
    for (int d = 0; d < out.ndim; ++d) {
      if (out.shape[d] == 1) continue;
      shape[ndim] = out.shape[d];
      for (int k = 0; k < n; ++k) {
        const Array& a = array_of(arrays[k]);
        const int own = d - (out.ndim - a.ndim);
        strides[k][ndim] = own < 0 || a.shape[own] == 1 ? 0 : a.strides[own];
      }
      ++ndim;
    }
    for (int k = 0; k < n; ++k) data[k] = array_of(arrays[k]).data;
    const long* of = strides[n - 1];
    for (int d = 1; d < ndim; ++d)
      for (int e = d; e > 0 && std::labs(of[e]) > std::labs(of[e - 1]); --e) swap(e, e - 1);
    int last = 0;
    for (int d = 1; d < ndim; ++d) {
      if (!continues(last, d)) keep(++last, d);
      else {
        const long n = shape[last];
        keep(last, d);
        shape[last] *= n;
      }
    }
    ndim = ndim ? last + 1 : 0;
    if (!ndim) shape[ndim++] = 1;  // one element
    int longest = ndim - 1;
    for (int d = ndim - 1; inner() < SHORT && d >= 0; --d)
      if (shape[d] > shape[longest]) longest = d;
    swap(longest, ndim - 1);
  }

  long inner() const { return shape[ndim - 1]; }

  long outer() const {
    long n = 1;
    for (int d = 0; d < ndim - 1; ++d) n *= shape[d];
    return n;
  }

  // The addresses of line `i` of the last axis, and its place along the others.
  void line(long i, char** at, long* places) const {
    for (int k = 0; k < count; ++k) at[k] = data[k];
    for (int d = ndim - 2; d >= 0; --d) {
      places[d] = i % shape[d];
      i /= shape[d];
      for (int k = 0; k < count; ++k) at[k] += places[d] * strides[k][d];
    }
  }
  void line(long i, char** at) const {
    long places[AXES];
    line(i, at, places);
  }

  // From a line to the next one, without a division.
  void next(char** at, long* places) const {
    for (int d = ndim - 2; d >= 0; --d) {
      const bool ends = ++places[d] == shape[d];
      const long move = ends ? 1 - shape[d] : 1;
      if (ends) places[d] = 0;
      for (int k = 0; k < count; ++k) at[k] += move * strides[k][d];
      if (!ends) return;
    }
  }

  // Calls f(addresses, n) for the lines of piece k, or for a part of one line.
  template <class F> void piece(long k, F f) const {
    const long n = inner(), parts = (n + GRAIN - 1) / GRAIN, lines = GRAIN / n > 1 ? GRAIN / n : 1;
    const long low = k / parts * lines, total = outer(), from = k % parts * GRAIN;
    const long high = low + lines < total ? low + lines : total;
    const long size = n - from < GRAIN ? n - from : GRAIN;
    char *at[ARRAYS], *part[ARRAYS];
    long places[AXES];
    line(low, at, places);
    for (long i = low; i < high; ++i) {
      for (int j = 0; j < count; ++j) part[j] = at[j] + from * strides[j][ndim - 1];
      f(part, size);
      next(at, places);
    }
  }

  long pieces() const {
    const long n = inner(), parts = (n + GRAIN - 1) / GRAIN, lines = GRAIN / n > 1 ? GRAIN / n : 1;
    return (outer() + lines - 1) / lines * parts;
  }
};
