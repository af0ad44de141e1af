#include "analysis/compare/calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

namespace lockstep::compare::calibrate_test {
namespace {

/// Tables of all-to-alls and all-reduces on two and four servers, as a system of these rates would
/// have made them.
PhysicalLog log_of(const Preset& truth, CompareWishes& wishes) {
  PhysicalLog log;
  log.names = {"made up"};
  int number = 0;
  for (const CommType op : {CommType::kAllToAll, CommType::kAllReduce}) {
    for (const std::int32_t servers : {2, 2, 4, 4}) {
      CommSetting setting;
      setting.id = "table" + std::to_string(number++);
      setting.servers = servers;
      setting.ranks = servers * truth.system.gpus_per_server;
      log.settings.push_back(setting);
      for (std::int64_t bytes = 1024; bytes <= std::int64_t{1} << 30; bytes *= 2) {
        CommRow row;
        row.op = op;
        row.bytes = Bytes(bytes);
        row.setting = static_cast<std::int32_t>(log.settings.size()) - 1;
        row.time_s = 1;
        log.comms.push_back(row);
      }
    }
  }
  Warnings none;
  wishes.preset = truth;
  const std::vector<ComparedRow> rows = predict_rows(log, wishes, none);
  EXPECT_EQ(rows.size(), log.comms.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    log.comms[i].time_s = rows[i].predicted.time_us * 1e-6;
  }
  return log;
}

// A cap that no row reaches at first (25 GB/s a pair, where 0.5 is true) and a latency of zero have
// no slope; both are found, and the held-out half is met.
TEST(Calibrate, FindsRatesWithoutASlopeAtTheStart) {
  Preset start = preset_named("a100-slingshot");
  start.system.rates = {};
  Preset truth = start;
  truth.system.rates.pair_GBps = 0.5;
  truth.system.rates.step_us = 60;
  CompareWishes wishes;
  const PhysicalLog log = log_of(truth, wishes);
  wishes.preset = start;
  Warnings none;
  const Calibration found = calibrate(predict_rows(log, wishes, none), wishes, {});
  const auto fitted = [&](std::string_view name) {
    const auto rate = std::ranges::find(found.fitted, name, &FittedRate::name);
    return rate == found.fitted.end() ? 0.0 : rate->after;
  };
  EXPECT_NEAR(fitted("pair_Bps"), 5e8, 5e6);
  EXPECT_NEAR(fitted("step_s"), 60e-6, 1e-6);
  EXPECT_LT(found.held_out_large.p90, 0.01);
  EXPECT_GT(found.before_held_out_large.median, 0.2);
  EXPECT_FALSE(found.preset_kept);
}

// Times that scatter about the preset's own, by factors that follow no rate: whatever is fitted to
// some tables does worse on others than the preset, whose rates are kept to the last bit.
TEST(Calibrate, KeepsThePresetsRatesWhereFitsDoNoBetter) {
  const Preset preset = preset_named("dgx-a100");
  CompareWishes wishes;
  PhysicalLog log = log_of(preset, wishes);
  std::uint64_t state = 1;
  for (CommRow& row : log.comms) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    row.time_s *= std::exp(static_cast<double>(state >> 40U) / (1 << 24) - 0.5);
  }
  Warnings none;
  const Calibration found = calibrate(predict_rows(log, wishes, none), wishes, {});
  EXPECT_TRUE(found.preset_kept);
  EXPECT_TRUE(found.fitted.empty());
  EXPECT_FALSE(found.validated.better_than(found.preset_validated));
  for (const NcclRateField& field : nccl_rate_fields()) {
    EXPECT_EQ(found.preset.system.rates.*field.value, preset.system.rates.*field.value);
  }
  EXPECT_EQ(found.preset.intervals.size(), preset.intervals.size());
  EXPECT_EQ(found.held_out_large.median, found.before_held_out_large.median);
}

// A third of the mean outweighs a tail that is a tenth longer, a tenth of it not one twice as long.
TEST(Calibrate, WhatCountsAsBetter) {
  const ValidatedError preset{.mean = 0.3, .p90 = 0.4};
  EXPECT_TRUE((ValidatedError{.mean = 0.1, .p90 = 0.44}.better_than(preset)));
  EXPECT_FALSE((ValidatedError{.mean = 0.27, .p90 = 0.8}.better_than(preset)));
  EXPECT_FALSE((ValidatedError{.mean = 0.31, .p90 = 0.1}.better_than(preset)));
  EXPECT_FALSE(preset.better_than(preset));
}

// Six rows, all bound by what LL128 may send: one rate in three rows, at most, and none is named.
TEST(Calibrate, ChoosesAmongTheRatesWhereAFewRowsAreAll) {
  Preset start = preset_named("dgx-h100");
  start.system.rates.ll128_GBps = 20;
  Preset truth = start;
  truth.system.rates.ll128_GBps = 33;
  CompareWishes wishes;
  wishes.preset = truth;
  PhysicalLog log;
  log.names = {"made up"};
  CommSetting setting;
  setting.id = "table";
  setting.servers = 2;
  setting.ranks = 4;
  setting.env = {{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "LL128"}};
  log.settings.push_back(setting);
  for (std::int64_t bytes = 1 << 20; bytes < 64 << 20; bytes *= 2) {
    CommRow row;
    row.op = CommType::kAllReduce;
    row.bytes = Bytes(bytes);
    row.time_s = 1;
    log.comms.insert(log.comms.end(), {row, row});
  }
  Warnings none;
  std::vector<ComparedRow> rows = predict_rows(log, wishes, none);
  for (ComparedRow& row : rows) {
    EXPECT_EQ(row.predicted.choice.protocol, Protocol::kLl128);
    row.measured_us = row.predicted.time_us;
  }
  wishes.preset = start;
  const Calibration found = calibrate(rows, wishes, {});
  EXPECT_FALSE(found.preset_kept);
  EXPECT_LE(3 * found.fitted.size(), rows.size() / 2);
  const auto rate = std::ranges::find(found.fitted, "ll128_Bps", &FittedRate::name);
  ASSERT_NE(rate, found.fitted.end());
  EXPECT_NEAR(rate->after, 33e9, 2e9);
  EXPECT_LT(found.held_out_large.p90, 0.05);
}

// What one table says in place and out of place of a size is in one half: times in place that are
// half of those out of place, as of a cache, do not make the other half bad or good.
TEST(Calibrate, OneTableIsSplitBySizes) {
  CompareWishes wishes;
  wishes.preset = preset_named("dgx-h100");
  PhysicalLog log;
  log.names = {"made up"};
  CommSetting setting;
  setting.id = "table";
  setting.servers = 2;
  setting.ranks = 16;
  log.settings.push_back(setting);
  for (std::int64_t bytes = 1 << 20; bytes < 256 << 20; bytes *= 2) {
    for (const bool in_place : {false, true}) {
      CommRow row;
      row.op = CommType::kAllReduce;
      row.bytes = Bytes(bytes);
      row.time_s = 1;
      row.in_place = in_place;
      log.comms.push_back(row);
    }
  }
  Warnings none;
  std::vector<ComparedRow> rows = predict_rows(log, wishes, none);
  for (ComparedRow& row : rows) {
    row.measured_us = row.predicted.time_us * (row.row->in_place ? 0.5 : 1);
  }
  for (const TrainingHalf half : {TrainingHalf::kFirst, TrainingHalf::kSecond}) {
    const Calibration found = calibrate(rows, wishes, {}, half);
    // Four sizes, each with an error of 0 and one of 100 %.
    std::vector<double> before = found.before_held_out_errors;
    std::ranges::sort(before);
    ASSERT_EQ(before.size(), 8U);
    EXPECT_NEAR(before[3], 0, 1e-9);
    EXPECT_NEAR(before[4], 1, 1e-9);
  }
  // Of one size none is left to judge on.
  rows.resize(2);
  EXPECT_THROW(calibrate(rows, wishes, {}, TrainingHalf::kFirst), Error);
}

// Of rates that are fitted to times with 3 % of noise, 95 % intervals hold the true ones in 54 of
// 60 cases.
TEST(Calibrate, IntervalsHoldTheTruth) {
  Preset truth = preset_named("dgx-h100");
  truth.system.rates.floor_us *= 1.3;
  truth.system.rates.network_efficiency *= 0.8;
  truth.system.rates.nvls_efficiency *= 0.9;
  CompareWishes wishes;
  const PhysicalLog exact = log_of(truth, wishes);
  wishes.preset = preset_named("dgx-h100");
  Rng rng(1, "noise of measurements");
  int held = 0, all = 0;
  for (int run = 0; run < 20; ++run) {
    PhysicalLog log = exact;
    for (CommRow& row : log.comms) {
      double normal = -6;  // a sum of twelve
      for (int i = 0; i < 12; ++i) {
        normal += rng.uniform();
      }
      row.time_s *= std::exp(0.03 * normal);
    }
    Warnings none;
    const Calibration found = calibrate(predict_rows(log, wishes, none), wishes,
                                        {"floor_s", "network_efficiency", "nvls_efficiency"});
    for (const FittedRate& rate : found.fitted) {
      const auto field = std::ranges::find(nccl_rate_fields(), rate.name, &NcclRateField::name);
      const double value = truth.system.rates.*field->value * field->unit;
      held += rate.interval.low <= value && value <= rate.interval.high ? 1 : 0;
      ++all;
    }
  }
  EXPECT_EQ(all, 60);
  EXPECT_GE(held, 54);
}

// A rate is fitted only if its 95 % interval, as it is printed, is narrower than a factor of four:
// times with so much noise say little of some.
TEST(Calibrate, PrintedIntervalsAreNarrowerThanAFactorOfFour) {
  CompareWishes wishes;
  const PhysicalLog exact = log_of(preset_named("dgx-h100"), wishes);
  Rng rng(1, "noise of measurements");
  int fitted = 0, refused = 0;
  for (int run = 0; run < 60; ++run) {
    PhysicalLog log = exact;
    for (CommRow& row : log.comms) {
      row.time_s *= std::exp(2 * rng.uniform() - 1);
    }
    Warnings none;
    try {
      const Calibration found =
          calibrate(predict_rows(log, wishes, none), wishes, {"floor_s", "network_overlap"});
      for (const FittedRate& rate : found.fitted) {
        EXPECT_LE(rate.interval.high / rate.interval.low, 4) << rate.name << " of run " << run;
        ++fitted;
      }
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(fitted, 0);
  EXPECT_GT(refused, 0);
}

// Logs of several folders may have one name: they are as many tables, in the order given.
TEST(Calibrate, TablesOfOneNameAreSeveral) {
  Preset start = preset_named("a100-slingshot");
  start.system.rates = {};
  Preset truth = start;
  truth.system.rates.pair_GBps = 0.5;
  CompareWishes wishes;
  const PhysicalLog log = log_of(truth, wishes);
  PhysicalLog named = log;
  for (CommSetting& setting : named.settings) {
    setting.id = "all_reduce.log";
  }
  wishes.preset = start;
  Warnings none;
  const Calibration apart = calibrate(predict_rows(log, wishes, none), wishes, {});
  const Calibration found = calibrate(predict_rows(named, wishes, none), wishes, {});
  EXPECT_EQ(found.training_tables, 4U);
  EXPECT_EQ(found.held_out_tables, 4U);
  EXPECT_EQ(found.held_out_errors, apart.held_out_errors);
  EXPECT_EQ(found.preset.provenance.back(), "table all_reduce.log (8 of this name)");
  // Nor do names hide that logs are of several kinds of cluster.
  named.settings.front().gpu_type = "NVIDIA A100-SXM4-40GB";
  for (std::size_t i = 1; i < named.settings.size(); ++i) {
    named.settings[i].gpu_type = "NVIDIA H100 80GB HBM3";
  }
  wishes.preset.reset();
  EXPECT_THROW(calibrate(predict_rows(named, wishes, none), wishes, {}), Error);
}

// Tables without GDRCopy have steps of 2.25 times the cluster's, whichever of them is the last: the
// fit takes that factor for what it is, and the cluster's own rate is what it writes.
TEST(Calibrate, ATablesSettingsAreNotTheClusters) {
  Preset truth = preset_named("alps-gh200");
  truth.system.rates.step_us = 60;
  CompareWishes wishes;
  PhysicalLog log = log_of(truth, wishes);
  for (std::size_t i = 1; i < log.settings.size(); i += 2) {
    log.settings[i].env = {{"FI_HMEM_CUDA_USE_GDRCOPY", "0"}};
  }
  Warnings none;
  const std::vector<ComparedRow> measured = predict_rows(log, wishes, none);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    log.comms[i].time_s = measured[i].predicted.time_us * 1e-6;
  }
  wishes.preset = preset_named("alps-gh200");
  for (const TrainingHalf half : {TrainingHalf::kFirst, TrainingHalf::kSecond}) {
    const Calibration found = calibrate(predict_rows(log, wishes, none), wishes, {}, half);
    EXPECT_NEAR(found.preset.system.rates.step_us, 60, 2);
    EXPECT_LT(found.held_out_large.p90, 0.02);
    EXPECT_EQ(found.preset.system.fabric, wishes.preset->system.fabric);
  }
}

// Hops of forty times NCCL's own values are no property of a network: such a rate is left alone.
TEST(Calibrate, RatesStayPhysical) {
  const Preset start = preset_named("a100-slingshot");
  Preset truth = start;
  truth.system.rates.simple_penalty = 40;
  CompareWishes wishes;
  const PhysicalLog log = log_of(truth, wishes);
  wishes.preset = start;
  Warnings none;
  const auto rows = predict_rows(log, wishes, none);
  EXPECT_THROW(calibrate(rows, wishes, {"simple_penalty"}), Error);
  for (const FittedRate& rate : calibrate(rows, wishes, {}).fitted) {
    EXPECT_TRUE(rate.name != "simple_penalty" || rate.after <= 10) << rate.after;
  }
}

// Without rows of 1 MiB and more the provenance tells the errors of those that there are.
TEST(Calibrate, ProvenanceTellsNoErrorsOfSizesThatAreMissing) {
  Preset start = preset_named("a100-slingshot");
  Preset truth = start;
  truth.system.rates.floor_us *= 1.5;
  CompareWishes wishes;
  PhysicalLog log = log_of(truth, wishes);
  std::erase_if(log.comms, [](const CommRow& row) { return row.bytes >= Bytes(1 << 20); });
  wishes.preset = start;
  Warnings none;
  const Calibration found = calibrate(predict_rows(log, wishes, none), wishes, {});
  EXPECT_EQ(found.held_out_large.rows, 0U);
  const auto& lines = found.preset.provenance;
  EXPECT_TRUE(std::ranges::any_of(lines, [](const std::string& line) {
    return line.find("judged on ") != std::string::npos && line.ends_with(", none from 1 MiB on");
  }));
}

// A preset that was fitted before, fitted anew, tells of the fit that its rates rest on, once.
TEST(Calibrate, ProvenanceIsOfTheFitThatCounts) {
  Preset start = preset_named("a100-slingshot");
  start.system.rates = {};
  start.intervals.clear();
  start.provenance = {"made up"};
  Preset truth = start;
  truth.system.rates.pair_GBps = 0.5;
  CompareWishes wishes;
  const PhysicalLog log = log_of(truth, wishes);
  wishes.preset = start;
  Warnings none;
  for (int round = 0; round < 2; ++round) {
    const Calibration found = calibrate(predict_rows(log, wishes, none), wishes, {"pair_Bps"});
    ASSERT_FALSE(found.preset_kept);
    const auto& lines = found.preset.provenance;
    EXPECT_EQ(lines.front(), "made up");
    EXPECT_EQ(std::ranges::count_if(
                  lines, [](const auto& line) { return line.starts_with("pair_Bps: fitted to "); }),
              1);
    EXPECT_EQ(std::ranges::count(lines, "table table0"), 1);
    wishes.preset = found.preset;
    wishes.preset->system.rates.pair_GBps = 5;  // as if another cluster's
  }
}

}  // namespace
}  // namespace lockstep::compare::calibrate_test
