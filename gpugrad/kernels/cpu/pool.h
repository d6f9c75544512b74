// The pool of threads that all kernels share. Libraries compiled against this header call it in the
// library of pool.cpp, which has to be loaded before them.
#pragma once

extern "C" {

// One piece of a job: piece k of n.
typedef void (*gpugrad_job)(void* state, long k);

// Calls job(state, k) for each k from 0 to n - 1, on this thread and on the pool's. Every piece is
// computed exactly once, in any order. If the pool is busy with a job of another thread, or this is
// a piece of a job, all pieces run here.
void gpugrad_parallel(gpugrad_job job, void* state, long n);

// The number of threads that a job may use, this one included.
long gpugrad_threads();

// A kernel computes elements (rows, columns) from low to high. Sums go to `partial`, which the
// kernel sets; an end adds up the `count` partial sums in order.
typedef void (*gpugrad_kernel)(char** pointers, long low, long high, char* partial);
typedef void (*gpugrad_end)(char** pointers, char* partials, long count);

// Runs a kernel on 0 to n - 1 in pieces of `grain`, so sums depend on the grain but not on the
// number of threads. Partial sums are `partial_size` bytes apart. `end` may be null.
void gpugrad_run(
    gpugrad_kernel kernel, gpugrad_end end, long n, long grain, char** pointers, char* partials,
    long partial_size);
}
