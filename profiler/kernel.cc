#include "profiler/kernel.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "generator/compute/gpu_spec.h"

namespace lockstep {
namespace {

constexpr std::string_view kProduct[] = {"m", "n", "k"};
constexpr std::string_view kProducts[] = {"groups", "m", "n", "k"};
constexpr std::string_view kHeads[] = {"batch", "heads",    "kv_heads", "queries",
                                       "keys",  "head_dim", "value_dim"};
constexpr std::string_view kScores[] = {"batch", "queries", "keys"};
constexpr std::string_view kTable[] = {"rows", "width", "vocabulary"};
constexpr std::string_view kRows[] = {"rows", "width"};
constexpr std::string_view kRotated[] = {"rows", "heads", "head_dim"};
constexpr std::string_view kRouted[] = {"rows", "experts", "topk"};
constexpr std::string_view kMoved[] = {"rows", "copies", "width"};
constexpr std::string_view kLogits[] = {"rows", "vocabulary"};
constexpr std::string_view kElements[] = {"elements"};
constexpr std::string_view kBytes[] = {"bytes"};

// Which of its operands a product has as they lie in memory, which transposed.
constexpr std::string_view kPasses[] = {"forward", "input-gradient", "weight-gradient"};
constexpr std::string_view kNorms[] = {"rms", "layer"};
constexpr std::string_view kActivations[] = {"gelu", "swiglu"};
constexpr std::string_view kStreams[] = {"copy", "read", "write"};
constexpr std::string_view kDirections[] = {"device", "host-to-device", "device-to-host"};

constexpr std::array<KernelTraits, kKernelKinds> kTraits{{
    {KernelKind::kGemm, "gemm", kProduct, kPasses, false, false},
    {KernelKind::kBatchedGemm, "batched-gemm", kProducts, kPasses, false, false},
    {KernelKind::kGroupedGemm, "grouped-gemm", kProducts, kPasses, false, false},
    {KernelKind::kAttention, "attention", kHeads, {}, true, true},
    {KernelKind::kUnfusedAttention, "unfused-attention", kHeads, {}, true, true},
    {KernelKind::kSoftmax, "softmax", kScores, {}, true, true},
    {KernelKind::kEmbedding, "embedding", kTable, {}, true, false},
    {KernelKind::kNorm, "norm", kRows, kNorms, true, false},
    {KernelKind::kRotary, "rotary", kRotated, {}, true, false},
    {KernelKind::kActivation, "activation", kRows, kActivations, true, false},
    {KernelKind::kResidual, "residual", kRows, {}, true, false},
    {KernelKind::kDropout, "dropout", kElements, {}, true, false},
    {KernelKind::kRouter, "router", kRouted, {}, true, false},
    {KernelKind::kPermute, "permute", kMoved, {}, true, false},
    {KernelKind::kUnpermute, "unpermute", kMoved, {}, true, false},
    {KernelKind::kCrossEntropy, "cross-entropy", kLogits, {}, true, false},
    {KernelKind::kBiasGradient, "bias-gradient", kRows, {}, false, false},
    {KernelKind::kAccumulate, "accumulate", kElements, {}, false, false},
    {KernelKind::kAdam, "adam", kElements, {}, false, false},
    {KernelKind::kScale, "scale", kElements, {}, false, false},
    {KernelKind::kCast, "cast-fp8", kElements, {}, false, false},
    {KernelKind::kCopy, "copy", kBytes, kDirections, false, false},
    {KernelKind::kStream, "stream", kBytes, kStreams, false, false},
}};

std::string names_of_kinds() {
  std::vector<std::string_view> names;
  names.reserve(kTraits.size());
  for (const KernelTraits& traits : kTraits) {
    names.push_back(traits.name);
  }
  return join(names, ", ");
}

constexpr std::int64_t kLargest = std::int64_t{1} << 50;

}  // namespace

const KernelTraits& traits_of(KernelKind kind) { return kTraits[static_cast<std::size_t>(kind)]; }

std::int64_t Kernel::size(std::string_view name) const {
  const auto names = traits_of(kind).sizes;
  const auto found = std::ranges::find(names, name);
  LOCKSTEP_CHECK(found != names.end(), std::string(name));
  return sizes[static_cast<std::size_t>(found - names.begin())];
}

Kernel make_kernel(KernelKind kind, Precision precision, std::initializer_list<std::int64_t> sizes,
                   bool backward, std::string_view variant) {
  const KernelTraits& traits = traits_of(kind);
  LOCKSTEP_CHECK(sizes.size() == traits.sizes.size(), std::string(traits.name));
  Kernel kernel{kind, precision, {}, {}, backward, false};
  std::ranges::copy(sizes, kernel.sizes.begin());
  if (!traits.variants.empty()) {
    kernel.variant = traits.variants[0];
    if (!variant.empty()) {
      const auto found = std::ranges::find(traits.variants, variant);
      LOCKSTEP_CHECK(found != traits.variants.end(), std::string(variant));
      kernel.variant = *found;
    }
  }
  return kernel;
}

std::string to_text(const Kernel& kernel) {
  const KernelTraits& traits = traits_of(kernel.kind);
  std::string text = fmt::format("{} {}", traits.name, to_text(kernel.precision));
  for (std::size_t i = 0; i < traits.sizes.size(); ++i) {
    text += fmt::format(" {}={}", traits.sizes[i], kernel.sizes[i]);
  }
  if (!kernel.variant.empty()) {
    text += fmt::format(" {}", kernel.variant);
  }
  if (kernel.causal) {
    text += " causal";
  }
  if (traits.backward) {
    text += kernel.backward ? " backward" : " forward";
  }
  return text;
}

std::vector<std::string_view> kernel_keys(KernelKind kind) {
  const KernelTraits& traits = traits_of(kind);
  std::vector<std::string_view> keys{"kind", "precision"};
  keys.insert(keys.end(), traits.sizes.begin(), traits.sizes.end());
  if (!traits.variants.empty()) {
    keys.emplace_back("variant");
  }
  if (traits.backward) {
    keys.emplace_back("backward");
  }
  if (traits.causal) {
    keys.emplace_back("causal");
  }
  return keys;
}

void write_kernel(const Kernel& kernel, Json& object) {
  const KernelTraits& traits = traits_of(kernel.kind);
  object["kind"] = traits.name;
  object["precision"] = to_text(kernel.precision);
  for (std::size_t i = 0; i < traits.sizes.size(); ++i) {
    object[std::string(traits.sizes[i])] = kernel.sizes[i];
  }
  if (!traits.variants.empty()) {
    object["variant"] = kernel.variant;
  }
  if (traits.backward) {
    object["backward"] = kernel.backward;
  }
  if (traits.causal) {
    object["causal"] = kernel.causal;
  }
}

Kernel read_kernel(const JsonView& object) {
  const JsonView kind = object["kind"];
  const auto traits = std::ranges::find(kTraits, kind.string(), &KernelTraits::name);
  if (traits == kTraits.end()) {
    throw kind.error("unknown kind '" + printable(kind.string()) + "'").expected(names_of_kinds());
  }
  Kernel kernel;
  kernel.kind = traits->kind;
  const auto precision = precision_of(object["precision"].string());
  if (!precision) {
    throw object["precision"].error("unknown precision").expected("bf16, fp16, fp32 or fp8");
  }
  kernel.precision = *precision;
  for (std::size_t i = 0; i < traits->sizes.size(); ++i) {
    kernel.sizes[i] = object[traits->sizes[i]].integer(1, kLargest);
  }
  if (!traits->variants.empty()) {
    const JsonView variant = object["variant"];
    const auto found = std::ranges::find(traits->variants, variant.string());
    if (found == traits->variants.end()) {
      throw variant.error("unknown variant '" + printable(variant.string()) + "'")
          .expected(join(traits->variants, ", "));
    }
    kernel.variant = *found;
  }
  kernel.backward = traits->backward && object["backward"].boolean();
  kernel.causal = traits->causal && object["causal"].boolean();
  return kernel;
}

}  // namespace lockstep
