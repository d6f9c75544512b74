// NumPy's BLAS, in the library of products.cpp.
#pragma once

extern "C" {

// c = a @ b, or c += a @ b if `add`, for matrices in rows that are `ld` elements apart. at, bt: the
// memory holds the transpose. To be called between the two functions below.
void gpugrad_gemm(
    bool at, bool bt, long m, long n, long k, const float* a, long lda, const float* b, long ldb,
    float* c, long ldc, bool add);

// In between, BLAS computes on the thread that calls it. They count, since several Python threads
// may be inside: the first one changes BLAS's setting, and the last one restores it.
void gpugrad_enter_blas();
void gpugrad_exit_blas();
}
