// The geometry of convolutions over two axes, and images packed so that kernels need no borders.
//
// Along each axis, output q sums over the taps r of the kernel, times the inputs q * stride + r *
// dilation - before. Write r * dilation - before as e * stride + phase: then that is number q + e
// of every stride-th input, from `phase` on. If an image is packed by phases, with zeros around it,
// each tap reads it at a fixed offset, with step 1 for any stride.
//
// The gradient by the input is such a sum, too. Input y is in phase f = (y + before) % stride, with
// q = (y + before) / stride. It gets contributions from the taps for which f - r * dilation is a
// multiple e * stride, by output q + e. So each phase of the input is a convolution of step 1.
#pragma once

#include "lanes.h"
#include "list.h"

#include <cstdlib>
#include <cstring>

const long SHORT = 16;  // floats of rows for which a call of memcpy is slower than vectors
const long STRIP = 1 << 16;  // floats of a packed strip of an image, which stay in the second cache

inline long floored(long a, long b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
inline long divided(long a, long b) { return -floored(-a, b); }

// Whether a vector holds filters; else neighbouring pixels of one filter.
inline bool by_lanes(long filters) { return filters >= LANES / 2; }

// Memory of the calling thread, kept for its next piece; at least `n` floats.
inline float* scratch(long n) {
  struct Memory {
    float* at = nullptr;
    long size = 0;
    ~Memory() { free(at); }
  };
  static thread_local Memory memory;
  if (n > memory.size) {
    free(memory.at);
    memory.at = (float*)aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64);
    memory.size = n;
  }
  return memory.at;
}

struct Shape {  // as Python passes it; channels and filters are those of one group
  long examples, groups, channels, filters;
  long in[2], kernel[2], out[2], stride[2], before[2], dilation[2];
};

struct Tap {
  long phase[2], e[2];
  long index;  // in the weights
};

struct Phase {
  long of[2];
  long first;  // the column of the input at column 0 of a packed row
  long begin, end;  // the columns of a packed row that are in the input
};

// A call of memcpy or memset takes longer than a short row: that is two vectors, which may overlap.
template <int N> struct Some {
  typedef float Type __attribute__((vector_size(4 * N), aligned(4)));
};

template <int N> void copy_two(const float* from, float* to, long n) {
  typedef typename Some<N>::Type Part;
  Part first = *(const Part*)from, last = *(const Part*)(from + n - N);
  *(Part*)to = first;
  *(Part*)(to + n - N) = last;
}

inline void copy(const float* from, float* to, long n) {
  if (n > 256) {
    memcpy(to, from, n * sizeof(float));
  } else if (n > 16) {
    typedef Some<16>::Type Part;
    for (long i = 0; i < n - 16; i += 16) *(Part*)(to + i) = *(const Part*)(from + i);
    *(Part*)(to + n - 16) = *(const Part*)(from + n - 16);
  } else if (n >= 8)
    copy_two<8>(from, to, n);
  else if (n >= 4)
    copy_two<4>(from, to, n);
  else if (n >= 2)
    copy_two<2>(from, to, n);
  else if (n == 1)
    *to = *from;
}

inline void clear(float* to, long n) {
  static const float zeros[16] = {};
  if (n > 16)
    memset(to, 0, n * sizeof(float));
  else
    copy(zeros, to, n);
}

// LANES floats, `step` apart, that is 1 or 2, and zeros where their number is not from `begin` to
// `end`.
inline Vector inside(const float* from, long step, long begin, long end) {
  typedef int Bits __attribute__((vector_size(4 * LANES), aligned(4)));
  Bits number;
  for (int k = 0; k < LANES; ++k) number[k] = k;
  Bits chosen = (number >= int(begin)) & (number < int(end));
  Vector x = *(const Vector*)from;
  if (step == 2) x = evens(x, *(const Vector*)(from + LANES));
  return (Vector)((Bits)x & chosen);
}

struct Sum {  // for every output: the sum over channels and taps of source times weight
  long examples, groups, channels, filters;
  const float* source;
  long size[2], step[2];  // of an image of the source
  float* out;
  long out_size[2], low[2], high[2];  // outputs q from low to high
  long out_step[2], out_base[2];  // are elements q * step + base of an image
  List<Tap> taps;

  // set by `lay_out`
  List<long> offset;  // of each tap in a packed channel
  List<Phase> phases;
  long least[2], tile[2], rows, strips, width, plane, block;
  bool in_place;  // whether images are read where they are, as for windows of one pixel

  bool is_empty() const { return low[0] >= high[0] || low[1] >= high[1]; }

