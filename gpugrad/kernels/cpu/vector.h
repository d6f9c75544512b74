// Vectors of N elements, for generated kernels. Each expression of a formula is one of these types.
//
// GCC and clang agree on vector_size, operators of such types and __builtin_convertvector. The last
// block of an array is padded, so a value never depends on its place in the array.
#ifndef GPUGRAD_VECTOR
#define GPUGRAD_VECTOR

#define INLINE inline __attribute__((always_inline))

#if defined(__AVX512F__)
constexpr int REGISTER = 64;
#elif defined(__AVX2__)
constexpr int REGISTER = 32;
#else
constexpr int REGISTER = 16;
#endif
template <int BYTES> constexpr int LANES = REGISTER / BYTES;

template <class T, int N> struct Raw { typedef T type __attribute__((vector_size(sizeof(T) * N))); };
template <class T, int N> using raw = typename Raw<T, N>::type;

// Signed integers of a number of bytes: what comparisons give.
template <int BYTES> struct Whole;
template <> struct Whole<1> { typedef signed char type; };
template <> struct Whole<2> { typedef short type; };
template <> struct Whole<4> { typedef int type; };
template <> struct Whole<8> { typedef long long type; };
template <int BYTES> using whole = typename Whole<BYTES>::type;

template <int N> struct Count { static constexpr int value = N; };

// ---- vectors and masks

template <class T, int N> struct V;

// Booleans are lanes of 0 and -1, as wide as the widest elements of the kernel.
template <int N> struct V<bool, N> {
  typedef whole<REGISTER / N> Lane;
  raw<Lane, N> of;
  V() = default;
  INLINE V(bool x) { of = raw<Lane, N>{} - (Lane)x; }
  template <class M> static INLINE V from(M lanes) {
    V v;
    v.of = __builtin_convertvector(lanes, raw<Lane, N>);
    return v;
  }
  template <class T> INLINE raw<whole<sizeof(T)>, N> lanes() const {
    return __builtin_convertvector(of, raw<whole<sizeof(T)>, N>);
  }
  INLINE bool operator[](int k) const { return of[k]; }
  friend INLINE V operator&&(V a, V b) { return from(a.of & b.of); }
  friend INLINE V operator||(V a, V b) { return from(a.of | b.of); }
  friend INLINE V operator==(V a, V b) { return from(~(a.of ^ b.of)); }
  friend INLINE V operator!=(V a, V b) { return from(a.of ^ b.of); }
  friend INLINE V operator<(V a, V b) { return from(~a.of & b.of); }
  friend INLINE V operator>(V a, V b) { return from(a.of & ~b.of); }
  friend INLINE V operator<=(V a, V b) { return from(~a.of | b.of); }
  friend INLINE V operator>=(V a, V b) { return from(a.of | ~b.of); }
  friend INLINE V operator!(V a) { return from(~a.of); }
  friend INLINE V where(V c, V a, V b) { return from((c.of & a.of) | (~c.of & b.of)); }
  template <class U> explicit INLINE operator V<U, N>() const;
};

template <class T, int N> struct V {
  raw<T, N> of;
  V() = default;
  INLINE V(T x) { of = x - raw<T, N>{}; }  // not 0 + x, which loses the sign of -0
  INLINE V(raw<T, N> x) { of = x; }
  INLINE T operator[](int k) const { return of[k]; }
  friend INLINE V operator+(V a, V b) { return a.of + b.of; }
  friend INLINE V operator-(V a, V b) { return a.of - b.of; }
  friend INLINE V operator*(V a, V b) { return a.of * b.of; }
  friend INLINE V operator/(V a, V b) { return a.of / b.of; }
  friend INLINE V operator&(V a, V b) { return a.of & b.of; }
  friend INLINE V operator|(V a, V b) { return a.of | b.of; }
  friend INLINE V operator^(V a, V b) { return a.of ^ b.of; }
  friend INLINE V operator-(V a) { return -a.of; }
  friend INLINE V operator~(V a) { return ~a.of; }
  friend INLINE V<bool, N> operator<(V a, V b) { return V<bool, N>::from(a.of < b.of); }
  friend INLINE V<bool, N> operator>(V a, V b) { return V<bool, N>::from(a.of > b.of); }
  friend INLINE V<bool, N> operator<=(V a, V b) { return V<bool, N>::from(a.of <= b.of); }
  friend INLINE V<bool, N> operator>=(V a, V b) { return V<bool, N>::from(a.of >= b.of); }
  friend INLINE V<bool, N> operator==(V a, V b) { return V<bool, N>::from(a.of == b.of); }
  friend INLINE V<bool, N> operator!=(V a, V b) { return V<bool, N>::from(a.of != b.of); }
  friend INLINE V where(V<bool, N> c, V a, V b) {
    return c.template lanes<T>() ? a.of : b.of;
  }
  INLINE V& operator+=(V b) {
    of += b.of;
    return *this;
  }
  template <class U> explicit INLINE operator V<U, N>() const {
    if constexpr (__is_same(U, bool)) {
      return V<bool, N>::from(of != raw<T, N>{});
    } else if constexpr (T(0.5) != T(0) && U(0.5) == U(0) && sizeof(U) < 4) {
      // as C does on x86: through a whole number that is wide enough
      return __builtin_convertvector(__builtin_convertvector(of, raw<int, N>), raw<U, N>);
    } else {
      return V<U, N>(__builtin_convertvector(of, raw<U, N>));
    }
  }
};

