#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/compute/gpu_spec.h"
#include "profiler/kernel_cost.h"
#include "profiler/statistics.h"
#include "profiler/sweep/efficiency_json.h"
#include "profiler/sweep/nelder_mead.h"

namespace lockstep {
namespace {

constexpr std::size_t kLeastShapes = 16;
constexpr double kLaunchSeconds = 5e-6;  // as the roofline's, of what is no product

/// FNV-1a, 64 bits.
bool is_held_out(const std::string& text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return (hash & 1) != 0;
}

struct Shape {
  Kernel kernel;
  double measured_s = 0;
};

struct Halves {
  std::vector<Shape> fit, held_out;
};

std::string hashed_text(const Kernel& kernel) {
  switch (kernel.kind) {
    case KernelKind::kGemm: {
      const std::int64_t m = kernel.size("m"), n = kernel.size("n");
      // Of a linear layer's three products the sizes are the same, in another order.
      std::array<std::int64_t, 3> sorted{m, n, kernel.size("k")};
      std::ranges::sort(sorted);
      return fmt::format("{},{},{}", sorted[0], sorted[1], sorted[2]);
    }
    case KernelKind::kAttention:
      return fmt::format("{},{},{}", kernel.size("batch"), kernel.size("heads"),
                         kernel.size("queries"));
    default:
      return fmt::format("{},{}", kernel.sizes[0], kernel.sizes[1]);
  }
}

Halves shapes_of(const Measurements& measurements, KernelKind kind, Precision precision) {
  Halves halves;
  for (const auto& [kernel, one] : measurements.kernels) {
    if (kernel.kind == kind && kernel.precision == precision) {
      (is_held_out(hashed_text(kernel)) ? halves.held_out : halves.fit)
          .push_back({kernel, summarise(one.seconds).median});
    }
  }
  return halves;
}

template <class Model>
double loss_of(const std::vector<Shape>& shapes, const Model& model) {
  double sum = 0;
  for (const Shape& shape : shapes) {
    sum += std::abs(std::log(model(shape.kernel) / shape.measured_s));
  }
  return shapes.empty() ? 0 : sum / static_cast<double>(shapes.size());
}

template <class Model>
FitError error_of(const std::vector<Shape>& shapes, const Model& model) {
  FitError error;
  std::vector<double> errors;
  double logs = 0;
  for (const Shape& shape : shapes) {
    const double ratio = model(shape.kernel) / shape.measured_s;
    errors.push_back(std::abs(ratio - 1));
    logs += std::log(ratio);
  }
  if (errors.empty()) {
    return error;
  }
  std::ranges::sort(errors);
  error.shapes = errors.size();
  error.median = quantile(errors, 0.5);
  error.ninetieth = quantile(errors, 0.9);
  error.worst = errors.back();
  error.bias = std::exp(logs / static_cast<double>(errors.size())) - 1;
  return error;
}

GemmEfficiency efficiency_at(const std::vector<double>& p) {
  GemmEfficiency fit;
  fit.launch = Time::seconds(p[0] * 1e-6);
  fit.depth_ns = p[1];
  fit.compute = p[2];
  fit.input = p[3];
  fit.output = p[4];
  fit.fill = p[5];
  return fit;
}

FittedGemm fit_gemm(const Halves& halves, const GpuSpec& gpu, Precision precision) {
  if (std::min(halves.fit.size(), halves.held_out.size()) < kLeastShapes) {
    throw Error(fmt::format("{} and {} products in {} on the two sides", halves.fit.size(),
                            halves.held_out.size(), to_text(precision)))
        .expected(fmt::format("at least {} shapes to fit and as many held out", kLeastShapes))
        .hint("a larger grid: --sweep-hidden, --sweep-seq, --sweep-mbs, --sweep-tp");
  }
  const auto loss = [&](const std::vector<double>& p) {
    if (*std::ranges::min_element(p) < 0 || p[0] > 1e3 || p[1] > 1e3 || p[2] > 1.2 ||
        p[2] <= 0.01 || p[3] > 100 || p[4] > 100 || p[5] > 1) {
      return std::numeric_limits<double>::infinity();
    }
    const GemmEfficiency fit = efficiency_at(p);
    return loss_of(halves.fit, [&](const Kernel& k) {
      return gemm_time({1, k.size("m"), k.size("n"), k.size("k")}, gpu, precision, fit).seconds();
    });
  };
  Minimum best{{}, std::numeric_limits<double>::infinity()};
  const std::array<std::vector<double>, 3> starts{{{5, 0.8, 0.9, 0.1, 0.8, 0.2},
                                                   {3, 0.3, 0.75, 0.5, 0.5, 0.5},
                                                   {8, 1.5, 0.85, 0.05, 1.0, 0.1}}};
  for (const std::vector<double>& start : starts) {
    Minimum found = nelder_mead(loss, start, 600);
    found = nelder_mead(loss, found.at, 400);
    if (found.value < best.value) {
      best = std::move(found);
    }
  }
  FittedGemm result;
  result.precision = precision;
  result.efficiency = efficiency_at(best.at);
  const auto model = [&](const Kernel& k) {
    return gemm_time({1, k.size("m"), k.size("n"), k.size("k")}, gpu, precision, result.efficiency)
        .seconds();
  };
  result.fitted = error_of(halves.fit, model);
  result.held_out = error_of(halves.held_out, model);
  return result;
}

double attention_seconds(const Kernel& kernel, const GpuSpec& gpu, const AttentionEfficiency& fit) {
  return attention_time(attention_work(kernel), gpu, kernel.precision, fit).seconds();
}

/// Each way by itself; extra_keys stay the family's, which few lengths do not tell from the rest.
void fit_attention(const Measurements& measurements, const GpuSpec& gpu, FittedEfficiency& out) {
  const Halves halves = shapes_of(measurements, KernelKind::kAttention, Precision::kBf16);
  if (halves.fit.empty()) {
    return;
  }
  const AttentionEfficiency& family = attention_efficiency(gpu.family);
  for (const bool backward : {false, true}) {
    std::vector<Shape> own;
    std::ranges::copy_if(halves.fit, std::back_inserter(own),
                         [&](const Shape& shape) { return shape.kernel.backward == backward; });
    AttentionPass& pass = backward ? out.attention.backward : out.attention.forward;
    const double extra_keys = (backward ? family.backward : family.forward).extra_keys;
    const auto set = [&](const std::vector<double>& p) { pass = {p[0], p[1] * 1e-9, extra_keys}; };
    const auto loss = [&](const std::vector<double>& p) {
      if (p[0] <= 0.01 || p[0] > 1 || p[1] < 0 || p[1] > 1e4) {
        return std::numeric_limits<double>::infinity();
      }
      set(p);
      return loss_of(own,
                     [&](const Kernel& k) { return attention_seconds(k, gpu, out.attention); });
    };
    Minimum best = nelder_mead(loss, {0.6, 10}, 600);
    best = nelder_mead(loss, best.at, 400);
    set(best.at);
  }
  const auto model = [&](const Kernel& k) { return attention_seconds(k, gpu, out.attention); };
  out.attention_fitted = error_of(halves.fit, model);
  out.attention_held_out = error_of(halves.held_out, model);
}

void fit_memory(const Measurements& measurements, const GpuSpec& gpu, FittedEfficiency& out) {
  const Halves halves = shapes_of(measurements, KernelKind::kNorm, Precision::kBf16);
  if (halves.fit.empty()) {
    return;
  }
  const auto seconds = [&](const Kernel& kernel, double share) {
    return kLaunchSeconds +
           kernel_cost(kernel).bytes / (share * gpu.memory_bandwidth.bytes_per_second());
  };
  const Minimum best = nelder_mead(
      [&](const std::vector<double>& p) {
        return p[0] <= 0.01 || p[0] > 2
                   ? std::numeric_limits<double>::infinity()
                   : loss_of(halves.fit, [&](const Kernel& k) { return seconds(k, p[0]); });
      },
      {0.8}, 200);
  out.memory = best.at[0];
  out.memory_held_out =
      error_of(halves.held_out, [&](const Kernel& k) { return seconds(k, best.at[0]); });
}

}  // namespace

FittedEfficiency fit_efficiency(const Measurements& measurements) {
  const GpuSpec& gpu = gpu_spec(measurements.device.gpu);
  FittedEfficiency fitted;
  fitted.gpu = gpu.name;
  for (const Precision precision :
       {Precision::kBf16, Precision::kFp16, Precision::kFp32, Precision::kFp8}) {
    const Halves halves = shapes_of(measurements, KernelKind::kGemm, precision);
    if (!halves.fit.empty() || !halves.held_out.empty()) {
      fitted.gemm.push_back(fit_gemm(halves, gpu, precision));
    }
  }
  if (fitted.gemm.empty()) {
    throw Error("there is no matrix product among the measurements");
  }
  fit_attention(measurements, gpu, fitted);
  fit_memory(measurements, gpu, fitted);
  return fitted;
}

}  // namespace lockstep
