#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "generator/compute/gpu_spec.h"
#include "profiler/sweep/efficiency_json.h"
#include "profiler/sweep/grid.h"
#include "profiler/sweep/interference.h"
#include "profiler/sweep/nelder_mead.h"
#include "tests/support/fake_device.h"

namespace lockstep::profiler_sweep_test {
namespace {

using testing::FakeDevice;
using ::testing::HasSubstr;

TEST(NelderMead, FindsTheBottomOfRosenbrocksValley) {
  const auto f = [](const std::vector<double>& p) {
    return 100 * std::pow(p[1] - p[0] * p[0], 2) + std::pow(1 - p[0], 2);
  };
  const Minimum found = nelder_mead(f, {-1.2, 1}, 400);
  EXPECT_NEAR(found.at[0], 1, 1e-4);
  EXPECT_NEAR(found.at[1], 1, 1e-4);
}

TEST(Sweep, GridHasEachKernelOnceAndOnlyWhatDivides) {
  SweepGrid grid;
  grid.hidden = {1024};
  grid.sequence = {512};
  grid.micro_batch = {1};
  grid.tp = {1, 3, 16};  // 8 heads: only 1 divides them
  // Four products of which three ways each, attention and norm both ways.
  EXPECT_EQ(sweep_kernels(grid).size(), 4U * 3 + 4);
  grid.tp = {1};
  EXPECT_EQ(sweep_kernels(grid).size(), 4U * 3 + 4);
}

/// Times that follow the model with parameters that are known.
Measurements by_model(const GemmEfficiency& truth) {
  Measurements times;
  times.device.gpu = "NVIDIA H200";
  const GpuSpec& gpu = gpu_spec("H200");
  for (const Kernel& kernel : sweep_kernels({})) {
    Measurement one;
    one.kernel = kernel;
    one.seconds = {kernel.kind == KernelKind::kGemm
                       ? gemm_time({1, kernel.size("m"), kernel.size("n"), kernel.size("k")}, gpu,
                                   Precision::kBf16, truth)
                             .seconds()
                       : FakeDevice::seconds(kernel)};
    times.kernels[kernel] = one;
  }
  return times;
}

TEST(Sweep, FitFindsTheParametersThatMadeTheTimes) {
  GemmEfficiency truth;
  truth.launch = Time::us(4);
  truth.depth_ns = 0.5;
  truth.compute = 0.8;
  truth.input = 0.2;
  truth.output = 0.6;
  truth.fill = 0.3;
  const FittedEfficiency fitted = fit_efficiency(by_model(truth));
  ASSERT_EQ(fitted.gemm.size(), 1U);
  EXPECT_NEAR(fitted.gemm[0].efficiency.compute, 0.8, 0.02);
  EXPECT_LT(fitted.gemm[0].fitted.median, 0.01);
  EXPECT_LT(fitted.gemm[0].held_out.median, 0.015);
  EXPECT_LT(std::abs(fitted.gemm[0].held_out.bias), 0.01);
  EXPECT_GT(fitted.gemm[0].held_out.shapes, 16U);
  // The norms are 5 us + bytes / 2 TB/s, the model 3 us + bytes / (share 4.8 TB/s).
  EXPECT_NEAR(fitted.memory, 2.0 / 4.8, 0.05);
}

TEST(Sweep, HeldOutErrorSeesWhatDoesNotFit) {
  Measurements times = by_model(gemm_efficiency(GpuFamily::kHopper, Precision::kBf16));
  int odd = 0;
  for (auto& [kernel, one] : times.kernels) {
    if (kernel.kind == KernelKind::kGemm && ++odd % 2 == 0) {
      one.seconds[0] *= 2;  // half of the shapes take twice as long: no parameters explain that
    }
  }
  EXPECT_GT(fit_efficiency(times).gemm[0].held_out.ninetieth, 0.25);
}

TEST(Sweep, TooFewShapesAreRefused) {
  Measurements times = by_model(gemm_efficiency(GpuFamily::kHopper, Precision::kBf16));
  while (times.kernels.size() > 20) {
    times.kernels.erase(times.kernels.begin());
  }
  EXPECT_THROW(fit_efficiency(times), Error);
  times.device.gpu = "Voodoo 2";
  EXPECT_THROW(fit_efficiency(times), Error);
}

TEST(Interference, TableHasTheSlowdowns) {
  FakeDevice device;
  const InterferenceTable table = measure_interference(device, {});
  const Json json = parse_json(to_interference_json(table), "i.json");
  ASSERT_EQ(json["rows"].size(), 9U);
  EXPECT_EQ(json["rows"][6]["copy_blocks"], 32);
  EXPECT_DOUBLE_EQ(json["rows"][6]["compute_slowdown"], 1.32);
  EXPECT_DOUBLE_EQ(json["rows"][6]["copy_slowdown"], 1.1);
  EXPECT_THAT(interference_text(table), HasSubstr("1.320"));
}

TEST(Interference, WrittenAndReadAgain) {
  FakeDevice device;
  const std::string text = to_interference_json(measure_interference(device, {}));
  EXPECT_EQ(to_interference_json(read_interference_json(text, "i.json")), text);
}

TEST(Interference, WhatIsNoTableIsRefusedWithThePlace) {
  FakeDevice device;
  const Json good = parse_json(to_interference_json(measure_interference(device, {})), "i.json");
  const auto message = [&](auto change) {
    Json json = good;
    change(json);
    try {
      read_interference_json(to_text(json), "i.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(message([](Json& json) { json["schema"] = "lockstep-interference/9"; }),
              HasSubstr("schema"));
  EXPECT_THAT(message([](Json& json) { json["rows"] = Json::array(); }), HasSubstr("rows: empty"));
  EXPECT_THAT(message([](Json& json) { json["rows"][2]["copy_blocks"] = 2; }),
              HasSubstr("rows[2].copy_blocks"));
  EXPECT_THAT(message([](Json& json) { json["rows"][1]["both_compute_s"] = 0; }),
              HasSubstr("rows[1].both_compute_s: not a time"));
  EXPECT_THAT(message([](Json& json) { json["rows"][0].erase("copy_s"); }), HasSubstr("copy_s"));
  EXPECT_THAT(message([](Json& json) { json["rows"][0]["blocks"] = 1; }), HasSubstr("blocks"));
}

}  // namespace
}  // namespace lockstep::profiler_sweep_test
