#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "profiler/cuda/launch.h"

namespace lockstep::cuda {

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

/// N elements that are moved as 16-byte words where they fill them.
template <int N, class T>
struct alignas(N * sizeof(T) >= 16 ? 16 : N * sizeof(T)) Packed {
  T values[N];
};

template <int N, class T>
__device__ __forceinline__ void load(const T* from, float (&to)[N]) {
  const Packed<N, T> packed = *reinterpret_cast<const Packed<N, T>*>(from);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    to[i] = to_float(packed.values[i]);
  }
}
template <int N, class T>
__device__ __forceinline__ void store(T* to, const float (&from)[N]) {
  Packed<N, T> packed;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    packed.values[i] = from_float<T>(from[i]);
  }
  *reinterpret_cast<Packed<N, T>*>(to) = packed;
}

/// Calls f.template operator()<T>() with the element's type.
template <class F>
void with_type(Element element, F&& f) {
  switch (element) {
    case Element::kBf16:
      f(__nv_bfloat16());
      return;
    case Element::kFp16:
      f(__half());
      return;
    case Element::kFp32:
      f(float());
      return;
  }
}

/// Merges the threads' values over a block of whole warps; all get the result. `room` has one place
/// a warp.
template <class V, class Shuffle, class Merge>
__device__ __forceinline__ V reduce_warp(V value, Shuffle shuffle, Merge merge) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = merge(value, shuffle(value, distance));
  }
  return value;
}
template <int Threads, class V, class Shuffle, class Merge>
__device__ __forceinline__ V reduce_block(V value, V* room, Shuffle shuffle, Merge merge) {
  value = reduce_warp(value, shuffle, merge);
  if constexpr (Threads > 32) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    __syncthreads();  // the room may still be read from a reduction before
    if (threadIdx.x % 32 == 0) {
      room[warp] = value;
    }
    __syncthreads();
    value = room[0];
#pragma unroll
    for (int i = 1; i < Threads / 32; ++i) {
      value = merge(value, room[i]);
    }
  }
  return value;
}

inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;
struct ShuffleFloat {
  __device__ float operator()(float v, int d) const { return __shfl_xor_sync(kAllLanes, v, d); }
};
struct AddFloat {
  __device__ float operator()(float a, float b) const { return a + b; }
};

inline std::int64_t blocks_for(std::int64_t work, std::int64_t each) {
  return (work + each - 1) / each;
}

}  // namespace lockstep::cuda