template <int N> template <class U> INLINE V<bool, N>::operator V<U, N>() const {
  return V<U, N>(__builtin_convertvector(of & 1, raw<U, N>));
}

template <class U, class T, int N> INLINE V<U, N> bits(V<T, N> x) { return (raw<U, N>)x.of; }

// ---- memory: the last block of a row has fewer elements, and repeats the first of them

template <int n, int N, class T> INLINE V<T, N> load(const T* p) {
  if constexpr (__is_same(T, bool)) {
    return V<bool, N>::from(-load<n, N>((const signed char*)p).of);
  } else {
    V<T, N> v;
    if constexpr (n < N) v = V<T, N>(*p);
#if defined(__AVX512F__)  // by a mask: memcpy would go through the stack, and wait for it
    if constexpr (n < N && sizeof v == 64 && sizeof(T) == 4)
      return (raw<T, N>)__builtin_ia32_loadups512_mask(
          (const float*)p, (raw<float, 16>)v.of, (unsigned short)((1u << n) - 1));
    else if constexpr (n < N && sizeof v == 64 && sizeof(T) == 8)
      return (raw<T, N>)__builtin_ia32_loadupd512_mask(
          (const double*)p, (raw<double, 8>)v.of, (unsigned char)((1u << n) - 1));
#endif
    __builtin_memcpy(&v.of, p, n * sizeof(T));
    return v;
  }
}
template <int n, int N, class T> INLINE void store(T* p, V<T, N> v) {
  if constexpr (__is_same(T, bool)) {
    store<n>((signed char*)p, (V<signed char, N>)v);
  } else {
#if defined(__AVX512F__)
    if constexpr (n < N && sizeof v == 64 && sizeof(T) == 4)
      return __builtin_ia32_storeups512_mask(
          (float*)p, (raw<float, 16>)v.of, (unsigned short)((1u << n) - 1));
    else if constexpr (n < N && sizeof v == 64 && sizeof(T) == 8)
      return __builtin_ia32_storeupd512_mask(
          (double*)p, (raw<double, 8>)v.of, (unsigned char)((1u << n) - 1));
#endif
    __builtin_memcpy(p, &v.of, n * sizeof(T));
  }
}

// A vector of the elements at(0), at(1), ...
template <class T, int N, class F> INLINE V<T, N> each_lane(F at) {
  V<T, N> v;
  for (int k = 0; k < N; ++k) {
    if constexpr (__is_same(T, bool)) v.of[k] = -at(k);
    else v.of[k] = at(k);
  }
  return v;
}

// Calls block(j, Count<n>()) for blocks from j on; a last, smaller one of n elements ends at LENGTH.
// If LENGTH is -1, it is known only now, and the last call is block(j, n).
template <int N, long LENGTH, class F> INLINE void each_block(long from, long to, F block) {
  long j = from;
  for (; j + N <= to; j += N) block(j, Count<N>());
  if constexpr (LENGTH < 0) {
    if (j < to) block(j, to - j);
  } else if constexpr (LENGTH % N != 0) {
    if (j < to) block(j, Count<LENGTH % N>());
  }
}

