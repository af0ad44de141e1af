// Kernels that treat elements one by one, eight at a time: as many bytes a thread as fill 16-byte
// words of 16-bit elements.
#include <cuda_fp8.h>

#include "profiler/cuda/element.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kPack = 8;
constexpr int kThreads = 256;

/// Calls f.run<8>(first) for whole packs and f.run<1>(element) for the rest.
template <class F>
__global__ void __launch_bounds__(kThreads) pointwise(std::int64_t elements, F f) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t packs = elements / kPack;
  for (std::int64_t pack = thread; pack < packs; pack += step) {
    f.template run<kPack>(pack * kPack);
  }
  if (thread < elements % kPack) {
    f.template run<1>(packs * kPack + thread);
  }
}

template <class F>
void launch(std::int64_t elements, const F& f, cudaStream_t stream) {
  const std::int64_t blocks = blocks_for(elements, kThreads * kPack);
  pointwise<<<static_cast<unsigned>(blocks < 1           ? 1
                                    : blocks > (1 << 24) ? 1 << 24
                                                         : blocks),
              kThreads, 0, stream>>>(elements, f);
}

template <class T>
struct Gelu {
  const T *x, *dy;
  T* out;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float a[N];
    load<N>(x + at, a);
    if (dy == nullptr) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        a[i] = kernels::gelu_forward(a[i]);
      }
    } else {
      float b[N];
      load<N>(dy + at, b);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        a[i] = kernels::gelu_backward(a[i], b[i]);
      }
    }
    store<N>(out + at, a);
  }
};

template <class T>
struct Swiglu {
  const T *x, *dy;
  T *y, *dx;
  std::int64_t width;
  template <int N>
  __device__ void run(std::int64_t at) const {
    const std::int64_t row = at / width;
    const std::int64_t gate = at + row * width;  // rows of the input are twice as wide
    float a[N], b[N];
    load<N>(x + gate, a);
    load<N>(x + gate + width, b);
    if (dy == nullptr) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        a[i] = kernels::swiglu_forward(a[i], b[i]);
      }
      store<N>(y + at, a);
      return;
    }
    float c[N];
    load<N>(dy + at, c);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const kernels::GatedGradient g = kernels::swiglu_backward(a[i], b[i], c[i]);
      a[i] = g.gate;
      b[i] = g.up;
    }
    store<N>(dx + gate, a);
    store<N>(dx + gate + width, b);
  }
};

template <class T>
struct Add {
  const T *a, *b;
  T* sum;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float x[N], y[N];
    load<N>(a + at, x);
    load<N>(b + at, y);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      x[i] += y[i];
    }
    store<N>(sum + at, x);
  }
};

template <class T>
struct Dropout {
  const T* x;
  T* y;
  std::uint8_t* mask;
  std::uint64_t seed;
  std::uint32_t drop;
  float kept;  // 1 / (1 - probability)
  bool backward;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float a[N];
    load<N>(x + at, a);
    Packed<N, std::uint8_t> keep;
    if (backward) {
      keep = *reinterpret_cast<const Packed<N, std::uint8_t>*>(mask + at);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (!backward) {
        const auto element = static_cast<std::uint64_t>(at + i);
        keep.values[i] = kernels::keeps(seed, element, drop) ? 1 : 0;
      }
      a[i] = keep.values[i] != 0 ? a[i] * kept : 0.0F;
    }
    if (!backward) {
      *reinterpret_cast<Packed<N, std::uint8_t>*>(mask + at) = keep;
    }
    store<N>(y + at, a);
  }
};

template <class T>
struct Accumulate {
  const T* gradient;
  float* sum;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float a[N], b[N];
    load<N>(gradient + at, a);
    load<N>(sum + at, b);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      b[i] += a[i];
    }
    store<N>(sum + at, b);
  }
};

template <class T>
struct Adam {
  AdamArguments a;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float g[N], p[N], m[N], v[N];
    load<N>(a.gradient + at, g);
    load<N>(a.parameter + at, p);
    load<N>(a.first + at, m);
    load<N>(a.second + at, v);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      kernels::AdamState state;
      state.parameter = p[i];
      state.first = m[i];
      state.second = v[i];
      state = kernels::adam(state, g[i], a.constants);
      p[i] = state.parameter;
      m[i] = state.first;
      v[i] = state.second;
    }
    store<N>(a.parameter + at, p);
    store<N>(a.first + at, m);
    store<N>(a.second + at, v);
    if (a.copy != nullptr) {
      store<N>(static_cast<T*>(a.copy) + at, p);
    }
  }
};

struct Scale {
  float* x;
  float factor;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float a[N];
    load<N>(x + at, a);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      a[i] *= factor;
    }
    store<N>(x + at, a);
  }
};

__device__ __forceinline__ std::uint8_t fp8(float x) {
  return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
}

template <class T>
struct Cast {
  const T* x;
  std::uint8_t* y;
  float factor;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float a[N];
    load<N>(x + at, a);
    Packed<N, std::uint8_t> out;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      out.values[i] = fp8(a[i] * factor);
    }
    *reinterpret_cast<Packed<N, std::uint8_t>*>(y + at) = out;
  }
};

__device__ __forceinline__ float uniform(std::uint64_t seed, std::int64_t element) {
  return static_cast<float>(kernels::random_bits(seed, static_cast<std::uint64_t>(element))) *
             0x1p-31F -
         1.0F;
}

template <class T>
struct FillRandom {
  T* x;
  std::uint64_t seed;
  float factor;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float a[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      a[i] = factor * uniform(seed, at + i);
    }
    store<N>(x + at, a);
  }
};

