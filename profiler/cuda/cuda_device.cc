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
#include "profiler/statistics.h"

namespace lockstep::cuda {
namespace {

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
      : properties_(properties_of(number)),
        nvml_(bus_of(number)),
        timer_(properties_.l2CacheSize) {}

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
    const double before = nvml_.clock_Hz();
    const bool several = kernel.kind == KernelKind::kUnfusedAttention;
    one.seconds = timer_.time(plan.launch, several, options);
    const double after = nvml_.clock_Hz();
    one.clock_low_Hz = std::min(before, after);
    one.clock_high_Hz = std::max(before, after);
    one.temperature_C = nvml_.temperature_C();
    return one;
  }

  InterferenceRow interfere(const Kernel& product, std::int64_t copy_bytes, int copy_blocks,
                            const TimingOptions& options) override {
    std::int64_t held = 0;
    Gemm::Plan plan = gemm_.plan(product, options.search, timer_, &held);
    const Buffer from(copy_bytes, &held), to(copy_bytes, &held);
    const Stream other;
    const auto copy = [&](const Stream& on) {
      stream_copy(from.get(), to.get(), copy_bytes, copy_blocks, on.get());
    };
    // As many products as last at least as long as the copy.
    InterferenceRow row;
    row.copy_blocks = copy_blocks;
    row.copy_s = median_of(options, [&](const Event& begin, const Event& end) {
      begin.record(other);
      copy(other);
      end.record(other);
      other.synchronise();
    });
    const double one = timer_.quick(plan.launch, 3);
    const int repeats = std::clamp(static_cast<int>(std::ceil(1.2 * row.copy_s / one)), 1, 10000);
    const auto compute = [&] {
      for (int i = 0; i < repeats; ++i) {
        plan.launch(timer_.stream().get());
      }
    };
    row.compute_s = median_of(options, [&](const Event& begin, const Event& end) {
      begin.record(timer_.stream());
      compute();
      end.record(timer_.stream());
      timer_.stream().synchronise();
    });
    std::vector<double> copies, computes;
    for (int i = 0; i < options.samples; ++i) {
      const Event compute_begin, compute_end, copy_begin, copy_end;
      copy_begin.record(other);
      copy(other);
      copy_end.record(other);
      compute_begin.record(timer_.stream());
      compute();
      compute_end.record(timer_.stream());
      other.synchronise();
      timer_.stream().synchronise();
      copies.push_back(seconds_between(copy_begin, copy_end));
      computes.push_back(seconds_between(compute_begin, compute_end));
    }
    check(cudaGetLastError(), "kernel");
    row.both_copy_s = summarise(copies).median;
    row.both_compute_s = summarise(computes).median;
    return row;
  }

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
        return attention_->plan(kernel, timer_, held);
      case KernelKind::kUnfusedAttention:
        return plan_unfused_attention(gemm_, kernel, timer_, held, options.search);
      default:
        break;
    }
    return plan_fused_kernel(kernel, timer_, held);
  }

  template <class F>
  static double median_of(const TimingOptions& options, const F& run) {
    std::vector<double> seconds;
    for (int i = 0; i < options.samples + options.warmups; ++i) {
      const Event begin, end;
      run(begin, end);
      if (i >= options.warmups) {
        seconds.push_back(seconds_between(begin, end));
      }
    }
    return summarise(seconds).median;
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
