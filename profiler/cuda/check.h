#pragma once

#include <cstdint>
#include <cuda_runtime_api.h>
#include <memory>
#include <string>

namespace lockstep::cuda {

/// ERRORS: Error with CUDA's reason and `what`, unless the status is success. An error of an
/// earlier launch shows here too.
void check(cudaError_t status, const char* what);

struct FreeDeviceMemory {
  std::int64_t bytes = 0;
  std::int64_t* held = nullptr;
  void operator()(void* memory) const;
};

/// Device memory. Counts towards `held`, which outlives it.
class Buffer {
 public:
  Buffer() = default;
  /// At least one byte; aligned to 256. ERRORS: not enough memory.
  Buffer(std::int64_t bytes, std::int64_t* held);
  void* get() const { return memory_.get(); }
  template <class T>
  T* as() const {
    return static_cast<T*>(memory_.get());
  }
  std::int64_t size() const { return size_; }

 private:
  std::unique_ptr<void, FreeDeviceMemory> memory_;
  std::int64_t size_ = 0;
};

/// A stream, and an event, that end with the object.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }
  void synchronise() const;

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }
  void record(const Stream& stream) const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// Seconds from one event to a later one, which has passed.
double seconds_between(const Event& begin, const Event& end);

}  // namespace lockstep::cuda
