// Random numbers with the bits of gpugrad.ops.random.philox, which explains the formulas. Each
// operation is rounded once and none is contracted (-ffp-contract=off), so all bits agree.
//
// A library has one function: the text begins with definitions of JOB, such as numbers<float, Normal>,
// and of OF_A_BLOCK, the numbers of a block. All of them would take a second to compile.
#include "array.h"
#include "pool.h"

#include <cstdint>
#include <cstring>

namespace {

const long BLOCKS = 512;  // computed at a time: their 16 KiB stay in the nearest cache
const long PIECE = 8;  // such chunks of one piece: 30 us

struct Stream {
  uint64_t k0, k1, first, third;
};

// The words of `n` blocks from block `start` of a stream on.
void philox(const Stream& stream, uint64_t start, long n, uint64_t* words) {
  for (long i = 0; i < n; ++i) {
    uint64_t k0 = stream.k0, k1 = stream.k1;
    uint64_t c0 = stream.first + start + i, c1 = 0, c2 = stream.third, c3 = 0;
    for (int round = 0; round < 10; ++round) {
      unsigned __int128 p0 = (unsigned __int128)c0 * 0xD2E7470EE14C6C93ULL;
      unsigned __int128 p1 = (unsigned __int128)c2 * 0xCA5A826395121157ULL;
      c0 = uint64_t(p1 >> 64) ^ c1 ^ k0, c1 = uint64_t(p1);
      c2 = uint64_t(p0 >> 64) ^ c3 ^ k1, c3 = uint64_t(p0);
      k0 += 0x9E3779B97F4A7C15ULL, k1 += 0xBB67AE8584CAA73BULL;
    }
    words[4 * i] = c0, words[4 * i + 1] = c1, words[4 * i + 2] = c2, words[4 * i + 3] = c3;
  }
}

// ---- the format of each type

template <class T> struct Format;

template <> struct Format<float> {
  typedef uint32_t Word;
  typedef int32_t Signed;
  static constexpr int FRACTION = 23, BITS = 32;
  static constexpr float UNIT = 0x1p-32f, HALF_UNIT = 0x1p-33f;
  static constexpr float ATANH[] = {1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9};
  static constexpr float MIDDLE[2][4] = {
      {3.3871327179, 50.434271938, 159.29113202, 59.109374720},
      {1.0, 17.895169469, 78.757757664, 67.187563600}};
  static constexpr float TAIL[] = {1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103};
  static constexpr float TAIL_BELOW[] = {1.0, 0.73700164250, 0.12021132975};
};

template <> struct Format<double> {
  typedef uint64_t Word;
  typedef int64_t Signed;
  static constexpr int FRACTION = 52, BITS = 64;
  static constexpr double UNIT = 0x1p-64, HALF_UNIT = 0x1p-65;
  static constexpr double ATANH[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                     1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
  static constexpr double MIDDLE[2][8] = {
      {3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
       45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727},
      {1.0, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077,
       21213.794301586595867, 39307.895800092710610, 28729.085735721942674,
       5226.4952788528545610}};
  static constexpr double TAIL[] = {
      1.42343711074968357734, 4.63033784615654529590,  5.76949722146069140550,
      3.64784832476320460504, 1.27045825245236838258,  0.241780725177450611770,
      0.0227238449892691845833, 7.74545014278341407640e-4};
  static constexpr double TAIL_BELOW[] = {
      1.0,                    2.05319162663775882187,    1.67638483018380384940,
      0.689767334985100004550, 0.148103976427480074590,  0.0151986665636164571966,
      5.47593808499534494600e-4, 1.05075007164441684324e-9};
};

const double FAR[] = {6.65790464350110377720,    5.46378491116411436990,
                      1.78482653991729133580,    0.296560571828504891230,
                      0.0265321895265761230930,  1.24266094738807843860e-3,
                      2.71155556874348757815e-5, 2.01033439929228813265e-7};
const double FAR_BELOW[] = {1.0,                       0.599832206555887937690,
                            0.136929880922735805310,   0.0148753612908506148525,
                            7.86869131145613259100e-4, 1.84631831751005468180e-5,
                            1.42151175831644588870e-7, 2.04426310338993978564e-15};

// ---- functions of one element

template <class T, class S> T bits_as(S bits) {
  T x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

template <class T, int N> T polynomial(const T (&c)[N], T x) {
  T result = x * c[N - 1] + c[N - 2];
  for (int k = N - 3; k >= 0; --k) result *= x, result += c[k];
  return result;
}

template <class T> T log_of_parts(T k, T f) {
  T s = f / (f + T(2)), z = s * s;
  s += s;
  return k * T(0.69314718055994530942) + (s + s * (z * polynomial(Format<T>::ATANH, z)));
}

// Exponent k and m with x = m 2^k and sqrt(1/2) <= m < sqrt(2).
template <class T> void parts(T x, T& k, T& m) {
  typedef typename Format<T>::Signed Signed;
  Signed bits = bits_as<Signed>(x), root = bits_as<Signed>(T(0.70710678118654752440));
  Signed exponent = (bits - root) >> Format<T>::FRACTION;
  m = bits_as<T>(Signed(bits - Signed(typename Format<T>::Word(exponent) << Format<T>::FRACTION)));
  k = T(exponent);
}

template <class T> T log(T x) {
  T k, m;
  parts(x, k, m);
  return log_of_parts(k, m - T(1));
}

template <class T> T exponential(typename Format<T>::Word w) {
  typedef typename Format<T>::Word Word;
  T k, m, c = T(Word(~w)) * Format<T>::UNIT + Format<T>::HALF_UNIT;
  parts(T(w) * Format<T>::UNIT + Format<T>::HALF_UNIT, k, m);
  return -log_of_parts(k, k == 0 ? -c : m - T(1));
}

template <class T> T root(T x) { return sizeof(T) == 4 ? __builtin_sqrtf(x) : __builtin_sqrt(x); }

inline float far(float, float size) { return size; }  // 32 bits do not reach that far
inline double far(double r, double size) {
  double s = r - 5;
  return r > 5 ? polynomial(FAR, s) / polynomial(FAR_BELOW, s) : size;
}

struct Uniform {
  static float of(uint32_t w, float) { return float(w >> 8) * 0x1p-24f; }
  static double of(uint64_t w, double) { return double(w >> 11) * 0x1p-53; }
};

struct Normal {
  template <class T> static T of(typename Format<T>::Word w, T) {
    typedef Format<T> F;
    typedef typename F::Signed Signed;
    Signed i = Signed(w), top = Signed(typename F::Word(-1) >> 1);
    T q = T(i) * F::UNIT + F::HALF_UNIT, r = T(0.180625) - q * q;
    T z = q * polynomial(F::MIDDLE[0], r);
    z /= polynomial(F::MIDDLE[1], r);
    Signed left = top - (i ^ (i >> (F::BITS - 1)));  // the count of numbers further out
    r = root(-log(T(left) * F::UNIT + F::HALF_UNIT));
    T shifted = r - T(1.6);
    T size = far(r, polynomial(F::TAIL, shifted) / polynomial(F::TAIL_BELOW, shifted));
    T above = q < 0 ? -q : q;
    return above > T(0.425) ? (q < 0 ? -size : size) : z;
  }
};

struct Exponential {
  template <class T> static T of(typename Format<T>::Word w, T) { return exponential<T>(w); }
};

struct Laplace {
  template <class T> static T of(typename Format<T>::Word w, T) {
    typedef typename Format<T>::Word Word;
    T size = exponential<T>(Word(w << 1));
    return typename Format<T>::Signed(w) < 0 ? -size : size;
  }
};

struct Gumbel {
  template <class T> static T of(typename Format<T>::Word w, T) { return -log(exponential<T>(w)); }
};

struct Logistic {
  template <class T> static T of(typename Format<T>::Word w, T) {
    typedef typename Format<T>::Word Word;
    return exponential<T>(Word(~w)) - exponential<T>(w);
  }
};

// ---- draws

struct Draw {
  Stream stream;
  long n;
  void* out;
  const void* x;  // what dropout scales
  double scale;
  float p;
};

// Calls store(draw, i, words, count) for consecutive words of type W, from number i on.
template <class W, class Store> void each_chunk(const Draw& draw, long piece, Store store) {
  const long PER = 32 / sizeof(W);  // words of a block
  alignas(64) uint64_t words[4 * BLOCKS];
  for (long chunk = piece * PIECE; chunk < (piece + 1) * PIECE; ++chunk) {
    long i = chunk * BLOCKS * PER, count = draw.n - i < BLOCKS * PER ? draw.n - i : BLOCKS * PER;
    if (count <= 0) return;
    philox(draw.stream, chunk * BLOCKS, (count + PER - 1) / PER, words);
    W own[BLOCKS * PER];
    memcpy(own, words, sizeof words);  // little endian: the low half comes first
    store(draw, i, own, count);
  }
}

template <class T, class F> void numbers(void* state, long piece) {
  typedef typename Format<T>::Word Word;
  each_chunk<Word>(*(Draw*)state, piece, [](const Draw& draw, long i, Word* words, long count) {
    T* out = (T*)draw.out + i;
    for (long k = 0; k < count; ++k) out[k] = F::of(words[k], T());
  });
}

void keep(void* state, long piece) {
  each_chunk<uint32_t>(
      *(Draw*)state, piece, [](const Draw& draw, long i, uint32_t* words, long count) {
        bool* out = (bool*)draw.out + i;
        for (long k = 0; k < count; ++k) out[k] = Uniform::of(words[k], 0.f) >= draw.p;
      });
}

// x is the number of integers and the first of them.
void integers(void* state, long piece) {
  each_chunk<uint64_t>(
      *(Draw*)state, piece, [](const Draw& draw, long i, uint64_t* words, long count) {
        const uint64_t n = ((const uint64_t*)draw.x)[0], start = ((const uint64_t*)draw.x)[1];
        uint64_t* out = (uint64_t*)draw.out + i;
        for (long k = 0; k < count; ++k)
          out[k] = (uint64_t)((unsigned __int128)words[k] * n >> 64) + start;
      });
}

template <class T> void dropout(void* state, long piece) {
  each_chunk<uint32_t>(
      *(Draw*)state, piece, [](const Draw& draw, long i, uint32_t* words, long count) {
        const T *x = (const T*)draw.x + i, scale = T(draw.scale);
        T* out = (T*)draw.out + i;
        for (long k = 0; k < count; ++k)
          out[k] = Uniform::of(words[k], 0.f) >= draw.p ? x[k] * scale : T(0);
      });
}

}  // namespace

// Runs JOB on NumPy arrays. x, scale and p are those of dropout.
extern "C" void gpugrad_draw(
    uint64_t k0, uint64_t k1, uint64_t first, uint64_t third, void* out, long n, void* x,
    double scale, float p) {
  Draw draw = {{k0, k1, first, third}, n, array_of(out).data, array_of(x).data, scale, p};
  const long most = PIECE * BLOCKS * OF_A_BLOCK;
  gpugrad_parallel(JOB, &draw, (n + most - 1) / most);
}
