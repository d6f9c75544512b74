// Several kernels in one call from Python.
#ifndef GPUGRAD_CALLS
#define GPUGRAD_CALLS
#include "pool.h"

// `table` describes `count` calls, one after the other, each by the addresses of its kernel and its
// end, the kernel's n, its grain, the bytes of its partial sums, its number of pointers, and their
// places in `slots`.
extern "C" void gpugrad_calls(const long* table, long count, char** slots, char* partials) {
  char* pointers[256];
  for (; count; --count) {
    const long* place = table + 6;
    for (long k = 0; k < table[5]; ++k) pointers[k] = slots[place[k]];
    gpugrad_run((gpugrad_kernel)table[0], (gpugrad_end)table[1], table[2], table[3], pointers,
                partials, table[4]);
    table = place + table[5];
  }
}
#endif
