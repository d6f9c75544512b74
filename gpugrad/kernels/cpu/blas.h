// A copy of NumPy's BLAS that starts no threads (blas.py), in the library of products.cpp.
#pragma once

extern "C" {

// c = a @ b, or c += a @ b if `add`, for matrices in rows that are `ld` elements apart. at, bt: the
// memory holds the transpose. To be called while there is a `Blas`.
void gpugrad_gemm(
    bool at, bool bt, long m, long n, long k, const float* a, long lda, const float* b, long ldb,
    float* c, long ldc, bool add);

// A fork waits until no thread is in between: BLAS holds locks of its own, which would stay locked
// in the child.
void gpugrad_enter_blas();
void gpugrad_exit_blas();
}

struct Blas {
  Blas() { gpugrad_enter_blas(); }
  ~Blas() { gpugrad_exit_blas(); }
};
