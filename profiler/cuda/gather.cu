// Kernels that move rows: embeddings, permutations of tokens, rotary positions, column sums.
#include "profiler/cuda/element.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kPack = 8;
constexpr int kThreads = 256;

/// Thread blocks of a grid of packs, `row` and `at` those of this thread; false: none.
struct Place {
  std::int64_t row, at;
};
__device__ __forceinline__ bool place_of(std::int64_t rows, std::int64_t width, Place& place) {
  const std::int64_t pack = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t each = width / kPack;
  place.row = pack / each;
  place.at = pack % each * kPack;
  return place.row < rows;
}
unsigned blocks_of(std::int64_t rows, std::int64_t width) {
  return static_cast<unsigned>(blocks_for(rows * (width / kPack), kThreads));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    gather(const T* from, const std::int32_t* source, const float* weights, T* to,
           std::int64_t rows, std::int64_t width) {
  Place p;
  if (!place_of(rows, width, p)) {
    return;
  }
  float x[kPack];
  load<kPack>(from + source[p.row] * width + p.at, x);
  if (weights != nullptr) {
    const float weight = weights[p.row];
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      x[i] *= weight;
    }
  }
  store<kPack>(to + p.row * width + p.at, x);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    add_gathered(const T* from, const std::int32_t* places, const float* weights, T* to,
                 std::int64_t rows, std::int64_t width, std::int64_t each) {
  Place p;
  if (!place_of(rows, width, p)) {
    return;
  }
  float sum[kPack] = {};
  for (std::int64_t j = p.row * each; j < (p.row + 1) * each; ++j) {
    const std::int64_t source = places[j];
    if (source < 0) {
      continue;
    }
    float x[kPack];
    load<kPack>(from + source * width + p.at, x);
    const float weight = weights != nullptr ? weights[j] : 1.0F;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      sum[i] += weight * x[i];
    }
  }
  store<kPack>(to + p.row * width + p.at, sum);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    scatter_add(const std::int32_t* ids, const T* gradient, float* table, std::int64_t rows,
                std::int64_t width) {
  Place p;
  if (!place_of(rows, width, p)) {
    return;
  }
  float x[kPack];
  load<kPack>(gradient + p.row * width + p.at, x);
  float* to = table + ids[p.row] * width + p.at;
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    atomicAdd(to + i, x[i]);
  }
}

/// Four pairs a thread: features i … i + 3 of both halves of a head.
template <class T>
__global__ void __launch_bounds__(kThreads) turn(RotaryArguments a, float sign) {
  constexpr int kPairs = 4;
  const std::int64_t half = a.head_dim / 2, each = half / kPairs;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t head = thread / each, first = thread % each * kPairs;
  if (head >= a.rows * a.heads) {
    return;
  }
  const std::int64_t at = head * a.head_dim + first;
  const float* table = a.table + head / a.heads * a.head_dim + first;
  float x[kPairs], y[kPairs], cosine[kPairs], sine[kPairs];
  load<kPairs>(static_cast<const T*>(a.x) + at, x);
  load<kPairs>(static_cast<const T*>(a.x) + at + half, y);
  load<kPairs>(table, cosine);
  load<kPairs>(table + half, sine);
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    kernels::Pair pair;
    pair.a = x[i];
    pair.b = y[i];
    pair = kernels::rotate(pair, cosine[i], sign * sine[i]);
    x[i] = pair.a;
    y[i] = pair.b;
  }
  store<kPairs>(static_cast<T*>(a.y) + at, x);
  store<kPairs>(static_cast<T*>(a.y) + at + half, y);
}

__global__ void fill_table(float* table, std::int64_t rows, std::int64_t head_dim, float base) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t half = head_dim / 2, row = thread / half, i = thread % half;
  if (row >= rows) {
    return;
  }
  const double angle =
      static_cast<double>(row) /
      pow(static_cast<double>(base), 2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
  table[row * head_dim + i] = static_cast<float>(cos(angle));
  table[row * head_dim + half + i] = static_cast<float>(sin(angle));
}

