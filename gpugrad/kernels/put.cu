// What a CUDA graph reads and the host has: numbers, and arrays that lie elsewhere. Numbers and
// addresses come by value, with the arguments of the launch, so the host may write the next ones at
// once, and nothing waits. After the graph it is results that are copied, to where they stay.

constexpr int ROOM = 480;  // words: 3840 of the 4096 bytes that the arguments of a kernel may have

struct Words {
  unsigned long long at[ROOM];
};

// The first words are numbers, written to `to`; from word `jobs` on are `copies` of three: where an
// array is, where it goes, and its bytes.
__global__ void put(const __grid_constant__ Words given, unsigned long long* to, int numbers,
                    int jobs, int copies) {
  const long long thread = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  const long long threads = gridDim.x * (long long)blockDim.x;
  for (long long i = thread; i < numbers; i += threads) to[i] = given.at[i];
  for (int k = 0; k < copies; ++k) {
    const unsigned long long* job = given.at + jobs + 3 * k;
    const unsigned long long from = job[0], into = job[1];
    const long long bytes = (long long)job[2];
    if (((from | into | job[2]) & 15) == 0) {
      typedef Pack<int, 4> Sixteen;
      for (long long i = thread; i < bytes / 16; i += threads)
        ((Sixteen*)into)[i] = ((const Sixteen*)from)[i];
    } else {
      for (long long i = thread; i < bytes; i += threads) ((char*)into)[i] = ((const char*)from)[i];
    }
  }
}
