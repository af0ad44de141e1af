// LayerNorm and RMSNorm. A warp (rows up to 2048 wide, backward 512) or a block has a row at a time
// and keeps it in registers; backward it also keeps the sums of its columns over its rows.
#include "profiler/cuda/element.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kPack = 8;
constexpr int kNarrow = 32, kMiddle = 256, kWide = 512;  // threads that have a row
constexpr std::int64_t kStrips = 264;  // blocks of a backward pass: 2 an SM of 132

/// Backward's two sums over a row.
struct RowSums {
  float g = 0, gx = 0;
};
struct ShuffleSums {
  __device__ RowSums operator()(RowSums v, int d) const {
    return {__shfl_xor_sync(kAllLanes, v.g, d), __shfl_xor_sync(kAllLanes, v.gx, d)};
  }
};
struct AddSums {
  __device__ RowSums operator()(RowSums a, RowSums b) const { return {a.g + b.g, a.gx + b.gx}; }
};
/// Place of pack `p` of a thread in its row.
template <int Threads>
__device__ __forceinline__ std::int64_t column(int p) {
  return (static_cast<std::int64_t>(p) * Threads + threadIdx.x) * kPack;
}

template <class T, int Threads, int Packs>
__global__ void __launch_bounds__(Threads < 256 ? 256 : Threads) forward(NormArguments a) {
  __shared__ float room[16];
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= a.rows) {
    return;  // a whole warp: only those have rows of their own
  }
  const T* x = static_cast<const T*>(a.x) + row * a.width;
  float values[Packs][kPack];
  // The row is in registers: first its mean, then the distances from it.
  float sum = 0;
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
    if (column<Threads>(p) < a.width) {
      load<kPack>(x + column<Threads>(p), values[p]);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        sum += values[p][i];
      }
    }
  }
  const float share = 1.0F / static_cast<float>(a.width);
  const float mean =
      a.rms ? 0.0F : share * reduce_block<Threads>(sum, room, ShuffleFloat{}, AddFloat{});
  float square = 0;
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
    if (column<Threads>(p) < a.width) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        square += (values[p][i] - mean) * (values[p][i] - mean);
      }
    }
  }
  square = reduce_block<Threads>(square, room, ShuffleFloat{}, AddFloat{});
  const float reciprocal = kernels::reciprocal_deviation(share * square, a.epsilon);
  if (threadIdx.x == 0) {
    a.mean[row] = mean;
    a.reciprocal[row] = reciprocal;
  }
  T* y = static_cast<T*>(a.y) + row * a.width;
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
    const std::int64_t at = column<Threads>(p);
    if (at < a.width) {
      float gamma[kPack], beta[kPack] = {};
      load<kPack>(a.gamma + at, gamma);
      if (!a.rms) {
        load<kPack>(a.beta + at, beta);
      }
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        values[p][i] = kernels::norm_forward(values[p][i], mean, reciprocal, gamma[i], beta[i]);
      }
      store<kPack>(y + at, values[p]);
    }
  }
}

template <class T, int Threads, int Packs>
__global__ void __launch_bounds__(Threads < 256 ? 256 : Threads) backward(NormArguments a) {
  __shared__ RowSums room[16];
  const std::int64_t lane_row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  float dgamma[Packs][kPack] = {}, dbeta[Packs][kPack] = {};
  const float share = 1.0F / static_cast<float>(a.width);
  for (std::int64_t row = lane_row; row < a.rows; row += step) {
    const T* x = static_cast<const T*>(a.x) + row * a.width;
    const T* dy = static_cast<const T*>(a.dy) + row * a.width;
    const float mean = a.mean[row], reciprocal = a.reciprocal[row];
    float xhat[Packs][kPack], g[Packs][kPack];
    RowSums sums;
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      const std::int64_t at = column<Threads>(p);
      if (at < a.width) {
        float gamma[kPack];
        load<kPack>(x + at, xhat[p]);
        load<kPack>(dy + at, g[p]);
        load<kPack>(a.gamma + at, gamma);
#pragma unroll
        for (int i = 0; i < kPack; ++i) {
          xhat[p][i] = (xhat[p][i] - mean) * reciprocal;
          dgamma[p][i] += g[p][i] * xhat[p][i];
          dbeta[p][i] += g[p][i];
          g[p][i] *= gamma[i];
          sums.g += g[p][i];
          sums.gx += g[p][i] * xhat[p][i];
        }
      }
    }
    sums = reduce_block<Threads>(sums, room, ShuffleSums{}, AddSums{});
    const float mean_g = a.rms ? 0.0F : sums.g * share;
    T* dx = static_cast<T*>(a.dx) + row * a.width;
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      const std::int64_t at = column<Threads>(p);
      if (at < a.width) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) {
          g[p][i] =
              kernels::norm_backward(g[p][i], xhat[p][i], reciprocal, mean_g, sums.gx * share);
        }
        store<kPack>(dx + at, g[p]);
      }
    }
  }
  float* partial = a.partial + lane_row * a.width;
  float* partial_beta = a.partial + (step + lane_row) * a.width;
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
    const std::int64_t at = column<Threads>(p);
    if (at < a.width) {
      store<kPack>(partial + at, dgamma[p]);
      if (!a.rms) {
        store<kPack>(partial_beta + at, dbeta[p]);
      }
    }
  }
}

