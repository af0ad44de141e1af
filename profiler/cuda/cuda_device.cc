#include "profiler/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "profiler/cuda/attention.h"
#include "profiler/cuda/fused_kernels.h"
#include "profiler/cuda/launch.h"
#include "profiler/cuda/nvml.h"
#include "profiler/cuda/rounds.h"
#include "profiler/kernel_cost.h"
#include "profiler/statistics.h"

namespace lockstep::cuda {
namespace {

// About 0.8 ms on an H100.
constexpr std::initializer_list<std::int64_t> kLoad{4096, 8192, 8192};
constexpr double kLongVector = 4e9;  // bytes: timed by itself, the SMs' clock does not matter
constexpr int kMostRepeats = 10000;
constexpr double kLeastCompute = 4e-3;  // seconds of products beside a copy

std::string bus_of(int number) {
  std::array<char, 32> text{};
  check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), number),
        "cudaDeviceGetPCIBusId");
  return text.data();
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

cudaDeviceProp properties_of(int number) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties");
  return properties;
}

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int number)
      : properties_(properties_of(number)), nvml_(bus_of(number)), timer_(properties_.l2CacheSize) {
    timer_.set_load(
        gemm_.plan(make_kernel(KernelKind::kGemm, Precision::kBf16, kLoad), true, timer_, nullptr)
            .launch);
  }

  MeasuredDevice facts() const override {
    MeasuredDevice device;
    device.gpu = properties_.name;
    device.multiprocessors = properties_.multiProcessorCount;
    device.memory = Bytes(static_cast<std::int64_t>(properties_.totalGlobalMem));
    device.driver = nvml_.driver();
    int runtime = 0, driver = 0;
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    device.libraries["cuda"] = version_text(runtime);
    device.libraries["cuda-driver"] = version_text(driver);
    device.libraries["cublasLt"] = Gemm::version();
    if (attention_ != nullptr) {
      device.libraries["cudnn"] = attention_->version();
    }
    return device;
  }

  Measurement measure(const Kernel& kernel, const TimingOptions& options) override {
    std::int64_t held = 0;
    Gemm::Plan plan = plan_of(kernel, options, &held);
    Measurement one;
    one.kernel = kernel;
    one.peak = Bytes(held);
    one.algorithm = plan.algorithm;
    const bool several = kernel.kind == KernelKind::kUnfusedAttention;
    double during = 0;
    one.seconds = timer_.time(plan.launch, several, options, [&] { during = nvml_.clock_Hz(); });
    const double after = nvml_.clock_Hz();
    one.clock_low_Hz = std::min(during, after);
    one.clock_high_Hz = std::max(during, after);
    one.temperature_C = nvml_.temperature_C();
    return one;
  }

  void measure_step(std::span<const StepKernel> kernels, const TimingOptions& options,
                    Measurements& to) override {
    std::vector<StepKernel> alone;
    std::vector<Gemm::Plan> plans;
    std::vector<RoundPart> parts;
    std::vector<Measurement> measured;
    for (const StepKernel& each : kernels) {
      const KernelCost cost = kernel_cost(each.kernel);
      if (!options.load || (cost.flops == 0 && cost.bytes >= kLongVector)) {
        alone.push_back(each);
        continue;
      }
      try {
        std::int64_t held = 0;
        const Gemm::Plan plan = plan_of(each.kernel, options, &held);
        (void)timer_.quick(plan.launch, 1);
        Measurement& one = measured.emplace_back();
        one.kernel = each.kernel;
        one.peak = Bytes(held);
        one.algorithm = plan.algorithm;
        plans.push_back(plan);
        parts.push_back({plan.launch, each.times});
      } catch (const Error& error) {
        if (!usable()) {
          throw Error(to_text(each.kernel) + ": " + error.message());
        }
        alone.push_back(each);  // memory may do for it alone; if not, that says why
      }
    }
    if (!parts.empty()) {
      double clock = 0;
      std::vector<std::vector<double>> seconds =
          time_rounds(timer_, parts, options.samples, [&] { clock = nvml_.clock_Hz(); });
      for (std::size_t i = 0; i < parts.size(); ++i) {
        Measurement& one = measured[i];
        one.seconds = std::move(seconds[i]);
        one.clock_low_Hz = one.clock_high_Hz = clock;
        one.temperature_C = nvml_.temperature_C();
        to.kernels[one.kernel] = one;
      }
    }
    parts.clear();
    plans.clear();
    for (const StepKernel& each : alone) {
      measure_one(*this, each.kernel, options, to);
    }
  }

  InterferenceRow interfere(const Kernel& product, std::int64_t copy_bytes, int copy_blocks,
                            const TimingOptions& options) override {
    std::int64_t held = 0;
    Gemm::Plan plan = gemm_.plan(product, options.search, timer_, &held);
    const Buffer from(copy_bytes, &held), to(copy_bytes, &held);
    const Stream other;
    const auto copy = [&](int rounds) {
      stream_copy(from.get(), to.get(), copy_bytes, copy_blocks, other.get(), rounds);
    };
    const auto compute = [&](int repeats) {
      for (int i = 0; i < repeats; ++i) {
        plan.launch(timer_.stream().get());
      }
    };
    /// Both begun together, the copy first, so that it has its thread blocks.
    struct Both {
      double compute = 0, copy = 0;
    };
    const auto together = [&](int repeats, int rounds) {
      const Event compute_begin, compute_end, copy_begin, copy_end;
      copy_begin.record(other);
      copy(rounds);
      copy_end.record(other);
      compute_begin.record(timer_.stream());
      compute(repeats);
      compute_end.record(timer_.stream());
      other.synchronise();
      timer_.stream().synchronise();
      return Both{seconds_between(compute_begin, compute_end),
                  seconds_between(copy_begin, copy_end)};
    };
    const auto times_to_last = [](double wanted, double each) {
      return std::clamp(static_cast<int>(std::ceil(wanted / each)), 1, kMostRepeats);
    };
    const auto alone = [&](const Stream& stream, const auto& run) {
      const Event begin, end;
      begin.record(stream);
      run();
      end.record(stream);
      stream.synchronise();
      return seconds_between(begin, end);
    };
    InterferenceRow row;
    row.copy_blocks = copy_blocks;
    // Products for some milliseconds, and a copy that lasts longer even if it is not slowed down.
    const double one = timer_.quick(plan.launch, 3);
    const int repeats = times_to_last(kLeastCompute, one);
    // By turns, so that all four see the same clocks.
    std::vector<double> copies, computes, both_copies, both_computes;
    for (int i = 0; i < options.warmups + options.samples; ++i) {
      copies.push_back(alone(other, [&] { copy(1); }));
      computes.push_back(alone(timer_.stream(), [&] { compute(repeats); }));
      both_copies.push_back(together(times_to_last(2 * copies.back(), one), 1).copy);
      Both both = together(repeats, times_to_last(2 * computes.back(), copies.back()));
      if (both.copy < both.compute) {
        both = together(repeats, times_to_last(4 * both.compute, copies.back()));
      }
      both_computes.push_back(both.compute);
    }
    const auto median = [&](const std::vector<double>& seconds) {
      return summarise(std::span(seconds).subspan(static_cast<std::size_t>(options.warmups)))
          .median;
    };
    row.copy_s = median(copies);
    row.compute_s = median(computes);
    check(cudaGetLastError(), "kernel");
    row.both_copy_s = median(both_copies);
    row.both_compute_s = median(both_computes);
    return row;
  }

  bool usable() const override { return cudaDeviceSynchronize() == cudaSuccess; }

 private:
  Gemm::Plan plan_of(const Kernel& kernel, const TimingOptions& options, std::int64_t* held) {
    switch (kernel.kind) {
      case KernelKind::kGemm:
      case KernelKind::kBatchedGemm:
      case KernelKind::kGroupedGemm:
        return gemm_.plan(kernel, options.search, timer_, held);
      case KernelKind::kAttention:
        if (attention_ == nullptr) {
          attention_ = make_fused_attention();
        }
        return attention_->plan(kernel, options.search, timer_, held);
      case KernelKind::kUnfusedAttention:
        return plan_unfused_attention(gemm_, kernel, timer_, held, options.search);
      default:
        break;
    }
    return plan_fused_kernel(kernel, timer_, held);
  }

  cudaDeviceProp properties_;
  Nvml nvml_;
  Timer timer_;
  Gemm gemm_;
  std::unique_ptr<FusedAttention> attention_ =
      has_fused_attention() ? make_fused_attention() : nullptr;
};

}  // namespace

std::unique_ptr<Device> open_device(int number) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    throw Error(fmt::format("no GPU can be used: {}",
                            status == cudaSuccess ? "there is none" : cudaGetErrorString(status)),
                ExitCode::kMissingPart)
        .hint("lockstep doctor tells what is there; --list and --from need no GPU");
  }
  if (number < 0 || number >= count) {
    throw Error(fmt::format("there is no GPU {}", number), ExitCode::kMissingPart)
        .expected(count == 1 ? "0" : fmt::format("0 to {}", count - 1));
  }
  check(cudaSetDevice(number), "cudaSetDevice");
  return std::make_unique<CudaDevice>(number);
}

}  // namespace lockstep::cuda
