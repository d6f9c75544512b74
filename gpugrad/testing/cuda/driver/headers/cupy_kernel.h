// What CuPy's generated kernels include, for g++ in the place of NVRTC.
#pragma once
#include "cudashim.h"

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#define __CUDACC_VER_MAJOR__ 13

#include "cuda_halves.h"

#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
#include <cupy/math_constants.h>
#include <cupy/float16.cuh>
#include <cupy/bfloat16.cuh>

inline float cyl_bessel_i0f(float x) { return cyl_bessel_i0(x); }
inline float cyl_bessel_i1f(float x) { return cyl_bessel_i1(x); }
inline float normcdff(float x) { return normcdf(x); }
inline float normcdfinvf(float p) { return normcdfinv(p); }

// xsf computes with std::complex where it is not compiled by NVRTC.
#include <cupy/xsf/lambertw.h>
namespace xsf {
inline thrust::complex<double> lambertw(thrust::complex<double> z, long k, double tol) {
  std::complex<double> w = lambertw(std::complex<double>(z.real(), z.imag()), k, tol);
  return {w.real(), w.imag()};
}
inline thrust::complex<float> lambertw(thrust::complex<float> z, long k, float tol) {
  return thrust::complex<float>(lambertw(thrust::complex<double>(z), k, (double)tol));
}
}  // namespace xsf
