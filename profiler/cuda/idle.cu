// Time that passes on a stream.
#include "profiler/cuda/idle.h"

namespace lockstep::cuda {
namespace {

__device__ std::int64_t now_ns() {
  std::int64_t time = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void wait(std::int64_t nanoseconds, const volatile int* stop) {
  const std::int64_t end = now_ns() + nanoseconds;
  for (std::int64_t left = nanoseconds; left > 0 && *stop == 0; left = end - now_ns()) {
    __nanosleep(left < 1000 ? static_cast<unsigned>(left) : 1000U);
  }
}

}  // namespace

void idle(std::int64_t nanoseconds, const int* stop, cudaStream_t stream) {
  wait<<<1, 1, 0, stream>>>(nanoseconds, stop);
}

}  // namespace lockstep::cuda
