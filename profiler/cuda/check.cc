#include "profiler/cuda/check.h"

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/units.h"

namespace lockstep::cuda {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    throw Error(
        fmt::format("{}: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status)));
  }
}

void FreeDeviceMemory::operator()(void* memory) const {
  (void)cudaFree(memory);
  if (held != nullptr) {
    *held -= bytes;
  }
}

Buffer::Buffer(std::int64_t bytes, std::int64_t* held) : size_(bytes < 1 ? 1 : bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(size_));
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw Error(fmt::format("no {} of GPU memory left", to_text(Bytes(size_))));
  }
  check(status, "cudaMalloc");
  memory_ = std::unique_ptr<void, FreeDeviceMemory>(memory, FreeDeviceMemory{size_, held});
  if (held != nullptr) {
    *held += size_;
  }
}

Stream::Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
Stream::~Stream() { (void)cudaStreamDestroy(stream_); }
void Stream::synchronise() const { check(cudaStreamSynchronize(stream_), "kernel"); }

Event::Event() { check(cudaEventCreate(&event_), "event"); }
Event::~Event() { (void)cudaEventDestroy(event_); }
void Event::record(const Stream& stream) const {
  check(cudaEventRecord(event_, stream.get()), "event");
}

double seconds_between(const Event& begin, const Event& end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "event");
  return std::round(static_cast<double>(milliseconds) * 1e6) / 1e9;  // whole nanoseconds
}

}  // namespace lockstep::cuda