  // Chooses the tile of outputs that wastes the fewest at the borders, and strips of an image. A
  // vector of pixels reads a whole number of vectors, too.
  void lay_out() {
    double best = 0;
    long n[2] = {high[0] - low[0], high[1] - low[1]}, most[2];
    for (long w = LANES; w >= (by_lanes(filters) ? LANES / 4 : LANES); w /= 2) {
      long h = LANES / w;
      double used = double(n[0] * n[1]) / (divided(n[0], h) * h * divided(n[1], w) * w);
      if (used > best) best = used, tile[0] = h, tile[1] = w;
    }
    for (int a = 0; a < 2; ++a) {
      least[a] = most[a] = !taps.length ? 0 : taps[0].e[a];
      for (auto& t : taps)
        least[a] = smaller(least[a], t.e[a]), most[a] = larger(most[a], t.e[a]);
    }
    width = divided(n[1], tile[1]) * tile[1] + most[1] - least[1];
    List<long> phase_of;
    for (auto& t : taps) phase_of.append(number(t.phase));
    long per_row = larger(1, channels * phases.length * width);
    rows = larger(1, STRIP / per_row - (most[0] - least[0])) / tile[0] * tile[0];
    rows = smaller(larger(rows, tile[0]), divided(n[0], tile[0]) * tile[0]);
    strips = divided(n[0], rows);
    plane = (rows + most[0] - least[0]) * width;
    block = plane * phases.length;
    offset.length = 0;
    for (long k = 0; k < taps.length; ++k) {
      long row = taps[k].e[0] - least[0], column = taps[k].e[1] - least[1];
      offset.append(phase_of[k] * plane + row * width + column);
    }
    in_place = phases.length == 1 && step[0] == 1 && step[1] == 1 &&
               channels * size[0] * size[1] <= STRIP / 2;  // a copy brings larger ones nearer
    for (int a = 0; a < 2; ++a)
      in_place &= !least[a] && !most[a] && n[a] == size[a] && n[a] % tile[a] == 0;
    if (in_place) block = size[0] * size[1];
  }

  // A strip of the images of one group, packed for outputs from row q on.
  const float* packed(long example, long group, long q, float* memory) const {
    const float* x = source + (example * groups + group) * channels * size[0] * size[1];
    if (in_place) return x + q * width;
    pack(x, q, memory);
    return memory;
  }

  void pack(const float* x, long q, float* packed) const {
    for (long c = 0; c < channels; ++c, x += size[0] * size[1])
      for (auto& p : phases) {
        long row = (q + least[0]) * step[0] + p.of[0];
        for (float* end = packed + plane; packed < end; packed += width, row += step[0])
          pack_row(x, row, p, packed);
      }
  }

 private:
  // The position in `phases` of a tap's.
  long number(const long phase[2]) {
    for (long k = 0; k < phases.length; ++k)
      if (phases[k].of[0] == phase[0] && phases[k].of[1] == phase[1]) return k;
    Phase p = {{phase[0], phase[1]}, (low[1] + least[1]) * step[1] + phase[1]};
    p.begin = smaller(width, larger(0, divided(-p.first, step[1])));
    p.end = larger(p.begin, smaller(width, divided(size[1] - p.first, step[1])));
    phases.append(p);
    return phases.length - 1;
  }

  const float* end_of_source() const {
    return source + examples * groups * channels * size[0] * size[1];
  }

  // A row as vectors, zeros outside. The last one may reach into the next row, which comes later.
  void pack_row(const float* x, long row, const Phase& p, float* packed) const {
    long end = row < 0 || row >= size[0] ? p.begin : p.end;
    const float* from = x + row * size[1] + p.first;
    bool is_whole = from >= source && from + step[1] * (width + LANES) <= end_of_source();
    if (is_whole && (step[1] == 2 || (step[1] == 1 && width <= SHORT))) {
      for (long j = 0; j < width; j += LANES)
        *(Vector*)(packed + j) = inside(from + j * step[1], step[1], p.begin - j, end - j);
      return;
    }
    clear(packed, p.begin);
    if (step[1] == 1)
      copy(from + p.begin, packed + p.begin, end - p.begin);
    else
      for (long j = p.begin; j < end; ++j) packed[j] = from[j * step[1]];
    clear(packed + end, width - end);
  }
};

// The convolution itself.
inline Sum convolved(const Shape& s, const float* x, float* out) {
  Sum sum = {s.examples, s.groups, s.channels, s.filters, x};
  sum.out = out;
  for (int a = 0; a < 2; ++a) {
    sum.size[a] = s.in[a], sum.step[a] = s.stride[a];
    sum.out_size[a] = sum.high[a] = s.out[a];
    sum.low[a] = sum.out_base[a] = 0, sum.out_step[a] = 1;
  }
  for (long k = 0; k < s.kernel[0] * s.kernel[1]; ++k) {
    Tap tap = {{}, {}, k};
    for (int a = 0; a < 2; ++a) {
      long shift = (a ? k % s.kernel[1] : k / s.kernel[1]) * s.dilation[a] - s.before[a];
      tap.e[a] = floored(shift, s.stride[a]);
      tap.phase[a] = shift - tap.e[a] * s.stride[a];
    }
    sum.taps.append(tap);
  }
  sum.lay_out();
  return sum;
}

// The gradient by the input, in one phase: sums over filters, whose results are channels.
inline Sum spread(const Shape& s, const float* g, float* out, const long phase[2]) {
  Sum sum = {s.examples, s.groups, s.filters, s.channels, g};
  sum.out = out;
  for (int a = 0; a < 2; ++a) {
    sum.size[a] = s.out[a], sum.step[a] = 1;
    sum.out_size[a] = s.in[a], sum.out_step[a] = s.stride[a];
    sum.out_base[a] = phase[a] - s.before[a];
    sum.low[a] = divided(-sum.out_base[a], s.stride[a]);
    sum.high[a] = divided(s.in[a] - sum.out_base[a], s.stride[a]);
  }
  for (long k = 0; k < s.kernel[0] * s.kernel[1]; ++k) {
    Tap tap = {{0, 0}, {}, k};
    bool meets = true;
    for (int a = 0; a < 2; ++a) {
      long shift = phase[a] - (a ? k % s.kernel[1] : k / s.kernel[1]) * s.dilation[a];
      tap.e[a] = floored(shift, s.stride[a]);
      meets = meets && shift == tap.e[a] * s.stride[a];
    }
    if (meets) sum.taps.append(tap);
  }
  if (!sum.is_empty()) sum.lay_out();
  return sum;
}
