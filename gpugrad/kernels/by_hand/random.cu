// Random numbers: Philox4x64-10, and the formulas of gpugrad.ops.random.philox, bit for bit.
//
// A thread hashes one counter into four words of 64 bits or eight of 32, which become as many
// numbers. Minimal traffic: the numbers are written once.
//
// Products and sums are rounded separately: an FMA would differ from NumPy's result.
#include "philox.cuh"


__device__ inline float add(float a, float b) { return __fadd_rn(a, b); }
__device__ inline double add(double a, double b) { return __dadd_rn(a, b); }
__device__ inline float mul(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double mul(double a, double b) { return __dmul_rn(a, b); }
__device__ inline float over(float a, float b) { return __fdiv_rn(a, b); }
__device__ inline double over(double a, double b) { return __ddiv_rn(a, b); }
__device__ inline float root(float a) { return __fsqrt_rn(a); }
__device__ inline double root(double a) { return __dsqrt_rn(a); }

// ---- constants of floating-point formats

template <class W> struct format;
template <> struct format<unsigned> {
  typedef float real;
  typedef int integer;
  static constexpr int bits = 32, fraction = 23, terms = 4;
  static constexpr int top = 0x7FFFFFFF, root_half = 0x3F3504F3;  // the bits of sqrt(1 / 2)
  static constexpr float unit = 1 / 4294967296.0, ln2 = 0.693147180559945309417;
  static __device__ real of_bits(integer x) { return __int_as_float(x); }
  static __device__ integer bits_of(real x) { return __float_as_int(x); }
};
template <> struct format<Word> {
  typedef double real;
  typedef long long integer;
  static constexpr int bits = 64, fraction = 52, terms = 11;
  static constexpr long long top = 0x7FFFFFFFFFFFFFFFLL, root_half = 0x3FE6A09E667F3BCDLL;
  static constexpr double unit = 1 / 18446744073709551616.0, ln2 = 0.693147180559945309417;
  static __device__ real of_bits(integer x) { return __longlong_as_double(x); }
  static __device__ integer bits_of(real x) { return __double_as_longlong(x); }
};

// (i + 1/2) / 2^B for an integer i of B bits, signed or unsigned.
template <class W, class I> __device__ typename format<W>::real middle(I i) {
  typedef typename format<W>::real R;
  return add(mul(R(i), format<W>::unit), format<W>::unit / 2);
}

// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule.
template <class R, int N> __device__ R polynomial(const R (&c)[N], R x) {
  R result = add(mul(x, c[N - 1]), c[N - 2]);
#pragma unroll
  for (int k = N - 3; k >= 0; --k) result = add(mul(result, x), c[k]);
  return result;
}

// log((1 + f) 2^k), with 1 + f from sqrt(1/2) to sqrt(2): 2 atanh(f / (2 + f)) + k ln 2.
template <class W>
__device__ typename format<W>::real log_of_parts(
    typename format<W>::integer k, typename format<W>::real f) {
  typedef typename format<W>::real R;
  R s = over(f, add(f, R(2))), z = mul(s, s), sum = R(1.0 / (2 * format<W>::terms + 1));
#pragma unroll
  for (int i = format<W>::terms - 2; i >= 0; --i) sum = add(mul(sum, z), R(1.0 / (2 * i + 3)));
  s = add(s, s);
  return add(mul(R(k), format<W>::ln2), add(s, mul(s, mul(z, sum))));
}

// Splits x = m 2^k with m from sqrt(1/2) to sqrt(2): returns k and sets x to m.
template <class W>
__device__ typename format<W>::integer part(typename format<W>::real& x) {
  typedef format<W> F;
  typename F::integer bits = F::bits_of(x), k = (bits - F::root_half) >> F::fraction;
  x = F::of_bits(bits - k * ((typename F::integer)1 << F::fraction));
  return k;
}

template <class W> __device__ typename format<W>::real log_of(typename format<W>::real x) {
  typename format<W>::integer k = part<W>(x);
  return log_of_parts<W>(k, add(x, typename format<W>::real(-1)));
}

template <class W> __device__ typename format<W>::real exponential_of(W w) {
  typedef typename format<W>::real R;
  R m = middle<W>(w);
  typename format<W>::integer k = part<W>(m);
  return -log_of_parts<W>(k, k == 0 ? -middle<W>(W(~w)) : add(m, R(-1)));
}

// ---- the normal quantile of 1/2 + q: Wichura 1988, algorithm AS 241

__device__ inline float quantile(float q, float tail) {
  if (fabsf(q) <= float(0.425)) {
    const float upper[] = {3.3871327179, 50.434271938, 159.29113202, 59.109374720};
    const float lower[] = {1.0, 17.895169469, 78.757757664, 67.187563600};
    float r = add(float(0.180625), -mul(q, q));
    return over(mul(q, polynomial(upper, r)), polynomial(lower, r));
  }
  const float upper[] = {1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103};
  const float lower[] = {1.0, 0.73700164250, 0.12021132975};
  float r = add(root(-log_of<unsigned>(tail)), float(-1.6));
  return copysignf(over(polynomial(upper, r), polynomial(lower, r)), q);
}

__device__ inline double quantile(double q, double tail) {
  if (fabs(q) <= 0.425) {
    const double upper[] = {
        3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427,
        13731.693765509461125, 45921.953931549871457, 67265.770927008700853,
        33430.575583588128105, 2509.0809287301226727};
    const double lower[] = {
        1.0, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077,
        21213.794301586595867, 39307.895800092710610, 28729.085735721942674,
        5226.4952788528545610};
    double r = add(0.180625, -mul(q, q));
    return over(mul(q, polynomial(upper, r)), polynomial(lower, r));
  }
  double r = root(-log_of<Word>(tail));
  if (r > 5) {
    const double upper[] = {
        6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580,
        0.296560571828504891230, 0.0265321895265761230930, 1.24266094738807843860e-3,
        2.71155556874348757815e-5, 2.01033439929228813265e-7};
    const double lower[] = {
        1.0, 0.599832206555887937690, 0.136929880922735805310, 0.0148753612908506148525,
        7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
        2.04426310338993978564e-15};
    r = add(r, -5.0);
    return copysign(over(polynomial(upper, r), polynomial(lower, r)), q);
  }
  const double upper[] = {
      1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550,
      3.64784832476320460504, 1.27045825245236838258, 0.241780725177450611770,
      0.0227238449892691845833, 7.74545014278341407640e-4};
  const double lower[] = {
      1.0, 2.05319162663775882187, 1.67638483018380384940, 0.689767334985100004550,
      0.148103976427480074590, 0.0151986665636164571966, 5.47593808499534494600e-4,
      1.05075007164441684324e-9};
  r = add(r, -1.6);
  return copysign(over(polynomial(upper, r), polynomial(lower, r)), q);
}

// ---- kinds of numbers, each from one word

struct Bits {
  template <class W> __device__ W operator()(W w) const { return w; }
};
struct Exponential {
  template <class W> __device__ typename format<W>::real operator()(W w) const {
    return exponential_of(w);
  }
};
struct Laplace {
  template <class W> __device__ typename format<W>::real operator()(W w) const {
    typename format<W>::real size = exponential_of(W(w << 1));
    return typename format<W>::integer(w) < 0 ? -size : size;
  }
};
struct Gumbel {
  template <class W> __device__ typename format<W>::real operator()(W w) const {
    return -log_of<W>(exponential_of(w));
  }
};
struct Logistic {
  template <class W> __device__ typename format<W>::real operator()(W w) const {
    return add(exponential_of(W(~w)), -exponential_of(w));
  }
};
struct Normal {  // the tails have all bits of w
  template <class W> __device__ typename format<W>::real operator()(W w) const {
    typedef typename format<W>::integer I;
    I i = I(w), beyond = format<W>::top - (i ^ (i >> (format<W>::bits - 1)));
    return quantile(middle<W>(i), middle<W>(beyond));
  }
};

// ---- kernels

// Writes N numbers to `to`, which is aligned to 16 bytes, in accesses of 16 bytes if all are wanted.
template <class T, int N> __device__ void put(T* to, const T (&made)[N], long long left) {
  constexpr int P = N * sizeof(T) < 16 ? N : PACKED<T>;
  if (left >= N) {
#pragma unroll
    for (int i = 0; i < N; i += P) {
      Pack<T, P> pack;
#pragma unroll
      for (int j = 0; j < P; ++j) pack.at[j] = made[i + j];
      *(Pack<T, P>*)(to + i) = pack;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < N; ++i)
    if (i < left) to[i] = made[i];
}

template <class T, class W, class F>
__global__ void draw(
    T* out, long long n, const Word* state, Word k0, Word k1, Word first, Word third) {
  const int N = 32 / sizeof(W);
  Stream stream(state, k0, k1, first, third);
  long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k * N >= n) return;
  Block block = stream[k];
  T made[N];
#pragma unroll
  for (int i = 0; i < N; ++i) made[i] = F()(word_of<W>(block, i));
  put(out + k * N, made, n - k * N);
}

// low + the high word of w * span; a span of 0 means 2^64, for which that is w itself.
template <class T>
__global__ void draw_integers(
    T* out, long long n, const Word* state, Word k0, Word k1, Word first, Word third, Word low,
    Word span) {
  Stream stream(state, k0, k1, first, third);
  long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k * 4 >= n) return;
  Block block = stream[k];
  T made[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) made[i] = T((span ? __umul64hi(block.at[i], span) : block.at[i]) + low);
  put(out + k * 4, made, n - k * 4);
}

