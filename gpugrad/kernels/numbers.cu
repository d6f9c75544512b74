// Numbers that a CUDA graph reads, different in each of its runs. They come by value, with the
// arguments of the launch, so the host may write the next ones at once, and nothing waits.

constexpr int ROOM = 480;  // words: 3840 of the 4096 bytes that the arguments of a kernel may have

struct Words {
  unsigned long long at[ROOM];
};

__global__ void put_numbers(const __grid_constant__ Words given, unsigned long long* to, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = given.at[i];
}
