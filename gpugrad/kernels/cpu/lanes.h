// Vectors of floats, and how to transpose squares of them in registers.
#pragma once

#include <cstring>
#include <type_traits>

#if defined(__AVX512F__)
const int LANES = 16;  // of a convolution: channels in a vector, and pixels whose sums are in registers
#else
const int LANES = 8;
#endif
typedef float Vector __attribute__((vector_size(4 * LANES), aligned(4)));

// Swaps blocks of S x S elements across the diagonal of blocks of 2S x 2S.
template <int S> void swap_blocks(Vector* a) {
#if defined(__clang__)  // whose shuffles take their indices one by one
  float t[LANES][LANES], (*rows)[LANES] = (float(*)[LANES])a;
  memcpy(t, a, sizeof t);
  for (int k = 0; k < LANES; ++k)
    for (int i = 0; i < LANES; ++i)
      if ((k ^ i) & S) rows[k][i] = t[k ^ S][i ^ S];
#else
  typedef int Indices __attribute__((vector_size(4 * LANES)));
  Indices upper, lower;
  for (int i = 0; i < LANES; ++i) {
    upper[i] = i & S ? LANES + i - S : i;
    lower[i] = i & S ? LANES + i : i + S;
  }
#pragma GCC unroll 16
  for (int k = 0; k < LANES; ++k)
    if (!(k & S)) {
      Vector x = a[k], y = a[k + S];
      a[k] = __builtin_shuffle(x, y, upper), a[k + S] = __builtin_shuffle(x, y, lower);
    }
#endif
}

// Every second element of x and y.
inline Vector evens(Vector x, Vector y) {
#if defined(__clang__)
  Vector out;
  for (int k = 0; k < LANES; ++k) out[k] = k < LANES / 2 ? x[2 * k] : y[2 * k - LANES];
  return out;
#else
  typedef int Indices __attribute__((vector_size(4 * LANES)));
  Indices even;
  for (int k = 0; k < LANES; ++k) even[k] = 2 * k;
  return __builtin_shuffle(x, y, even);
#endif
}

// Transposes LANES vectors.
inline void transpose(Vector* a) {
  swap_blocks<1>(a), swap_blocks<2>(a), swap_blocks<4>(a);
  if (LANES == 16) swap_blocks<LANES / 2>(a);
}

// Writes a matrix (rows, columns), whose rows are `from_step` apart, transposed.
template <class T>
void transposed(const T* from, long from_step, T* to, long to_step, long rows, long columns) {
  long i = 0;
  if constexpr (std::is_same<T, float>::value) {
    for (; i + LANES <= rows; i += LANES) {
      long j = 0;
      for (; j + LANES <= columns; j += LANES) {
        Vector square[LANES];
        for (int k = 0; k < LANES; ++k) square[k] = *(Vector*)(from + (i + k) * from_step + j);
        transpose(square);
        for (int k = 0; k < LANES; ++k) *(Vector*)(to + (j + k) * to_step + i) = square[k];
      }
      for (; j < columns; ++j)
        for (int k = 0; k < LANES; ++k) to[j * to_step + i + k] = from[(i + k) * from_step + j];
    }
  }
  for (; i < rows; ++i)
    for (long j = 0; j < columns; ++j) to[j * to_step + i] = from[i * from_step + j];
}
