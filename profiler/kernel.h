#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "generator/job.h"

namespace lockstep {

/// Kinds of work that are timed on a GPU as one operator.
enum class KernelKind : std::uint8_t {
  kGemm,              ///< (m x k) (k x n)
  kBatchedGemm,       ///< `groups` products of one shape, each with its own matrices
  kGroupedGemm,       ///< the experts of an MoE: as kBatchedGemm, by a grouped kernel where faster
  kAttention,         ///< one kernel that keeps no scores
  kUnfusedAttention,  ///< product, softmax, product
  kSoftmax,           ///< of `batch` x `queries` rows of `keys` scores, scaled and masked
  kEmbedding,         ///< rows of a table
  kNorm,              ///< over `width` elements of each row
  kRotary,            ///< rotary position embedding of `heads` heads
  kActivation,        ///< `width` elements out of each row
  kResidual,          ///< sum of two tensors
  kDropout,           ///< with a mask of a byte an element
  kRouter,            ///< softmax and top-k over experts
  kPermute,           ///< rows of tokens to rows of experts
  kUnpermute,         ///< and back, the copies of a token added up by weight
  kCrossEntropy,      ///< of rows of logits, in fp32
  kBiasGradient,      ///< column sums
  kAccumulate,        ///< fp32 gradients += gradients
  kAdam,              ///< one step of Adam on fp32 masters
  kScale,             ///< fp32 vector divided in place (AICB's param_time)
  kCast,              ///< to fp8 with one scale
  kCopy,              ///< memory copy
  kStream,            ///< moves `bytes` in all: reads half and writes half, or does all of one
};
inline constexpr int kKernelKinds = static_cast<int>(KernelKind::kStream) + 1;

/// What there is to know of a kind: names in files, which sizes it has, and its variants.
struct KernelTraits {
  KernelKind kind;
  std::string_view name;                       ///< "gemm"
  std::span<const std::string_view> sizes;     ///< in the order of Kernel::sizes
  std::span<const std::string_view> variants;  ///< the first is the default; empty: none
  bool backward = false;                       ///< has a backward pass of its own
  bool causal = false;                         ///< may be masked causally
};
const KernelTraits& traits_of(KernelKind kind);

/// One operator as it is timed. Sizes are those of one rank and one microbatch, each at least 1;
/// what the kind does not have is 0.
struct Kernel {
  KernelKind kind = KernelKind::kStream;
  Precision precision = Precision::kBf16;  ///< of the operands
  std::array<std::int64_t, 7> sizes{};
  std::string_view variant = {};  ///< one of the traits' own texts, or empty
  bool backward = false;
  bool causal = false;

  /// A size by its name. PRECONDITION: the kind has it.
  std::int64_t size(std::string_view name) const;
  friend auto operator<=>(const Kernel&, const Kernel&) = default;
};

/// A kernel with the kind's sizes in their order and its first variant.
/// PRECONDITION: as many sizes as the kind has, each at least 1.
Kernel make_kernel(KernelKind kind, Precision precision, std::initializer_list<std::int64_t> sizes,
                   bool backward = false, std::string_view variant = {});

/// "gemm bf16 m=4096 n=6144 k=4096 forward".
std::string to_text(const Kernel& kernel);

/// The kernel's fields, for a JSON object. Reading them gives the kernel back.
void write_kernel(const Kernel& kernel, Json& object);
/// ERRORS: Error with the place: unknown kind, precision or variant, a size missing or below 1.
Kernel read_kernel(const JsonView& object);
/// The keys write_kernel() may use for that kind.
std::vector<std::string_view> kernel_keys(KernelKind kind);

}  // namespace lockstep
