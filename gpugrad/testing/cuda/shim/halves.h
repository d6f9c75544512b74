// __half and __nv_bfloat16 as storage: 16 bits that convert to and from float, rounding to even.
#pragma once
#include <string.h>

struct __half {
  unsigned short bits;
  __half() = default;
  __half(float value);
  operator float() const;
};

struct __nv_bfloat16 {
  unsigned short bits;
  __nv_bfloat16() = default;
  __nv_bfloat16(float value);
  operator float() const;
};

typedef __half half;
typedef __nv_bfloat16 nv_bfloat16;

inline __nv_bfloat16::__nv_bfloat16(float value) {
  unsigned u;
  memcpy(&u, &value, 4);
  bits = value != value ? 0x7FC0 | u >> 16 : (u + 0x7FFF + (u >> 16 & 1)) >> 16;
}

inline __nv_bfloat16::operator float() const {
  unsigned u = (unsigned)bits << 16;
  float value;
  memcpy(&value, &u, 4);
  return value;
}

inline __half::__half(float value) {
  unsigned u;
  memcpy(&u, &value, 4);
  unsigned sign = u >> 16 & 0x8000, size = u & 0x7FFFFFFF;
  if (size > 0x7F800000) {  // NaN
    bits = sign | 0x7E00;
  } else if (size >= 0x477FF000) {  // rounds to 65536 or more
    bits = sign | 0x7C00;
  } else if (size >= 0x38800000) {  // normal: the exponent's bias goes from 127 to 15
    bits = sign | (size - 0x38000000 + 0xFFF + (size >> 13 & 1)) >> 13;
  } else {  // subnormal: adding 0.5 leaves the multiple of 2^-24, rounded, in the last bits
    float shifted;
    memcpy(&shifted, &size, 4);
    shifted += 0.5f;
    unsigned v;
    memcpy(&v, &shifted, 4);
    bits = sign | (v - 0x3F000000);
  }
}

inline __half::operator float() const {
  unsigned sign = (unsigned)(bits & 0x8000) << 16, size = bits & 0x7FFF;
  float value;
  if (size >= 0x7C00) {
    unsigned u = sign | 0x7F800000 | (size & 0x3FF) << 13;
    memcpy(&value, &u, 4);
    return value;
  }
  if (size < 0x400) {
    value = size * 5.9604644775390625e-8f;  // 2^-24
    return sign ? -value : value;
  }
  unsigned u = sign | ((size << 13) + 0x38000000);
  memcpy(&value, &u, 4);
  return value;
}

inline float __half2float(__half x) { return x; }
inline __half __float2half(float x) { return __half(x); }
inline __half __float2half_rn(float x) { return __half(x); }
inline float __bfloat162float(__nv_bfloat16 x) { return x; }
inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
