// Convolutions of float32 over two axes, and their gradients, without columns of windows: a vector
// holds the same pixel of LANES filters, and registers hold LANES pixels. Where a group has few
// filters (depthwise convolutions), a vector holds neighbouring pixels of one filter instead. The text
// begins with a definition of SUMS or WEIGHTS: what it is compiled for.
#include "convolution.h"
#include "pool.h"

namespace {

const long SHARED = 1 << 17;  // multiply-adds from which threads share them: 3 us
const long CHUNKS = 8;  // most parts of the examples whose gradients by the weights are added up
const long NEAREST = (1 << 13);  // floats that stay in the nearest cache beside others
const long PARTIAL = 1 << 22;  // most floats of all parts

Vector load(const float* at) { return *(const Vector*)at; }

// The pieces of a job, on several threads if they are worth waking them.
void share(gpugrad_job job, void* state, long n, double multiply_adds) {
  if (multiply_adds >= SHARED) return gpugrad_parallel(job, state, n);
  for (long k = 0; k < n; ++k) job(state, k);
}

double work_of(const Sum& sum) {
  return double(sum.examples * sum.groups * sum.channels * sum.filters) * sum.taps.length *
         (sum.high[0] - sum.low[0]) * (sum.high[1] - sum.low[1]);
}

// ---- weights, packed: (group, block of LANES filters, channel, tap, lane), or without blocks

struct Weights {
  const Sum* sum;
  const float* w;
  float* packed;
  long taps;  // of the whole kernel
  bool swapped;  // the filters of the sum are the channels of the weights
};

long lanes_of(const Sum& sum) { return by_lanes(sum.filters) ? LANES : 1; }

long packed_size(const Sum& sum) {
  long lanes = lanes_of(sum), blocks = divided(sum.filters, lanes);
  return sum.groups * blocks * lanes * sum.channels * sum.taps.length;
}

void pack_weights(void* state, long k) {
  Weights& job = *(Weights*)state;
  const Sum& sum = *job.sum;
  long lanes = lanes_of(sum), blocks = divided(sum.filters, lanes), taps = sum.taps.length;
  long group = k / blocks, first = k % blocks * lanes;
  float* out = job.packed + k * sum.channels * taps * lanes;
  for (long lane = 0; lane < lanes; ++lane)
    for (long c = 0; c < sum.channels; ++c) {
      long f = first + lane;
      long row = job.swapped ? (group * sum.channels + c) * sum.filters + f
                             : (group * sum.filters + f) * sum.channels + c;
      const float* w = job.w + row * job.taps;
      for (long t = 0; t < taps; ++t)
        out[(c * taps + t) * lanes + lane] = f < sum.filters ? w[sum.taps[t].index] : 0.f;
    }
}

// ---- sums, LANES filters at a time

// Adds some channels to a tile of outputs, WIDE pixels in a row, of one or two blocks of filters,
// whose weights are `next` apart. With two, a pixel is read once for both, which takes less time.
template <int WIDE, int BLOCKS>
void add_tile(const Sum& sum, const float* packed, const float* weights, long next, long channels,
              Vector* a) {
  const long taps = sum.taps.length, width = sum.width, *offset = sum.offset.first;
  const int pixels = LANES / BLOCKS;  // at once, so that registers hold the sums
  for (int first = 0; first < LANES; first += pixels, a += pixels) {
    Vector s[BLOCKS][pixels];
    for (int b = 0; b < BLOCKS; ++b)
      for (int k = 0; k < pixels; ++k) s[b][k] = a[b * LANES + k];
    const float *from = packed + first / WIDE * width + first % WIDE, *w = weights;
    for (long c = 0; c < channels; ++c, from += sum.block)
      for (long t = 0; t < taps; ++t, w += LANES) {
        const float* x = from + offset[t];
        Vector own[BLOCKS];
        for (int b = 0; b < BLOCKS; ++b) own[b] = load(w + b * next);
#pragma GCC unroll 16
        for (int k = 0; k < pixels; ++k)
          for (int b = 0; b < BLOCKS; ++b) s[b][k] += own[b] * x[k / WIDE * width + k % WIDE];
      }
    for (int b = 0; b < BLOCKS; ++b)
      for (int k = 0; k < pixels; ++k) a[b * LANES + k] = s[b][k];
  }
}

template <int WIDE>
void store_tile(const Sum& sum, Vector* a, float* out, long filters, const long q[2]) {
  transpose(a);
  long height = smaller(sum.tile[0], sum.high[0] - q[0]), length = sum.high[1] - q[1];
  long plane = sum.out_size[0] * sum.out_size[1];
  long down = sum.out_step[0] * sum.out_size[1], step = sum.out_step[1];
  out += q[0] * down + q[1] * step + sum.out_base[0] * sum.out_size[1] + sum.out_base[1];
  for (long f = 0; f < filters; ++f, out += plane)
    for (long h = 0; h < height; ++h) {
      const float* row = (const float*)&a[f] + h * WIDE;
      if (step == 1)
        copy(row, out + h * down, smaller(length, WIDE));
      else
        for (long w = 0; w < smaller(length, WIDE); ++w) out[h * down + w * step] = row[w];
    }
}

long tiles(const Sum& sum) {
  return sum.rows / sum.tile[0] * divided(sum.high[1] - sum.low[1], sum.tile[1]);
}

// The sums of a strip, of one or two blocks of filters. They are kept between parts of the channels,
// whose weights stay in the nearest cache.
template <int WIDE, int BLOCKS>
void sum_blocks(const Sum& sum, const float* packed, const float* weights, float* out, long filters,
                long q0, long q1, Vector* kept) {
  long taps = sum.taps.length, next = sum.channels * taps * LANES, q[2];
  long most = larger(1, NEAREST / larger(1, taps * LANES * BLOCKS));
  long plane = sum.out_size[0] * sum.out_size[1];
  for (long c = 0; c < sum.channels; c += most) {
    Vector* a = kept;
    long channels = smaller(most, sum.channels - c);
    for (q[0] = q0; q[0] < q1; q[0] += sum.tile[0])
      for (q[1] = sum.low[1]; q[1] < sum.high[1]; q[1] += WIDE, a += BLOCKS * LANES) {
        for (int k = 0; c == 0 && k < BLOCKS * LANES; ++k) a[k] = Vector{};
        const float* x = packed + c * sum.block + (q[0] - q0) * sum.width + q[1] - sum.low[1];
        add_tile<WIDE, BLOCKS>(sum, x, weights + c * taps * LANES, next, channels, a);
        for (long b = 0; c + channels == sum.channels && b < BLOCKS; ++b) {
          long own = smaller(LANES, filters - b * LANES);
          store_tile<WIDE>(sum, a + b * LANES, out + b * LANES * plane, own, q);
        }
      }
  }
}

template <int WIDE>
void sum_lanes(const Sum& sum, const float* packed, const float* weights, float* out, long q0,
               long q1, Vector* kept) {
  long block = sum.channels * sum.taps.length * LANES, plane = sum.out_size[0] * sum.out_size[1];
  for (long filters = sum.filters; filters > 0;) {
    long blocks = filters > LANES ? 2 : 1;
    auto sum_some = blocks == 2 ? sum_blocks<WIDE, 2> : sum_blocks<WIDE, 1>;
    sum_some(sum, packed, weights, out, filters, q0, q1, kept);
    weights += blocks * block, out += blocks * LANES * plane, filters -= blocks * LANES;
  }
}

// ---- sums, LANES pixels of a row at a time

const int ROWS = 4;  // at once, since a sum has to wait for the one before

// `weights` are those of one filter.
template <int R>
void sum_pixels(const Sum& sum, const float* packed, const float* weights, Vector* s) {
  const long taps = sum.taps.length, width = sum.width, *offset = sum.offset.first;
  for (int r = 0; r < R; ++r) s[r] = Vector{};
  for (long c = 0; c < sum.channels; ++c, packed += sum.block)
    for (long t = 0; t < taps; ++t) {
      float w = *weights++;
      for (int r = 0; r < R; ++r) s[r] += load(packed + offset[t] + r * width) * w;
    }
}

void sum_rows(
    const Sum& sum, const float* packed, const float* weights, float* out, long q0, long q1) {
  long n = sum.high[1] - sum.low[1], step = sum.out_step[1];
  long down = sum.out_step[0] * sum.out_size[1];
  for (long f = 0; f < sum.filters; ++f, weights += sum.channels * sum.taps.length) {
    for (long q = q0; q < q1; q += ROWS)
      for (long j = 0; j < n; j += LANES) {
        Vector s[ROWS];
        const float* x = packed + (q - q0) * sum.width + j;
        long rows = smaller(ROWS, q1 - q), length = smaller(LANES, n - j);
        if (rows == ROWS)
          sum_pixels<ROWS>(sum, x, weights, s);
        else
          for (long r = 0; r < rows; ++r) sum_pixels<1>(sum, x + r * sum.width, weights, s + r);
        float* to = out + q * down + (sum.low[1] + j) * step;
        to += sum.out_base[0] * sum.out_size[1] + sum.out_base[1];
        for (long r = 0; r < rows; ++r, to += down)
          if (step == 1 && length == LANES)
            *(Vector*)to = s[r];
          else
            for (long k = 0; k < length; ++k) to[k * step] = s[r][k];
      }
    out += sum.out_size[0] * sum.out_size[1];
  }
}

struct Work {
  const Sum* sum;
  const float* weights;
};

void sum_piece(void* state, long k) {
  const Work& work = *(Work*)state;
  const Sum& sum = *work.sum;
  long strip = k % sum.strips, group = k / sum.strips % sum.groups;
  long example = k / sum.strips / sum.groups;
  long q0 = sum.low[0] + strip * sum.rows, q1 = smaller(q0 + sum.rows, sum.high[0]);
  long size = divided(sum.channels * sum.block + LANES, LANES) * LANES;
  float* memory = scratch(size + tiles(sum) * 2 * LANES * LANES);
  Vector* kept = (Vector*)(memory + size);
  const float* packed = sum.packed(example, group, q0, memory);
  const float* weights = work.weights + packed_size(sum) / sum.groups * group;
  float* out = sum.out +
               (example * sum.groups + group) * sum.filters * sum.out_size[0] * sum.out_size[1];
  if (!by_lanes(sum.filters)) return sum_rows(sum, packed, weights, out, q0, q1);
  auto lanes = sum.tile[1] == LANES       ? sum_lanes<LANES>
               : sum.tile[1] == LANES / 2 ? sum_lanes<LANES / 2>
                                          : sum_lanes<LANES / 4>;
  lanes(sum, packed, weights, out, q0, q1, kept);
}

void run(const Sum& sum, const Shape& shape, const float* w, bool swapped) {
  if (sum.is_empty()) return;
  List<float> packed(packed_size(sum));
  Weights weights = {&sum, w, packed.first, shape.kernel[0] * shape.kernel[1], swapped};
  const double gathers = 4.0 * packed_size(sum);  // each takes as long as some multiply-adds
  share(pack_weights, &weights, sum.groups * divided(sum.filters, lanes_of(sum)), gathers);
  Work work = {&sum, packed.first};
  share(sum_piece, &work, sum.examples * sum.groups * sum.strips, work_of(sum));
}

// ---- the gradient by the weights

struct Gradient {
  const Sum* sum;
  const float* g;
  float* partial;  // (chunk, group, block of filters, channel and tap, lane)
  long chunks, each;  // parts of the examples, and their length
  long splits, blocks;  // parts of the blocks of filters, and their length
  float* out;
};

// g of a strip, of one block of filters, as (pixel, lane).
void pack_lanes(const float* g, long plane, long filters, long pixels, float* packed) {
  long p = 0;
  for (; filters == LANES && p + LANES <= pixels; p += LANES) {
    Vector a[LANES];
    for (int lane = 0; lane < LANES; ++lane) a[lane] = load(g + lane * plane + p);
    transpose(a);
    for (int k = 0; k < LANES; ++k) *(Vector*)(packed + (p + k) * LANES) = a[k];
  }
  for (; p < pixels; ++p)
    for (long lane = 0; lane < LANES; ++lane)
      packed[p * LANES + lane] = lane < filters ? g[lane * plane + p] : 0.f;
}

// Adds to `out`, for LANES pairs of a channel and a tap, the sums of g times x over a strip, of one or
// two blocks of filters, which share the reads of x.
template <int BLOCKS>
void grad_lanes(const Sum& sum, const float* x, const float* g, long next, const long* offset,
                long rows, float* out, long next_out) {
  const long n = sum.out_size[1];
  const int pairs = LANES / BLOCKS;  // at once, so that registers hold the sums
  for (int first = 0; first < LANES; first += pairs, offset += pairs, out += pairs * LANES) {
    const float *row = x, *own = g;
    Vector a[BLOCKS][pairs];
    for (int b = 0; b < BLOCKS; ++b)
      for (int k = 0; k < pairs; ++k) a[b][k] = Vector{};
    for (long q = 0; q < rows; ++q, row += sum.width) {
      long j = 0;
      for (; j + 4 <= n; j += 4, own += 4 * LANES) {
        Vector pixels[BLOCKS][4];
        for (int b = 0; b < BLOCKS; ++b)
          for (int i = 0; i < 4; ++i) pixels[b][i] = load(own + b * next + i * LANES);
#pragma GCC unroll 16
        for (int k = 0; k < pairs; ++k) {
          const float* at = row + offset[k] + j;
#pragma GCC unroll 4
          for (int i = 0; i < 4; ++i)
            for (int b = 0; b < BLOCKS; ++b) a[b][k] += pixels[b][i] * at[i];
        }
      }
      for (; j < n; ++j, own += LANES)
#pragma GCC unroll 16
        for (int k = 0; k < pairs; ++k)
          for (int b = 0; b < BLOCKS; ++b) a[b][k] += load(own + b * next) * row[offset[k] + j];
    }
    for (int b = 0; b < BLOCKS; ++b)
      for (int k = 0; k < pairs; ++k) {
        float* to = out + b * next_out + k * LANES;
        *(Vector*)to = load(to) + a[b][k];
      }
  }
}

// The sum of g times x over a strip, for one filter, channel and tap; rows of g are filled up with
// zeros to vectors.
float grad_row(const Sum& sum, const float* x, const float* g, long rows) {
  typedef int Bits __attribute__((vector_size(4 * LANES), aligned(4)));
  long n = sum.out_size[1];
  Vector a = {};
  Bits inside;
  for (int k = 0; k < LANES; ++k) inside[k] = k < (n - 1) % LANES + 1 ? -1 : 0;
  for (long q = 0; q < rows; ++q, x += sum.width) {
    long j = 0;
    for (; j + LANES < n; j += LANES, g += LANES) a += load(x + j) * load(g);
    a += (Vector)((Bits)load(x + j) & inside) * load(g);  // 0 * infinity would be NaN
    g += LANES;
  }
  float result = 0;
  for (int k = 0; k < LANES; ++k) result += a[k];
  return result;
}

// g of a strip, of one filter, in rows filled up with zeros to vectors.
void pack_rows(const float* g, long rows, long n, float* packed) {
  for (long q = 0; q < rows; ++q, g += n, packed += divided(n, LANES) * LANES) {
    memcpy(packed, g, n * sizeof(float));
    memset(packed + n, 0, (divided(n, LANES) * LANES - n) * sizeof(float));
  }
}

long padded_columns(const Sum& sum) {  // to whole groups of LANES
  long columns = sum.channels * sum.taps.length;
  return lanes_of(sum) == 1 ? columns : divided(columns, LANES) * LANES;
}

// Adds the sums over a strip to those of one or two blocks of filters.
void grad_strip(const Gradient& job, const float* packed, float* g_packed, const float* g,
                long block, long blocks, long rows, const List<long>& offset, float* out) {
  const Sum& sum = *job.sum;
  long plane = sum.out_size[0] * sum.out_size[1], lanes = lanes_of(sum);
  g += block * lanes * plane;
  if (lanes == 1) {
    pack_rows(g, rows, sum.out_size[1], g_packed);
    for (long k = 0; k < offset.length; ++k)
      out[k] += grad_row(sum, packed + offset[k], g_packed, rows);
    return;
  }
  long next = rows * sum.out_size[1] * LANES, next_out = padded_columns(sum) * LANES;
  for (long b = 0; b < blocks; ++b) {
    long filters = smaller(LANES, sum.filters - (block + b) * LANES);
    pack_lanes(g + b * LANES * plane, plane, filters, next / LANES, g_packed + b * next);
  }
  auto add = blocks == 2 ? grad_lanes<2> : grad_lanes<1>;
  for (long k = 0; k < offset.length; k += LANES)
    add(sum, packed, g_packed, next, offset.first + k, rows, out + k * LANES, next_out);
}

void grad_piece(void* state, long piece) {
  const Gradient& job = *(Gradient*)state;
  const Sum& sum = *job.sum;
  long split = piece % job.splits, group = piece / job.splits % sum.groups;
  long chunk = piece / job.splits / sum.groups;
  long lanes = lanes_of(sum), blocks = divided(sum.filters, lanes), taps = sum.taps.length;
  long columns = padded_columns(sum), plane = sum.out_size[0] * sum.out_size[1];
  List<long> offset(columns);  // those that fill the last group repeat the last one
  for (long k = 0; k < columns; ++k) {
    long at = smaller(k, sum.channels * taps - 1);
    offset[k] = at / taps * sum.block + sum.offset[at % taps];
  }
  long first = split * job.blocks, last = smaller(first + job.blocks, blocks);
  float* out = job.partial + ((chunk * sum.groups + group) * blocks + first) * columns * lanes;
  memset(out, 0, (last - first) * columns * lanes * sizeof(float));
  long size = sum.channels * sum.block + LANES;
  size = divided(size, LANES) * LANES;
  float* memory = scratch(size + 2 * sum.rows * sum.out_size[1] * LANES);
  float* g_packed = memory + size;
  long end = smaller((chunk + 1) * job.each, sum.examples);
  for (long example = chunk * job.each; example < end; ++example)
    for (long q = 0; q < sum.out_size[0]; q += sum.rows) {
      long rows = smaller(sum.rows, sum.out_size[0] - q);
      const float* g = job.g + (example * sum.groups + group) * sum.filters * plane;
      g += q * sum.out_size[1];
      const float* packed = sum.packed(example, group, q, memory);
      for (long block = first, some; block < last; block += some) {
        some = lanes == LANES && block + 1 < last ? 2 : 1;
        float* to = out + (block - first) * columns * lanes;
        grad_strip(job, packed, g_packed, g, block, some, rows, offset, to);
      }
    }
}

// Adds up the parts, in order, for one block of filters of a group.
void grad_end(void* state, long k) {
  const Gradient& job = *(Gradient*)state;
  const Sum& sum = *job.sum;
  long lanes = lanes_of(sum), blocks = divided(sum.filters, lanes), columns = padded_columns(sum);
  long own = sum.channels * sum.taps.length, group = k / blocks, first = k % blocks * lanes;
  float* part = job.partial + k * columns * lanes;
  for (long c = 1; c < job.chunks; ++c) {
    const float* other = part + c * sum.groups * blocks * columns * lanes;
    for (long i = 0; i < columns * lanes; ++i) part[i] += other[i];
  }
  for (long lane = 0; lane < lanes && first + lane < sum.filters; ++lane) {
    float* out = job.out + (group * sum.filters + first + lane) * own;
    for (long i = 0; i < own; ++i) out[i] = part[i * lanes + lane];
  }
}

}  // namespace