struct FillFp8 {
  std::uint8_t* x;
  std::uint64_t seed;
  template <int N>
  __device__ void run(std::int64_t at) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      x[at + i] = fp8(uniform(seed, at + i));
    }
  }
};

struct FillIndices {
  std::int32_t* x;
  std::int32_t bound;
  std::uint64_t seed;
  template <int N>
  __device__ void run(std::int64_t at) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const std::uint32_t bits = kernels::random_bits(seed, static_cast<std::uint64_t>(at + i));
      x[at + i] = static_cast<std::int32_t>(bits % static_cast<std::uint32_t>(bound));
    }
  }
};

/// Words of 16 bytes, four in flight a thread.
__global__ void __launch_bounds__(512)
    copy_words(const uint4* from, uint4* to, std::int64_t words, int rounds) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (int round = 0; round < rounds; ++round) {
    std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; at + 3 * step < words; at += 4 * step) {
      const uint4 a = from[at], b = from[at + step], c = from[at + 2 * step],
                  d = from[at + 3 * step];
      to[at] = a;
      to[at + step] = b;
      to[at + 2 * step] = c;
      to[at + 3 * step] = d;
    }
    for (; at < words; at += step) {
      to[at] = from[at];
    }
  }
}

__global__ void __launch_bounds__(512)
    read_words(const float4* from, float* sink, std::int64_t words) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  float sum = 0;
  const auto add = [&](float4 a) { sum += a.x + a.y + a.z + a.w; };
  for (; at + 3 * step < words; at += 4 * step) {
    const float4 a = from[at], b = from[at + step], c = from[at + 2 * step],
                 d = from[at + 3 * step];
    add(a);
    add(b);
    add(c);
    add(d);
  }
  for (; at < words; at += step) {
    add(from[at]);
  }
  __shared__ float room[512 / 32];
  sum = reduce_block<512>(sum, room, ShuffleFloat{}, AddFloat{});
  if (threadIdx.x == 0) {
    atomicAdd(sink, sum);
  }
}

unsigned stream_blocks(std::int64_t words) {
  const std::int64_t blocks = blocks_for(words, 512 * 4);
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > 8192 ? 8192 : blocks);
}

}  // namespace

void gelu(Element element, bool backward, const ActivationArguments& a, cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    launch(a.rows * a.width,
           Gelu<T>{static_cast<const T*>(a.x), backward ? static_cast<const T*>(a.dy) : nullptr,
                   static_cast<T*>(backward ? a.dx : a.y)},
           stream);
  });
}

void swiglu(Element element, bool backward, const ActivationArguments& a, cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    launch(a.rows * a.width,
           Swiglu<T>{static_cast<const T*>(a.x), backward ? static_cast<const T*>(a.dy) : nullptr,
                     static_cast<T*>(a.y), static_cast<T*>(a.dx), a.width},
           stream);
  });
}

void add(Element element, const void* a, const void* b, void* sum, std::int64_t elements,
         cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    launch(elements,
           Add<T>{static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(sum)},
           stream);
  });
}

void dropout(Element element, bool backward, const DropoutArguments& a, cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    launch(a.elements,
           Dropout<T>{static_cast<const T*>(a.x), static_cast<T*>(a.y), a.mask, a.seed,
                      static_cast<std::uint32_t>(a.drop * 4294967296.0), 1.0F / (1.0F - a.drop),
                      backward},
           stream);
  });
}

void accumulate(Element element, const void* gradient, float* sum, std::int64_t elements,
                cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    launch(elements, Accumulate<T>{static_cast<const T*>(gradient), sum}, stream);
  });
}

void adam(Element element, const AdamArguments& args, cudaStream_t stream) {
  with_type(element, [&](auto type) { launch(args.elements, Adam<decltype(type)>{args}, stream); });
}

void scale(float* x, float factor, std::int64_t elements, cudaStream_t stream) {
  launch(elements, Scale{x, factor}, stream);
}

void cast_fp8(Element element, const void* x, std::uint8_t* y, float factor, std::int64_t elements,
              cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    launch(elements, Cast<T>{static_cast<const T*>(x), y, factor}, stream);
  });
}

void fill_random(Element element, void* x, std::int64_t elements, std::uint64_t seed, float factor,
                 cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    launch(elements, FillRandom<T>{static_cast<T*>(x), seed, factor}, stream);
  });
}

void fill_random_fp8(std::uint8_t* x, std::int64_t elements, std::uint64_t seed,
                     cudaStream_t stream) {
  launch(elements, FillFp8{x, seed}, stream);
}

void fill_indices(std::int32_t* x, std::int64_t elements, std::int32_t bound, std::uint64_t seed,
                  cudaStream_t stream) {
  launch(elements, FillIndices{x, bound, seed}, stream);
}

void stream_copy(const void* from, void* to, std::int64_t bytes, int blocks, cudaStream_t stream,
                 int rounds) {
  const std::int64_t words = bytes / 16;
  const unsigned grid = blocks > 0 ? static_cast<unsigned>(blocks) : stream_blocks(words);
  copy_words<<<grid, 512, 0, stream>>>(static_cast<const uint4*>(from), static_cast<uint4*>(to),
                                       words, rounds);
}

void stream_read(const void* from, float* sink, std::int64_t bytes, cudaStream_t stream) {
  const std::int64_t words = bytes / 16;
  // Few blocks: each ends with an addition to the same place.
  const unsigned fill = stream_blocks(words);
  const unsigned blocks = fill > 528 ? 528 : fill;
  read_words<<<blocks, 512, 0, stream>>>(static_cast<const float4*>(from), sink, words);
}

}  // namespace lockstep::cuda
