// Kernels over rows of scores and logits: softmax, cross entropy, routers.
#include "profiler/cuda/element.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPack = 8;

using kernels::SoftmaxSum;

struct ShuffleSum {
  __device__ SoftmaxSum operator()(SoftmaxSum v, int d) const {
    SoftmaxSum o;
    o.largest = __shfl_xor_sync(kAllLanes, v.largest, d);
    o.sum = __shfl_xor_sync(kAllLanes, v.sum, d);
    return o;
  }
};
struct MergeSum {
  __device__ SoftmaxSum operator()(SoftmaxSum a, SoftmaxSum b) const {
    return kernels::merge(a, b);
  }
};

/// Sum over a pack: one rescaling for all of its elements.
template <int N>
__device__ __forceinline__ SoftmaxSum add_pack(SoftmaxSum all, const float (&x)[N], int count) {
  SoftmaxSum pack;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    pack.largest = i < count ? fmaxf(pack.largest, x[i]) : pack.largest;
  }
  if (pack.largest == -INFINITY) {
    return all;
  }
#pragma unroll
  for (int i = 0; i < N; ++i) {
    pack.sum += i < count ? expf(x[i] - pack.largest) : 0.0F;
  }
  return kernels::merge(all, pack);
}

/// A block a row; `width` is a multiple of kPack.
template <class T>
__global__ void __launch_bounds__(kThreads) softmax_forward(SoftmaxArguments a) {
  __shared__ SoftmaxSum room[kThreads / 32];
  const std::int64_t row = blockIdx.x;
  const std::int64_t seen = a.causal ? a.keys - a.queries + row % a.queries + 1 : a.keys;
  const T* scores = static_cast<const T*>(a.scores) + row * a.keys;
  T* out = static_cast<T*>(a.probabilities) + row * a.keys;
  SoftmaxSum all;
  for (std::int64_t at = threadIdx.x * kPack; at < seen; at += kThreads * kPack) {
    float x[kPack];
    load<kPack>(scores + at, x);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      x[i] *= a.scale;
    }
    all = add_pack(all, x, static_cast<int>(seen - at < kPack ? seen - at : kPack));
  }
  all = reduce_block<kThreads>(all, room, ShuffleSum{}, MergeSum{});
  for (std::int64_t at = threadIdx.x * kPack; at < a.keys; at += kThreads * kPack) {
    float x[kPack] = {};
    if (at < seen) {
      load<kPack>(scores + at, x);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        x[i] = at + i < seen ? kernels::probability(a.scale * x[i], all) : 0.0F;
      }
    }
    store<kPack>(out + at, x);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) softmax_backward(SoftmaxArguments a) {
  __shared__ float room[kThreads / 32];
  const std::int64_t row = blockIdx.x;
  const T* p = static_cast<const T*>(a.probabilities) + row * a.keys;
  const T* dp = static_cast<const T*>(a.gradient) + row * a.keys;
  T* out = static_cast<T*>(a.scores_gradient) + row * a.keys;
  float dot = 0;
  for (std::int64_t at = threadIdx.x * kPack; at < a.keys; at += kThreads * kPack) {
    float x[kPack], y[kPack];
    load<kPack>(p + at, x);
    load<kPack>(dp + at, y);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      dot += x[i] * y[i];
    }
  }
  dot = reduce_block<kThreads>(dot, room, ShuffleFloat{}, AddFloat{});
  for (std::int64_t at = threadIdx.x * kPack; at < a.keys; at += kThreads * kPack) {
    float x[kPack], y[kPack];
    load<kPack>(p + at, x);
    load<kPack>(dp + at, y);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      x[i] = kernels::softmax_backward(x[i], y[i], dot, a.scale);
    }
    store<kPack>(out + at, x);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) loss_forward(CrossEntropyArguments a) {
  __shared__ SoftmaxSum room[kThreads / 32];
  const std::int64_t row = blockIdx.x;
  const T* logits = static_cast<const T*>(a.logits) + row * a.vocabulary;
  float* out = a.probabilities + row * a.vocabulary;
  SoftmaxSum all;
  for (std::int64_t at = threadIdx.x * kPack; at < a.vocabulary; at += kThreads * kPack) {
    float x[kPack];
    load<kPack>(logits + at, x);
    all = add_pack(all, x, kPack);
  }
  all = reduce_block<kThreads>(all, room, ShuffleSum{}, MergeSum{});
  for (std::int64_t at = threadIdx.x * kPack; at < a.vocabulary; at += kThreads * kPack) {
    float x[kPack];
    load<kPack>(logits + at, x);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      x[i] = kernels::probability(x[i], all);
    }
    store<kPack>(out + at, x);
  }
  if (threadIdx.x == 0) {
    a.losses[row] = kernels::cross_entropy(to_float(logits[a.targets[row]]), all);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) loss_backward(CrossEntropyArguments a) {
  const std::int64_t row = blockIdx.x;
  const float* p = a.probabilities + row * a.vocabulary;
  T* out = static_cast<T*>(a.gradient) + row * a.vocabulary;
  const std::int64_t target = a.targets[row];
  for (std::int64_t at = threadIdx.x * kPack; at < a.vocabulary; at += kThreads * kPack) {
    float x[kPack];
    load<kPack>(p + at, x);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      x[i] = kernels::cross_entropy_backward(x[i], at + i == target, a.scale);
    }
    store<kPack>(out + at, x);
  }
}

