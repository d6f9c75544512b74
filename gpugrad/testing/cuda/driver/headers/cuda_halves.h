// What CuPy's float16.cuh and bfloat16.cuh use of cuda_fp16.h and cuda_bf16.h beyond the shim.
#pragma once
#include "halves.h"

struct __half_raw {
  unsigned short x;
  __half_raw() = default;
  __half_raw(const __half& h) : x(h.bits) {}
  operator __half() const {
    __half h;
    h.bits = x;
    return h;
  }
};

inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline __half __ushort_as_half(unsigned short bits) {
  __half x;
  x.bits = bits;
  return x;
}
inline __half& operator+=(__half& x, __half y) { return x = __half((float)x + (float)y); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  __nv_bfloat16 x;
  x.bits = bits;
  return x;
}
inline bool __hisnan(__nv_bfloat16 x) { return (x.bits & 0x7FFF) > 0x7F80; }
inline int __hisinf(__nv_bfloat16 x) { return (x.bits & 0x7FFF) == 0x7F80; }
