// Special functions of vectors by the algorithms of Cephes, which SciPy uses too. Floats are computed
// in double, as SciPy does; for them series end where a float no longer shows the terms.
#ifndef GPUGRAD_SPECIAL
#define GPUGRAD_SPECIAL

// A function of doubles on floats, in vectors that fill a register.
template <int N, class F> INLINE V<float, N> in_double(V<float, N> x, F f) {
  constexpr int M = LANES<8> < N ? LANES<8> : N;
  V<float, N> out;
  for (int k = 0; k < N; k += M) {
    raw<float, M> part;
    __builtin_memcpy(&part, (const char*)&x.of + k * sizeof(float), sizeof part);
    const V<double, M> y = f(V<double, M>(__builtin_convertvector(part, raw<double, M>)));
    part = __builtin_convertvector(y.of, raw<float, M>);
    __builtin_memcpy((char*)&out.of + k * sizeof(float), &part, sizeof part);
  }
  return out;
}
#define OF_FLOATS(name)                                                           \
  template <int N> INLINE V<float, N> name(V<float, N> x) {                       \
    return in_double(x, [](auto v) __attribute__((always_inline)) { return name##_of<float>(v); }); \
  }
#define OF_BOTH(name)                                                                          \
  OF_FLOATS(name)                                                                              \
  template <int N> INLINE V<double, N> name(V<double, N> x) { return name##_of<double>(x); }

// A Chebyshev series, from the highest term down, without the first SKIP terms.
template <int SKIP, int M, class A> INLINE A chebyshev(A x, const double (&c)[M]) {
  A b0 = c[SKIP], b1 = 0.0, b2 = 0.0;
#pragma GCC unroll 32
  for (int k = SKIP + 1; k < M; ++k) {
    b2 = b1;
    b1 = b0;
    b0 = multiply_add(x, b1, A(c[k]) - b2);
  }
  return A(0.5) * (b0 - b2);
}

// ---- modified Bessel functions times exp(-|x|): series on [0, 8] and on [8, infinity]

constexpr double I0_NEAR[] = {
    -4.41534164647933937950e-18, 3.33079451882223809783e-17,  -2.43127984654795469359e-16,
    1.71539128555513303061e-15,  -1.16853328779934516808e-14, 7.67618549860493561688e-14,
    -4.85644678311192946090e-13, 2.95505266312963983461e-12,  -1.72682629144155570723e-11,
    9.67580903537323691224e-11,  -5.18979560163526290666e-10, 2.65982372468238665035e-9,
    -1.30002500998624804212e-8,  6.04699502254191894932e-8,   -2.67079385394061173391e-7,
    1.11738753912010371815e-6,   -4.41673835845875056359e-6,  1.64484480707288970893e-5,
    -5.75419501008210370398e-5,  1.88502885095841655729e-4,   -5.76375574538582365885e-4,
    1.63947561694133579842e-3,   -4.32430999505057594430e-3,  1.05464603945949983183e-2,
    -2.37374148058994688156e-2,  4.93052842396707084878e-2,   -9.49010970480476444210e-2,
    1.71620901522208775349e-1,   -3.04682672343198398683e-1,  6.76795274409476084995e-1};
constexpr double I0_FAR[] = {
    -7.23318048787475395456e-18, -4.83050448594418207126e-18, 4.46562142029675999901e-17,
    3.46122286769746109310e-17,  -2.82762398051658348494e-16, -3.42548561967721913462e-16,
    1.77256013305652638360e-15,  3.81168066935262242075e-15,  -9.55484669882830764870e-15,
    -4.15056934728722208663e-14, 1.54008621752140982691e-14,  3.85277838274214270114e-13,
    7.18012445138366623367e-13,  -1.79417853150680611778e-12, -1.32158118404477131188e-11,
    -3.14991652796324136454e-11, 1.18891471078464383424e-11,  4.94060238822496958910e-10,
    3.39623202570838634515e-9,   2.26666899049817806459e-8,   2.04891858946906374183e-7,
    2.89137052083475648297e-6,   6.88975834691682398426e-5,   3.36911647825569408990e-3,
    8.04490411014108831608e-1};
constexpr double I1_NEAR[] = {
    2.77791411276104639959e-18,  -2.11142121435816608115e-17, 1.55363195773620046921e-16,
    -1.10559694773538630805e-15, 7.60068429473540693410e-15,  -5.04218550472791168711e-14,
    3.22379336594557470981e-13,  -1.98397439776494371520e-12, 1.17361862988909016308e-11,
    -6.66348972350202774223e-11, 3.62559028155211703701e-10,  -1.88724975172282928790e-9,
    9.38153738649577178388e-9,   -4.44505912879632808065e-8,  2.00329475355213526229e-7,
    -8.56872026469545474066e-7,  3.47025130813767847674e-6,   -1.32731636560394358279e-5,
    4.78156510755005422638e-5,   -1.61760815825896745588e-4,  5.12285956168575772895e-4,
    -1.51357245063125314899e-3,  4.15642294431288815669e-3,   -1.05640848946261981558e-2,
    2.47264490306265168283e-2,   -5.29459812080949914269e-2,  1.02643658689847095384e-1,
    -1.76416518357834055153e-1,  2.52587186443633654823e-1};
constexpr double I1_FAR[] = {
    7.51729631084210481353e-18,  4.41434832307170791151e-18,  -4.65030536848935832153e-17,
    -3.20952592199342395980e-17, 2.96262899764595013876e-16,  3.30820231092092828324e-16,
    -1.88035477551078244854e-15, -3.81440307243700780478e-15, 1.04202769841288027642e-14,
    4.27244001671195135429e-14,  -2.10154184277266431302e-14, -4.08355111109219731823e-13,
    -7.19855177624590851209e-13, 2.03562854414708950722e-12,  1.41258074366137813316e-11,
    3.25260358301548823856e-11,  -1.89749581235054123450e-11, -5.58974346219658380687e-10,
    -3.83538038596423702205e-9,  -2.63146884688951950684e-8,  -2.51223623787020892529e-7,
    -3.88256480887769039346e-6,  -1.10588938762623716291e-4,  -9.76109749136146840777e-3,
    7.78576235018280120474e-1};

template <class T> constexpr int NEAR_SKIP = sizeof(T) == 4 ? 10 : 0;
template <class T> constexpr int FAR_SKIP = sizeof(T) == 4 ? 17 : 0;

template <class T, class A> INLINE A i0e_of(A x) {
  const A z = fabs(x), near = chebyshev<NEAR_SKIP<T>>(z * 0.5 - 2.0, I0_NEAR);
  const A far = chebyshev<FAR_SKIP<T>>(32.0 / z - 2.0, I0_FAR) / sqrt(z);
  return where(z <= 8.0, near, far);
}
template <class T, class A> INLINE A i1e_of(A x) {
  const A z = fabs(x), near = chebyshev<NEAR_SKIP<T> - (NEAR_SKIP<T> > 0)>(z * 0.5 - 2.0, I1_NEAR) * z;
  const A far = chebyshev<FAR_SKIP<T>>(32.0 / z - 2.0, I1_FAR) / sqrt(z);
  return copysign(where(z <= 8.0, near, far), x);
}
// exp of |x| times a function that falls as sqrt(x), which is finite a little further than exp is.
template <class A> INLINE A unscaled(A x, A scaled) {
  const A z = fabs(x), half = exp(where(z > 700.0, z * 0.5, z));
  return half * scaled * where(z > 700.0, half, A(1.0));
}
template <class T, class A> INLINE A cyl_bessel_i0_of(A x) { return unscaled(x, i0e_of<T>(x)); }
template <class T, class A> INLINE A cyl_bessel_i1_of(A x) { return unscaled(x, i1e_of<T>(x)); }
OF_BOTH(i0e)
OF_BOTH(i1e)
OF_BOTH(cyl_bessel_i0)
OF_BOTH(cyl_bessel_i1)

// ---- the derivative of lgamma: reflection below 0, recurrence to [1, 2], a series above 10

struct Digamma {
  static INLINE double evaluate(double x, const double* c, int n) {
    double sum = c[0];
    for (int k = 1; k < n; ++k) sum = sum * x + c[k];
    return sum;
  }
  // For x = 1 + y between 1 and 2, and its distance from the root in three parts (Boost).
  static INLINE double between(double y, double distance) {
    constexpr double p[] = {-0.0020713321167745952, -0.045251321448739056, -0.28919126444774784,
                            -0.65031853770896507,   -0.32555031186804491,  0.25479851061131551};
    constexpr double q[] = {-0.55789841321675513e-6, 0.0021284987017821144, 0.054151797245674225,
                            0.43593529692665969,     1.4606242909763515,    2.0767117023730469, 1.0};
    const double g = distance - (381566830.0 / 1073741824.0) / 1073741824.0 - 0.90163123e-19;
    return g * 0.99558162689208984 + g * (evaluate(y, p, 6) / evaluate(y, q, 7));
  }
  static double at(double x) {
    constexpr double pi = 3.14159265358979323846, root = 1569415565.0 / 1073741824.0;
    constexpr double series[] = {8.33333333333333333333e-2, -2.10927960927960927961e-2,
                                 7.57575757575757575758e-3, -4.16666666666666666667e-3,
                                 3.96825396825396825397e-3, -8.33333333333333333333e-3,
                                 8.33333333333333333333e-2};
    if (x == 0) return __builtin_copysign(__builtin_inf(), -x);
    if (x != x || x == __builtin_inf()) return x;
    double y = 0;
    if (x < 0) {
      if (__builtin_fabs(x + 0.504083008264455409) < 0.3)  // beside a root: nothing else cancels
        return between(x + 1.0, x + (2.0 - root)) - (2.0 * x + 1.0) / (x * (x + 1.0));
      const double whole = __builtin_trunc(x), rest = x - whole;
      if (!(rest < 0)) return __builtin_nan("");
      y = -pi / __builtin_tan(pi * rest);
      x = 1.0 - x;
    }
    if (x < 1.0) {
      y -= 1.0 / x;
      return y + between(x, x + (1.0 - root));
    }
    if (x < 10.0) {
      while (x > 2.0) {
        x -= 1.0;
        y += 1.0 / x;
      }
      return y + between(x - 1.0, x - root);
    }
    const double z = 1.0 / (x * x);
    return y + __builtin_log(x) - 0.5 / x - z * evaluate(z, series, 7);
  }
};
template <class T, int N> INLINE V<T, N> digamma(V<T, N> x) {
  for (int k = 0; k < N; ++k) x.of[k] = (T)Digamma::at(x.of[k]);
  return x;
}

// ---- of floats alone

// Giles 2010, "Approximating the erfinv function".
template <int N> INLINE V<float, N> erfinv(V<float, N> x) {
  typedef V<float, N> F;
  const F w = -log((1.f - x) * (1.f + x)), a = w - 2.5f, b = sqrt(w) - 3.f;
  const F near = polynomial(a, 2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f,
                            0.00021858087f, -0.00125372503f, -0.00417768164f, 0.246640727f,
                            1.50140941f);
  const F far = polynomial(b, -0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f,
                           0.00573950773f, -0.0076224613f, 0.00943887047f, 1.00167406f,
                           2.83297682f);
  return x * where(fabs(x) == 1.f, F(infinity<float>()), where(w < 5.f, near, far));
}

#if LIBMVEC >= 1
// Stirling's series from 7 on, below by the recurrence; reflection below 0.
template <class T, class A> INLINE A lgamma_of(A x) {
  const auto below = x < 0.0;
  const A z = where(below, 1.0 - x, x), up = where(z < 7.0, z + 7.0, z);
  const A product = z * (z + 1.0) * (z + 2.0) * (z + 3.0) * (z + 4.0) * (z + 5.0) * (z + 6.0);
  const A inverse = A(1.0) / up, square = inverse * inverse;
  const A series = polynomial(square, 1.0 / 156, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680,
                              1.0 / 1260, -1.0 / 360, 1.0 / 12);
  const A all = (up - 0.5) * log(up) - up + 0.91893853320467274178 + series * inverse;
  const A right = where(z == 1.0 || z == 2.0, A(0.0),
                        where(z < 7.0, all - log(product), where(z < 1e300, all, x)));
  bool any = false;
  for (unsigned k = 0; k < sizeof x.of / sizeof(double); ++k) any |= x.of[k] < 0;
  if (!any) return right;
  constexpr double pi = 3.14159265358979323846;
  const A left = log(pi / fabs(sin((x - rint(x)) * pi))) - right;
  return where(below && x > -infinity<double>(), left, right);
}
OF_FLOATS(lgamma)

template <class T, class A> INLINE A j0_of(A x) {
  const A size = fabs(x), z = x * x;
  const A p = polynomial(z, -4.79443220978201773821e9, 1.95617491946556577543e12,
                         -2.49248344360967716204e14, 9.70862251047306323952e15);
  const A q = polynomial(z, 1.0, 4.99563147152651017219e2, 1.73785401676374683123e5,
                         4.84409658339962045305e7, 1.11855537045356834862e10,
                         2.11277520115489217587e12, 3.10518229857422583814e14,
                         3.18121955943204943306e16, 1.71086294081043136091e18);
  const A near = (z - 5.78318596294678452118) * (z - 30.4712623436620863991) * p / q;
  if (fold<sizeof x.of / 8, Max, double>(Max(), size.of) <= 5.0) return near;
  const A w = 5.0 / size, v = w * w;
  const A r = polynomial(v, 7.96936729297347051624e-4, 8.28352392107440799803e-2,
                         1.23953371646414299388, 5.44725003058768775090, 8.74716500199817011941,
                         5.30324038235394892183, 9.99999999999999997821e-1) /
              polynomial(v, 9.24408810558863637013e-4, 8.56288474354474431428e-2,
                         1.25352743901058953537, 5.47097740330417105182, 8.76190883237069594232,
                         5.30605288235394617618, 1.00000000000000000218);
  const A s = polynomial(v, -1.13663838898469149931e-2, -1.28252718670509318512,
                         -1.95539544257735972385e1, -9.32060152123768231369e1,
                         -1.77681167980488050595e2, -1.47077505154951170175e2,
                         -5.14105326766599330220e1, -6.05014350600728481186) /
              polynomial(v, 1.0, 6.43178256118178023184e1, 8.56430025976980587198e2,
                         3.88240183605401609683e3, 7.24046774195652478189e3,
                         5.93072701187316984827e3, 2.06209331660327847417e3,
                         2.42005740240291393179e2);
  const A turned = size - 0.78539816339744830962;
  const A far = (r * cos(turned) - w * s * sin(turned)) * 0.79788456080286535588 / sqrt(size);
  return where(size <= 5.0, near, far);
}
OF_FLOATS(j0)
#endif
#endif