/// A warp a row: its logits in registers, the likeliest found `topk` times.
__global__ void __launch_bounds__(kThreads) route(RouterArguments a) {
  constexpr int kEach = static_cast<int>(kMostExperts / 32);
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= a.rows) {
    return;
  }
  float x[kEach];
  SoftmaxSum all;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = i * 32 + lane;
    x[i] = expert < a.count ? a.logits[row * a.count + expert] : -INFINITY;
    if (expert < a.count) {
      all = kernels::add(all, x[i]);
    }
  }
  all = reduce_warp(all, ShuffleSum{}, MergeSum{});
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = i * 32 + lane;
    if (expert < a.count) {
      a.probabilities[row * a.count + expert] = kernels::probability(x[i], all);
    }
  }
  for (std::int64_t rank = 0; rank < a.topk; ++rank) {
    float best = -INFINITY;
    int place = static_cast<int>(kMostExperts);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (x[i] > best) {
        best = x[i];
        place = i * 32 + lane;
      }
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      const float other = __shfl_xor_sync(kAllLanes, best, distance);
      const int other_place = __shfl_xor_sync(kAllLanes, place, distance);
      if (other > best || (other == best && other_place < place)) {
        best = other;
        place = other_place;
      }
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (i * 32 + lane == place) {
        x[i] = -INFINITY;
      }
    }
    if (lane == 0) {
      a.experts[row * a.topk + rank] = place;
    }
  }
}

__global__ void __launch_bounds__(kThreads) route_backward(RouterArguments a) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= a.rows) {
    return;
  }
  // Only the chosen experts' probabilities have a gradient.
  float dot = 0;
  for (std::int64_t rank = lane; rank < a.topk; rank += 32) {
    const std::int64_t expert = row * a.count + a.experts[row * a.topk + rank];
    dot += a.probabilities[expert] * a.gradient[row * a.topk + rank];
  }
  dot = reduce_warp(dot, ShuffleFloat{}, AddFloat{});
  for (std::int64_t expert = lane; expert < a.count; expert += 32) {
    float gradient = 0;
    for (std::int64_t rank = 0; rank < a.topk; ++rank) {
      gradient += a.experts[row * a.topk + rank] == expert ? a.gradient[row * a.topk + rank] : 0;
    }
    a.logits_gradient[row * a.count + expert] =
        kernels::softmax_backward(a.probabilities[row * a.count + expert], gradient, dot, 1.0F);
  }
}

}  // namespace

void softmax(Element element, bool backward, const SoftmaxArguments& a, cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    const auto rows = static_cast<unsigned>(a.batch * a.queries);
    if (backward) {
      softmax_backward<T><<<rows, kThreads, 0, stream>>>(a);
    } else {
      softmax_forward<T><<<rows, kThreads, 0, stream>>>(a);
    }
  });
}

void cross_entropy(Element element, bool backward, const CrossEntropyArguments& a,
                   cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    if (backward) {
      loss_backward<T><<<static_cast<unsigned>(a.rows), kThreads, 0, stream>>>(a);
    } else {
      loss_forward<T><<<static_cast<unsigned>(a.rows), kThreads, 0, stream>>>(a);
    }
  });
}

void router(bool backward, const RouterArguments& a, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(a.rows, kThreads / 32));
  if (backward) {
    route_backward<<<blocks, kThreads, 0, stream>>>(a);
  } else {
    route<<<blocks, kThreads, 0, stream>>>(a);
  }
}

}  // namespace lockstep::cuda
