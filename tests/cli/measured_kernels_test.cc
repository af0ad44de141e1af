// The roofline against what an H200 measured under load (workloads/profiles/h200): every second job
// was fitted on, the others are looked at here. The figures are those of docs/models.md.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "generator/compute/gemm_efficiency.h"
#include "generator/compute/memory_efficiency.h"
#include "generator/compute/roofline.h"
#include "profiler/kernel_cost.h"
#include "profiler/measurements.h"
#include "profiler/statistics.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

/// Of the peak: what products sustain when a job's operators take turns.
constexpr double kProducts = 0.77;

struct Timed {
  Kernel kernel;
  double seconds = 0;
};

std::vector<Timed> read(const fs::path& file) {
  std::vector<Timed> timed;
  const FileText text(file.string());
  for (const auto& [kernel, one] : read_measurements(text.view(), file.string()).kernels) {
    timed.push_back({kernel, summarise(one.seconds).median});
  }
  return timed;
}

/// The kernels of the jobs that nothing was fitted on: the first, third, … folder by name.
const std::vector<Timed>& held_out() {
  static const std::vector<Timed> all = [] {
    std::vector<fs::path> folders;
    for (const auto& entry :
         fs::directory_iterator(fs::path(LOCKSTEP_SOURCES) / "workloads/profiles/h200")) {
      if (entry.is_directory()) {
        folders.push_back(entry.path());
      }
    }
    EXPECT_EQ(folders.size(), 161U);
    std::ranges::sort(folders);
    std::vector<Timed> timed;
    for (std::size_t i = 0; i < folders.size(); i += 2) {
      for (const auto& entry : fs::directory_iterator(folders[i])) {
        if (entry.path().string().ends_with(".measurements.json")) {
          const std::vector<Timed> own = read(entry.path());
          timed.insert(timed.end(), own.begin(), own.end());
        }
      }
    }
    return timed;
  }();
  return all;
}

GpuSpec hot_h200() {
  GpuSpec gpu = gpu_spec("H200");
  gpu.bf16 *= kProducts;
  return gpu;
}

/// Means of relative errors' sizes and of the errors.
struct Errors {
  int count = 0;
  double size = 0, bias = 0;
};
Errors errors_of(const std::vector<Timed>& timed,
                 const std::function<std::optional<double>(const Kernel&)>& model) {
  Errors errors;
  for (const Timed& each : timed) {
    if (const std::optional<double> seconds = model(each.kernel)) {
      const double off = *seconds / each.seconds - 1;
      ++errors.count;
      errors.size += std::abs(off);
      errors.bias += off;
    }
  }
  errors.size /= errors.count;
  errors.bias /= errors.count;
  return errors;
}
void tell(const std::string& what, const Errors& errors) {
  std::printf("%-28s %5d kernels: mean error %5.1f %%, bias %+5.1f %%\n", what.c_str(),
              errors.count, errors.size * 100, errors.bias * 100);
}

/// Fused attention one way; without its blocks' way through the keys if so wished.
Errors attention(const std::vector<Timed>& timed, bool backward, bool blocks = true) {
  const GpuSpec gpu = hot_h200();
  AttentionEfficiency fit = attention_efficiency(gpu.family);
  if (!blocks) {
    fit.forward.key_s = fit.backward.key_s = 0;
  }
  return errors_of(timed, [&](const Kernel& kernel) -> std::optional<double> {
    if (kernel.kind != KernelKind::kAttention || kernel.backward != backward) {
      return std::nullopt;
    }
    return attention_time(attention_work(kernel), gpu, Precision::kBf16, fit).seconds();
  });
}

TEST(MeasuredKernels, Attention) {
  const Errors forward = attention(held_out(), false), backward = attention(held_out(), true);
  tell("attention forward", forward);
  tell("attention backward", backward);
  EXPECT_GT(forward.count, 70);
  EXPECT_LT(forward.size, 0.04);
  EXPECT_LT(backward.size, 0.055);
  EXPECT_LT(std::abs(forward.bias), 0.02);
  EXPECT_LT(std::abs(backward.bias), 0.02);
  // Few heads take a block's way: without it they are too fast.
  const Errors forward_without = attention(held_out(), false, false),
               backward_without = attention(held_out(), true, false);
  tell("  without blocks", forward_without);
  tell("  without blocks", backward_without);
  EXPECT_GT(forward_without.size, 0.12);
  EXPECT_GT(backward_without.size, 0.11);
}

