// The fields of a NumPy array that kernels read, so that a launcher passes the object itself:
// `a.ctypes.data` alone takes a microsecond. `gpugrad.kernels.cpu.pool` checks the layout once.
#pragma once

#include <cstdint>

struct Array {
  char* data;
  int ndim;
  intptr_t* shape;
  intptr_t* strides;  // in bytes
};

// In the library of pool.cpp: the bytes of a Python object in front of these fields.
extern "C" long gpugrad_header;

static inline const Array& array_of(void* object) {
  return *(const Array*)((char*)object + gpugrad_header);
}

static inline const Array& array_of(const Array* array) { return *array; }
