#include "nan.h"

extern "C" long gpugrad_has_nan(void* x, long wide) { return has_nan(array_of(x), wide); }