Errors products(KernelKind kind, Precision precision) {
  const GpuSpec gpu = hot_h200();
  return errors_of(held_out(), [&](const Kernel& kernel) -> std::optional<double> {
    if (kernel.kind != kind || kernel.precision != precision) {
      return std::nullopt;
    }
    const std::int64_t groups = kind == KernelKind::kGroupedGemm ? kernel.size("groups") : 1;
    return gemm_time({groups, kernel.size("m"), kernel.size("n"), kernel.size("k")}, gpu, precision)
        .seconds();
  });
}

/// Their efficiencies are of other measurements, on an H100; 0.77 alone is of these.
TEST(MeasuredKernels, Products) {
  const Errors bf16 = products(KernelKind::kGemm, Precision::kBf16),
               grouped = products(KernelKind::kGroupedGemm, Precision::kBf16),
               fp8 = products(KernelKind::kGemm, Precision::kFp8);
  tell("products bf16", bf16);
  tell("products of experts bf16", grouped);
  tell("products fp8", fp8);
  EXPECT_LT(bf16.size, 0.055);
  EXPECT_LT(std::abs(bf16.bias), 0.02);
  EXPECT_LT(grouped.size, 0.06);
  EXPECT_LT(fp8.size, 0.11);
}

std::optional<MemoryWork> work_of(const Kernel& kernel) {
  switch (kernel.kind) {
    case KernelKind::kNorm:
      return kernel.variant == "rms" ? MemoryWork::kRmsNorm : MemoryWork::kLayerNorm;
    case KernelKind::kActivation:
      return kernel.variant == "gelu" ? MemoryWork::kActivation : MemoryWork::kStream;
    case KernelKind::kResidual:
      return MemoryWork::kStream;
    case KernelKind::kCrossEntropy:
      return MemoryWork::kLoss;
    case KernelKind::kEmbedding:
      return MemoryWork::kEmbedding;
    case KernelKind::kBiasGradient:
      return MemoryWork::kColumnSum;
    case KernelKind::kPermute:
      return MemoryWork::kPermute;
    case KernelKind::kUnpermute:
      return MemoryWork::kUnpermute;
    case KernelKind::kRouter:
      return MemoryWork::kRouter;
    case KernelKind::kAdam:
      return MemoryWork::kUpdate;
    case KernelKind::kStream:
      return kernel.variant == "copy" ? MemoryWork::kUpdate : MemoryWork::kOneWay;
    default:
      return std::nullopt;
  }
}

TEST(MeasuredKernels, BoundByMemory) {
  struct Bound {
    const char* name;
    double forward, backward;  // largest mean error
  };
  const std::map<MemoryWork, Bound> bounds{
      {MemoryWork::kStream, {"streams", 0.05, 0.05}},
      {MemoryWork::kOneWay, {"one way", 0.01, 0}},
      {MemoryWork::kUpdate, {"optimizer and copies", 0.015, 0}},
      {MemoryWork::kLayerNorm, {"LayerNorm", 0.06, 0.24}},
      {MemoryWork::kRmsNorm, {"RMSNorm", 0.06, 0.17}},
      {MemoryWork::kActivation, {"GELU", 0.03, 0.03}},
      {MemoryWork::kLoss, {"loss", 0.045, 0.045}},
      {MemoryWork::kEmbedding, {"embedding", 0.11, 0.045}},
      {MemoryWork::kColumnSum, {"biases' gradients", 0.07, 0.07}},
      {MemoryWork::kPermute, {"permute", 0.14, 0.07}},
      {MemoryWork::kUnpermute, {"unpermute", 0.08, 0.14}},
      {MemoryWork::kRouter, {"router", 0.33, 0.10}},
  };
  for (const auto& [work, bound] : bounds) {
    for (const bool backward : {false, true}) {
      const auto error = [&, w = work](const GpuSpec& gpu, bool streams) {
        return errors_of(held_out(), [&, w](const Kernel& kernel) -> std::optional<double> {
          if (work_of(kernel) != w || kernel.backward != backward) {
            return std::nullopt;
          }
          return memory_time(kernel_cost(kernel).bytes, streams ? MemoryWork::kStream : w, backward,
                             gpu)
              .seconds();
        });
      };
      const Errors own = error(gpu_spec("H200"), false);
      if (own.count == 0) {
        continue;
      }
      tell(std::string(bound.name) + (backward ? " backward" : ""), own);
      EXPECT_LT(own.size, backward ? bound.backward : bound.forward) << bound.name << backward;
      // As one more stream they would not be told so well.
      if (work != MemoryWork::kStream) {
        EXPECT_LE(own.size, error(gpu_spec("H200"), true).size + 0.005) << bound.name << backward;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
