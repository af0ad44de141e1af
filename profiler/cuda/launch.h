#pragma once

// Host functions that launch the fused kernels on a stream. Pointers are to device memory, of which
// 16-bit and fp32 tensors are aligned to 16 bytes; sizes are checked by the caller
// (fused_kernels.cc).

#include <cstdint>
#include <cuda_runtime_api.h>

#include "profiler/kernels/math.h"

namespace lockstep::cuda {

enum class Element : std::uint8_t { kBf16, kFp16, kFp32 };

struct NormArguments {
  const void* x = nullptr;
  const float *gamma = nullptr, *beta = nullptr;
  void* y = nullptr;                             ///< forward
  float *mean = nullptr, *reciprocal = nullptr;  ///< written forward, read backward
  const void* dy = nullptr;
  void* dx = nullptr;
  float *dgamma = nullptr, *dbeta = nullptr, *partial = nullptr;
  std::int64_t rows = 0, width = 0;
  bool rms = true;
  float epsilon = 1e-5F;
};
/// The widest row that norm kernels take; a width is a multiple of 8.
inline constexpr std::int64_t kWidestNorm = 16384;
/// Floats of NormArguments::partial.
std::int64_t norm_partials(std::int64_t rows, std::int64_t width);
void norm_forward(Element element, const NormArguments& args, cudaStream_t stream);
void norm_backward(Element element, const NormArguments& args, cudaStream_t stream);

/// `rows` x `width` out; SwiGLU's input has gate and up side by side in each row.
struct ActivationArguments {
  const void *x = nullptr, *dy = nullptr;
  void *y = nullptr, *dx = nullptr;
  std::int64_t rows = 0, width = 0;
};
void gelu(Element element, bool backward, const ActivationArguments& args, cudaStream_t stream);
void swiglu(Element element, bool backward, const ActivationArguments& args, cudaStream_t stream);

void add(Element element, const void* a, const void* b, void* sum, std::int64_t elements,
         cudaStream_t stream);
struct DropoutArguments {
  const void* x = nullptr;
  void* y = nullptr;
  std::uint8_t* mask = nullptr;  ///< written forward, read backward
  std::int64_t elements = 0;
  std::uint64_t seed = 1;
  float drop = 0.1F;
};
void dropout(Element element, bool backward, const DropoutArguments& args, cudaStream_t stream);

/// `table`: cosine and sine of position row x pair, fp32, head_dim / 2 pairs of both a row.
struct RotaryArguments {
  const void* x = nullptr;
  const float* table = nullptr;
  void* y = nullptr;
  std::int64_t rows = 0, heads = 0, head_dim = 0;
};
void rotary(Element element, bool backward, const RotaryArguments& args, cudaStream_t stream);
void rotary_table(float* table, std::int64_t rows, std::int64_t head_dim, float base,
                  cudaStream_t stream);

/// Scaled and, if causal, masked: batch x queries rows of keys.
struct SoftmaxArguments {
  const void* scores = nullptr;    ///< forward
  void* probabilities = nullptr;   ///< written forward, read backward
  const void* gradient = nullptr;  ///< of the probabilities
  void* scores_gradient = nullptr;
  std::int64_t batch = 0, queries = 0, keys = 0;
  bool causal = false;
  float scale = 1;
};
void softmax(Element element, bool backward, const SoftmaxArguments& args, cudaStream_t stream);

struct CrossEntropyArguments {
  const void* logits = nullptr;
  const std::int32_t* targets = nullptr;
  float* probabilities = nullptr;  ///< written forward, read backward
  float* losses = nullptr;
  void* gradient = nullptr;
  std::int64_t rows = 0, vocabulary = 0;
  float scale = 1;
};
void cross_entropy(Element element, bool backward, const CrossEntropyArguments& args,
                   cudaStream_t stream);

/// Softmax over fp32 logits of the experts, and the likeliest.
struct RouterArguments {
  const float* logits = nullptr;
  float* probabilities = nullptr;   ///< rows x experts, read backward
  std::int32_t* experts = nullptr;  ///< rows x topk
  const float* gradient = nullptr;  ///< of the probabilities
  float* logits_gradient = nullptr;
  std::int64_t rows = 0, count = 0, topk = 0;
};
inline constexpr std::int64_t kMostExperts = 1024, kMostTopk = 32;
void router(bool backward, const RouterArguments& args, cudaStream_t stream);

/// out[row] = table[ids[row]]; backward adds rows to an fp32 gradient of the table.
void embedding(Element element, const std::int32_t* ids, const void* table, void* out,
               std::int64_t rows, std::int64_t width, cudaStream_t stream);
void embedding_backward(Element element, const std::int32_t* ids, const void* gradient,
                        float* table_gradient, std::int64_t rows, std::int64_t width,
                        cudaStream_t stream);

/// to[i] = weight[i] · from[source[i]]; without weights 1.
void gather_rows(Element element, const void* from, const std::int32_t* source,
                 const float* weights, void* to, std::int64_t rows, std::int64_t width,
                 cudaStream_t stream);
/// to[i] = Σ_j weight[i each + j] · from[place[i each + j]] for j < each; a place below 0 is none.
void gather_sum(Element element, const void* from, const std::int32_t* places, const float* weights,
                void* to, std::int64_t rows, std::int64_t width, std::int64_t each,
                cudaStream_t stream);

/// sums[column] = Σ rows.
void column_sums(Element element, const void* x, float* sums, std::int64_t rows, std::int64_t width,
                 cudaStream_t stream);

void accumulate(Element element, const void* gradient, float* sum, std::int64_t elements,
                cudaStream_t stream);
struct AdamArguments {
  const float* gradient = nullptr;
  float *parameter = nullptr, *first = nullptr, *second = nullptr;
  void* copy = nullptr;  ///< the parameter in the element's type; null: not wanted
  std::int64_t elements = 0;
  kernels::AdamConstants constants;
};
void adam(Element element, const AdamArguments& args, cudaStream_t stream);
void scale(float* x, float factor, std::int64_t elements, cudaStream_t stream);
void cast_fp8(Element element, const void* x, std::uint8_t* y, float factor, std::int64_t elements,
              cudaStream_t stream);

/// Copies whole 16-byte words, `rounds` times; with `blocks` > 0 by just so many thread blocks.
void stream_copy(const void* from, void* to, std::int64_t bytes, int blocks, cudaStream_t stream,
                 int rounds = 1);
/// Reads whole 16-byte words and adds them up into `sink`.
void stream_read(const void* from, float* sink, std::int64_t bytes, cudaStream_t stream);
/// Pseudo-random elements from -scale to scale.
void fill_random(Element element, void* x, std::int64_t elements, std::uint64_t seed, float scale,
                 cudaStream_t stream);
void fill_random_fp8(std::uint8_t* x, std::int64_t elements, std::uint64_t seed,
                     cudaStream_t stream);
/// Pseudo-random numbers from 0 to below `bound`.
void fill_indices(std::int32_t* x, std::int64_t elements, std::int32_t bound, std::uint64_t seed,
                  cudaStream_t stream);

}  // namespace lockstep::cuda
