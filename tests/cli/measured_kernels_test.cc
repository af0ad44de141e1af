// The roofline against what an H200 and an H100 measured under load (workloads/profiles), in jobs
// that nothing was fitted on: what is bound by memory was fitted on jobs of both (those of
// bench/fitted_jobs.txt), attention on the H200's. The figures are those of docs/models.md.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
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

/// Of the peak: what products sustain when a job's operators take turns; of the H200.
constexpr double kProducts = 0.77;

struct Timed {
  Kernel kernel;
  double seconds = 0;
};

/// A card, its kernels, and those of shapes that no job has on which anything was fitted.
struct Card {
  GpuSpec gpu;
  std::vector<Timed> all, kernels;

  /// As it computes when a job's operators take turns.
  GpuSpec hot() const {
    GpuSpec at_power_limit = gpu;
    at_power_limit.bf16 *= kProducts;
    return at_power_limit;
  }
};

/// GPU/JOB, a line each.
const std::set<std::string>& fitted_jobs() {
  static const std::set<std::string> jobs = [] {
    std::set<std::string> all;
    const FileText text((fs::path(LOCKSTEP_SOURCES) / "bench/fitted_jobs.txt").string());
    std::istringstream lines{std::string(text.view())};
    for (std::string line; std::getline(lines, line);) {
      all.insert(line);
    }
    return all;
  }();
  return jobs;
}

/// Calls f(kernel, seconds, whether its job was fitted on).
template <class F>
void each_of_jobs(const std::string& folder, F f) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(LOCKSTEP_SOURCES) /
                                                            "workloads/profiles" / folder)) {
    // Of a job: those of sweeps lie beside the folders, Aceso's are timed one by one.
    if (entry.path().string().ends_with(".measurements.json") &&
        entry.path().parent_path().filename() != folder &&
        entry.path().parent_path().filename() != "aceso") {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    const FileText text(file.string());
    const Measurements measurements = read_measurements(text.view(), file.string());
    const std::string job = folder + "/" + file.parent_path().filename().string();
    for (const auto& [kernel, samples] : measurements.kernels) {
      f(kernel, summarise(samples.seconds).median, fitted_jobs().contains(job));
    }
  }
}

Card card(const std::string& gpu, const std::string& folder) {
  static const std::map<Kernel, int> fitted = [] {
    std::map<Kernel, int> kernels;
    for (const char* each : {"h200", "h100"}) {
      each_of_jobs(each,
                   [&](const Kernel& kernel, double, bool was) { kernels[kernel] += was ? 1 : 0; });
    }
    return kernels;
  }();
  Card one{gpu_spec(gpu), {}, {}};
  each_of_jobs(folder, [&](const Kernel& kernel, double seconds, bool) {
    one.all.push_back({kernel, seconds});
    if (fitted.at(kernel) == 0) {
      one.kernels.push_back({kernel, seconds});
    }
  });
  return one;
}