extern "C" {

#ifdef SUMS
// out = the convolution of x and w.
void gpugrad_convolution(const Shape* shape, const float* x, const float* w, float* out) {
  run(convolved(*shape, x, out), *shape, w, false);
}

// out = the gradient by the input.
void gpugrad_convolution_input(const Shape* shape, const float* g, const float* w, float* out) {
  long phase[2];
  for (phase[0] = 0; phase[0] < shape->stride[0]; ++phase[0])
    for (phase[1] = 0; phase[1] < shape->stride[1]; ++phase[1])
      run(spread(*shape, g, out, phase), *shape, w, true);
}
#endif

#ifdef WEIGHTS
// out = the gradient by the weights.
void gpugrad_convolution_weights(const Shape* shape, const float* x, const float* g, float* out) {
  Sum sum = convolved(*shape, x, nullptr);
  long lanes = lanes_of(sum), blocks = divided(sum.filters, lanes);
  long size = sum.groups * blocks * padded_columns(sum) * lanes;
  long chunks = larger(1, smaller(smaller(CHUNKS, sum.examples), PARTIAL / size));
  long each = divided(sum.examples, chunks);
  chunks = divided(sum.examples, each);
  long splits = smaller(blocks, divided(CHUNKS, chunks * sum.groups));
  long per = divided(blocks, splits);
  splits = divided(blocks, per);
  List<float> partial(size * chunks);
  Gradient job = {&sum, g, partial.first, chunks, each, splits, per, out};
  share(grad_piece, &job, chunks * sum.groups * splits, work_of(sum));
  share(grad_end, &job, sum.groups * blocks, size * chunks);
}
#endif
}