// The same with a third argument: 0, 1, 2, 3 in turn for whole blocks, by which `block` chooses one
// of four partial results. An addition takes several cycles, and must wait for the one before.
template <int N, long LENGTH, class F> INLINE void each_block_of_four(long from, long to, F block) {
  long j = from;
  for (; j + 4 * N <= to; j += 4 * N) {
    block(j, Count<N>(), 0), block(j + N, Count<N>(), 1);
    block(j + 2 * N, Count<N>(), 2), block(j + 3 * N, Count<N>(), 3);
  }
  each_block<N, LENGTH>(j, to, [&](long j, auto n) __attribute__((always_inline)) {
    block(j, n, 0);
  });
}

// The n first elements of an array, and then the first of them again.
template <class T, int N> struct Padded {
  T at[N];
  INLINE Padded(const T* p, long n) {
    for (int k = 0; k < N; ++k) at[k] = p[k < n ? k : 0];
  }
};

// Memory by the counts that each_block gives.
template <int N, class T, int n> INLINE V<T, N> load(const T* p, Count<n>) { return load<n, N>(p); }
template <int N, class T> INLINE V<T, N> load(const T* p, long n) {
  return load<N, N>((const T*)Padded<T, N>(p, n).at);
}
template <class T, int N, int n> INLINE void store(T* p, V<T, N> v, Count<n>) { store<n>(p, v); }
template <class T, int N> INLINE void store(T* p, V<T, N> v, long n) {
  T lanes[N];
  store<N>(lanes, v);
  __builtin_memcpy(p, lanes, n * sizeof(T));
}

// The first n elements to places from j on, STEP elements apart.
template <long STEP, class T, int N, class C> INLINE void store_apart(T* p, long j, V<T, N> v, C n) {
  T lanes[N];
  store<N>(lanes, v);
  long count = N;
  if constexpr (__is_same(C, long)) count = n;
  else count = C::value;
  for (long k = 0; k < count; ++k) p[(j + k) * STEP] = lanes[k];
}

// Calls block(out, p...) with the addresses of vectors from `from` on; the last one may be shorter.
template <int N, class F, class O, class... P>
INLINE void each_vector(long from, long to, F block, O* out, const P*... p) {
  long j = from;
  for (; j + N <= to; j += N) block(out + j, (p + j)...);
  if (j == to) return;
  O rest[N];
  block(rest, (const P*)Padded<P, N>(p + j, to - j).at...);
  __builtin_memcpy(out + j, rest, (to - j) * sizeof(O));
}

// ---- reductions over lanes, in a fixed order

template <class T> INLINE constexpr T infinity() { return (T)__builtin_inf(); }
template <class T> INLINE constexpr T not_a_number() { return (T)__builtin_nan(""); }

// Of raw vectors of any length.
struct Sum {
  template <class A> INLINE A operator()(A a, A b) const { return a + b; }
};
struct Max {
  template <class A> INLINE A operator()(A a, A b) const { return (a > b) | (a != a) ? a : b; }
};
struct Min {
  template <class A> INLINE A operator()(A a, A b) const { return (a < b) | (a != a) ? a : b; }
};

// The first n lanes, and `rest` in the others.
template <class T, int N> INLINE V<T, N> first(V<T, N> v, T rest, long n) {
  raw<whole<sizeof(T)>, N> lane{};
  for (int k = 0; k < N; ++k) lane[k] = k;
  return lane < (whole<sizeof(T)>)n ? v.of : V<T, N>(rest).of;
}
template <class T, int N, int n> INLINE V<T, N> first(V<T, N> v, T rest, Count<n>) {
  if constexpr (n == N) return v;
  else return first(v, rest, (long)n);
}
template <int N, class F, class T> INLINE T fold(F f, raw<T, N> v) {
  if constexpr (N == 2) {
    return f(v, raw<T, 2>{v[1], v[0]})[0];  // as vectors, without a branch
  } else {
    raw<T, N / 2> half[2];
    __builtin_memcpy(half, &v, sizeof v);
    return fold<N / 2, F, T>(f, f(half[0], half[1]));
  }
}
template <class F, class T, int N> INLINE V<T, N> over_lanes(F f, V<T, N> v) {
  return fold<N, F, T>(f, v.of);
}
template <class F, class T, int N> INLINE V<T, N> over_lanes(F f, const V<T, N> (&v)[4]) {
  return fold<N, F, T>(f, f(f(v[0].of, v[1].of), f(v[2].of, v[3].of)));
}

#include "functions.h"
#endif