const Card& h200() {
  static const Card one = card("H200", "h200");
  return one;
}
const Card& h100() {
  static const Card one = card("H100", "h100");
  return one;
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
void tell(const Card& card, const std::string& what, const Errors& errors) {
  std::printf("%s %-28s %5d kernels: mean error %5.1f %%, bias %+5.1f %%\n",
              std::string(card.gpu.name).c_str(), what.c_str(), errors.count, errors.size * 100,
              errors.bias * 100);
}

/// Fused attention one way; without its blocks' way through the keys if so wished.
Errors attention(const Card& card, bool backward, bool blocks = true) {
  const GpuSpec gpu = card.hot();
  AttentionEfficiency fit = attention_efficiency(gpu.family);
  if (!blocks) {
    fit.forward.key_s = fit.backward.key_s = 0;
  }
  return errors_of(card.kernels, [&](const Kernel& kernel) -> std::optional<double> {
    if (kernel.kind != KernelKind::kAttention || kernel.backward != backward) {
      return std::nullopt;
    }
    return attention_time(attention_work(kernel), gpu, Precision::kBf16, fit).seconds();
  });
}

TEST(MeasuredKernels, Attention) {
  for (const Card* card : {&h200(), &h100()}) {
    const Errors forward = attention(*card, false), backward = attention(*card, true);
    tell(*card, "attention forward", forward);
    tell(*card, "attention backward", backward);
    EXPECT_GE(forward.count, 11);
    EXPECT_LT(forward.size, 0.04);
    EXPECT_LT(backward.size, 0.055);
    EXPECT_LT(std::abs(forward.bias), 0.03);
    EXPECT_LT(std::abs(backward.bias), 0.02);
    // Few heads take a block's way: without it they are too fast.
    const Errors forward_without = attention(*card, false, false),
                 backward_without = attention(*card, true, false);
    tell(*card, "  without blocks", forward_without);
    tell(*card, "  without blocks", backward_without);
    EXPECT_GT(forward_without.size, 0.12);
    EXPECT_GT(backward_without.size, 0.11);
  }
}

Errors products(const Card& card, KernelKind kind, Precision precision) {
  const GpuSpec gpu = card.hot();
  return errors_of(card.all, [&](const Kernel& kernel) -> std::optional<double> {
    if (kernel.kind != kind || kernel.precision != precision) {
      return std::nullopt;
    }
    const std::int64_t groups = kind == KernelKind::kGroupedGemm ? kernel.size("groups") : 1;
    return gemm_time({groups, kernel.size("m"), kernel.size("n"), kernel.size("k")}, gpu, precision)
        .seconds();
  });
}

/// Of all jobs: their efficiencies are of other measurements, on an H100; 0.77 alone is of the
/// H200's.
TEST(MeasuredKernels, Products) {
  for (const Card* card : {&h200(), &h100()}) {
    const Errors bf16 = products(*card, KernelKind::kGemm, Precision::kBf16),
                 grouped = products(*card, KernelKind::kGroupedGemm, Precision::kBf16),
                 fp8 = products(*card, KernelKind::kGemm, Precision::kFp8);
    tell(*card, "products bf16", bf16);
    tell(*card, "products of experts bf16", grouped);
    tell(*card, "products fp8", fp8);
    EXPECT_LT(bf16.size, card == &h200() ? 0.055 : 0.065);
    EXPECT_LT(std::abs(bf16.bias), 0.03);
    EXPECT_LT(grouped.size, card == &h200() ? 0.05 : 0.08);
    EXPECT_LT(fp8.size, 0.10);
  }
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
      {MemoryWork::kStream, {"streams", 0.03, 0.03}},
      {MemoryWork::kOneWay, {"one way", 0.03, 0}},
      {MemoryWork::kUpdate, {"optimizer and copies", 0.02, 0}},
      {MemoryWork::kLayerNorm, {"LayerNorm", 0.05, 0.27}},
      {MemoryWork::kRmsNorm, {"RMSNorm", 0.10, 0.16}},
      {MemoryWork::kActivation, {"GELU", 0.02, 0.04}},
      {MemoryWork::kLoss, {"loss", 0.065, 0.02}},
      {MemoryWork::kEmbedding, {"embedding", 0.13, 0.09}},
      {MemoryWork::kColumnSum, {"biases' gradients", 0.09, 0}},
      {MemoryWork::kPermute, {"permute", 0.17, 0.07}},
      {MemoryWork::kUnpermute, {"unpermute", 0.07, 0.15}},
      {MemoryWork::kRouter, {"router", 0.42, 0.26}},
  };
  for (const Card* card : {&h200(), &h100()}) {
    for (const auto& [work, bound] : bounds) {
      for (const bool backward : {false, true}) {
        const auto error = [&, w = work](bool streams) {
          return errors_of(card->kernels, [&, w](const Kernel& kernel) -> std::optional<double> {
            if (work_of(kernel) != w || kernel.backward != backward) {
              return std::nullopt;
            }
            return memory_time(kernel_cost(kernel).bytes, streams ? MemoryWork::kStream : w,
                               backward, card->gpu)
                .seconds();
          });
        };
        const Errors own = error(false);
        if (own.count == 0) {
          continue;
        }
        tell(*card, std::string(bound.name) + (backward ? " backward" : ""), own);
        if (own.count < 2) {
          continue;  // one is no mean
        }
        EXPECT_LT(own.size, backward ? bound.backward : bound.forward) << bound.name << backward;
        // As one more stream they would not be told so well.
        if (work != MemoryWork::kStream) {
          EXPECT_LE(own.size, error(true).size + 0.005) << bound.name << backward;
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
