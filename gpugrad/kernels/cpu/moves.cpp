// Steps of a program that move elements or run along an axis, in one thread: their arrays are small.
//
// A function gets numbers and contiguous arrays: what it reads, tables, and the result. It returns 0,
// or 1 for what Python shall compute, such as an index out of bounds, for which Python has the error.
//
// A library has one function: the text begins with a definition of FUNCTION, such as sorted<float>.
// All of them would take four seconds to compile.
#include "array.h"

#include <cstdint>
#include <cstring>
#include <type_traits>
#ifdef SORTS  // a third of a second for these headers
#include <algorithm>
#include <vector>
#endif

namespace {

typedef const Array* const* Arrays;

// An array seen as `outer` times `n` times `inner` elements of `size` bytes; `m` places of the axis.
struct Axis {
  long outer, n, inner, m;
  Axis(const long* numbers) : outer(numbers[0]), n(numbers[1]), inner(numbers[2]), m(numbers[3]) {}
};

// Calls f(places) for an array of integers of 4 or 8 bytes.
template <class F> long with_places(const Array* a, long size, F f) {
  return size == 8 ? f((const int64_t*)a->data) : f((const int32_t*)a->data);
}

// A place counted from 0, or -1 out of bounds.
inline long place_of(long k, long n) { return k < -n || k >= n ? -1 : k < 0 ? k + n : k; }

template <class T> void copy_run(char* to, const char* from, long step, long n) {
  for (long k = 0; k < n; ++k) ((T*)to)[k] = ((const T*)from)[k * step];
}

void copy_run(char* to, const char* from, long step, long n, long size) {
  if (step == 1) memcpy(to, from, n * size);
  else if (size == 4) copy_run<uint32_t>(to, from, step, n);
  else if (size == 8) copy_run<uint64_t>(to, from, step, n);
  else if (size == 1) copy_run<uint8_t>(to, from, step, n);
  else for (long k = 0; k < n; ++k) memcpy(to + k * size, from + k * step * size, size);
}

// out[place] += values, or = values, after the caller has filled out.
template <class T, class I, bool ADD>
long put(const Axis& a, const T* values, const I* places, T* out) {
  for (long j = 0; j < a.m; ++j)
    if (place_of(places[j], a.n) < 0) return 1;
  for (long i = 0; i < a.outer; ++i)
    for (long j = 0; j < a.m; ++j) {
      T* to = out + (i * a.n + place_of(places[j], a.n)) * a.inner;
      const T* from = values + (i * a.m + j) * a.inner;
      for (long k = 0; k < a.inner; ++k)
        if (ADD) to[k] += from[k];
        else to[k] = from[k];
    }
  return 0;
}

// numbers: the axis, bytes of an index, and which arrays are the base (-1: zeros), the values, the
// places and the result.
template <class T, bool ADD> long put(const long* numbers, Arrays arrays) {
  const Axis a(numbers);
  const Array *values = arrays[numbers[6]], *places = arrays[numbers[7]], *out = arrays[numbers[8]];
  const long bytes = a.outer * a.n * a.inner * sizeof(T);
  const char* base = numbers[5] >= 0 ? arrays[numbers[5]]->data : nullptr;
  if (!base) memset(out->data, 0, bytes);
  else if (base != out->data) memcpy(out->data, base, bytes);  // else it is written in place
  return with_places(places, numbers[4], [&](auto of) {
    return put<T, std::remove_cv_t<std::remove_pointer_t<decltype(of)>>, ADD>(
        a, (const T*)values->data, of, (T*)out->data);
  });
}

template <class T> long add_along(const long* numbers, Arrays arrays) {
  const Axis a(numbers);
  const T* values = (const T*)arrays[0]->data;
  T* out = (T*)arrays[2]->data;
  memset(out, 0, a.outer * a.n * a.inner * sizeof(T));
  return with_places(arrays[1], numbers[4], [&](auto places) {
    for (long i = 0; i < a.outer; ++i)
      for (long j = 0; j < a.m; ++j)
        for (long k = 0; k < a.inner; ++k) {
          const long at = (i * a.m + j) * a.inner + k, place = place_of(places[at], a.n);
          if (place < 0) return 1;
          out[(i * a.n + place) * a.inner + k] += values[at];
        }
    return 0;
  });
}

template <class T> long running_sum(const long* numbers, Arrays arrays) {
  const Axis a(numbers);
  const bool back = numbers[4];
  const T* x = (const T*)arrays[0]->data;
  T* out = (T*)arrays[1]->data;
  for (long i = 0; i < a.outer; ++i, x += a.n * a.inner, out += a.n * a.inner)
    for (long j = 0; j < a.n; ++j) {
      const long at = (back ? a.n - 1 - j : j) * a.inner, before = back ? at + a.inner : at - a.inner;
      for (long k = 0; k < a.inner; ++k) out[at + k] = j ? T(out[before + k] + x[at + k]) : x[at + k];
    }
  return 0;
}

#ifdef SORTS
// NaN comes last, as in NumPy.
template <class T> bool is_before(T a, T b) { return a < b || (b != b && a == a); }

// numbers: the axis, and whether the result is the places and not the values.
template <class T> long sorted(const long* numbers, Arrays arrays) {
  const Axis a(numbers);
  const bool places = numbers[4], falls = numbers[5];
  static thread_local std::vector<std::pair<T, long>> line;
  line.resize(a.n);
  for (long i = 0; i < a.outer; ++i)
    for (long k = 0; k < a.inner; ++k) {
      const T* x = (const T*)arrays[0]->data + i * a.n * a.inner + k;
      for (long j = 0; j < a.n; ++j) {
        line[j] = {x[j * a.inner], j};
        if (falls && line[j].first != line[j].first) return 1;
      }
      std::stable_sort(line.begin(), line.end(), [&](auto& p, auto& q) {
        return falls ? is_before(q.first, p.first) : is_before(p.first, q.first);
      });
      const long at = i * a.n * a.inner + k;
      for (long j = 0; j < a.n; ++j)
        if (places) ((int64_t*)arrays[1]->data)[at + j * a.inner] = line[j].second;
        else ((T*)arrays[1]->data)[at + j * a.inner] = line[j].first;
    }
  return 0;
}
#endif

// The first place of the largest or the smallest element, or of the first NaN.
template <class T> long extreme(const long* numbers, Arrays arrays) {
  const Axis a(numbers);
  const bool least = numbers[4];
  for (long i = 0; i < a.outer; ++i)
    for (long k = 0; k < a.inner; ++k) {
      const T* x = (const T*)arrays[0]->data + i * a.n * a.inner + k;
      long at = 0;
      for (long j = 1; j < a.n; ++j) {
        const T best = x[at * a.inner], y = x[j * a.inner];
        if (best == best && (y != y || (least ? y < best : y > best))) at = j;
      }
      ((int64_t*)arrays[1]->data)[i * a.inner + k] = at;
    }
  return 0;
}

// With another number than 0 after the axis, the sum is divided by that: it is a mean.
template <class T> long sum(const long* numbers, Arrays arrays) {
  const Axis a(numbers);
  const T count = numbers[4];
  const T* x = (const T*)arrays[0]->data;
  T* out = (T*)arrays[1]->data;
  for (long i = 0; i < a.outer; ++i, out += a.inner) {
    if (a.inner == 1) {  // in a register
      T total = a.n ? x[0] : T(0);
      for (long j = 1; j < a.n; ++j) total += x[j];
      out[0] = total, x += a.n;
    } else {
      for (long j = 0; j < a.n; ++j, x += a.inner)
        for (long k = 0; k < a.inner; ++k) out[k] = j ? out[k] + x[k] : x[k];
    }
    for (long k = 0; numbers[4] && k < a.inner; ++k) out[k] /= count;
  }
  return 0;
}

// Whether any element is not 0, or with ALL every one.
template <class T, bool ALL> long test(const long* numbers, Arrays arrays) {
  const Axis a(numbers);
  const T* x = (const T*)arrays[0]->data;
  bool* out = (bool*)arrays[1]->data;
  if (a.inner == 1) {  // in a register; without a branch, so that the compiler writes vectors
    for (long i = 0; i < a.outer; ++i, x += a.n) {
      bool found = false;
      for (long j = 0; j < a.n; ++j) found |= ALL ? x[j] == 0 : x[j] != 0;
      out[i] = found != ALL;
    }
    return 0;
  }
  for (long i = 0; i < a.outer; ++i, out += a.inner)
    for (long j = 0; j < a.n; ++j, x += a.inner)
      for (long k = 0; k < a.inner; ++k) {
        const bool is = x[k] != 0, before = j ? out[k] : ALL;
        out[k] = ALL ? before && is : before || is;
      }
  return 0;
}

// The result in runs of elements: each is the number of an array, a place there, the step between its
// elements, and how many they are. numbers: bytes of an element, how many runs, and which array has
// the runs. The result comes after it.
long runs(const long* numbers, Arrays arrays) {
  const long size = numbers[0], runs = numbers[1];
  const int64_t* run = (const int64_t*)arrays[numbers[2]]->data;
  char* to = arrays[numbers[2] + 1]->data;
  for (long r = 0; r < runs; ++r, run += 4) {
    copy_run(to, arrays[run[0]]->data + run[1] * size, run[2], run[3], size);
    to += run[3] * size;
  }
  return 0;
}

// numbers: the axis, bytes of an index, bytes of an element; arrays: x, places, out.
long take(const long* numbers, Arrays arrays) {
  const Axis a(numbers);
  const long bytes = a.inner * numbers[5];
  return with_places(arrays[1], numbers[4], [&](auto places) {
    for (long i = 0; i < a.outer; ++i)
      for (long j = 0; j < a.m; ++j) {
        const long place = place_of(places[j], a.n);
        if (place < 0) return 1;
        memcpy(arrays[2]->data + (i * a.m + j) * bytes, arrays[0]->data + (i * a.n + place) * bytes,
               bytes);
      }
    return 0;
  });
}

long take_along(const long* numbers, Arrays arrays) {
  const Axis a(numbers);
  const long size = numbers[5];
  return with_places(arrays[1], numbers[4], [&](auto places) {
    for (long i = 0; i < a.outer; ++i)
      for (long j = 0; j < a.m; ++j)
        for (long k = 0; k < a.inner; ++k) {
          const long at = (i * a.m + j) * a.inner + k, place = place_of(places[at], a.n);
          if (place < 0) return 1;
          const long from = (i * a.n + place) * a.inner + k;
          copy_run(arrays[2]->data + at * size, arrays[0]->data + from * size, 1, 1, size);
        }
    return 0;
  });
}

}  // namespace

extern "C" long gpugrad_function(const long* numbers, Arrays arrays) {
  return FUNCTION(numbers, arrays);
}
