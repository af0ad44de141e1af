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

struct LargerFloat {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
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

/// Scores are scaled by this too, so that probabilities are powers of 2, which the GPU has.
constexpr float kLog2E = 1.44269504F;
constexpr std::int64_t kWarpKeys = 2048;  // rows that a warp keeps in registers

/// How many keys the query of a row sees.
__device__ __forceinline__ std::int64_t seen_keys(const SoftmaxArguments& a, std::int64_t row) {
  return a.causal ? a.keys - a.queries + row % a.queries + 1 : a.keys;
}
/// kPack scores of a row, scaled; -infinity for those from `seen` on.
template <class T>
__device__ __forceinline__ void load_scores(const T* scores, std::int64_t at, std::int64_t seen,
                                            float scale, float (&x)[kPack]) {
  if (at < seen) {
    load<kPack>(scores + at, x);
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    x[i] = at + i < seen ? scale * x[i] : -INFINITY;
  }
}
__device__ __forceinline__ float largest_of(float largest, const float (&x)[kPack]) {
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    largest = fmaxf(largest, x[i]);
  }
  return largest;
}

/// A warp a row of at most kWarpKeys, a multiple of kPack, which is read once.
template <class T, int Packs>
__global__ void __launch_bounds__(kThreads) softmax_short(SoftmaxArguments a) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const std::int64_t first = static_cast<std::int64_t>(threadIdx.x % 32) * kPack;
  if (row >= a.batch * a.queries) {
    return;
  }
  const std::int64_t seen = seen_keys(a, row);
  const T* scores = static_cast<const T*>(a.scores) + row * a.keys;
  T* out = static_cast<T*>(a.probabilities) + row * a.keys;
  float x[Packs][kPack];
  float largest = -INFINITY;
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
    load_scores(scores, first + p * 32 * kPack, seen, a.scale * kLog2E, x[p]);
    largest = largest_of(largest, x[p]);
  }
  largest = reduce_warp(largest, ShuffleFloat{}, LargerFloat{});
  largest = largest == -INFINITY ? 0.0F : largest;  // nothing seen: all shares are 0
  float sum = 0;
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      x[p][i] = exp2f(x[p][i] - largest);
      sum += x[p][i];
    }
  }
  sum = reduce_warp(sum, ShuffleFloat{}, AddFloat{});
  const float share = sum > 0 ? 1.0F / sum : 0.0F;
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
    const std::int64_t at = first + p * 32 * kPack;
    if (at < a.keys) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        x[p][i] *= share;
      }
      store<kPack>(out + at, x[p]);
    }
  }
}

/// A block a longer row: each thread reads its packs three times, twice from the L1 cache.
template <class T>
__global__ void __launch_bounds__(kThreads) softmax_long(SoftmaxArguments a) {
  __shared__ float room[kThreads / 32];
  constexpr std::int64_t kStep = static_cast<std::int64_t>(kThreads) * kPack;
  const std::int64_t row = blockIdx.x;
  const std::int64_t seen = seen_keys(a, row);
  const std::int64_t first = static_cast<std::int64_t>(threadIdx.x) * kPack;
  const T* scores = static_cast<const T*>(a.scores) + row * a.keys;
  T* out = static_cast<T*>(a.probabilities) + row * a.keys;
  float x[kPack];
  float largest = -INFINITY;
  for (std::int64_t at = first; at < seen; at += kStep) {
    load_scores(scores, at, seen, a.scale * kLog2E, x);
    largest = largest_of(largest, x);
  }
  largest = reduce_block<kThreads>(largest, room, ShuffleFloat{}, LargerFloat{});
  float sum = 0;
  for (std::int64_t at = first; at < seen; at += kStep) {
    load_scores(scores, at, seen, a.scale * kLog2E, x);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      sum += exp2f(x[i] - largest);
    }
  }
  sum = reduce_block<kThreads>(sum, room, ShuffleFloat{}, AddFloat{});
  const float share = sum > 0 ? 1.0F / sum : 0.0F;
  for (std::int64_t at = first; at < a.keys; at += kStep) {
    float p[kPack] = {};
    if (at < seen) {
      load_scores(scores, at, seen, a.scale * kLog2E, x);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        p[i] = share * exp2f(x[i] - largest);
      }
    }
    store<kPack>(out + at, p);
  }
}

template <class T>
void softmax_forward(const SoftmaxArguments& a, cudaStream_t stream) {
  const std::int64_t rows = a.batch * a.queries;
  if (a.keys > kWarpKeys) {
    softmax_long<T><<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(a);
    return;
  }
  const auto blocks = static_cast<unsigned>(blocks_for(rows, kThreads / 32));
  if (a.keys <= kWarpKeys / 4) {
    softmax_short<T, 2><<<blocks, kThreads, 0, stream>>>(a);
  } else {
    softmax_short<T, 8><<<blocks, kThreads, 0, stream>>>(a);
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
    if (backward) {
      softmax_backward<T><<<static_cast<unsigned>(a.batch * a.queries), kThreads, 0, stream>>>(a);
    } else {
      softmax_forward<T>(a, stream);
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