constexpr int kColumnPacks = 4, kColumnLanes = 128;

/// A block has 4 packs of columns, and 128 threads go through the rows of each.
template <class T>
__global__ void __launch_bounds__(kColumnPacks* kColumnLanes)
    sum_columns(const T* x, float* sums, std::int64_t rows, std::int64_t width) {
  __shared__ float room[kColumnLanes][kColumnPacks * kPack + 1];
  const std::int64_t at =
      (static_cast<std::int64_t>(blockIdx.x) * kColumnPacks + threadIdx.x) * kPack;
  float sum[kPack] = {};
  if (at < width) {
#pragma unroll 4
    for (std::int64_t row = threadIdx.y; row < rows; row += kColumnLanes) {
      float v[kPack];
      load<kPack>(x + row * width + at, v);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        sum[i] += v[i];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    room[threadIdx.y][threadIdx.x * kPack + i] = sum[i];
  }
  __syncthreads();
  // A warp adds up a column's lanes, and has two of the 32 columns.
  const int thread = static_cast<int>(threadIdx.y) * kColumnPacks + static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  for (int column = thread / 32; column < kColumnPacks * kPack;
       column += kColumnPacks * kColumnLanes / 32) {
    float all = 0;
#pragma unroll
    for (int i = lane; i < kColumnLanes; i += 32) {
      all += room[i][column];
    }
    all = reduce_warp(all, ShuffleFloat{}, AddFloat{});
    const std::int64_t place =
        static_cast<std::int64_t>(blockIdx.x) * kColumnPacks * kPack + column;
    if (lane == 0 && place < width) {
      sums[place] = all;
    }
  }
}

}  // namespace

void embedding(Element element, const std::int32_t* ids, const void* table, void* out,
               std::int64_t rows, std::int64_t width, cudaStream_t stream) {
  gather_rows(element, table, ids, nullptr, out, rows, width, stream);
}

void embedding_backward(Element element, const std::int32_t* ids, const void* gradient,
                        float* table_gradient, std::int64_t rows, std::int64_t width,
                        cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    scatter_add<<<blocks_of(rows, width), kThreads, 0, stream>>>(
        ids, static_cast<const T*>(gradient), table_gradient, rows, width);
  });
}

void gather_rows(Element element, const void* from, const std::int32_t* source,
                 const float* weights, void* to, std::int64_t rows, std::int64_t width,
                 cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    gather<<<blocks_of(rows, width), kThreads, 0, stream>>>(
        static_cast<const T*>(from), source, weights, static_cast<T*>(to), rows, width);
  });
}

void gather_sum(Element element, const void* from, const std::int32_t* places, const float* weights,
                void* to, std::int64_t rows, std::int64_t width, std::int64_t each,
                cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    add_gathered<<<blocks_of(rows, width), kThreads, 0, stream>>>(
        static_cast<const T*>(from), places, weights, static_cast<T*>(to), rows, width, each);
  });
}

void rotary(Element element, bool backward, const RotaryArguments& a, cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    const std::int64_t threads = a.rows * a.heads * (a.head_dim / 8);
    turn<T><<<static_cast<unsigned>(blocks_for(threads, kThreads)), kThreads, 0, stream>>>(
        a, backward ? -1.0F : 1.0F);
  });
}

void rotary_table(float* table, std::int64_t rows, std::int64_t head_dim, float base,
                  cudaStream_t stream) {
  const std::int64_t threads = rows * (head_dim / 2);
  fill_table<<<static_cast<unsigned>(blocks_for(threads, 256)), 256, 0, stream>>>(table, rows,
                                                                                  head_dim, base);
}

void column_sums(Element element, const void* x, float* sums, std::int64_t rows, std::int64_t width,
                 cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    const auto blocks = static_cast<unsigned>(blocks_for(width, kColumnPacks * kPack));
    sum_columns<<<blocks, dim3(kColumnPacks, kColumnLanes), 0, stream>>>(static_cast<const T*>(x),
                                                                         sums, rows, width);
  });
}

}  // namespace lockstep::cuda
