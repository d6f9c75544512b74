// Philox4x64-10 and the words of its blocks; gpugrad.ops.random.philox turns them into numbers.
typedef unsigned long long Word;

struct Block {
  Word at[4];
};

__device__ inline Block philox(Word k0, Word k1, Word c0, Word c1, Word c2, Word c3) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    Word high0 = __umul64hi(c0, 0xD2E7470EE14C6C93ULL), low0 = c0 * 0xD2E7470EE14C6C93ULL;
    Word high1 = __umul64hi(c2, 0xCA5A826395121157ULL), low1 = c2 * 0xCA5A826395121157ULL;
    c0 = high1 ^ c1 ^ k0, c1 = low1, c2 = high0 ^ c3 ^ k1, c3 = low0;
    k0 += 0x9E3779B97F4A7C15ULL, k1 += 0xBB67AE8584CAA73BULL;
  }
  return {{c0, c1, c2, c3}};
}

// `state`, if not null, holds (key 0, key 1, counter, word 2) on the device, so that each replay of
// a CUDA graph can draw other numbers; `first` is then added to the counter.
struct Stream {
  Word k0, k1, first, third;
  __device__ Stream(const Word* state, Word k0, Word k1, Word first, Word third)
      : k0(state ? state[0] : k0), k1(state ? state[1] : k1),
        first(state ? state[2] + first : first), third(state ? state[3] + third : third) {}
  __device__ Block operator[](Word k) const { return philox(k0, k1, first + k, 0, third, 0); }
};

// Word i of sizeof(W) bytes of a block, low half first.
template <class W> __device__ W word_of(const Block& block, int i);
template <> __device__ inline unsigned word_of<unsigned>(const Block& block, int i) {
  return unsigned(block.at[i / 2] >> (i % 2 * 32));
}
template <> __device__ inline Word word_of<Word>(const Block& block, int i) { return block.at[i]; }

struct Uniform {
  __device__ float operator()(unsigned w) const { return float(w >> 8) * 5.9604644775390625e-8f; }
  __device__ double operator()(Word w) const { return double(w >> 11) * 1.1102230246251565404e-16; }
};