// out = x * scale where a uniform number is at least p, else 0. The numbers are those of
// `draw<float, unsigned, Uniform>` and stay in registers: x is read once and no mask is stored.
template <class T>
__global__ void dropout(
    const T* x, T* out, long long n, const Word* state, Word k0, Word k1, Word first, Word third,
    float p, compute_t<T> scale) {
  const int N = 8, P = PACKED<T>;
  Stream stream(state, k0, k1, first, third);
  long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x, left = n - k * N;
  if (left <= 0) return;
  T some[N];
  if (left >= N && (unsigned long long)x % 16 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += P) {
      Pack<T, P> pack = *(const Pack<T, P>*)(x + k * N + i);
#pragma unroll
      for (int j = 0; j < P; ++j) some[i + j] = pack.at[j];
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) some[i] = i < left ? x[k * N + i] : T(0);
  }
  Block block = stream[k];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    bool kept = Uniform()(word_of<unsigned>(block, i)) >= p;
    some[i] = kept ? T(compute_t<T>(some[i]) * scale) : T(0);
  }
  put(out + k * N, some, left);
}

// Whether the uniform numbers are at least p
__global__ void keep(bool* out, long long n, const Word* state, float p) {
  Stream stream(state, 0, 0, 0, 0);
  long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k * 8 >= n) return;
  Block block = stream[k];
  bool made[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) made[i] = Uniform()(word_of<unsigned>(block, i)) >= p;
  put(out + k * 8, made, n - k * 8);
}
