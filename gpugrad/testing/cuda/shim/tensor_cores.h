// The functions of gpugrad/kernels/by_hand/mma.cuh on the CPU, built from shuffles. A copy takes
// place only when the thread waits for it, so that a missing wait shows.
#pragma once
#include "halves.h"

template <class T> unsigned packed(float low, float high) {
  return T(low).bits | (unsigned)T(high).bits << 16;
}

namespace shim {

// Element `k` of the two in a register.
template <class T> float unpacked(unsigned r, int k) {
  T x;
  x.bits = r >> 16 * k;
  return x;
}

// Line g of a matrix with 16 columns, from two registers in each of four lanes.
template <class T> void line_of(float (&to)[16], unsigned low, unsigned high, unsigned g) {
  unsigned long long own = low | (unsigned long long)high << 32;
  for (unsigned t = 0; t < 4; ++t) {
    unsigned long long r = exchange(~0u, own, 4 * g + t);
    for (int k = 0; k < 2; ++k) {
      to[2 * t + k] = unpacked<T>((unsigned)r, k);
      to[8 + 2 * t + k] = unpacked<T>((unsigned)(r >> 32), k);
    }
  }
}

inline float dot16(const float (&a)[16], const float (&b)[16]) {
  float sum = 0;
  for (int k = 0; k < 16; ++k) sum += a[k] * b[k];
  return sum;
}

}  // namespace shim

template <class T> void mma_16816(
    float& c0, float& c1, float& c2, float& c3, const unsigned (&a)[4], unsigned b0, unsigned b1) {
  unsigned g = shim::lane() / 4, t = shim::lane() % 4;
  float above[16], below[16], left[16], right[16];
  shim::line_of<T>(above, a[0], a[2], g);
  shim::line_of<T>(below, a[1], a[3], g);
  shim::line_of<T>(left, b0, b1, 2 * t);
  shim::line_of<T>(right, b0, b1, 2 * t + 1);
  c0 += shim::dot16(above, left), c1 += shim::dot16(above, right);
  c2 += shim::dot16(below, left), c3 += shim::dot16(below, right);
}

inline void load_tiles(unsigned (&r)[4], const void* row) {
  unsigned g = shim::lane() / 4, t = shim::lane() % 4;
  for (unsigned i = 0; i < 4; ++i)
    r[i] = ((const unsigned*)shim::exchange(~0u, row, 8 * i + g))[t];
}
inline void load_tiles_transposed(unsigned (&r)[4], const void* row) {
  unsigned g = shim::lane() / 4, t = shim::lane() % 4;
  for (unsigned i = 0; i < 4; ++i) {
    unsigned low = ((const unsigned short*)shim::exchange(~0u, row, 8 * i + 2 * t))[g];
    unsigned high = ((const unsigned short*)shim::exchange(~0u, row, 8 * i + 2 * t + 1))[g];
    r[i] = low | high << 16;
  }
}

void copy_async(void* to, const void* from, bool there);  // in cudashim.cpp
void copies_arrived();