/// Adds up the strips' sums, those of gamma and, in a second row of blocks, of beta: a block of
/// 32 x 8 threads has 32 columns.
__global__ void add_strips(const float* partial, float* dgamma, float* dbeta, std::int64_t strips,
                           std::int64_t width) {
  __shared__ float room[8][33];
  partial += static_cast<std::int64_t>(blockIdx.y) * strips * width;
  float* sums = blockIdx.y == 0 ? dgamma : dbeta;
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * 32 + threadIdx.x;
  float sum = 0;
  if (at < width) {
    for (std::int64_t strip = threadIdx.y; strip < strips; strip += 8) {
      sum += partial[strip * width + at];
    }
  }
  room[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && at < width) {
    for (int i = 1; i < 8; ++i) {
      sum += room[i][threadIdx.x];
    }
    sums[at] = sum;
  }
}

struct Shape {
  dim3 block;
  std::int64_t lanes;  // rows that a block has at a time
};
Shape shape_of(bool back, std::int64_t width) {
  return width <= kNarrow * kPack * (back ? 2 : 8) ? Shape{dim3(kNarrow, 8), 8}
         : width <= kMiddle * kPack * 4            ? Shape{dim3(kMiddle, 1), 1}
                                                   : Shape{dim3(kWide, 1), 1};
}
std::int64_t strips_of(std::int64_t rows, std::int64_t lanes) {
  const std::int64_t blocks = blocks_for(rows, lanes);
  return (blocks < kStrips ? blocks : kStrips) * lanes;
}

template <class T, int Threads, int Packs>
void launch(bool back, const NormArguments& a, cudaStream_t stream) {
  const Shape shape = shape_of(back, a.width);
  if (!back) {
    const auto blocks = static_cast<unsigned>(blocks_for(a.rows, shape.lanes));
    forward<T, Threads, Packs><<<blocks, shape.block, 0, stream>>>(a);
    return;
  }
  const std::int64_t strips = strips_of(a.rows, shape.lanes);
  backward<T, Threads, Packs>
      <<<static_cast<unsigned>(strips / shape.lanes), shape.block, 0, stream>>>(a);
  const dim3 grid(static_cast<unsigned>(blocks_for(a.width, 32)), a.rms ? 1 : 2);
  add_strips<<<grid, dim3(32, 8), 0, stream>>>(a.partial, a.dgamma, a.dbeta, strips, a.width);
}

template <class T, int Threads>
void launch_packs(bool back, const NormArguments& a, cudaStream_t stream) {
  const std::int64_t packs = blocks_for(a.width, std::int64_t{Threads} * kPack);
  if (packs <= 1) {
    launch<T, Threads, 1>(back, a, stream);
  } else if (packs <= 2) {
    launch<T, Threads, 2>(back, a, stream);
  } else if (packs <= 4) {
    launch<T, Threads, 4>(back, a, stream);
  } else {
    launch<T, Threads, 8>(back, a, stream);
  }
}

void launch_any(bool back, Element element, const NormArguments& a, cudaStream_t stream) {
  with_type(element, [&](auto type) {
    using T = decltype(type);
    switch (shape_of(back, a.width).block.x) {
      case kNarrow:
        return launch_packs<T, kNarrow>(back, a, stream);
      case kMiddle:
        return launch_packs<T, kMiddle>(back, a, stream);
      default:
        return launch_packs<T, kWide>(back, a, stream);
    }
  });
}

}  // namespace

std::int64_t norm_partials(std::int64_t rows, std::int64_t width) {
  return 2 * strips_of(rows, shape_of(true, width).lanes) * width;
}
void norm_forward(Element element, const NormArguments& args, cudaStream_t stream) {
  launch_any(false, element, args, stream);
}
void norm_backward(Element element, const NormArguments& args, cudaStream_t stream) {
  launch_any(true, element, args, stream);
}

}  // namespace lockstep::cuda
