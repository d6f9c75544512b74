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
